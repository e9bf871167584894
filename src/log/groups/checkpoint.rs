//! One group's checkpoint: reading it, holding its lock, storing it. It never runs
//! ahead of the durable mark: storing an offset beyond it syncs the log first.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::holder;
use crate::disk::{Access, DiskLock, LockMode};
use crate::format::file_name;
use crate::format::state::CheckpointState;
use crate::log::error::{Error, Result, ways_out};
use crate::log::files::lock;
use crate::log::files::slot_file::SlotFile;
use crate::log::files::whole_file;
use crate::log::find::locate;
use crate::log::{Appender, Bounds, Log, OutOfRange};
use crate::model::{GroupName, Offset, Timestamp};

/// How long `commit` waits for somebody else's update to end.
pub(crate) const COMMIT_PATIENCE: Duration = Duration::from_secs(5);

/// Where a group goes on, and when the record before that was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    pub next: Offset,
    pub before: Option<Timestamp>,
}

/// A checkpoint that this process may change.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    file: SlotFile<CheckpointState>,
    /// Held for as long as this lives.
    _lock: Box<dyn DiskLock>,
    /// All offsets up to here are known to be synced.
    durable: Offset,
}

impl Checkpoint {
    /// Takes the checkpoint of `group` within `patience`; `None` if there is no such group.
    pub(crate) fn take(
        log: &Log,
        group: &GroupName,
        patience: Duration,
    ) -> Result<Option<Checkpoint>> {
        log.home.require_local()?;
        log.home.refuse_link(&log.home.groups_dir())?;
        let path = path(log, group);
        let Some(lock) = take_lock(log, group, &path, patience)? else { return Ok(None) };
        let file = SlotFile::<CheckpointState>::open(&log.home, &path, Access::ReadWrite);
        let mut file = file.map_err(|error| with_ways_out(log, group, error))?;
        is_of(log, group, &path, file.state())?;
        // So that the newer slot is durable before the older one is written over.
        file.sync()?;
        // Whoever made the group may have been killed before its name was durable.
        log.home.sync_dir(&log.home.groups_dir())?;
        Ok(Some(Checkpoint { file, _lock: lock, durable: Offset::ZERO }))
    }

    pub(crate) fn next(&self) -> Offset {
        self.file.state().next
    }

    pub(crate) fn state(&self) -> &CheckpointState {
        self.file.state()
    }

    /// Stores where the group goes on; a power cut may take it back until [`sync`](Self::sync).
    pub(crate) fn store(&mut self, log: &Log, progress: Progress, now: Timestamp) -> Result<()> {
        if self.durable < progress.next {
            self.durable = ensure_durable(log, progress.next)?;
        }
        let old = self.file.state();
        let Progress { next, before } = progress;
        let state = CheckpointState { next, before, stored: now, ..old.clone() };
        self.file.store(state)
    }

    /// Makes durable what was stored.
    ///
    /// # Errors
    /// [`Error::NoGroup`] if somebody removed the file, though not by deleting the group,
    /// which waits; what the disk says.
    pub(crate) fn sync(&mut self) -> Result<()> {
        if !self.file.is_in_place()? {
            return Err(Error::NoGroup(self.file.state().group.clone()));
        }
        self.file.sync()
    }

    /// Writes into the older line too what is durable now: of a checkpoint that is held,
    /// gc counts that one.
    pub(crate) fn repeat(&mut self) -> Result<()> {
        self.file.store(self.file.state().clone())
    }
}

pub(crate) fn path(log: &Log, group: &GroupName) -> PathBuf {
    log.home.groups_dir().join(file_name::checkpoint(group))
}

/// What the checkpoint of `group` says; `None` if there is no such group.
pub(crate) fn read(log: &Log, group: &GroupName) -> Result<Option<CheckpointState>> {
    log.home.refuse_link(&log.home.groups_dir())?;
    let path = path(log, group);
    match SlotFile::<CheckpointState>::read(&log.home, &path) {
        Ok(state) => {
            is_of(log, group, &path, &state)?;
            Ok(Some(state))
        }
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(with_ways_out(log, group, error)),
    }
}

/// Says what mends the checkpoint, if it is that which can't be read.
fn with_ways_out(log: &Log, group: &GroupName, error: Error) -> Error {
    match error {
        Error::Unreadable { path, what } => unreadable(log, group, path, &what),
        other => other,
    }
}

