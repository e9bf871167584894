//! The directory `keys/`: which tables there are, who may change them, and which of them
//! are opened. Whoever adds, merges or removes tables holds the lock on the directory;
//! readers take none, and look again when a table went meanwhile.

use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::table::{Table, TableError};
use crate::disk::{DiskLock, Entry, LockMode};
use crate::format::file_name;
use crate::log::error::{Error, Result};
use crate::log::files::lock::wait_for;
use crate::log::home::Home;
use crate::log::{Log, Note};
use crate::model::Offset;
use crate::policy::merging::{Stretch, cover};

/// How often the directory is listed again while tables come and go.
const TRIES: usize = 20;
/// How long somebody who must have the lock waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

/// The lock on `keys/`, taken: who has it may change what is there. Dropping it lets go.
#[derive(Debug)]
pub(crate) struct KeysLock {
    _lock: Box<dyn DiskLock>,
}

impl KeysLock {
    /// Takes the lock, if that can be done at once; makes the directory where it is missing.
    /// `None` if somebody has it, or where nothing is to be changed.
    pub(crate) fn try_take(log: &Log) -> Option<KeysLock> {
        KeysLock::within(log, Duration::ZERO).ok()
    }

    /// Takes the lock, after who has it now.
    ///
    /// # Errors
    /// [`Error::Busy`] if that one does not let go for long; what the disk says.
    pub(crate) fn take(log: &Log) -> Result<KeysLock> {
        KeysLock::within(log, PATIENCE)
    }

    fn within(log: &Log, patience: Duration) -> Result<KeysLock> {
        log.home.require_local()?;
        let path = log.home.path(file_name::KEYS);
        log.home.refuse_link(&path)?;
        match log.home.disk().create_dir(&path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(Error::io("create", &path)(error));
            }
            _ => {}
        }
        let lock = log.home.disk().lock(&path).map_err(Error::io("open", &path))?;
        let held = wait_for(lock.as_ref(), &path, LockMode::Exclusive, patience)?
            && lock.is_at(&path).map_err(Error::io("look at", &path))?;
        if held {
            return Ok(KeysLock { _lock: lock });
        }
        let what = format!("{}", path.display());
        Err(Error::Busy { what, holder: "another process".to_owned() })
    }
}

/// The ranges of all tables, by their names.
pub(crate) fn list(home: &Home) -> Result<Vec<Range<Offset>>> {
    Ok(names(home)?.iter().filter_map(|name| file_name::parse_key_table(name)).collect())
}

/// The files that a crash left half made.
pub(crate) fn temporaries(home: &Home) -> Result<Vec<PathBuf>> {
    let dir = home.path(file_name::KEYS);
    let names = names(home)?.into_iter().filter(|name| file_name::is_temporary(name));
    let mut files = Vec::new();
    for path in names.map(|name| dir.join(name)) {
        if let Some(Entry::File { .. }) = home.entry(&path)? {
            files.push(path);
        }
    }
    Ok(files)
}

fn names(home: &Home) -> Result<Vec<std::ffi::OsString>> {
    let dir = home.path(file_name::KEYS);
    home.refuse_link(&dir)?;
    match home.disk().list(&dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        names => names.map_err(Error::io("list", &dir)),
    }
}

/// Removes a table or what is left of one; says whether it was there.
pub(crate) fn remove(home: &Home, path: &Path, _lock: &KeysLock) -> Result<bool> {
    match home.disk().remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(_) if home.entry(path)? == Some(Entry::Directory) => {
            let log = home.dir().display();
            let what = format!("it is a directory: run tapelog verify {log} --repair");
            Err(Error::Unreadable { path: path.to_owned(), what })
        }
        removed => removed.map(|()| true).map_err(Error::io("remove", path)),
    }
}

