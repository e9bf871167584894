//! One table of the key index: opening it, finding a key's entries, reading all of them.
//! Every page is checked before it is used; what is wrong is an error, and the caller
//! goes on without the table.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use thiserror::Error;

use crate::disk::{Access, DiskFile, read_full};
use crate::format::file_name;
use crate::format::key_hash::KeyHash;
use crate::format::key_table::{
    KeyEntry, NoHeader, PAGE_LEN, Page, PageBytes, TableHeader, TableOf, page_at,
};
use crate::log::home::Home;
use crate::model::{LogId, Offset, Timestamp};

/// What is read at once by whoever reads all of a table.
const CHUNK_PAGES: usize = 16;

/// Why a table is of no use.
#[derive(Debug, Error)]
pub(crate) enum TableError {
    /// It can't be read; it may be good.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is another log's.
    #[error("it is another log's")]
    OtherLog,
    /// Its header is no good, or does not fit its name or its length.
    #[error("it is no table of the key index")]
    NoTable,
    /// The log has other records by now than those that it speaks of.
    #[error("the log was rewritten beneath it")]
    Rewritten,
    /// A page is no good.
    #[error("page {0} is garbage")]
    Garbage(u64),
}

impl TableError {
    /// Whether there is no such file, perhaps no longer.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, TableError::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

/// An open table.
#[derive(Debug)]
pub(crate) struct Table {
    path: PathBuf,
    file: Box<dyn DiskFile>,
    header: TableHeader,
    /// A page of it could not be read: it is used no more.
    is_bad: AtomicBool,
}

/// The page of one table that was read last.
#[derive(Debug)]
pub(crate) struct LastPage {
    number: Option<u64>,
    bytes: Box<PageBytes>,
}

impl Default for LastPage {
    fn default() -> Self {
        LastPage { number: None, bytes: Box::new([0; PAGE_LEN]) }
    }
}

impl Table {
    /// Opens the table in `dir` of `range`.
    pub(crate) fn open(
        home: &Home,
        dir: &Path,
        log: LogId,
        range: &Range<Offset>,
    ) -> Result<Table, TableError> {
        let path = dir.join(file_name::key_table(range));
        let file = home.disk().open(&path, Access::Read)?;
        let mut page = [0; PAGE_LEN];
        if read_full(file.as_ref(), &mut page, 0)? < PAGE_LEN {
            return Err(TableError::NoTable);
        }
        let header = TableHeader::decode(&page, log).map_err(|no| match no {
            NoHeader::OtherLog => TableError::OtherLog,
            NoHeader::Garbage => TableError::NoTable,
        })?;
        let fits = (header.of.first, header.of.next) == (range.start, range.end);
        if !fits || header.file_len() != Some(file.size()?) {
            return Err(TableError::NoTable);
        }
        Ok(Table { path, file, header, is_bad: AtomicBool::new(false) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// How many entries it has.
    pub(crate) fn len(&self) -> u64 {
        self.header.entries
    }

    /// The offsets whose keys it has.
    pub(crate) fn range(&self) -> Range<Offset> {
        self.header.of.first..self.header.of.next
    }

    /// When the last record of its range was appended.
    pub(crate) fn time(&self) -> Timestamp {
        self.header.time
    }

    /// Whether it was found to be of no use.
    pub(crate) fn is_bad(&self) -> bool {
        self.is_bad.load(Ordering::Relaxed)
    }

    /// Says that it is of no use.
    pub(crate) fn give_up(&self) {
        self.is_bad.store(true, Ordering::Relaxed);
    }

    /// The newest entry of `hash`.
    pub(crate) fn newest(
        &self,
        hash: KeyHash,
        last: &mut LastPage,
    ) -> Result<Option<KeyEntry>, TableError> {
        let newer_than_all = self.header.of.next;
        let Some((number, at)) = self.place_of(hash, newer_than_all, last)? else {
            return Ok(None);
        };
        let entry = self.page(number, last)?.entry(at);
        Ok(entry.filter(|entry| entry.hash == hash))
    }

    /// Some offsets of `hash` from `from` on, without a gap, growing: as many as one page
    /// has. None if there is none.
    pub(crate) fn some_from(
        &self,
        hash: KeyHash,
        from: Offset,
        last: &mut LastPage,
    ) -> Result<Vec<Offset>, TableError> {
        let Some((mut number, mut at)) = self.place_of(hash, from, last)? else {
            return Ok(Vec::new());
        };
        if at == 0 && number > self.header.of.home(hash) {
            number -= 1;
            at = self.page(number, last)?.len();
        }
        let page = self.page(number, last)?;
        let back = (0..at).rev().filter_map(|at| page.entry(at));
        Ok(back.take_while(|entry| entry.hash == hash).map(|entry| entry.offset).collect())
    }

    /// The same of those before `before`, falling.
    pub(crate) fn some_before(
        &self,
        hash: KeyHash,
        before: Offset,
        last: &mut LastPage,
    ) -> Result<Vec<Offset>, TableError> {
        let Some((number, at)) = self.place_of(hash, before, last)? else {
            return Ok(Vec::new());
        };
        let page = self.page(number, last)?;
        let on = (at..page.len()).filter_map(|at| page.entry(at));
        Ok(on.take_while(|entry| entry.hash == hash).map(|entry| entry.offset).collect())
    }

    /// The place behind all entries of `hash` from `offset` on: the page and how many of
    /// its entries stand before that place. `None` if the table ends before it, or is empty.
    ///
    /// From a hash's home on, pages that end before the place are full, so that the first
    /// one that is not full or ends behind the place is the one: it is looked for in steps
    /// that double, then by bisection.
    fn place_of(
        &self,
        hash: KeyHash,
        offset: Offset,
        last: &mut LastPage,
    ) -> Result<Option<(u64, usize)>, TableError> {
        let mut before = |number: u64| {
            let page = self.page(number, last)?;
            let before = page.count_before(hash, offset);
            Ok::<_, TableError>((before, before < page.len() || !page.is_full()))
        };
        let (mut low, mut step) = (self.header.of.home(hash), 1);
        let mut high = loop {
            let number = low + step - 1;
            if number >= self.header.pages {
                break self.header.pages;
            }
            if before(number)?.1 {
                break number;
            }
            low = number + 1;
            step *= 2;
        };
        while low < high {
            let middle = low + (high - low) / 2;
            if before(middle)?.1 { high = middle } else { low = middle + 1 }
        }
        match high < self.header.pages {
            true => Ok(Some((high, before(high)?.0))),
            // Behind the last page, which is full.
            false => match self.header.pages.checked_sub(1) {
                Some(number) => Ok(Some((number, before(number)?.0))),
                None => Ok(None),
            },
        }
    }

    fn page<'a>(&self, number: u64, last: &'a mut LastPage) -> Result<Page<'a>, TableError> {
        if last.number != Some(number) {
            last.number = None;
            let read = read_full(self.file.as_ref(), last.bytes.as_mut_slice(), page_at(number))?;
            if read < PAGE_LEN || Page::check(&last.bytes, &self.header.of, number).is_none() {
                return Err(TableError::Garbage(number));
            }
            last.number = Some(number);
        }
        Ok(Page::checked(&last.bytes, &self.header.of))
    }

    /// All entries, in their order.
    pub(crate) fn entries(&self) -> Entries<'_> {
        Entries {
            table: self,
            pages: 0,
            chunk: Vec::new(),
            at: (0, 0),
            last: None,
            left: self.len(),
        }
    }
}

/// The entries of one table, read a piece at a time.
#[derive(Debug)]
pub(crate) struct Entries<'a> {
    table: &'a Table,
    /// How many pages were read.
    pages: u64,
    /// The last of them.
    chunk: Vec<PageBytes>,
    /// The page in the chunk and the entry in it that come next.
    at: (usize, usize),
    last: Option<KeyEntry>,
    left: u64,
}

