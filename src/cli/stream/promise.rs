//! What a producer promises: when records are safe, what it prints of them, and what
//! becomes of those that it can't take.

use std::str::FromStr;
use std::time::Duration;

use crate::cli::failure::{Ended, Status};
use crate::cli::text::duration::parse_duration;
use crate::model::Offset;

/// When what was appended is synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncPolicy {
    /// So often, and at the end.
    Every(Duration),
    /// After each batch.
    Each,
    /// Never.
    Never,
}

impl FromStr for SyncPolicy {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "each" => Ok(SyncPolicy::Each),
            "none" => Ok(SyncPolicy::Never),
            _ => parse_duration(text).map(SyncPolicy::Every),
        }
    }
}

/// What becomes of a record that is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oversized {
    /// It ends the run.
    Refuse,
    /// It is left out, and counted.
    Skip,
}

/// What a producer promises and prints.
#[derive(Clone, Debug)]
pub struct Policy {
    /// When what was appended is synced.
    pub sync: SyncPolicy,
    /// Whether offsets are printed once they are safe.
    pub receipts: bool,
    /// What is printed after each stored value, if values are to be printed.
    pub tee: Option<Vec<u8>>,
    /// What becomes of a record that is too large.
    pub oversized: Oversized,
    /// Where the log must end for the next batch.
    pub expected_end: Option<Offset>,
}

/// How a run ends that met a record larger than the log takes.
pub fn too_big(place: &str, size: &str, limit: usize) -> Ended {
    let line = format!(
        "{place} {size}, but max-record-size is {limit}: all before it is stored, it and what \
         follows is not; config raises the limit, --oversize skip leaves such records out"
    );
    Ended { status: Status::TooBig, line: Some(line) }
}
