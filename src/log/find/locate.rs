//! Finding the batch of an offset or a moment: the table names the segment, the
//! index a place in it, and a short scan of headers does the rest. What table and
//! index say is checked against the segment; if it does not hold, the scan begins
//! at the segment's first batch.

use super::index_upkeep;
use super::table::SegmentTable;
use super::tail::{missing_segment, next_segment, open_if_there};
use crate::disk::{Access, DiskFile};
use crate::format::batch::Header;
use crate::format::file_name;
use crate::format::index_entry::IndexEntry;
use crate::log::error::{Error, Result};
use crate::log::note::Note;
use crate::log::{Log, OutOfRange};
use crate::model::{Offset, Position, Timestamp};
use crate::segment::{INDEX_INTERVAL, Index, IndexError, SegmentReader};

/// A reader before the batch that holds `offset`, or at the log end if that is
/// where `offset` is. `None` if the segment that would hold it is not made yet.
pub(crate) fn reader_at(
    log: &Log,
    table: &mut SegmentTable,
    offset: Offset,
) -> Result<Option<SegmentReader>> {
    let base = table.holder_of(log, offset)?;
    let find = |index: &Index| index.find_offset(offset);
    let Some(reader) = scan(log, base, find, |header| header.next <= offset)? else {
        return absent(log, base, offset);
    };
    Ok(Some(reader))
}

/// The first offset appended at or after `time`; beyond the last good batch if there is none.
pub(crate) fn first_at(log: &Log, time: Timestamp) -> Result<Offset> {
    let base = SegmentTable::load(log)?.holder_at(log, time)?;
    let find = |index: &Index| index.find_time(time);
    let reader = scan(log, base, find, |header| header.append_time < time)?;
    Ok(reader.map_or(base, |reader| reader.next_offset()))
}

/// The first offset of the block that holds `offset`: of the batch before it that has
/// an entry in the index, or of the segment.
pub(crate) fn block_of(log: &Log, offset: Offset) -> Result<Offset> {
    let mut table = SegmentTable::load(log)?;
    // Makes a bad index anew, so that a block is never a whole large segment.
    let Some(reader) = reader_at(log, &mut table, offset)? else { return Ok(offset) };
    let base = reader.segment();
    Ok(match hint(log, base, reader.file(), |index| index.find_offset(offset))? {
        Hint::Entry(entry) => entry.offset,
        _ => base,
    })
}

/// When the record at `offset` was appended; `None` if no good batch holds it.
pub(crate) fn append_time(log: &Log, offset: Offset) -> Result<Option<Timestamp>> {
    let mut table = SegmentTable::load(log)?;
    let Some(mut reader) = reader_at(log, &mut table, offset)? else { return Ok(None) };
    let path = log.home.segment_path(reader.segment());
    let header = reader.skip_if(|header| header.base <= offset);
    Ok(header.map_err(Error::io("read", path))?.map(|header| header.append_time))
}

/// No file where a segment should be: not yet made, deleted by gc, or lost.
fn absent(log: &Log, base: Offset, offset: Offset) -> Result<Option<SegmentReader>> {
    let bounds = log.bounds()?;
    if offset < bounds.start {
        return Err(OutOfRange::before_start(offset, bounds.start, bounds.end).into());
    }
    if offset >= bounds.end && base == offset {
        return Ok(None);
    }
    Err(missing_segment(&log.home, base, offset))
}

/// A reader of the segment at `base`, or of a later one, before the first batch
/// that is not `before` the place wanted. `None` if there is no such segment.
fn scan(
    log: &Log,
    base: Offset,
    find: impl Fn(&Index) -> std::result::Result<Option<IndexEntry>, IndexError>,
    before: impl Fn(&Header) -> bool,
) -> Result<Option<SegmentReader>> {
    let Some(file) = open_if_there(&log.home, base)? else { return Ok(None) };
    let hint = hint(log, base, file.as_ref(), find)?;
    let (position, offset) = match &hint {
        Hint::Entry(entry) => (entry.position, entry.offset),
        _ => (Position::ZERO, base),
    };
    let mut reader = SegmentReader::new(file, log.id, base, position, offset);
    let last = skip(log, &mut reader, &before)?;
    // Some batch that was passed should have had an entry.
    let short = last.is_some_and(|last| last.since(position) >= INDEX_INTERVAL);
    if matches!(hint, Hint::Wrong) || (short && !matches!(hint, Hint::Unreadable)) {
        let path = log.home.segment_path(base);
        // Of a segment that was replaced meanwhile the index is the new file's.
        if reader.file().is_at(&path).map_err(Error::io("look at", &path))? {
            index_upkeep::repair(log, base)?;
        }
    }
    while let Some(file) = next_segment(&log.home, &reader)? {
        let base = reader.next_offset();
        reader = SegmentReader::new(file, log.id, base, Position::ZERO, base);
        skip(log, &mut reader, &before)?;
    }
    Ok(Some(reader))
}