fn unreadable(log: &Log, group: &GroupName, path: PathBuf, what: &str) -> Error {
    Error::Unreadable { path, what: format!("{what}: {}", ways_out(log.home.dir(), group)) }
}

/// Makes the checkpoint of a new group, durably. The caller holds the shared lock
/// on the groups and has checked that the log holds `progress`.
pub(crate) fn create(
    log: &Log,
    group: &GroupName,
    progress: Progress,
    now: Timestamp,
) -> Result<()> {
    ensure_durable(log, progress.next)?;
    // Whoever made the log may have been killed before log.json was durable.
    log.home.sync_dir(log.home.dir())?;
    SlotFile::create(&log.home, &path(log, group), &state(log, group, progress, now))
}

/// Puts a new checkpoint in place of one that can't be read.
pub(crate) fn replace(
    log: &Log,
    group: &GroupName,
    progress: Progress,
    now: Timestamp,
) -> Result<()> {
    ensure_durable(log, progress.next)?;
    let path = path(log, group);
    let bytes = SlotFile::born(&path, &state(log, group, progress, now))?;
    whole_file::replace_whole(log.home.disk(), &path, &bytes).map_err(Error::io("write", &path))
}

fn state(log: &Log, group: &GroupName, progress: Progress, now: Timestamp) -> CheckpointState {
    let Progress { next, before } = progress;
    CheckpointState { log: log.id, group: group.clone(), next, before, stored: now }
}

/// Takes the lock on the checkpoint's file, which may be replaced or removed meanwhile.
fn take_lock(
    log: &Log,
    group: &GroupName,
    path: &Path,
    patience: Duration,
) -> Result<Option<Box<dyn DiskLock>>> {
    loop {
        let lock = match log.home.disk().lock(path) {
            Ok(lock) => lock,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("open", path)(error)),
        };
        if !lock::wait_for(lock.as_ref(), path, LockMode::Exclusive, patience)? {
            return Err(holder::busy(log, group));
        }
        if lock.is_at(path).map_err(Error::io("look at", path))? {
            return Ok(Some(lock));
        }
    }
}

/// A checkpoint copied from another group or log is none of this one's.
fn is_of(log: &Log, group: &GroupName, path: &Path, state: &CheckpointState) -> Result<()> {
    if state.log != log.id {
        let (dir, checkpoint) = (log.home.dir().to_owned(), path.to_owned());
        let group = group.clone();
        return Err(OutOfRange::OtherLog { log: dir, group, checkpoint }.into());
    }
    if state.group != *group {
        let what = format!("it is the checkpoint of group {}", state.group);
        return Err(unreadable(log, group, path.to_owned(), &what));
    }
    Ok(())
}

/// Whether the log still holds what a group at `state` will read next.
pub(crate) fn check(log: &Log, state: &CheckpointState, bounds: &Bounds) -> Result<()> {
    let (group, next) = (state.group.clone(), state.next);
    if bounds.check(next).is_err() {
        let (start, end) = (bounds.start, bounds.end);
        return Err(OutOfRange::Checkpoint { group, next, start, end }.into());
    }
    let found = time_before(log, next, bounds)?;
    match (state.before, found) {
        (Some(stored), Some(found)) if found > stored => {
            Err(OutOfRange::Rewritten { group, next, stored, found }.into())
        }
        _ => Ok(()),
    }
}

/// The append time of the record before `next`, if the log still holds it.
pub(crate) fn time_before(log: &Log, next: Offset, bounds: &Bounds) -> Result<Option<Timestamp>> {
    if next <= bounds.start {
        return Ok(None);
    }
    locate::append_time(log, next.back(1))
}

/// Makes sure that all before `offset` is synced; says how far the log is known to be.
pub(crate) fn ensure_durable(log: &Log, offset: Offset) -> Result<Offset> {
    let end = log.end_state()?;
    match end {
        Some(end) if end.durable.offset >= offset => return Ok(end.durable.offset),
        Some(end) if end.suspect => {
            return Err(Error::Suspect(log.home.segment_path(end.durable.segment)));
        }
        _ => {}
    }
    let durable = Appender::open(log)?.sync()?;
    if durable >= offset {
        return Ok(durable);
    }
    let start = log.start()?;
    Err(OutOfRange::BeyondEnd { offset, start, end: durable }.into())
}
