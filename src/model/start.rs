//! Where reading begins and ends, as it was asked for: before a log is opened
//! nobody knows which offset "the last ten" is. Resolving it is the log's business.

use super::{Offset, Timestamp};

/// A place in a log: where reading or a checkpoint begins, or where reading stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The first record still kept.
    Earliest,
    /// The log end: what is appended from now on.
    Latest,
    /// This offset.
    At(Offset),
    /// So many records before the log end; 0 is the end itself.
    Last(u64),
    /// So many offsets after the log start.
    AfterStart(u64),
    /// The first record appended at this moment or later.
    Time(Timestamp),
}

/// A half-open part of a log: `from` is read, `until` is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Where it begins; `None` if that was left open.
    pub from: Option<Start>,
    /// Where it stops; `None` if that was left open.
    pub until: Option<Start>,
}
