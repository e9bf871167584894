//! Who consumes a group: whoever has the lock on its `.holder` file. What stands in
//! that file is for people; the lock is the fact.

use std::io;
use std::time::Duration;

use crate::disk::{Access, DiskLock, LockMode, read_full, write_all};
use crate::format::file_name;
use crate::log::Log;
use crate::log::error::{Error, Result};
use crate::log::files::lock;
use crate::model::GroupName;

/// How long anyone waits for a lock that is only looked at by somebody else.
pub(crate) const SHORT_PATIENCE: Duration = Duration::from_millis(200);

/// The lock that says who consumes a group.
#[derive(Debug)]
pub(crate) struct Holder {
    _lock: Box<dyn DiskLock>,
    log: Log,
    group: GroupName,
}

impl Holder {
    /// Takes the group, if nobody has it.
    pub(crate) fn take(log: &Log, group: &GroupName) -> Result<Holder> {
        log.home.require_local()?;
        let path = log.home.groups_dir().join(file_name::holder(group));
        make_groups_dir(log)?;
        loop {
            match log.home.disk().create_new(&path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(Error::io("create", &path)(error));
                }
                _ => {}
            }
            let lock = match log.home.disk().lock(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened.map_err(Error::io("open", &path))?,
            };
            if !lock::wait_for(lock.as_ref(), &path, LockMode::Exclusive, SHORT_PATIENCE)? {
                return Err(busy(log, group));
            }
            if lock.is_at(&path).map_err(Error::io("look at", &path))? {
                return Ok(Holder { _lock: lock, log: log.clone(), group: group.clone() });
            }
        }
    }

    /// Says in the file who this is. That is for people, and the lock is what counts:
    /// a full disk, from which a group may be read away, stops nobody.
    pub(crate) fn describe(&self, holder: &str) {
        let path = self.log.home.groups_dir().join(file_name::holder(&self.group));
        let Ok(file) = self.log.home.disk().open(&path, Access::ReadWrite) else { return };
        let _ = file.set_len(0);
        let _ = write_all(file.as_ref(), &[holder.as_bytes(), b"\n"], 0);
    }
}

/// Makes the directory of groups, which a copy of the log may have lost when it was empty.
pub(crate) fn make_groups_dir(log: &Log) -> Result<()> {
    let dir = log.home.groups_dir();
    log.home.refuse_link(&dir)?;
    match log.home.disk().create_dir(&dir) {
        Ok(()) => log.home.sync_dir(log.home.dir()),
        // There already, or a disk that can't be written, which the next step tells.
        Err(_) => Ok(()),
    }
}

/// Who holds a group, in that one's own words; `None` if nobody does.
pub(crate) fn name(log: &Log, group: &GroupName) -> Option<String> {
    let path = log.home.groups_dir().join(file_name::holder(group));
    let lock = log.home.disk().lock(&path).ok()?;
    // A short look: one who wants the lock meanwhile waits longer than this takes.
    if lock::wait_for(lock.as_ref(), &path, LockMode::Shared, Duration::ZERO).ok()? {
        return None;
    }
    let mut text = [0; 256];
    let file = log.home.disk().open(&path, Access::Read).ok()?;
    let length = read_full(file.as_ref(), &mut text, 0).ok()?;
    Some(String::from_utf8_lossy(&text[..length]).trim().to_owned())
}

pub(crate) fn busy(log: &Log, group: &GroupName) -> Error {
    let holder = name(log, group).filter(|holder| !holder.is_empty());
    let holder = holder.unwrap_or_else(|| "another process".to_owned());
    Error::Busy { what: format!("group {group}"), holder }
}
