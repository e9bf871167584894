//! Keeps the offset and time indexes of segments complete: a writer adds to the
//! active one, and whoever meets a bad or short one makes it anew, under the
//! append lock, if that can be had at once.

use crate::disk::{Access, DiskFile, LockMode};
use crate::format::batch::Place;
use crate::format::file_name;
use crate::format::index_entry::{IndexEntry, IndexOf};
use crate::log::Log;
use crate::log::error::{Error, Result};
use crate::log::files::lock::AppendLock;
use crate::log::note::Note;
use crate::model::{Offset, Position};
use crate::segment::{INDEX_INTERVAL, Index, IndexError, SegmentReader, header_at};

/// The index of the segment at `base`; `None` if there is none.
pub(crate) fn open(
    log: &Log,
    base: Offset,
    access: Access,
) -> std::result::Result<Option<Index>, IndexError> {
    let path = log.home.path(file_name::index(base));
    match log.home.disk().open(&path, access) {
        Ok(file) => Index::open(file, of(log, base)).map(Some),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn of(log: &Log, base: Offset) -> IndexOf {
    IndexOf { log: log.id, segment: base }
}

/// Whether a batch really begins where `entry` says.
pub(crate) fn holds(
    log: &Log,
    base: Offset,
    file: &dyn DiskFile,
    entry: &IndexEntry,
) -> std::io::Result<bool> {
    let place = Place { log: log.id, segment: base, position: entry.position };
    Ok(header_at(file, &place)?.is_some_and(|header| header.base == entry.offset))
}

/// The index of the active segment for a writer, complete up to `end`. `None`
/// if it can't be kept, which costs later look-ups time and nothing else.
pub(crate) fn for_writer(log: &Log, base: Offset, end: Position) -> Option<Index> {
    if log.settings.segment_size() <= INDEX_INTERVAL {
        return None;
    }
    let segment = log.home.open_segment(base, Access::Read).ok()?;
    let index = usable(log, base, segment.as_ref(), end);
    let index = index.map_or_else(|| emptied(log, base), Ok);
    fill(log, base, segment, index.ok()?, end).ok()
}

/// Makes the index of a segment anew, if the lock can be had at once.
pub(crate) fn repair(log: &Log, base: Offset) -> Result<()> {
    let Some(lock) = AppendLock::to_mend(&log.home)? else { return Ok(()) };
    let Some(_held) = lock.try_acquire(LockMode::Exclusive)? else { return Ok(()) };
    if make_anew(log, base)? {
        log.home.tell(&Note::IndexRebuilt(log.home.path(file_name::index(base))));
        let _ = super::table_file::refresh(log);
    }
    Ok(())
}

/// Makes the index of a segment anew; says whether that worked. The caller holds the
/// append lock.
pub(crate) fn make_anew(log: &Log, base: Offset) -> Result<bool> {
    let Ok(segment) = log.home.open_segment(base, Access::Read) else { return Ok(false) };
    let length = segment.size().map_err(Error::io("read", log.home.segment_path(base)))?;
    let end = Position::new(length);
    Ok(emptied(log, base).and_then(|index| fill(log, base, segment, index, end)).is_ok())
}

/// Adds every entry that `index` should have before `end`.
fn fill(
    log: &Log,
    base: Offset,
    segment: Box<dyn DiskFile>,
    mut index: Index,
    end: Position,
) -> std::result::Result<Index, IndexError> {
    if !index.wants(end) {
        return Ok(index);
    }
    let (position, offset) =
        index.last().map_or((Position::ZERO, base), |last| (last.position, last.offset));
    let mut reader = SegmentReader::new(segment, log.id, base, position, offset);
    while reader.position() < end {
        let position = reader.position();
        let Some(header) = reader.skip_if(|_| true)? else { break };
        let time = header.append_time;
        index.push_wanted(&[IndexEntry { offset: header.base, position, time }])?;
    }
    Ok(index)
}

/// The index as it is, if it fits the segment.
fn usable(log: &Log, base: Offset, segment: &dyn DiskFile, end: Position) -> Option<Index> {
    let mut index = open(log, base, Access::ReadWrite).ok()??;
    index.cut(end).ok()?;
    let fits = index.last().is_none_or(|last| holds(log, base, segment, &last).unwrap_or(false));
    fits.then_some(index)
}

fn emptied(log: &Log, base: Offset) -> std::result::Result<Index, IndexError> {
    let path = log.home.path(file_name::index(base));
    let file = match log.home.disk().open(&path, Access::ReadWrite) {
        Ok(file) => file,
        Err(_) => log.home.disk().create_new(&path)?,
    };
    file.set_len(0)?;
    Index::open(file, of(log, base))
}
