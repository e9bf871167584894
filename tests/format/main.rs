//! The format: logs committed byte for byte, so that it can't change by accident; a
//! reader in another language, written from tapelog-format(5) alone; batches that lie;
//! what storing costs.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on panics")]

#[path = "../sandbox/mod.rs"]
mod sandbox;

mod access_log;
mod bombs;
mod golden;
mod harm;
mod logs;
mod python;
mod record_text;
