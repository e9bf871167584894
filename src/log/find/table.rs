//! The table of sealed segments: which segment holds an offset or a moment, without
//! listing the directory. Kept in `segments.index`, which is derived: while the
//! directory's stamp is the one that the file names, the file is complete;
//! otherwise the directory is listed, each segment that the file does not know is
//! surveyed, and the file is written anew if that can be done at once.

use std::path::PathBuf;

use super::tail::open_if_there;
use crate::disk::{Access, DiskFile, LockMode, read_full, write_all};
use crate::format::file_name;
use crate::format::segment_row::{ROW_LEN, TableHeader, decode_row, encode_row};
use crate::log::Log;
use crate::log::error::{Damage, Error, OutOfRange, Result};
use crate::log::files::lock::AppendLock;
use crate::log::home::Home;
use crate::model::{LogId, Offset, Position, SegmentFacts, Timestamp};
use crate::segment::survey;

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
    /// In the file, which is complete.
    Stored { file: Box<dyn DiskFile>, header: TableHeader, log: LogId },
    /// From the directory.
    Listed(Vec<SegmentFacts>),
}

impl SegmentTable {
    /// The table of `log`.
    pub(crate) fn load(log: &Log) -> Result<SegmentTable> {
        if let Some(table) = Self::current(log)? {
            return Ok(table);
        }
        let lock = AppendLock::of(&log.home)?;
        let held = lock.try_acquire(LockMode::Exclusive)?;
        let (table, stamp) = Self::listed(log)?;
        if held.is_some() && table.damage.is_none() {
            // Derived, so that a disk that takes no more is no reason to fail.
            let _ = table.save(log, stamp);
        }
        Ok(table)
    }

    /// The table of `log` for a writer, who holds the append lock.
    pub(crate) fn load_locked(log: &Log) -> Result<SegmentTable> {
        if let Some(table) = Self::current(log)? {
            return Ok(table);
        }
        let (table, stamp) = Self::listed(log)?;
        if table.damage.is_none() {
            let _ = table.save(log, stamp);
        }
        Ok(table)
    }

    /// The stored table, if it is complete.
    fn current(log: &Log) -> Result<Option<SegmentTable>> {
        let stored = Self::stored(log)?;
        Ok(stored.filter(|(table, stamp)| table.stamp() == Some(*stamp)).map(|(table, _)| table))
    }

    /// The stored table, complete or not, and the directory's stamp now.
    fn stored(log: &Log) -> Result<Option<(SegmentTable, u64)>> {
        let stamp = stamp(&log.home)?;
        let path = path(&log.home);
        let Ok(file) = log.home.disk().open(&path, Access::Read) else { return Ok(None) };
        let Ok(Some(header)) = read_header(file.as_ref(), log.id) else { return Ok(None) };
        let rows = Rows::Stored { file, header, log: log.id };
        Ok(Some((SegmentTable { rows, active: header.next, damage: None }, stamp)))
    }

    fn stamp(&self) -> Option<u64> {
        match &self.rows {
            Rows::Stored { header, .. } => Some(header.stamp),
            Rows::Listed(_) => None,
        }
    }

    /// The table from the directory, using what the stored one still knows.
    fn listed(log: &Log) -> Result<(SegmentTable, u64)> {
        let stamp = stamp(&log.home)?;
        let start = log.start()?;
        let bases: Vec<Offset> =
            log.home.list_segments()?.into_iter().filter(|&base| base >= start).collect();
        let old = Self::stored(log)?.map(|(table, _)| table);
        let mut damage = None;
        let mut rows = Vec::with_capacity(bases.len());
        for pair in bases.windows(2) {
            let known = old.as_ref().and_then(|old| old.find(pair[0]));
            let known = known.filter(|facts| facts.base == pair[0] && facts.next == pair[1]);
            let facts = match known {
                Some(facts) => facts,
                None => survey_sealed(log, pair[0], pair[1], &mut damage)?,
            };
            rows.push(facts);
        }
        let active = bases.last().copied().unwrap_or(start);
        Ok((SegmentTable { rows: Rows::Listed(rows), active, damage }, stamp))
    }

