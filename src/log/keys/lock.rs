//! The lock on the directory of the key index, `keys/`: whoever adds or removes a file
//! there has it alone. Who has it may take the append lock too, never the other way round.

use std::io::ErrorKind;

use crate::disk::{DiskLock, Entry, LockMode};
use crate::log::error::{Error, Result};
use crate::log::home::Home;

/// The lock, taken; dropping this lets go.
#[derive(Debug)]
pub(crate) struct KeysLock {
    _lock: Box<dyn DiskLock>,
}

impl KeysLock {
    /// Takes the lock, after those who came before. Makes the directory where it is missing.
    pub(crate) fn take(home: &Home) -> Result<KeysLock> {
        let lock = open(home)?;
        lock.acquire(LockMode::Exclusive).map_err(Error::io("lock", home.keys_dir()))?;
        Ok(KeysLock { _lock: lock })
    }

    /// Takes the lock if there is such a directory and nobody has it.
    pub(crate) fn try_take(home: &Home) -> Result<Option<KeysLock>> {
        if home.entry(&home.keys_dir())? != Some(Entry::Directory) {
            return Ok(None);
        }
        let lock = open(home)?;
        let taken = lock.try_acquire(LockMode::Exclusive);
        let taken = taken.map_err(Error::io("lock", home.keys_dir()))?;
        Ok(taken.then_some(KeysLock { _lock: lock }))
    }
}

fn open(home: &Home) -> Result<Box<dyn DiskLock>> {
    home.require_local()?;
    let dir = home.keys_dir();
    home.refuse_link(&dir)?;
    match home.disk().create_dir(&dir) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(Error::io("create", dir)(error));
        }
        // Derived, so that a power cut may take its name.
        _ => {}
    }
    home.disk().lock(&dir).map_err(Error::io("open", dir))
}
