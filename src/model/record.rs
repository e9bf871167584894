//! One record as it is handed from the log to what prints it, without copying.

use super::{Offset, Timestamp};

/// A record that borrows its bytes from the batch it was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordView<'a> {
    /// Its number.
    pub offset: Offset,
    /// The offset to go on from once it was read.
    pub next: Offset,
    /// When it was appended.
    pub append_time: Timestamp,
    /// Its own time if it was given one, else the append time.
    pub time: Timestamp,
    /// Its bytes; `None` is a tombstone, which an empty value is not.
    pub value: Option<&'a [u8]>,
}