    /// Writes the table, which is complete while the directory's stamp is `stamp`.
    fn save(&self, log: &Log, stamp: u64) -> Result<()> {
        let path = path(&log.home);
        let (file, stamp) = match log.home.disk().open(&path, Access::ReadWrite) {
            Ok(file) => (file, stamp),
            Err(_) => {
                let made = log.home.disk().create_new(&path).map_err(Error::io("create", &path))?;
                (made, self::stamp(&log.home)?)
            }
        };
        let header = TableHeader { stamp, rows: self.len(), next: self.active, generation: stamp };
        let mut bytes = header.encode(log.id).to_vec();
        for number in 0..self.len() {
            if let Some(row) = self.row(number) {
                bytes.extend_from_slice(&encode_row(&row, log.id, stamp, number));
            }
        }
        write_all(file.as_ref(), &[&bytes], 0).map_err(Error::io("write", &path))?;
        file.set_len(bytes.len() as u64).map_err(Error::io("cut", &path))
    }

    /// How many sealed segments there are.
    pub(crate) fn len(&self) -> u64 {
        match &self.rows {
            Rows::Stored { header, .. } => header.rows,
            Rows::Listed(rows) => rows.len() as u64,
        }
    }

    /// The sealed segment `number`, oldest first. `None` beyond the last one, or
    /// where the file turns out to be garbage.
    pub(crate) fn row(&self, number: u64) -> Option<SegmentFacts> {
        match &self.rows {
            Rows::Listed(rows) => rows.get(usize::try_from(number).ok()?).cloned(),
            Rows::Stored { file, header, log } => {
                let mut bytes = [0; ROW_LEN];
                let at = (number + 1) * ROW_LEN as u64;
                let read = read_full(file.as_ref(), &mut bytes, at).ok()?;
                let whole = read == ROW_LEN && number < header.rows;
                whole.then(|| decode_row(&bytes, *log, header.generation, number))?
            }
        }
    }

    /// The sealed segments from the one that holds `start` on, oldest first.
    fn rows_from(&self, start: Offset) -> impl Iterator<Item = SegmentFacts> {
        let first = self.count_where(|facts| facts.next <= start);
        (first..self.len()).filter_map(|number| self.row(number))
    }

    /// The sealed segment that holds `offset`.
    pub(crate) fn find(&self, offset: Offset) -> Option<SegmentFacts> {
        let facts = self.row(self.count_where(|facts| facts.next <= offset))?;
        (facts.base <= offset).then_some(facts)
    }

    /// The base offset of the segment that holds `offset`, or will hold it. A table
    /// whose file turns out to be garbage is replaced by one from the directory.
    pub(crate) fn holder_of(&mut self, log: &Log, offset: Offset) -> Result<Offset> {
        for _ in 0..2 {
            if let Some(facts) = self.find(offset) {
                return Ok(facts.base);
            }
            if offset >= self.active {
                return Ok(self.active);
            }
            *self = Self::listed(log)?.0;
        }
        let bounds = log.bounds()?;
        Err(OutOfRange::before_start(offset, bounds.start, bounds.end).into())
    }

    /// Every sealed segment, oldest first, each beginning where the one before it ends.
    pub(crate) fn all(&mut self, log: &Log, start: Offset) -> Result<Vec<SegmentFacts>> {
        let rows: Vec<SegmentFacts> = self.rows_from(start).collect();
        let ends = std::iter::once(start).chain(rows.iter().map(|facts| facts.next));
        let begins = rows.iter().map(|facts| facts.base).chain([self.active]);
        if ends.eq(begins) {
            return Ok(rows);
        }
        *self = Self::listed(log)?.0;
        Ok(self.rows_from(start).collect())
    }

