//! Finding records by their keys. The index knows, for the hash of each key, the offsets
//! of the records that have it. What it finds is a hint: the record is read, and its
//! offset and key compared, before anybody is told of it.
//!
//! It is a small LSM tree, and derived: `keys/` may be deleted or garbled at any time.
//! Tables cover ranges of durable offsets; the newest records are in memory; what neither
//! knows is read from the segments for each look-up.

pub(crate) mod covering;
mod dead;
pub(crate) mod directory;
mod fetch;
mod lookup;
mod places;
mod recent;
mod scan;
mod search;
mod sorting;
pub(crate) mod table;
#[cfg(test)]
mod tests;
pub(crate) mod upkeep;
mod versions;
mod writing;

pub use dead::DeadOffsets;
pub use fetch::{Fetch, Fetched};
pub use lookup::{Found, Lookup};
pub use places::Places;

use std::ops::Range;

use super::{Bounds, Damage, Error, Log, Piece, Result};
use crate::format::body::Records;
use crate::format::key_hash::KeyHash;
use crate::format::key_table::KeyEntry;
use crate::model::{Offset, Position};
use directory::{KeysLock, Part, discard, open_parts};
use recent::Recent;
use scan::KeyScan;
use table::{LastPage, Table, TableError};
use upkeep::{Sizes, bytes_uncovered, cover};
use versions::Versions;

/// So many offsets of what no table covers are read at once for the versions of a key.
const BLOCK: u64 = 64 << 10;

/// The key index as it was when it was opened or last advanced: it knows the keys of all
/// records before [`end`](Self::end).
#[derive(Debug)]
pub struct KeyIndex {
    log: Log,
    /// From the log start to where `recent` begins, the oldest first.
    parts: Vec<Part>,
    /// The keys of the newest records.
    recent: Recent,
    /// The log start when it was opened or last advanced.
    start: Offset,
    sizes: Sizes,
}

impl KeyIndex {
    /// The index of `log` up to its log end. If much of that has no table, it gets some,
    /// where that can be.
    ///
    /// # Errors
    /// [`Error::Damage`] where keys that no table covers can't be read; what the disk says.
    pub fn open(log: &Log) -> Result<KeyIndex> {
        const TRIES: usize = 20;
        for _ in 1..TRIES {
            match KeyIndex::open_with(log, Sizes::USUAL) {
                // gc went by.
                Err(Error::OutOfRange(_)) => {}
                opened => return opened,
            }
        }
        KeyIndex::open_with(log, Sizes::USUAL)
    }

    fn open_with(log: &Log, sizes: Sizes) -> Result<KeyIndex> {
        let bounds = log.bounds()?;
        if let Some(damage) = bounds.damage {
            return Err(damage.into());
        }
        let parts = parts_of(log, &bounds, &sizes)?;
        let recent = Recent::beginning_at(bounds.start);
        let mut index = KeyIndex { log: log.clone(), parts, recent, start: bounds.start, sizes };
        let covered = index.cut_bare_end().unwrap_or(bounds.durable.max(bounds.start));
        index.recent = Recent::beginning_at(covered);
        index.advance(bounds.end)?;
        Ok(index)
    }

    /// Takes away the last part if no table covers it; says where the others end.
    fn cut_bare_end(&mut self) -> Option<Offset> {
        match self.parts.pop() {
            Some(Part::Bare(bare)) => Some(bare.start),
            Some(part) => {
                let end = part.range().end;
                self.parts.push(part);
                Some(end)
            }
            None => None,
        }
    }

    /// All keys of records before it are known. It may be beyond what was asked for, as
    /// far as the log is durable.
    pub fn end(&self) -> Offset {
        self.recent.end()
    }

