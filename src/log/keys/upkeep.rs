//! Keeping the tables of the key index: building them from the durable log, merging
//! them, removing what is of no use. Nothing depends on it, so that whoever comes by on
//! the way to something else does it only if the lock can be had at once, and goes on
//! without if it fails.

use super::directory::{KeysLock, Part, discard, list, open_parts, remove, temporaries};
use super::scan::KeyScan;
use super::sorting::Sorter;
use super::table::{Merged, Table, TableError};
use super::writing::{Kept, NewTable, write_table};
use crate::format::file_name;
use crate::format::key_table::{KeyEntry, MOST_OFFSETS};
use crate::log::Log;
use crate::log::error::{Error, Result};
use crate::log::find::locate;
use crate::log::find::table::SegmentTable;
use crate::model::Offset;
use crate::policy::merging::{Stretch, cover as stretches, to_merge};
use std::ops::Range;

/// The sizes by which the index is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// So many bytes of durable log may be without a table.
    pub uncovered: u64,
    /// So many entries at most, and the rest of a batch, are sorted at once for one table.
    pub entries: usize,
    /// A table with more entries is not merged again.
    pub most: u64,
    /// A merged table with more entries is synced before what it replaces goes. What a power
    /// cut spoils of a smaller one is read again from the log: less work than many syncs.
    pub unsynced: u64,
    /// So many keys are kept in memory; the records of more are read for each look-up.
    pub recent: usize,
}

impl Sizes {
    /// Those of every log.
    pub(crate) const USUAL: Sizes = Sizes {
        uncovered: 1 << 20,
        entries: 128 << 10,
        most: 32 << 20,
        unsynced: 4 << 20,
        recent: 256 << 10,
    };
}

impl Log {
    /// Lets tables cover all keys of durable records; says up to where.
    ///
    /// # Errors
    /// [`Error::Busy`] if somebody else is long at it; as [`Log::bounds`]; what the disk says.
    pub fn cover_keys(&self) -> Result<Offset> {
        self.cover_keys_locked(&KeysLock::take(self)?)
    }

    /// Builds all tables anew, from the records as they are now: for whoever is to rely on
    /// every entry, and on every key being readable.
    ///
    /// # Errors
    /// As [`Log::cover_keys`]; [`Error::Damage`] where keys can't be read.
    pub(crate) fn cover_keys_anew(&self) -> Result<()> {
        let lock = KeysLock::take(self)?;
        remove_tables(self, &lock, |_| true)?;
        self.cover_keys_locked(&lock).map(drop)
    }

    fn cover_keys_locked(&self, lock: &KeysLock) -> Result<Offset> {
        let bounds = self.bounds()?;
        let range = bounds.start..bounds.durable;
        cover(self, lock, &range, &Sizes::USUAL)?;
        Ok(range.end)
    }

    /// Removes the tables of records before `start` and what a crash left, if the lock can
    /// be had at once.
    pub(crate) fn collect_keys(&self, start: Offset) -> Result<()> {
        let is_old = |range: &Range<Offset>| range.end <= start;
        let nothing = temporaries(&self.home)?.is_empty() && !list(&self.home)?.iter().any(is_old);
        let Some(lock) = (!nothing).then(|| KeysLock::try_take(self)).flatten() else {
            return Ok(());
        };
        for path in temporaries(&self.home)? {
            remove(&self.home, &path, &lock)?;
        }
        remove_tables(self, &lock, is_old)
    }

    /// Removes the tables that reach beyond `end`, where the log was found to end: other
    /// records are to be there.
    pub(crate) fn forget_keys_beyond(&self, end: Offset) -> Result<()> {
        let is_beyond = |table: &Range<Offset>| table.end > end;
        let Some(lock) = list(&self.home)?.iter().any(is_beyond).then(|| KeysLock::try_take(self))
        else {
            return Ok(());
        };
        lock.map_or(Ok(()), |lock| remove_tables(self, &lock, is_beyond))
    }

    /// Removes the tables that have keys of the offsets in `ranges`, whose records are
    /// about to become others: no new ones are made until what is returned is dropped.
    ///
    /// # Errors
    /// As [`KeysLock::take`]; what the disk says.
    pub(crate) fn forget_keys(
        &self,
        ranges: impl IntoIterator<Item = Range<Offset>>,
    ) -> Result<Option<KeysLock>> {
        let ranges: Vec<Range<Offset>> = ranges.into_iter().collect();
        if ranges.is_empty() || list(&self.home)?.is_empty() {
            return Ok(None);
        }
        let lock = KeysLock::take(self)?;
        remove_tables(self, &lock, |table| {
            ranges.iter().any(|range| table.start < range.end && range.start < table.end)
        })?;
        self.home.sync_dir(&self.home.path(file_name::KEYS))?;
        Ok(Some(lock))
    }
}

fn remove_tables(log: &Log, lock: &KeysLock, goes: impl Fn(&Range<Offset>) -> bool) -> Result<()> {
    let dir = log.home.path(file_name::KEYS);
    for table in list(&log.home)?.iter().filter(|table| goes(table)) {
        remove(&log.home, &dir.join(file_name::key_table(table)), lock)?;
    }
    Ok(())
}

/// How many bytes of log lie behind all tables, going by their names: counted until they
/// are `enough`.
pub(crate) fn bytes_uncovered(log: &Log, range: &Range<Offset>, enough: u64) -> Result<u64> {
    let from = match stretches(&list(&log.home)?, range.clone()).pop() {
        Some(Stretch::Bare(bare)) => bare.start,
        _ => return Ok(0),
    };
    let mut table = SegmentTable::load(log)?;
    let Some(reader) = locate::reader_at(log, &mut table, from)? else { return Ok(0) };
    let mut base = reader.segment();
    let size = reader.file().size().map_err(Error::io("look at", log.home.segment_path(base)))?;
    let mut bytes = size.saturating_sub(reader.position().get());
    while let Some(next) = table.base_after(base).filter(|_| bytes < enough) {
        let path = log.home.segment_path(next);
        if let Some(crate::disk::Entry::File { bytes: size }) = log.home.entry(&path)? {
            bytes += size;
        }
        base = next;
    }
    Ok(bytes)
}

