//! Bit rot: every bit of a log flipped, one at a time, and damage of every other kind.
//!
//! - A changed record is never given to anyone as a good one; reading ends with damage
//!   where a record is lost, and nowhere else.
//! - Whoever skips damage loses at most the batch that was hit.
//! - Verify finds what was hit, unless nothing depends on it.
//! - Repair leaves a log that is whole, with every good record at its offset; a second
//!   repair changes nothing; a writer goes on at the log end.
//!
//! Every bit of a segment is read, and skipped where that says damage; every bit of a
//! state file is decoded. A sample is read from end to end, verified and repaired; with
//! `TAPELOG_LONG=1` all of them are.

#![allow(clippy::print_stdout, reason = "the figures are what the test is run for")]
#![allow(clippy::unwrap_used, reason = "a test that can't go on panics")]

mod flips;
mod harm;
mod mending;
mod reading;
mod sample;