/// A part of the log, and how the keys of its records are found.
#[derive(Debug)]
pub(crate) enum Part {
    /// In a table: those from this offset on.
    Table(Box<Table>, Offset),
    /// By reading the records: there is no table.
    Bare(Range<Offset>),
    /// The same: there is one, but it can't be read.
    Unread(Range<Offset>),
}

impl Part {
    /// The offsets that it covers.
    pub(crate) fn range(&self) -> Range<Offset> {
        match self {
            Part::Table(table, from) => *from..table.range().end,
            Part::Bare(range) | Part::Unread(range) => range.clone(),
        }
    }

    /// The same of what no table covers.
    pub(crate) fn bare(self) -> Option<Range<Offset>> {
        match self {
            Part::Table(..) | Part::Unread(_) => None,
            Part::Bare(range) => Some(range),
        }
    }
}

/// The parts of `range`, the oldest first, and of what is durable behind it. A table that is garbage is removed, by who has the lock or if it can be had at once.
pub(crate) fn open_parts(
    log: &Log,
    range: &Range<Offset>,
    lock: Option<&KeysLock>,
) -> Result<Vec<Part>> {
    let mut useless = Vec::new();
    let mut tables = list_or_none(log);
    let mut tries = 0;
    'again: loop {
        tables.retain(|table| !useless.contains(table));
        let mut parts = Vec::new();
        for stretch in cover(&tables, range.start..durable(log, range.end)) {
            let (number, covered) = match stretch {
                Stretch::Bare(bare) => {
                    parts.push(Part::Bare(bare));
                    continue;
                }
                Stretch::Table(number, covered) => (number, covered),
            };
            let table = tables[number].clone();
            match Table::open(&log.home, &log.home.path(file_name::KEYS), log.id, &table) {
                Ok(table) => parts.push(Part::Table(Box::new(table), covered.start)),
                Err(error) if error.is_not_found() => {
                    tries += 1;
                    if tries >= TRIES {
                        useless.push(table);
                    }
                    tables = list_or_none(log);
                    continue 'again;
                }
                Err(error) => {
                    // One that can't be read may be good: it stays, and its part is read.
                    if !discard(log, &table, &error, lock) {
                        parts.push(Part::Unread(covered));
                        continue;
                    }
                    useless.push(table);
                    continue 'again;
                }
            }
        }
        return Ok(parts);
    }
}

/// The durable mark, at least `known`: tables may have been merged with newer ones
/// meanwhile, so it is read after they were listed.
fn durable(log: &Log, known: Offset) -> Offset {
    let end = log.end_state().ok().flatten();
    end.map_or(known, |end| end.durable.offset.max(known))
}

fn list_or_none(log: &Log) -> Vec<Range<Offset>> {
    list(&log.home).unwrap_or_else(|error| {
        let path = log.home.path(file_name::KEYS);
        log.home.tell(&Note::IndexUnreadable { path, why: error.to_string() });
        Vec::new()
    })
}

/// Does away with a table that is of no use, and says so. Another log's is left alone.
/// Whether its range is free for another table: not if it could not be read.
pub(crate) fn discard(
    log: &Log,
    table: &Range<Offset>,
    error: &TableError,
    lock: Option<&KeysLock>,
) -> bool {
    let path = log.home.path(file_name::KEYS).join(file_name::key_table(table));
    let unreadable = |path| {
        log.home.tell(&Note::IndexUnreadable { path, why: error.to_string() });
    };
    match error {
        TableError::OtherLog => return true,
        TableError::Io(_) => {
            unreadable(path);
            return false;
        }
        TableError::NoTable | TableError::Garbage(_) => {}
    }
    let taken = if lock.is_none() { KeysLock::try_take(log) } else { None };
    match lock.or(taken.as_ref()).map(|lock| remove(&log.home, &path, lock)) {
        Some(Ok(true)) => log.home.tell(&Note::IndexRebuilt(path)),
        Some(Ok(false)) => {}
        Some(Err(_)) | None => unreadable(path),
    }
    true
}