impl Entries<'_> {
    /// The next entry; `None` after the last one.
    ///
    /// # Errors
    /// [`TableError`]; an entry out of its order, or outside of the table's range, is
    /// garbage too.
    pub(crate) fn next(&mut self) -> Result<Option<KeyEntry>, TableError> {
        loop {
            let (number, entry) = self.at;
            let Some(bytes) = self.chunk.get(number) else {
                if !self.read_on()? {
                    return if self.left == 0 { Ok(None) } else { Err(TableError::NoTable) };
                }
                continue;
            };
            let Some(found) = Page::checked(bytes, &self.table.header.of).entry(entry) else {
                self.at = (number + 1, 0);
                continue;
            };
            self.at.1 += 1;
            let in_order = self.last.is_none_or(|last| last.place() < found.place());
            if !in_order || !self.table.range().contains(&found.offset) || self.left == 0 {
                return Err(TableError::Garbage(self.pages - (self.chunk.len() - number) as u64));
            }
            self.left -= 1;
            self.last = Some(found);
            return Ok(Some(found));
        }
    }

    /// Reads and checks the next pages; says whether there were any.
    fn read_on(&mut self) -> Result<bool, TableError> {
        let of: &TableOf = &self.table.header.of;
        let count = (self.table.header.pages - self.pages).min(CHUNK_PAGES as u64);
        self.chunk.resize(count as usize, [0; PAGE_LEN]);
        let bytes = self.chunk.as_flattened_mut();
        let read = read_full(self.table.file.as_ref(), bytes, page_at(self.pages))?;
        for (number, page) in (self.pages..).zip(&self.chunk) {
            let whole = (number - self.pages + 1) as usize * PAGE_LEN <= read;
            if !whole || Page::check(page, of, number).is_none() {
                return Err(TableError::Garbage(number));
            }
        }
        self.pages += count;
        self.at = (0, 0);
        Ok(count > 0)
    }
}