    /// Learns the keys of the records from [`end`](Self::end) to before `end`, which are
    /// in the log. The caller may hold the append lock: nothing beyond `end` is looked at.
    ///
    /// # Errors
    /// As [`Log::bounds`] and [`Reader::read`](super::Reader::read).
    pub fn advance(&mut self, end: Offset) -> Result<()> {
        if self.end() >= end {
            return Ok(());
        }
        if let Some(start) = self.log.stored_start()? {
            self.start = start.max(self.start);
        }
        let mut scan = KeyScan::open(&self.log, self.end())?;
        loop {
            // A table may have come to cover the next ones.
            let start = self.recent.start();
            let add = |entry: KeyEntry| {
                if entry.offset >= start {
                    self.recent.add(entry.hash, entry.offset);
                }
            };
            if !scan.step(end, add)? {
                break;
            }
            self.recent.reach(scan.reached().min(end));
            if self.recent.len() >= self.sizes.recent {
                self.bound_recent()?;
            }
        }
        self.recent.reach(end);
        Ok(())
    }

    /// Lets go of keys in memory that tables cover by now. If they are still too many,
    /// their records are to be read for each look-up.
    fn bound_recent(&mut self) -> Result<()> {
        let range = self.start..self.recent.start();
        self.parts = open_parts(&self.log, &range, None)?;
        let covered = self.cut_bare_end().unwrap_or(range.end);
        let begin = covered.max(range.end);
        if covered < begin {
            self.parts.push(Part::Bare(covered..begin));
        }
        self.recent.forget_before(begin);
        if self.recent.len() > self.sizes.recent / 2 {
            self.parts.push(Part::Bare(self.recent.start()..self.recent.end()));
            self.recent = Recent::beginning_at(self.recent.end());
        }
        Ok(())
    }

    /// Where the newest record of each key may be: with a hash equal to its.
    ///
    /// # Errors
    /// What the disk says.
    pub fn newest(&self, keys: &[KeyHash]) -> Result<Vec<Option<Offset>>> {
        let mut found: Vec<Option<Offset>> =
            keys.iter().map(|&key| self.recent.newest(key)).collect();
        let mut wanted: Vec<(KeyHash, usize)> =
            keys.iter().copied().zip(0..).filter(|&(_, number)| found[number].is_none()).collect();
        // In the order of the tables, so that each page is read once.
        wanted.sort_unstable();
        for part in self.parts.iter().rev() {
            if wanted.is_empty() {
                break;
            }
            self.newest_in(part, &wanted, &mut found)?;
            wanted.retain(|&(_, number)| found[number].is_none());
        }
        let kept = |offset: &Offset| *offset >= self.start;
        found.iter_mut().for_each(|offset| *offset = offset.filter(kept));
        Ok(found)
    }

    fn newest_in(
        &self,
        part: &Part,
        wanted: &[(KeyHash, usize)],
        found: &mut [Option<Offset>],
    ) -> Result<()> {
        let mut from_table = |table: &Table, from: Offset| {
            let mut last = LastPage::default();
            for &(key, number) in wanted {
                let entry = table.newest(key, &mut last)?;
                found[number] = entry.map(|entry| entry.offset).filter(|&offset| offset >= from);
            }
            Ok(())
        };
        let from = part.range().start;
        if self.in_table(part, |table| from_table(table, from)).is_some() {
            return Ok(());
        }
        let range = part.range();
        let mut scan = KeyScan::open(&self.log, range.start)?;
        while scan.step(range.end, |entry| {
            let first = wanted.partition_point(|(key, _)| *key < entry.hash);
            let same = wanted[first..].iter().take_while(|(key, _)| *key == entry.hash);
            same.for_each(|&(_, number)| found[number] = Some(entry.offset));
        })? {}
        Ok(())
    }

    /// What `look` finds in the table of `part`; `None` if it has none that is good.
    fn in_table<T>(
        &self,
        part: &Part,
        look: impl FnOnce(&Table) -> std::result::Result<T, TableError>,
    ) -> Option<T> {
        let Part::Table(table, _) = part else { return None };
        if table.is_bad() {
            return None;
        }
        look(table)
            .inspect_err(|error| {
                table.give_up();
                discard(&self.log, &table.range(), error, None);
            })
            .ok()
    }

