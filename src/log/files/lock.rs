//! Waiting for the log's kernel locks. They go with their holder, however it
//! ends, so nothing here ever looks at a process id.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::disk::{DiskLock, LockMode};
use crate::format::file_name;
use crate::log::error::{Error, Result};
use crate::log::home::Home;
use crate::log::note::Note;

const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(5);
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
    pub(crate) fn of(home: &Home) -> Result<AppendLock> {
        let path = home.path(file_name::LOCK);
        let lock = home.disk().lock(&path).map_err(Error::io("open", &path))?;
        Ok(AppendLock { lock, path })
    }

    /// Takes the lock, waiting as long as it needs; says so after a second.
    pub(crate) fn acquire(&self, home: &Home) -> Result<Held<'_>> {
        if !self.wait(LockMode::Exclusive, PATIENCE)? {
            home.tell(&Note::WaitingForLock(self.path.clone()));
            while !self.wait(LockMode::Exclusive, Duration::from_secs(3600))? {}
        }
        let held = Held(self.lock.as_ref());
        if self.lock.is_at(&self.path).map_err(Error::io("look at", &self.path))? {
            return Ok(held);
        }
        let source = std::io::Error::new(std::io::ErrorKind::NotFound, "the log was removed");
        Err(Error::Io { action: "lock", path: self.path.clone(), source })
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
