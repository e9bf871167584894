//! The sealed segments of a log: which one holds an offset or a moment. From the file
//! `segments.index` while that is complete, else from the directory itself.

use super::table_file::{self, StoredRows};
use super::table_list;
use crate::log::Log;
use crate::log::error::{Damage, OutOfRange, Result};
use crate::model::{Offset, SegmentFacts, Timestamp};

/// The sealed segments of a log as they were when the table was loaded.
#[derive(Debug)]
pub(crate) struct SegmentTable {
    rows: Rows,
    /// The base offset of the newest segment; the log start if there is none yet.
    pub active: Offset,
    /// Damage in the sequence of segments, met while surveying.
    pub damage: Option<Damage>,
}

#[derive(Debug)]
enum Rows {
    Stored(StoredRows),
    Listed(Vec<SegmentFacts>),
}

impl SegmentTable {
    /// The table of `log`.
    pub(crate) fn load(log: &Log) -> Result<SegmentTable> {
        match table_file::current(log)? {
            Some(table) => Ok(table),
            None => Self::load_anew(log),
        }
    }

    /// The table of `log` for a writer, who holds the append lock.
    pub(crate) fn load_locked(log: &Log) -> Result<SegmentTable> {
        if let Some(table) = table_file::current(log)? {
            return Ok(table);
        }
        let (table, stamp) = table_list::list_locked(log)?;
        // Derived, so that a disk that takes no more is no reason to fail.
        let _ = table_file::save(log, &table, stamp);
        Ok(table)
    }

    /// The table from the directory, whatever the file says; the file is mended if
    /// that can be done at once.
    fn load_anew(log: &Log) -> Result<SegmentTable> {
        let (table, stamp) = table_list::list(log)?;
        table_file::save_unless_busy(log, &table, stamp);
        Ok(table)
    }

    /// The table that a complete file holds.
    pub(crate) fn stored(rows: StoredRows) -> SegmentTable {
        SegmentTable { active: rows.next(), rows: Rows::Stored(rows), damage: None }
    }

    /// The table of these segments.
    pub(crate) fn of(
        rows: Vec<SegmentFacts>,
        active: Offset,
        damage: Option<Damage>,
    ) -> SegmentTable {
        SegmentTable { rows: Rows::Listed(rows), active, damage }
    }

    /// How many sealed segments there are.
    pub(crate) fn len(&self) -> u64 {
        match &self.rows {
            Rows::Stored(rows) => rows.len(),
            Rows::Listed(rows) => rows.len() as u64,
        }
    }

    /// The sealed segment `number`, oldest first. `None` beyond the last one, or
    /// where the file turns out to be garbage.
    pub(crate) fn row(&self, number: u64) -> Option<SegmentFacts> {
        match &self.rows {
            Rows::Listed(rows) => rows.get(usize::try_from(number).ok()?).cloned(),
            Rows::Stored(rows) => rows.row(number),
        }
    }

    /// The base offset of the segment that holds `offset`, or will hold it.
    pub(crate) fn holder_of(&mut self, log: &Log, offset: Offset) -> Result<Offset> {
        for _ in 0..2 {
            if offset >= self.active {
                return Ok(self.active);
            }
            match self.first_where(|facts| facts.next > offset) {
                Some(Some(facts)) if facts.base <= offset => return Ok(facts.base),
                _ => *self = Self::load_anew(log)?,
            }
        }
        let bounds = log.bounds()?;
        Err(OutOfRange::before_start(offset, bounds.start, bounds.end).into())
    }

    /// The base offset of the first segment that can hold a record appended at or after `time`.
    pub(crate) fn holder_at(&mut self, log: &Log, time: Timestamp) -> Result<Offset> {
        let reaches = |facts: &SegmentFacts| facts.last_time.is_some_and(|last| last >= time);
        let mut found = self.first_where(reaches);
        if found.is_none() {
            *self = Self::load_anew(log)?;
            found = self.first_where(reaches);
        }
        Ok(found.flatten().map_or(self.active, |facts| facts.base))
    }

    /// Every sealed segment from the one that begins at `start` on, oldest first, each
    /// beginning where the one before it ends, the last one ending at `active`.
    pub(crate) fn all(&mut self, log: &Log, start: Offset) -> Result<Vec<SegmentFacts>> {
        if let Some(rows) = self.rows_from(start) {
            let ends = std::iter::once(start).chain(rows.iter().map(|facts| facts.next));
            let begins = rows.iter().map(|facts| facts.base).chain([self.active]);
            if ends.eq(begins) {
                return Ok(rows);
            }
        }
        *self = Self::load_anew(log)?;
        Ok(self.rows_from(start).unwrap_or_default())
    }

