//! What the two-slot files say: `end`, `start` and the checkpoints.

use serde::{Deserialize, Serialize};

use crate::model::{GroupName, LogId, Offset, Position, Timestamp};

/// A place in the log, as an offset and as a position in its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The base offset of the segment.
    pub segment: Offset,
    /// The position there.
    pub position: Position,
    /// The offset that the record at that position has or will get.
    pub offset: Offset,
}

impl Mark {
    /// The beginning of the segment at `base`.
    pub const fn beginning_of(base: Offset) -> Mark {
        Mark { segment: base, position: Position::ZERO, offset: base }
    }
}

/// `end`: how far the log is written and how far it is synced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndState {
    /// The log it belongs to.
    pub log: LogId,
    /// The start of the machine under which it was written: under another one
    /// `written` may be more than the disk kept.
    pub boot: String,
    /// The end of the last append.
    pub written: Mark,
    /// Where the last batch before `written` begins; `written.position` if there is none.
    pub last_batch: Position,
    /// All before it is synced: the durable mark. Never goes down.
    pub durable: Mark,
    /// The append time of the last record.
    pub time: Timestamp,
    /// A sync failed after `durable`: what lies between may never reach the disk
    /// unless it is written again.
    pub suspect: bool,
}

/// `start`: the log start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartState {
    /// The log it belongs to.
    pub log: LogId,
    /// The first offset still kept.
    pub start: Offset,
}

/// A checkpoint: where a group goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckpointState {
    /// The log it belongs to.
    pub log: LogId,
    /// The group.
    pub group: GroupName,
    /// The next offset to read.
    pub next: Offset,
    /// The append time of the record before `next`, if that one was still there:
    /// a later one at that place means that the log was rewritten underneath.
    pub before: Option<Timestamp>,
    /// When it was stored.
    pub stored: Timestamp,
}

/// A checkpoint's text: the group's name is checked when it becomes a state.
#[derive(Deserialize)]
struct CheckpointText {
    log: LogId,
    group: String,
    next: Offset,
    before: Option<Timestamp>,
    stored: Timestamp,
}

impl<'de> Deserialize<'de> for CheckpointState {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = CheckpointText::deserialize(deserializer)?;
        let group = text.group.parse().map_err(serde::de::Error::custom)?;
        let CheckpointText { log, next, before, stored, .. } = text;
        Ok(CheckpointState { log, group, next, before, stored })
    }
}
