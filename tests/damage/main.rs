//! Logs whose bytes were harmed, in the process and on the simulated disk: what is
//! torn is told from what is damaged, and nothing of either is destroyed.
//!
//! `TAPELOG_LONG=1` harms more places, in more ways.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

mod looking;
mod torn;
mod victim;