    fn rows_from(&self, start: Offset) -> Option<Vec<SegmentFacts>> {
        let first = self.count_before(|facts| facts.next > start)?;
        (first..self.len()).map(|number| self.row(number)).collect()
    }

    /// The base offset of the segment after the one at `base`, if both are known.
    pub(crate) fn base_after(&self, base: Offset) -> Option<Offset> {
        let facts = self.first_where(|facts| facts.next > base)??;
        (facts.base == base).then_some(facts.next)
    }

    /// The first segment that `holds` is true for, as it is for all after it: the inner
    /// `None` if there is none, the outer one if a row is garbage.
    fn first_where(&self, holds: impl Fn(&SegmentFacts) -> bool) -> Option<Option<SegmentFacts>> {
        let number = self.count_before(holds)?;
        if number == self.len() { Some(None) } else { self.row(number).map(Some) }
    }

    /// How many segments come before the first one that `holds` is true for; `None` if
    /// a row is garbage.
    fn count_before(&self, holds: impl Fn(&SegmentFacts) -> bool) -> Option<u64> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if holds(&self.row(middle)?) { high = middle } else { low = middle + 1 }
        }
        Some(low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::segment_row::ROW_LEN;
    use crate::log::Error;
    use crate::log::fixture::fixture;
    use std::path::Path;

    const TABLE: &str = "/log/segments.index";

    /// The first offsets of all sealed segments, and of the active one.
    fn bases(log: &Log) -> Vec<u64> {
        let mut table = SegmentTable::load(log).unwrap();
        let rows = table.all(log, log.start().unwrap()).unwrap();
        rows.iter().map(|facts| facts.base.get()).chain([table.active.get()]).collect()
    }

    #[test]
    fn a_table_of_any_kind_of_garbage_gives_the_same_answers() {
        let fixture = fixture(512);
        fixture.append(40);
        let good = bases(&fixture.log);
        assert!(good.len() > 5);
        let stored = fixture.disk.read_file(Path::new(TABLE)).unwrap();
        let mut flipped = stored.clone();
        flipped[3 * ROW_LEN + 5] ^= 1;
        let garbage: [&[u8]; 5] =
            [b"", b"x", &stored[..stored.len() - 1], &vec![0xFF; 4096], &flipped];
        for bytes in garbage {
            fixture.disk.write_file(Path::new(TABLE), bytes).unwrap();
            assert_eq!(bases(&fixture.log), good);
            assert_eq!(fixture.read(17).unwrap(), (17..40).collect::<Vec<_>>());
        }
    }

    #[test]
    fn h016_moments_are_found_though_any_row_is_garbage() {
        let fixture = fixture(512);
        fixture.append(60);
        let stored = fixture.disk.read_file(Path::new(TABLE)).unwrap();
        for row in 1..stored.len() / ROW_LEN {
            for millis in [0, 17, 30, 57] {
                let mut bad = stored.clone();
                bad[row * ROW_LEN + 9] ^= 1;
                fixture.disk.write_file(Path::new(TABLE), &bad).unwrap();
                let time = Timestamp::from_millis(millis);
                let found = crate::log::find::locate::first_at(&fixture.log, time).unwrap();
                assert_eq!(found.get(), millis as u64, "row {row}");
            }
        }
    }

    #[test]
    fn a_roll_that_was_killed_before_its_table_leaves_none_to_trust() {
        let fixture = fixture(512);
        fixture.append(20);
        let bases_then = bases(&fixture.log);
        // As the table was, with the stamp that it would have on a coarse clock.
        crate::log::find::table_file::invalidate(&fixture.log).unwrap();
        assert!(crate::log::find::table_file::current(&fixture.log).unwrap().is_none());
        assert_eq!(bases(&fixture.log), bases_then);
    }

    #[test]
    fn an_old_table_put_back_is_noticed() {
        let fixture = fixture(512);
        fixture.append(20);
        let old = fixture.disk.read_file(Path::new(TABLE)).unwrap();
        fixture.append(20);
        let good = bases(&fixture.log);
        fixture.disk.write_file(Path::new(TABLE), &old).unwrap();
        assert_eq!(bases(&fixture.log), good);
    }

    #[test]
    fn h013_a_foreign_segment_between_two_good_ones_is_damage() {
        let fixture = fixture(512);
        fixture.append(20);
        let good = bases(&fixture.log);
        let copy = fixture.disk.read_file(Path::new("/log/00000000000000000000.log")).unwrap();
        let between = good[1] + 1;
        fixture.disk.write_file(Path::new(&format!("/log/{between:020}.log")), &copy).unwrap();
        let refused = crate::log::Appender::open(&fixture.log);
        assert!(matches!(refused, Err(Error::Damage(_))), "{refused:?}");
        assert!(matches!(fixture.read(0), Err(Error::Damage(_))));
    }
}