    /// The first sealed segment with a record appended at or after `time`.
    pub(crate) fn find_time(&self, time: Timestamp) -> Option<SegmentFacts> {
        self.row(self.count_where(|facts| facts.last_time.is_none_or(|last| last < time)))
    }

    /// The base offset of the segment after the one at `base`, if both are known.
    pub(crate) fn base_after(&self, base: Offset) -> Option<Offset> {
        self.find(base).filter(|facts| facts.base == base).map(|facts| facts.next)
    }

    /// How many rows, counted from the first, `holds` is true for.
    fn count_where(&self, holds: impl Fn(&SegmentFacts) -> bool) -> u64 {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.row(middle) {
                Some(facts) if holds(&facts) => low = middle + 1,
                _ => high = middle,
            }
        }
        low
    }
}

/// Whether the stored table is complete now, so that [`add`] may follow.
pub(crate) fn is_current(log: &Log) -> Result<bool> {
    Ok(SegmentTable::current(log)?.is_some())
}

/// Adds the newly sealed segment to a table that was complete before the segment
/// after it was made. The caller holds the append lock.
pub(crate) fn add(log: &Log, sealed: &SegmentFacts) -> Result<()> {
    let path = path(&log.home);
    let file = log.home.open(&path, Access::ReadWrite)?;
    let header = read_header(file.as_ref(), log.id).map_err(Error::io("read", &path))?;
    let Some(old) = header.filter(|header| header.next == sealed.base) else {
        return refresh(log);
    };
    let row = encode_row(sealed, log.id, old.generation, old.rows);
    let at = (old.rows + 1) * ROW_LEN as u64;
    write_all(file.as_ref(), &[&row], at).map_err(Error::io("write", &path))?;
    let new =
        TableHeader { stamp: stamp(&log.home)?, rows: old.rows + 1, next: sealed.next, ..old };
    write_all(file.as_ref(), &[&new.encode(log.id)], 0).map_err(Error::io("write", &path))
}

/// Writes the table anew from the directory. The caller holds the append lock.
pub(crate) fn refresh(log: &Log) -> Result<()> {
    let (table, stamp) = SegmentTable::listed(log)?;
    // A table that is saved says that the names are in order.
    if table.damage.is_some() { Ok(()) } else { table.save(log, stamp) }
}

/// The facts of a sealed segment that no table knows; it must reach to `next`.
fn survey_sealed(
    log: &Log,
    base: Offset,
    next: Offset,
    damage: &mut Option<Damage>,
) -> Result<SegmentFacts> {
    let path = log.home.segment_path(base);
    let Some(file) = open_if_there(&log.home, base)? else {
        return Err(super::tail::missing_segment(&log.home, base, base));
    };
    let mut facts = survey(file, log.id, base).map_err(Error::io("read", &path))?;
    if facts.next != next {
        let what = match facts.next.since(base) {
            0 => "nothing in it belongs there".to_owned(),
            _ => format!("it reaches to offset {}, but the next segment is {next}", facts.next),
        };
        let found = Damage { path, position: Position::ZERO, offset: facts.next.min(next), what };
        damage.get_or_insert(found);
        facts.next = next;
        facts.records = facts.records.min(next.since(base));
    }
    Ok(facts)
}

fn path(home: &Home) -> PathBuf {
    home.path(file_name::SEGMENT_TABLE)
}

fn stamp(home: &Home) -> Result<u64> {
    home.disk().dir_stamp(home.dir()).map_err(Error::io("look at", home.dir()))
}

fn read_header(file: &dyn DiskFile, log: LogId) -> std::io::Result<Option<TableHeader>> {
    let mut bytes = [0; ROW_LEN];
    let read = read_full(file, &mut bytes, 0)?;
    Ok((read == ROW_LEN).then(|| TableHeader::decode(&bytes, log)).flatten())
}

#[cfg(test)]
mod tests {
    use super::*;
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
