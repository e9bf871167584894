//! Waiting for the log's kernel locks. They go with their holder, however it
//! ends, so nothing here ever looks at a process id.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::disk::{DiskLock, Entry, LockMode};
use crate::format::file_name;
use crate::log::error::{Error, Result};
use crate::log::home::Home;
use crate::log::note::Note;

const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(5);
/// An append is short: so long it is enough to look again and again.
const HURRY: Duration = Duration::from_millis(1);
/// After this long a waiting writer says so.
const PATIENCE: Duration = Duration::from_secs(1);

/// The append lock of a log, to be taken for each append.
#[derive(Debug)]
pub(crate) struct AppendLock {
    lock: Box<dyn DiskLock>,
    path: PathBuf,
}

/// The lock, taken; dropping this lets go.
#[derive(Debug)]
pub(crate) struct Held<'a>(&'a dyn DiskLock);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // Only a bad handle can fail here, and closing it lets go all the same.
        let _ = self.0.release();
    }
}

impl AppendLock {
    /// The lock for a writer. One that is missing holds nothing, so it is made anew.
    pub(crate) fn of(home: &Home) -> Result<AppendLock> {
        home.require_local()?;
        if let Some(lock) = AppendLock::if_there(home)? {
            return Ok(lock);
        }
        let path = home.path(file_name::LOCK);
        match home.disk().create_new(&path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(Error::io("create", &path)(error));
            }
            _ => {}
        }
        let lock = home.disk().lock(&path).map_err(Error::io("open", &path))?;
        Ok(AppendLock { lock, path })
    }

    /// The lock for a reader, who makes no file of a log's state. Where it is missing
    /// nobody appends.
    pub(crate) fn if_there(home: &Home) -> Result<Option<AppendLock>> {
        let path = home.path(file_name::LOCK);
        match home.disk().lock(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            lock => {
                let lock = lock.map_err(Error::io("open", &path))?;
                if home.entry(&path)? == Some(Entry::Directory) {
                    let dir = home.dir().display();
                    let what = format!("not a regular file: run tapelog verify {dir} --repair");
                    let source = std::io::Error::new(ErrorKind::InvalidInput, what);
                    return Err(Error::Io { action: "open", path, source });
                }
                Ok(Some(AppendLock { lock, path }))
            }
        }
    }

    /// The lock for whoever would mend a derived file on the way, which is not worth an
    /// error; none where a lock can't be relied on.
    pub(crate) fn to_mend(home: &Home) -> Result<Option<AppendLock>> {
        if home.require_local().is_err() {
            return Ok(None);
        }
        AppendLock::if_there(home)
    }

    /// Takes the lock, waiting as long as it needs; says so after a second.
    pub(crate) fn acquire(&self, home: &Home) -> Result<Held<'_>> {
        if !self.wait(LockMode::Exclusive, HURRY)? {
            self.queue(home)?;
        }
        let held = Held(self.lock.as_ref());
        if self.lock.is_at(&self.path).map_err(Error::io("look at", &self.path))? {
            return Ok(held);
        }
        let source = std::io::Error::new(ErrorKind::NotFound, "the log was removed");
        Err(Error::Io { action: "lock", path: self.path.clone(), source })
    }

    /// Stands in the system's queue for the lock, which is fair; says so after a second.
    fn queue(&self, home: &Home) -> Result<()> {
        let (taken, told) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || taken.send(self.lock.acquire(LockMode::Exclusive)));
            if told.recv_timeout(PATIENCE).is_err() {
                home.tell(&Note::WaitingForLock(self.path.clone()));
                let _ = told.recv();
            }
        });
        // The thread has ended, and with it the wait.
        match self.lock.try_acquire(LockMode::Exclusive).map_err(Error::io("lock", &self.path))? {
            true => Ok(()),
            false => Err(Error::io("lock", &self.path)(ErrorKind::WouldBlock.into())),
        }
    }

    /// Takes the lock if nobody has it in the way.
    pub(crate) fn try_acquire(&self, mode: LockMode) -> Result<Option<Held<'_>>> {
        let taken = self.lock.try_acquire(mode).map_err(Error::io("lock", &self.path))?;
        Ok(taken.then(|| Held(self.lock.as_ref())))
    }

    /// Takes the lock shared if no append is in progress: for a reader's second look.
    pub(crate) fn try_shared(&self) -> Result<Option<Held<'_>>> {
        self.try_acquire(LockMode::Shared)
    }

    /// Takes the lock shared within `limit`.
    pub(crate) fn wait_shared(&self, limit: Duration) -> Result<Option<Held<'_>>> {
        Ok(self.wait(LockMode::Shared, limit)?.then(|| Held(self.lock.as_ref())))
    }

    fn wait(&self, mode: LockMode, limit: Duration) -> Result<bool> {
        wait_for(self.lock.as_ref(), &self.path, mode, limit)
    }
}

/// Takes `lock` within `limit`; says whether it did.
pub(crate) fn wait_for(
    lock: &dyn DiskLock,
    path: &Path,
    mode: LockMode,
    limit: Duration,
) -> Result<bool> {
    let begin = Instant::now();
    let mut pause = FIRST_PAUSE;
    while !lock.try_acquire(mode).map_err(Error::io("lock", path))? {
        if begin.elapsed() >= limit {
            return Ok(false);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    Ok(true)
}