/// The entries of many tables in one order: a tournament, in which each match keeps its
/// loser, so that after the winner's next entry only the matches on its way are new.
#[derive(Debug)]
pub(crate) struct Merged<'a> {
    streams: Vec<Entries<'a>>,
    /// The next entry of each.
    heads: Vec<Option<KeyEntry>>,
    /// The losers of the matches, from 1 on, each below number / 2; at 0 the winner.
    matches: Vec<Option<usize>>,
}

impl<'a> Merged<'a> {
    /// The entries of `tables`; on an error, the number of the table that it is about.
    pub(crate) fn of(tables: &[&'a Table]) -> Result<Merged<'a>, (usize, TableError)> {
        let streams: Vec<_> = tables.iter().map(|table| table.entries()).collect();
        let (heads, matches) = (vec![None; streams.len()], vec![None; streams.len().max(1)]);
        let mut merged = Merged { streams, heads, matches };
        for number in 0..tables.len() {
            merged.advance(number)?;
        }
        Ok(merged)
    }

    /// The next entry and the number of its table; `None` after the last one.
    pub(crate) fn next(&mut self) -> Result<Option<(usize, KeyEntry)>, (usize, TableError)> {
        let Some(winner) = self.matches[0] else { return Ok(None) };
        let Some(entry) = self.heads[winner] else { return Ok(None) };
        self.advance(winner)?;
        Ok(Some((winner, entry)))
    }

    /// Reads the next entry of table `number` and plays its matches.
    fn advance(&mut self, number: usize) -> Result<(), (usize, TableError)> {
        self.heads[number] = self.streams[number].next().map_err(|error| (number, error))?;
        let mut winner = number;
        let mut played = (number + self.streams.len()) / 2;
        while played > 0 {
            match self.matches[played] {
                // Whom it is played against comes later.
                None => {
                    self.matches[played] = Some(winner);
                    return Ok(());
                }
                Some(other) if self.rank(other) < self.rank(winner) => {
                    self.matches[played] = Some(winner);
                    winner = other;
                }
                Some(_) => {}
            }
            played /= 2;
        }
        self.matches[0] = Some(winner);
        Ok(())
    }

    /// The least wins; a table without a next entry loses to all others.
    fn rank(&self, number: usize) -> (u128, u64) {
        let behind_all = (u128::MAX, u64::MAX);
        let rank = |entry: &KeyEntry| (entry.hash.get(), Offset::MAX.since(entry.offset));
        self.heads[number].as_ref().map_or(behind_all, rank)
    }
}
