//! The words of a log as types: an offset is not a position, a group name has
//! been checked, a time is in milliseconds. Nothing here touches a file.

mod group_name;
mod log_id;
mod offset;
mod segment_facts;
mod start;
mod time;

pub use group_name::{GroupName, GroupNameError};
pub use log_id::LogId;
pub use offset::{Offset, Position};
pub use segment_facts::{SegmentFacts, SegmentState};
pub use start::{Span, Start};
pub use time::Timestamp;
