//! One segment file: reading its batches in order, appending to it, and its
//! offset and time index. What the segments mean together is [`crate::log`]'s.

mod index;
mod reader;
mod survey;
mod writer;

pub use index::{INDEX_INTERVAL, Index, IndexError};
pub use reader::{Bad, BadReason, Batch, SegmentReader, Step, header_at};
pub use survey::survey;
pub use writer::{NewBatch, SegmentWriter};