    /// Where all records of a key may be, the oldest first. Some may be gone by now.
    ///
    /// # Errors
    /// What the disk says, then and for each item.
    pub fn versions(
        &self,
        key: KeyHash,
    ) -> Result<impl DoubleEndedIterator<Item = Result<Offset>> + use<'_>> {
        Ok(Versions::of(self, key))
    }

    /// Some offsets of `key` from `from` on, growing, and up to where these are all.
    fn some_from(&self, key: KeyHash, from: Offset) -> Result<(Vec<Offset>, Offset)> {
        let Some(part) = self.parts.iter().find(|part| part.range().contains(&from)) else {
            return Ok((self.recent.all_from(key, from), self.end()));
        };
        let range = part.range();
        let look = |table: &Table| table.some_from(key, from, &mut LastPage::default());
        if let Some(some) = self.in_table(part, look) {
            let reached = some.last().and_then(|last| last.forward(1));
            return Ok((some, reached.unwrap_or(range.end)));
        }
        let to = from.forward(BLOCK).map_or(range.end, |to| to.min(range.end));
        Ok((self.read_keys(key, from..to)?, to))
    }

    /// The same of those before `before`, falling, and down to where these are all.
    fn some_before(&self, key: KeyHash, before: Offset) -> Result<(Vec<Offset>, Offset)> {
        if before > self.recent.start() {
            return Ok((self.recent.all_before(key, before), self.recent.start()));
        }
        let Some(part) = self.parts.iter().rev().find(|part| part.range().start < before) else {
            return Ok((Vec::new(), self.start));
        };
        let range = part.range();
        let look = |table: &Table| table.some_before(key, before, &mut LastPage::default());
        if let Some(mut some) = self.in_table(part, look) {
            some.retain(|&offset| offset >= range.start);
            let reached = some.last().copied().unwrap_or(range.start);
            return Ok((some, reached));
        }
        let from = before.back(BLOCK).max(range.start);
        let mut some = self.read_keys(key, from..before)?;
        some.reverse();
        Ok((some, from))
    }

    /// The offsets of `key` in `range`, by reading the records.
    fn read_keys(&self, key: KeyHash, range: Range<Offset>) -> Result<Vec<Offset>> {
        let mut offsets = Vec::new();
        let mut scan = KeyScan::open(&self.log, range.start)?;
        while scan.step(range.end, |entry| {
            if entry.hash == key {
                offsets.push(entry.offset);
            }
        })? {}
        Ok(offsets)
    }
}

/// The parts of the durable log; what has no table gets one, if it is much.
fn parts_of(log: &Log, bounds: &Bounds, sizes: &Sizes) -> Result<Vec<Part>> {
    let range = bounds.start..bounds.durable.max(bounds.start);
    let parts = open_parts(log, &range, None)?;
    let has_hole = parts.iter().rev().skip(1).any(|part| matches!(part, Part::Bare(_)));
    let uncovered = || bytes_uncovered(log, &range, sizes.uncovered);
    if !has_hole && !uncovered().is_ok_and(|bytes| bytes >= sizes.uncovered) {
        return Ok(parts);
    }
    let Some(lock) = KeysLock::try_take(log) else { return Ok(parts) };
    // Whatever keeps it from being covered, there is another way to look up.
    let _ = cover(log, &lock, &range, sizes);
    open_parts(log, &range, Some(&lock))
}

/// The records of `piece`, whose body was checked as it was read.
pub(crate) fn records_of<'a>(log: &Log, piece: &Piece<'a>) -> Result<Records<'a>> {
    piece.records().map_err(|error| {
        let (path, offset) = (log.home.dir().to_owned(), piece.header.base);
        Damage { path, position: Position::ZERO, offset, what: error.to_string() }.into()
    })
}
