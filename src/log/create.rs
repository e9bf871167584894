//! Opening a log, and making one. A directory is a log from the moment that
//! `log.json` has its name, which is the last step: whatever a crash leaves before
//! it is finished or made anew by the next call.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use super::Log;
use super::error::{Error, Result};
use super::home::Home;
use crate::disk::{Access, Entry, read_full};
use crate::format::file_name;
use crate::format::settings::{FORMAT_VERSION, LogFile, LogFileError, Settings};
use crate::format::slots::FILE_LEN;
use crate::format::state::{EndState, Mark, StartState};
use crate::log::files::lock::AppendLock;
use crate::log::files::slot_file::SlotFile;
use crate::log::files::whole_file;
use crate::model::{LogId, Offset, Timestamp};

/// The size of `start` and `end`.
const STATE: u64 = FILE_LEN as u64;
/// A settings file longer than this is none of ours.
const LONGEST_SETTINGS: u64 = 1 << 20;

impl Log {
    /// Opens the log in the home's directory.
    ///
    /// # Errors
    /// [`Error::NoLog`], [`Error::NotALog`], [`Error::Newer`], [`Error::Unreadable`]
    /// for a damaged or missing `log.json`, or what the disk says.
    pub fn open(home: &Home) -> Result<Log> {
        match home.entry(home.dir())? {
            Some(Entry::Directory) => {}
            // A link to a directory is fine as the log's own path.
            Some(Entry::Other) if home.disk().list(home.dir()).is_ok() => {}
            Some(_) => return Err(not_a_log(home.dir(), "it is not a directory")),
            None => return Err(Error::NoLog(home.dir().to_owned())),
        }
        let file = match read_log_file(home)? {
            Some(file) => file,
            None => return Err(what_else(home)?),
        };
        Ok(Log { home: home.clone(), id: file.id, settings: file.settings })
    }

    /// Opens the log, or makes it with `settings` and the random number `id` where
    /// there is nothing or an empty directory.
    ///
    /// # Errors
    /// As [`Log::open`].
    pub fn open_or_create(home: &Home, id: LogId, settings: &Settings) -> Result<Log> {
        match Log::open(home) {
            Err(Error::NoLog(_)) => {
                make_directory(home)?;
                create(home, id, settings)?;
            }
            Err(Error::NotALog { .. }) if is_unfinished(home)? => create(home, id, settings)?,
            opened => return opened,
        }
        Log::open(home)
    }

    /// Stores new settings, given the old ones.
    ///
    /// # Errors
    /// What the disk says; what `change` says.
    pub fn change_settings<E: From<Error>>(
        &mut self,
        change: impl FnOnce(&mut Settings) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let lock = AppendLock::of(&self.home)?;
        let _held = lock.acquire(&self.home)?;
        let mut settings = Log::open(&self.home)?.settings;
        change(&mut settings)?;
        let path = self.home.path(file_name::SETTINGS);
        let bytes = log_file(self.id, &settings).encode();
        whole_file::replace_whole(self.home.disk(), &path, &bytes)
            .map_err(Error::io("write", &path))?;
        self.settings = settings;
        crate::log::find::table_file::refresh(self)?;
        Ok(())
    }
}

fn log_file(id: LogId, settings: &Settings) -> LogFile {
    LogFile { id, format: FORMAT_VERSION, settings: settings.clone() }
}

fn not_a_log(path: &Path, why: &'static str) -> Error {
    Error::NotALog { path: path.to_owned(), why }
}

/// `log.json`; `None` if it is not there.
fn read_log_file(home: &Home) -> Result<Option<LogFile>> {
    let path = home.path(file_name::SETTINGS);
    let file = match home.open(&path, Access::Read) {
        Ok(file) => file,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    };
    let length = file.size().map_err(Error::io("read", &path))?;
    let mut bytes = vec![0; length.min(LONGEST_SETTINGS) as usize];
    read_full(file.as_ref(), &mut bytes, 0).map_err(Error::io("read", &path))?;
    match LogFile::decode(&bytes) {
        Ok(file) => Ok(Some(file)),
        Err(error @ LogFileError::Newer(_)) => Err(Error::Newer { path, what: error.to_string() }),
        Err(error) => {
            let what = format!("{error}: {}", remedy(home));
            Err(Error::Unreadable { path, what })
        }
    }
}

