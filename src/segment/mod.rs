//! One segment file: reading its batches in order, appending to it, and its
//! offset and time index. What the segments mean together is [`crate::log`]'s.

mod index;
mod inflater;
mod reader;
mod salvage;
mod scan;
mod survey;
mod writer;

pub use index::{INDEX_INTERVAL, Index, IndexError};
pub use inflater::Inflater;
pub use reader::{Bad, BadReason, Batch, SegmentReader, Step, header_at};
pub use salvage::{BadBytes, Found, Salvage};
pub use scan::each_header;
pub use survey::survey;
pub use writer::{NewBatch, SegmentWriter};
