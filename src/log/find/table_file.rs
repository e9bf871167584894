//! The file `segments.index`: the table of sealed segments, so that nobody lists the
//! directory. Derived. It is complete while the directory's stamp is the one that it
//! names; a roll takes that away first and gives it back last.

use std::io::ErrorKind;
use std::path::PathBuf;

use super::table::SegmentTable;
use crate::disk::{Access, DiskFile, LockMode, read_full, write_all};
use crate::format::file_name;
use crate::format::segment_row::{ROW_LEN, TableHeader, decode_row, encode_row};
use crate::log::Log;
use crate::log::error::{Error, Result};
use crate::log::files::lock::AppendLock;
use crate::log::find::table_list;
use crate::log::home::Home;
use crate::log::note::Note;
use crate::model::{LogId, Offset, SegmentFacts};

/// No directory has this stamp.
const NEVER: u64 = 0;

/// The rows of a table that is read from its file, one by one.
#[derive(Debug)]
pub(crate) struct StoredRows {
    file: Box<dyn DiskFile>,
    header: TableHeader,
    log: LogId,
}

impl StoredRows {
    /// How many there are.
    pub(crate) fn len(&self) -> u64 {
        self.header.rows
    }

    /// The next offset of the last one.
    pub(crate) fn next(&self) -> Offset {
        self.header.next
    }

    /// Row `number`; `None` if it is garbage or there is none.
    pub(crate) fn row(&self, number: u64) -> Option<SegmentFacts> {
        let mut bytes = [0; ROW_LEN];
        let at = (number + 1) * ROW_LEN as u64;
        let read = read_full(self.file.as_ref(), &mut bytes, at).ok()?;
        let whole = read == ROW_LEN && number < self.header.rows;
        whole.then(|| decode_row(&bytes, self.log, self.header.generation, number))?
    }
}

/// The table in the file, complete or not; `None` if it is none of this log's.
pub(crate) fn stored(log: &Log) -> Option<StoredRows> {
    let path = path(&log.home);
    let file = match log.home.disk().open(&path, Access::Read) {
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        Err(error) => {
            log.home.tell(&Note::IndexUnreadable { path, why: error.to_string() });
            return None;
        }
        Ok(file) => file,
    };
    let header = read_header(file.as_ref(), log.id).ok()??;
    let whole = header.rows.checked_add(1)?.checked_mul(ROW_LEN as u64)? == file.size().ok()?;
    whole.then_some(StoredRows { file, header, log: log.id })
}

/// The table in the file, if it is complete.
pub(crate) fn current(log: &Log) -> Result<Option<SegmentTable>> {
    let stamp = stamp(&log.home)?;
    let rows = stored(log).filter(|rows| rows.header.stamp == stamp && stamp != NEVER);
    Ok(rows.map(SegmentTable::stored))
}

/// Writes the table, which is complete while the directory's stamp is `stamp`. The
/// caller holds the append lock. A table with damage is not saved: what is saved says
/// that the names are in order.
pub(crate) fn save(log: &Log, table: &SegmentTable, stamp: u64) -> Result<()> {
    if table.damage.is_some() {
        return Ok(());
    }
    let path = path(&log.home);
    let (file, stamp) = match log.home.disk().open(&path, Access::ReadWrite) {
        Ok(file) => (file, stamp),
        Err(_) => {
            let made = log.home.disk().create_new(&path).map_err(Error::io("create", &path))?;
            (made, self::stamp(&log.home)?)
        }
    };
    let header = TableHeader { stamp, rows: table.len(), next: table.active, generation: stamp };
    let mut bytes = header.encode(log.id).to_vec();
    for number in 0..table.len() {
        let Some(row) = table.row(number) else { return Ok(()) };
        bytes.extend_from_slice(&encode_row(&row, log.id, stamp, number));
    }
    write_all(file.as_ref(), &[&bytes], 0).map_err(Error::io("write", &path))?;
    file.set_len(bytes.len() as u64).map_err(Error::io("cut", &path))
}

/// The same by a reader: only if the append lock can be had at once, and if the
/// directory is still as it was. Failing here costs the next reader time only.
pub(crate) fn save_unless_busy(log: &Log, table: &SegmentTable, stamp: u64) {
    let Ok(Some(lock)) = AppendLock::to_mend(&log.home) else { return };
    let Ok(Some(_held)) = lock.try_acquire(LockMode::Exclusive) else { return };
    // On a coarse clock a segment may have been replaced since within the same stamp; whoever
    // did that has written the table too.
    let is_written = current(log).is_ok_and(|table| table.is_some());
    if !is_written && self::stamp(&log.home).is_ok_and(|now| now == stamp) {
        let _ = save(log, table, stamp);
    }
}

/// Says that the table is not complete: a segment is about to be made. The caller
/// holds the append lock.
pub(crate) fn invalidate(log: &Log) -> Result<()> {
    write_stamp(log, |header| TableHeader { stamp: NEVER, ..header })
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
    let stamp = stamp(&log.home)?;
    write_stamp(log, |old| TableHeader { stamp, rows: old.rows + 1, next: sealed.next, ..old })
}

/// Makes sure that the row of the segment at `base` is believed by nobody, whatever a
/// power cut leaves: the segment is about to get another file. The caller holds the append
/// lock, and writes the table anew afterwards.
pub(crate) fn forget_row(log: &Log, base: Offset) -> Result<()> {
    let Some(rows) = stored(log) else {
        // What the disk has of it may be an older one, which can be read.
        remove(&log.home)?;
        return log.home.sync_dir(log.home.dir());
    };
    let path = path(&log.home);
    let file = log.home.open(&path, Access::ReadWrite)?;
    let is_it = |&number: &u64| rows.row(number).is_some_and(|facts| facts.base == base);
    if let Some(number) = (0..rows.len()).find(is_it) {
        write_all(file.as_ref(), &[&[0; ROW_LEN]], (number + 1) * ROW_LEN as u64)
            .map_err(Error::io("write", &path))?;
    }
    file.sync_data().map_err(Error::io("sync", &path))
}

/// Takes the table away, as its rows would be believed of segments that are replaced.
pub(crate) fn remove(home: &Home) -> Result<()> {
    let path = path(home);
    match home.disk().remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Writes the table anew from the directory. The caller holds the append lock.
pub(crate) fn refresh(log: &Log) -> Result<()> {
    let (table, stamp) = table_list::list_locked(log)?;
    save(log, &table, stamp)
}

fn write_stamp(log: &Log, change: impl FnOnce(TableHeader) -> TableHeader) -> Result<()> {
    let path = path(&log.home);
    let file = log.home.open(&path, Access::ReadWrite)?;
    match read_header(file.as_ref(), log.id).map_err(Error::io("read", &path))? {
        Some(header) => write_all(file.as_ref(), &[&change(header).encode(log.id)], 0)
            .map_err(Error::io("write", &path)),
        None => Ok(()),
    }
}

fn path(home: &Home) -> PathBuf {
    home.path(file_name::SEGMENT_TABLE)
}

/// The directory's stamp now.
pub(crate) fn stamp(home: &Home) -> Result<u64> {
    home.disk().dir_stamp(home.dir()).map_err(Error::io("look at", home.dir()))
}

fn read_header(file: &dyn DiskFile, log: LogId) -> std::io::Result<Option<TableHeader>> {
    let mut bytes = [0; ROW_LEN];
    let read = read_full(file, &mut bytes, 0)?;
    Ok((read == ROW_LEN).then(|| TableHeader::decode(&bytes, log)).flatten())
}
