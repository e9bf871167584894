//! What is known of one segment without opening it: the input of every plan.

use serde::Serialize;

use super::{Offset, Timestamp};

/// Whether a segment still grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SegmentState {
    /// The newest segment, which appends go to.
    Active,
    /// An older segment: replaced whole or removed, never changed in place.
    Sealed,
}

/// The facts of one segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentFacts {
    /// The offset of its first record, which is also its name.
    pub base: Offset,
    /// The offset after its last record.
    pub next: Offset,
    /// How many records it holds; fewer than the offsets where it has gaps.
    pub records: u64,
    /// The size of its file.
    pub bytes: u64,
    /// Append time of its first record; `None` when it is empty.
    pub first_time: Option<Timestamp>,
    /// Append time of its last record; `None` when it is empty.
    pub last_time: Option<Timestamp>,
    /// Whether it still grows.
    pub state: SegmentState,
}
