//! Which records compaction may drop, by the keys of all durable records; and the tables
//! without their entries.

use std::ops::Range;

use super::directory::{KeysLock, Part, open_parts};
use super::table::Table;
use super::upkeep::{each_entry, unless_garbage};
use super::writing::{Kept, NewTable, write_table};
use crate::format::key_hash::KeyHash;
use crate::format::key_table::KeyEntry;
use crate::log::Log;
use crate::log::error::{Error, Result};
use crate::model::Offset;
use crate::policy::compaction::newest_is_dead;

/// So many offsets share a piece, which takes no memory while none of them is in the set.
const PIECE: u64 = 1 << 16;

/// Dead records of a range of offsets. Takes a bit for each offset, where there are any.
#[derive(Clone, Debug)]
pub struct DeadOffsets {
    range: Range<Offset>,
    pieces: Vec<Option<Box<[u64; PIECE as usize / 64]>>>,
    count: u64,
}

impl DeadOffsets {
    /// None yet, of `range`.
    pub fn none_of(range: Range<Offset>) -> DeadOffsets {
        let pieces = range.end.since(range.start).div_ceil(PIECE);
        DeadOffsets { range, pieces: (0..pieces).map(|_| None).collect(), count: 0 }
    }

    /// The offsets that were looked at.
    pub fn range(&self) -> Range<Offset> {
        self.range.clone()
    }

    /// How many of them are dead.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Says that the record at `offset` is dead; nothing outside of the range.
    pub fn insert(&mut self, offset: Offset) {
        if !self.range.contains(&offset) {
            return;
        }
        let (piece, word, bit) = self.place(offset);
        if let Some(piece) = self.pieces.get_mut(piece) {
            let piece = piece.get_or_insert_with(|| Box::new([0; PIECE as usize / 64]));
            self.count += u64::from(piece[word] & bit == 0);
            piece[word] |= bit;
        }
    }

    /// Whether the record at `offset` is dead; outside of the range none is.
    pub fn contains(&self, offset: Offset) -> bool {
        let (piece, word, bit) = self.place(offset);
        let piece = self.pieces.get(piece).and_then(Option::as_ref);
        self.range.contains(&offset) && piece.is_some_and(|piece| piece[word] & bit != 0)
    }

    /// Whether there may be one from `from` to before `next`: never false if there is.
    pub fn may_contain_any(&self, from: Offset, next: Offset) -> bool {
        let first = (from.since(self.range.start) / PIECE) as usize;
        let last = (next.back(1).since(self.range.start) / PIECE) as usize;
        let pieces = self.pieces.iter().take(last.saturating_add(1)).skip(first);
        from < next && pieces.flatten().next().is_some()
    }

    fn place(&self, offset: Offset) -> (usize, usize, u64) {
        let number = offset.since(self.range.start);
        ((number / PIECE) as usize, (number % PIECE / 64) as usize, 1 << (number % 64))
    }
}

impl Log {
    /// The records in `range` of whose key there is a newer durable record; and those that
    /// are the newest, without a value, and before `tombstones_before`. Keys are told apart
    /// by their hashes alone: that two share 128 bits of a keyed hash is not to be expected.
    /// The tables are made to cover the durable log first; what this takes is the bits and a
    /// piece of each table.
    ///
    /// # Errors
    /// As [`Log::cover_keys`]; [`Error::Unreadable`] for a table that can't be read.
    pub fn dead_offsets(
        &self,
        range: Range<Offset>,
        tombstones_before: Offset,
    ) -> Result<DeadOffsets> {
        unless_garbage(|| {
            let mut dead = DeadOffsets::none_of(range.clone());
            let durable = self.cover_keys()?;
            let parts = open_parts(self, &(self.start()?..durable), None)?;
            let mut last: Option<KeyHash> = None;
            each_entry(self, None, &tables_of(self, &parts)?, |entry| {
                let is_newest = last != Some(entry.hash);
                last = Some(entry.hash);
                let KeyEntry { offset, tombstone, .. } = *entry;
                if !is_newest || newest_is_dead(offset, tombstone, tombstones_before) {
                    dead.insert(offset);
                }
                Ok(())
            })?;
            Ok(dead)
        })
    }

    /// Takes the entries of `dead` records, which are gone, out of the tables.
    ///
    /// # Errors
    /// As [`Log::dead_offsets`].
    pub fn forget_dead(&self, dead: &DeadOffsets) -> Result<()> {
        if dead.count() == 0 {
            return Ok(());
        }
        let lock = &KeysLock::take(self)?;
        let range = dead.range();
        let start = self.start()?;
        for part in open_parts(self, &(start..start), Some(lock))? {
            let Part::Table(table, from) = &part else { continue };
            let covered = part.range();
            if covered.end <= range.start || range.end <= covered.start {
                continue;
            }
            let (mut live, mut forgotten) = (0, 0);
            each_entry(self, Some(lock), &[(table, *from)], |entry| {
                let is_dead = dead.contains(entry.offset);
                (live, forgotten) = (live + u64::from(!is_dead), forgotten + u64::from(is_dead));
                Ok(())
            })?;
            if forgotten == 0 {
                continue;
            }
            let thinner = NewTable { range: table.range(), time: table.time(), room: live };
            write_table(self, lock, &thinner, Kept::Perhaps, |writer| {
                each_entry(self, Some(lock), &[(table, *from)], |entry| {
                    if dead.contains(entry.offset) { Ok(()) } else { writer.push(entry) }
                })
            })?;
        }
        Ok(())
    }
}

/// The tables of `parts`, all of which must have one.
fn tables_of<'a>(log: &Log, parts: &'a [Part]) -> Result<Vec<(&'a Table, Offset)>> {
    let tables = parts.iter().map(|part| match part {
        Part::Table(table, from) => Ok((table.as_ref(), *from)),
        Part::Bare(range) | Part::Unread(range) => {
            let what = format!(
                "no table covers offsets {} to {}: run tapelog verify {} --repair",
                range.start,
                range.end,
                log.home.dir().display()
            );
            let path = log.home.path(crate::format::file_name::KEYS);
            Err(Error::Unreadable { path, what })
        }
    });
    tables.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_there_and_nothing_else() {
        let offset = Offset::new;
        let mut dead = DeadOffsets::none_of(offset(100)..offset(300_000));
        let added = [100, 101, 163, 164, 65_635, 65_636, 299_999];
        added.into_iter().chain([0, 99, 300_000, 400_000]).for_each(|n| dead.insert(offset(n)));
        let found: Vec<u64> = (0..500_000).filter(|&n| dead.contains(offset(n))).collect();
        assert_eq!((found.as_slice(), dead.count()), (added.as_slice(), 7));
        assert!(dead.may_contain_any(offset(100), offset(101)));
        assert!(!dead.may_contain_any(offset(140_000), offset(150_000)));
        assert!(dead.may_contain_any(offset(140_000), offset(300_000)));
        assert!(!dead.may_contain_any(offset(100), offset(100)));
    }
}