/// Passes every batch that is `before` the place wanted; says where the last one began.
fn skip(
    log: &Log,
    reader: &mut SegmentReader,
    before: impl Fn(&Header) -> bool,
) -> Result<Option<Position>> {
    let path = log.home.segment_path(reader.segment());
    let mut last = None;
    loop {
        let position = reader.position();
        match reader.skip_if(&before).map_err(Error::io("read", &path))? {
            Some(_) => last = Some(position),
            None => return Ok(last),
        }
    }
}

/// What the index has to say.
enum Hint {
    /// A batch that is really there, not behind the place wanted.
    Entry(IndexEntry),
    /// Nothing: begin at the beginning.
    None,
    /// It is garbage, or speaks of a batch that is not there.
    Wrong,
    /// It can't be read; it may be good.
    Unreadable,
}

fn hint(
    log: &Log,
    base: Offset,
    file: &dyn DiskFile,
    find: impl Fn(&Index) -> std::result::Result<Option<IndexEntry>, IndexError>,
) -> Result<Hint> {
    let found = match index_upkeep::open(log, base, Access::Read) {
        Ok(Some(index)) => find(&index),
        Ok(None) => return Ok(Hint::None),
        Err(error) => Err(error),
    };
    match found {
        Ok(None) => Ok(Hint::None),
        Ok(Some(entry)) => {
            let path = log.home.segment_path(base);
            let holds = index_upkeep::holds(log, base, file, &entry);
            Ok(match holds.map_err(Error::io("read", path))? {
                true => Hint::Entry(entry),
                false => Hint::Wrong,
            })
        }
        Err(IndexError::Garbage(_)) => Ok(Hint::Wrong),
        Err(IndexError::Io(error)) => {
            let path = log.home.path(file_name::index(base));
            log.home.tell(&Note::IndexUnreadable { path, why: error.to_string() });
            Ok(Hint::Unreadable)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Note;
    use crate::log::fixture::{Fixture, fixture};
    use std::path::Path;

    fn first(fixture: &Fixture, millis: i64) -> u64 {
        first_at(&fixture.log, Timestamp::from_millis(millis)).unwrap().get()
    }

    #[test]
    fn a_moment_is_found_in_every_segment() {
        let fixture = fixture(512);
        fixture.append(60);
        for millis in 0..60 {
            assert_eq!(first(&fixture, millis), millis as u64);
        }
        assert_eq!((first(&fixture, -5), first(&fixture, 1000)), (0, 60));
    }

    #[test]
    fn a_healthy_index_is_left_alone_wherever_one_looks() {
        let fixture = fixture(1 << 20);
        fixture.append(2000);
        for offset in [0, 700, 1999, 2000] {
            assert!(fixture.read(offset).is_ok());
            first(&fixture, offset as i64);
        }
        assert_eq!(fixture.told(), []);
    }

    #[test]
    fn h019_an_index_that_lies_is_not_believed() {
        // Large enough for an index: some 90 bytes a batch.
        let fixture = fixture(1 << 20);
        fixture.append(2000);
        let path = "/log/00000000000000000000.index";
        let good = fixture.disk.read_file(Path::new(path)).unwrap();
        assert!(good.len() >= 64, "{} bytes of index", good.len());
        let (first, rest) = good.split_at(32);
        let lies: [&[u8]; 4] = [b"", &[0; 4096], &[rest, first].concat(), &good[..good.len() - 1]];
        for bytes in lies {
            fixture.disk.write_file(Path::new(path), bytes).unwrap();
            fixture.told();
            assert_eq!(fixture.read(1900).unwrap().first(), Some(&1900));
            let rebuilt = fixture.disk.read_file(Path::new(path)).unwrap();
            assert!(rebuilt == good, "made anew as it was");
            assert!(fixture.told().iter().any(|note| matches!(note, Note::IndexRebuilt(_))));
            assert_eq!(fixture.read(1900).unwrap().len(), 100);
            assert_eq!(fixture.told(), [], "the second time is silent");
        }
    }
}
