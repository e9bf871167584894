//! Writing a table of the key index: into a temporary file, which then takes the table's
//! name. A young table is not synced: its checksums tell what a power cut left of it. A
//! large one that takes the place of others is, before they go.

use std::io;
use std::ops::Range;
use std::path::Path;

use super::directory::KeysLock;
use crate::disk::{DiskFile, write_all};
use crate::format::file_name;
use crate::format::key_table::{KeyEntry, NewPage, PAGE_LEN, TableHeader, TableOf, page_at};
use crate::log::Log;
use crate::log::error::{Error, Result};
use crate::log::files::whole_file;
use crate::model::{Offset, Timestamp};

/// What is written at once.
const CHUNK_LEN: usize = 64 * PAGE_LEN;

/// A table in the making.
pub(crate) struct TableWriter<'a> {
    path: &'a Path,
    file: &'a dyn DiskFile,
    of: TableOf,
    time: Timestamp,
    page: NewPage,
    /// The number of `page`.
    number: u64,
    entries: u64,
    /// Pages not written yet.
    pages: Vec<u8>,
}

impl TableWriter<'_> {
    /// Adds an entry, which must come after the others in the order of a table.
    pub(crate) fn push(&mut self, entry: &KeyEntry) -> Result<()> {
        let home = self.of.home(entry.hash);
        while self.page.is_full() || self.number < home {
            self.end_page()?;
        }
        self.page.push(entry, &self.of);
        self.entries += 1;
        Ok(())
    }

    fn end_page(&mut self) -> Result<()> {
        self.page.finish(&self.of, self.number, &mut self.pages);
        self.number += 1;
        if self.pages.len() >= CHUNK_LEN { self.write_pages() } else { Ok(()) }
    }

    fn write_pages(&mut self) -> Result<()> {
        let begin = page_at(self.number) - self.pages.len() as u64;
        write_all(self.file, &[&self.pages], begin).map_err(Error::io("write", self.path))?;
        self.pages.clear();
        Ok(())
    }

    /// Writes what is left, and the header last.
    fn finish(mut self) -> Result<()> {
        while self.number < self.of.homes || !self.page.is_empty() {
            self.end_page()?;
        }
        self.write_pages()?;
        let (of, time) = (self.of, self.time);
        let header = TableHeader { of, entries: self.entries, pages: self.number, time };
        let page = header.encode();
        write_all(self.file, &[&page], 0).map_err(Error::io("write", self.path))
    }
}

/// Whether a new table is there after a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Perhaps.
    Perhaps,
    /// Surely, once it was put in place: what it replaces may go.
    Surely,
}

/// A table that is to be made.
#[derive(Clone, Debug)]
pub(crate) struct NewTable {
    /// The offsets whose keys it has.
    pub range: Range<Offset>,
    /// When the last record of the range was appended.
    pub time: Timestamp,
    /// About how many entries it will have.
    pub room: u64,
}

/// Makes the table `new`, with what `fill` puts into it. One of the same name is replaced.
pub(crate) fn write_table(
    log: &Log,
    _lock: &KeysLock,
    new: &NewTable,
    kept: Kept,
    fill: impl FnOnce(&mut TableWriter<'_>) -> Result<()>,
) -> Result<()> {
    let (disk, dir) = (log.home.disk(), log.home.path(file_name::KEYS));
    let NewTable { range, time, room } = new;
    let path = dir.join(file_name::key_table(range));
    let made = whole_file::create_temporary(disk, &dir);
    let (temporary, file) = made.map_err(Error::io("create a file in", &dir))?;
    let mut writer = TableWriter {
        path: &temporary,
        file: file.as_ref(),
        of: TableOf::with_room(log.id, range.start, range.end, *room),
        time: *time,
        page: NewPage::default(),
        number: 0,
        entries: 0,
        pages: Vec::with_capacity(CHUNK_LEN + PAGE_LEN),
    };
    let sync = || match kept {
        Kept::Perhaps => Ok(()),
        Kept::Surely => file.sync_data(),
    };
    let put = |()| -> io::Result<()> {
        sync()?;
        disk.rename(&temporary, &path)?;
        if kept == Kept::Surely { disk.sync_dir(&dir) } else { Ok(()) }
    };
    let written = fill(&mut writer)
        .and_then(|()| writer.finish())
        .and_then(|done| put(done).map_err(Error::io("put in place", &path)));
    if written.is_err() {
        let _ = disk.remove_file(&temporary);
    }
    written
}