/// What makes a lost `log.json` anew.
fn remedy(home: &Home) -> String {
    format!(
        "put it back from a copy, or run tapelog verify {} --repair, \
         which makes it anew without the settings",
        home.dir().display()
    )
}

/// What a directory without `log.json` is: damaged if it holds segments.
fn what_else(home: &Home) -> Result<Error> {
    if home.list_segments()?.is_empty() {
        return Ok(not_a_log(
            home.dir(),
            "it holds no log.json; produce makes a log at a new path",
        ));
    }
    let what = format!("it is missing beside segments: {}", remedy(home));
    Ok(Error::Unreadable { path: home.path(file_name::SETTINGS), what })
}

/// Whether the directory is empty, or holds only what an unfinished [`create`] leaves.
fn is_unfinished(home: &Home) -> Result<bool> {
    let names = match home.disk().list(home.dir()) {
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(false),
        names => names.map_err(Error::io("list", home.dir()))?,
    };
    let ours = [
        file_name::LOCK,
        file_name::START,
        file_name::END,
        file_name::GROUPS,
        // Made by another process, that saw a log.json which the power then took back.
        file_name::SEGMENT_TABLE,
    ];
    let leftover = |name: &OsStr| {
        file_name::is_temporary(name) || ours.iter().any(|ours| name == OsStr::new(ours))
    };
    if !names.iter().all(|name| leftover(name) || name == file_name::SETTINGS) {
        return Ok(false);
    }
    // A file of ours has its size, and the lock comes first; others' may have any.
    let fits = |name: &str, bytes: u64| {
        let entry = home.entry(&home.path(name))?;
        Ok::<bool, Error>(entry.is_none_or(|entry| entry == Entry::File { bytes }))
    };
    let has_lock = names.is_empty() || names.iter().any(|name| name == file_name::LOCK);
    let sizes = [(file_name::LOCK, 0), (file_name::START, STATE), (file_name::END, STATE)];
    let fit = sizes.iter().map(|(name, bytes)| fits(name, *bytes));
    Ok(has_lock && fit.collect::<Result<Vec<bool>>>()?.iter().all(|fits| *fits))
}

fn make_directory(home: &Home) -> Result<()> {
    home.require_local()?;
    match home.disk().create_dir(home.dir()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Error::NoParent(home.dir().to_owned()))
        }
        made => create_unless_there(made, home),
    }
}

/// Makes the log under its own lock, so that of many processes one does.
fn create(home: &Home, id: LogId, settings: &Settings) -> Result<()> {
    home.require_local()?;
    create_unless_there(home.disk().create_new(&home.path(file_name::LOCK)).map(drop), home)?;
    // Whatever else a crash leaves here, the lock says that it is ours.
    home.sync_dir(home.dir())?;
    let lock = AppendLock::of(home)?;
    let _held = lock.acquire(home)?;
    if read_log_file(home)?.is_some() {
        return Ok(());
    }
    create_unless_there(home.disk().create_dir(&home.groups_dir()), home)?;
    for name in [file_name::START, file_name::END] {
        let path = home.path(name);
        if home.exists(&path)? {
            home.disk().remove_file(&path).map_err(Error::io("remove", &path))?;
        }
    }
    let start = StartState { log: id, start: Offset::ZERO };
    SlotFile::create(home, &home.path(file_name::START), &start)?;
    let beginning = Mark::beginning_of(Offset::ZERO);
    let end = EndState {
        log: id,
        boot: home.disk().boot_id().unwrap_or_default(),
        written: beginning,
        last_batch: beginning.position,
        durable: beginning,
        time: Timestamp::default(),
        suspect: false,
    };
    SlotFile::create(home, &home.path(file_name::END), &end)?;
    sync_parent(home)?;
    let path = home.path(file_name::SETTINGS);
    whole_file::create_whole(home.disk(), &path, &log_file(id, settings).encode())
        .map_err(Error::io("create", &path))
}

fn create_unless_there(made: io::Result<()>, home: &Home) -> Result<()> {
    match made {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(Error::io("create a log in", home.dir())(error))
        }
        _ => Ok(()),
    }
}

/// Makes the log directory's own name durable.
fn sync_parent(home: &Home) -> Result<()> {
    home.parent().map_or(Ok(()), |parent| home.sync_dir(parent))
}
