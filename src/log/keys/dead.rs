//! Which records compaction may drop, by the keys of all durable records; and the tables
//! without their entries.

use std::ops::Range;

use super::directory::{KeysLock, Part, open_parts};
use super::table::Table;
use super::upkeep::{each_entry, unless_garbage};
use super::writing::{Kept, write_table};
use crate::format::key_hash::KeyHash;
use crate::log::Log;
use crate::log::error::{Error, Result};
use crate::model::Offset;

/// A range of dead offsets takes one bit each: no more than this are looked at together.
pub const MOST_OFFSETS: u64 = 1 << 28;

/// The dead records of a range of offsets.
#[derive(Clone, Debug)]
pub struct DeadOffsets {
    range: Range<Offset>,
    bits: Vec<u64>,
    count: u64,
}

impl DeadOffsets {
    /// None yet, of `range`, or of as much of it as may be looked at together.
    pub fn none_of(range: Range<Offset>) -> DeadOffsets {
        let most = range.start.forward(MOST_OFFSETS).unwrap_or(Offset::MAX);
        let range = range.start..range.end.min(most).max(range.start);
        let words = range.end.since(range.start).div_ceil(u64::from(u64::BITS));
        DeadOffsets { bits: vec![0; words as usize], range, count: 0 }
    }

    /// The offsets that were looked at.
    pub fn range(&self) -> Range<Offset> {
        self.range.clone()
    }

    /// How many of them are dead.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether the record at `offset` is dead; outside of the range none is.
    pub fn contains(&self, offset: Offset) -> bool {
        let place = self.place(offset);
        place.is_some_and(|(word, bit)| self.bits[word] & bit != 0)
    }

    /// Says that the record at `offset` is dead; nothing outside of the range.
    pub fn insert(&mut self, offset: Offset) {
        if let Some((word, bit)) = self.place(offset) {
            self.count += u64::from(self.bits[word] & bit == 0);
            self.bits[word] |= bit;
        }
    }

    fn place(&self, offset: Offset) -> Option<(usize, u64)> {
        let bits = u64::from(u64::BITS);
        let number = offset.since(self.range.start);
        self.range.contains(&offset).then(|| ((number / bits) as usize, 1 << (number % bits)))
    }
}

impl Log {
    /// The records in `range`, or in as much of it as may be looked at together, of whose
    /// key there is a newer durable record; and those that are the newest, without a value,
    /// and before `tombstones_before`. Keys are told apart by their hashes alone: that two
    /// share 128 bits of a keyed hash is not to be expected. The tables are made to cover
    /// the durable log first; what this takes is the bits and a piece of each table.
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
                if !is_newest || (entry.tombstone && entry.offset < tombstones_before) {
                    dead.insert(entry.offset);
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
            write_table(self, lock, &table.range(), live, Kept::Surely, |writer| {
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
            let what = format!("no table covers offsets {} to {}", range.start, range.end);
            let path = log.home.path(crate::format::file_name::KEYS);
            Err(Error::Unreadable { path, what })
        }
    });
    tables.collect()
}