/// Builds tables for all of `range` that has none, up to the durable mark, and merges
/// them.
pub(crate) fn cover(
    log: &Log,
    lock: &KeysLock,
    range: &Range<Offset>,
    sizes: &Sizes,
) -> Result<()> {
    // Others may have gone further meanwhile.
    let durable = log.end_state()?.map_or(range.end, |end| end.durable.offset);
    let range = range.start..range.end.max(durable);
    // Of a log that once was longer.
    remove_tables(log, lock, |table| table.end > range.end)?;
    unless_garbage(|| {
        let parts = open_parts(log, &range, Some(lock))?;
        let is_bare = parts.iter().any(|part| matches!(part, Part::Bare(_)));
        for bare in parts.into_iter().filter_map(Part::bare) {
            build(log, lock, &bare, &range, sizes)?;
        }
        while is_bare && merge_some(log, lock, &range, sizes)? {}
        Ok(())
    })
}

/// Does `work` anew if a table turned out to be garbage on the way: it is gone then.
pub(crate) fn unless_garbage<T>(mut work: impl FnMut() -> Result<T>) -> Result<T> {
    const TRIES: usize = 3;
    for _ in 1..TRIES {
        match work() {
            Err(Error::Unreadable { .. }) => {}
            done => return done,
        }
    }
    work()
}

/// Builds the tables of `bare`, a part of the durable `range`, and merges them meanwhile,
/// so that they are never many.
fn build(
    log: &Log,
    lock: &KeysLock,
    bare: &Range<Offset>,
    range: &Range<Offset>,
    sizes: &Sizes,
) -> Result<()> {
    let mut scan = KeyScan::open(log, bare.start)?;
    let mut entries = Sorter::default();
    let mut first = bare.start;
    while first < bare.end {
        let has_room = |entries: &Sorter, reached: Offset| {
            entries.len() < sizes.entries && reached.since(first) < MOST_OFFSETS / 2
        };
        while has_room(&entries, scan.reached())
            && scan.step(bare.end, |entry| entries.push(&entry))?
        {}
        let table = NewTable {
            range: first..scan.reached().min(bare.end),
            time: scan.time(),
            room: entries.len() as u64,
        };
        write_table(log, lock, &table, Kept::Perhaps, |writer| {
            entries.drain(|entry| writer.push(&entry))
        })?;
        first = table.range.end;
        while first < bare.end && merge_some(log, lock, &(range.start..first), sizes)? {}
    }
    Ok(())
}

/// Merges the newest tables, if they are many; says whether it did.
fn merge_some(log: &Log, lock: &KeysLock, range: &Range<Offset>, sizes: &Sizes) -> Result<bool> {
    let parts = open_parts(log, range, Some(lock))?;
    let is_bare = |part: &&Part| matches!(part, Part::Bare(_));
    let mut tables = Vec::new();
    for part in parts.iter().rev().skip_while(is_bare) {
        let Part::Table(table, from) = part else { break };
        tables.push((table.as_ref(), *from));
    }
    tables.reverse();
    let lengths: Vec<u64> = tables.iter().map(|(table, _)| table.len()).collect();
    let Some(some) = to_merge(&lengths, sizes.most) else { return Ok(false) };
    merge(log, lock, &tables[some], range.start, sizes)?;
    Ok(true)
}

/// Puts one table in the place of `tables`, each of which counts from an offset on,
/// without entries before `start`.
fn merge(
    log: &Log,
    lock: &KeysLock,
    tables: &[(&Table, Offset)],
    start: Offset,
    sizes: &Sizes,
) -> Result<()> {
    let [(_, first), .., (last, _)] = tables else { return Ok(()) };
    let merged = *first..last.range().end;
    let room = tables.iter().map(|(table, _)| table.len()).sum();
    let kept = if room > sizes.unsynced { Kept::Surely } else { Kept::Perhaps };
    let new = NewTable { range: merged.clone(), time: last.time(), room };
    write_table(log, lock, &new, kept, |writer| {
        each_entry(log, Some(lock), tables, |entry| match entry.offset >= start {
            true => writer.push(entry),
            false => Ok(()),
        })
    })?;
    let within = |table: &Range<Offset>| {
        *table != merged && merged.start <= table.start && table.end <= merged.end
    };
    remove_tables(log, lock, within)
}

/// Gives `each` the entries of `tables`, in the order of a table. One that turns out to be
/// garbage is removed.
pub(crate) fn each_entry(
    log: &Log,
    lock: Option<&KeysLock>,
    tables: &[(&Table, Offset)],
    mut each: impl FnMut(&KeyEntry) -> Result<()>,
) -> Result<()> {
    let failed = |(number, error): (usize, TableError)| {
        let table: &Table = tables[number].0;
        discard(log, &table.range(), &error, lock);
        Error::Unreadable { path: table.path().to_owned(), what: error.to_string() }
    };
    let only: Vec<&Table> = tables.iter().map(|(table, _)| *table).collect();
    let mut entries = Merged::of(&only).map_err(failed)?;
    while let Some((number, entry)) = entries.next().map_err(failed)? {
        if entry.offset >= tables[number].1 {
            each(&entry)?;
        }
    }
    Ok(())
}
