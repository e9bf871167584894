//! The facts of a segment from its headers alone, for when no table has them.

use std::io;

use super::SegmentReader;
use crate::disk::DiskFile;
use crate::model::{LogId, Offset, Position, SegmentFacts, SegmentState};

/// Reads the headers of the segment at `base` as far as they are good. Bodies are not looked at.
///
/// # Errors
/// Those of the disk.
pub fn survey(file: Box<dyn DiskFile>, log: LogId, base: Offset) -> io::Result<SegmentFacts> {
    let mut facts = SegmentFacts {
        base,
        next: base,
        records: 0,
        bytes: file.size()?,
        first_time: None,
        last_time: None,
        state: SegmentState::Sealed,
    };
    let mut reader = SegmentReader::new(file, log, base, Position::ZERO, base);
    while let Some(header) = reader.skip_if(|_| true)? {
        facts.next = header.next;
        facts.records += u64::from(header.records);
        facts.first_time = facts.first_time.or(Some(header.append_time));
        facts.last_time = Some(header.append_time);
    }
    Ok(facts)
}
