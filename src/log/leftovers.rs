//! What a crash leaves of files that were being made: they have names that nobody
//! reads. Whoever makes one in the log's directory or in `quarantine/` holds the append
//! lock, or that of `groups/` alone; in `groups/` everyone holds that one, shared at
//! least, and in `keys/` everyone has that directory's alone. So who has all three looks at
//! nothing but leftovers.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::Log;
use super::error::{Error, Result};
use super::home::Home;
use crate::disk::Entry;
use crate::format::file_name;
use crate::log::files::lock::AppendLock;
use crate::log::find::table_file;
use crate::log::groups::status::GroupsLock;

impl Log {
    /// Removes them; the lock of `groups/` is taken alone.
    pub(crate) fn remove_leftovers(&self, _alone: &GroupsLock) -> Result<()> {
        remove_all(&self.home, &self.home.groups_dir())?;
        // Whoever makes files there now leaves none behind, or the next gc removes them; and
        // something else may have that name.
        let _ = self.collect_keys(self.start()?);
        let (dir, quarantine) = (self.home.dir(), self.home.path(file_name::QUARANTINE));
        let has_some = |dir: &Path| Ok::<_, Error>(!temporaries(&self.home, dir)?.is_empty());
        if !has_some(dir)? && !has_some(&quarantine)? {
            return Ok(());
        }
        let lock = AppendLock::of(&self.home)?;
        let _held = lock.acquire(&self.home)?;
        remove_all(&self.home, &quarantine)?;
        remove_all(&self.home, dir)?;
        // It names the directory as it was before; derived, so that failing costs time only.
        let _ = table_file::refresh(self);
        Ok(())
    }
}

fn remove_all(home: &Home, dir: &Path) -> Result<()> {
    for path in temporaries(home, dir)? {
        match home.disk().remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Error::io("remove", &path)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The files in `dir` under a name for what is being made.
fn temporaries(home: &Home, dir: &Path) -> Result<Vec<PathBuf>> {
    let names = match home.disk().list(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        names => names.map_err(Error::io("list", dir))?,
    };
    let ours = names.iter().filter(|name| file_name::is_temporary(name));
    let mut files = Vec::new();
    for path in ours.map(|name| dir.join(name)) {
        if let Some(Entry::File { .. }) = home.entry(&path)? {
            files.push(path);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::disk::LockMode;
    use crate::disk::simulated::{Class, SimulatedDisk};
    use crate::log::SeekTarget;
    use crate::log::fixture::{Fixture, fixture};
    use crate::model::{GroupName, Offset, Start, Timestamp};

    /// What gc leaves there of these names.
    fn left(disk: &SimulatedDisk, dir: &str, names: &[&str]) -> Vec<String> {
        let all = disk.names(Path::new(dir)).unwrap();
        all.into_iter().filter(|name| names.contains(&name.as_str())).collect()
    }

    #[test]
    fn gc_removes_what_a_crash_left_and_nothing_else() {
        let names = [
            "0.tmp",
            "12.tmp",
            "3.tmp",
            "+1.tmp",
            "007.tmp",
            "x.tmp",
            "0.tmp.bak",
            "4294967296.tmp",
        ];
        let fixture = fixture(512);
        fixture.append(20);
        for dir in ["/log", "/log/groups"] {
            let put =
                |name: &str| fixture.disk.write_file(&Path::new(dir).join(name), b"half").unwrap();
            names.into_iter().filter(|name| *name != "3.tmp").for_each(put);
            fixture.disk.place_link(&Path::new(dir).join("3.tmp")).unwrap();
        }
        fixture.log.collect().unwrap();
        for dir in ["/log", "/log/groups"] {
            let kept = ["+1.tmp", "0.tmp.bak", "007.tmp", "3.tmp", "4294967296.tmp", "x.tmp"];
            assert_eq!(left(&fixture.disk, dir, &names), kept, "{dir}");
        }
        assert!(table_file::current(&fixture.log).unwrap().is_some(), "the table is good again");
        assert_eq!((fixture.read(0).unwrap().len(), fixture.told()), (20, vec![]));
    }

    type Held = Box<dyn Send>;

    fn append_lock(log: &Log) -> Held {
        let lock = log.home.disk().lock(&log.home.path(file_name::LOCK)).unwrap();
        assert!(lock.try_acquire(LockMode::Exclusive).unwrap());
        Box::new(lock)
    }

    fn groups_lock(log: &Log, mode: LockMode) -> Held {
        Box::new(GroupsLock::take(log, mode).unwrap())
    }

    /// Runs `work` while `held` is; it must try for a lock again and again, and not end.
    #[track_caller]
    fn waits(fixture: &Fixture, held: Held, work: impl FnOnce() + Send + 'static) {
        let names = || {
            let names = |dir: &str| fixture.disk.names(Path::new(dir)).unwrap();
            [names("/log"), names("/log/groups")].concat()
        };
        let (before, tried) = (names(), fixture.disk.calls(Class::Lock));
        let work = thread::spawn(work);
        while fixture.disk.calls(Class::Lock) < tried + 20 && !work.is_finished() {
            thread::yield_now();
        }
        let ended = work.is_finished();
        let temporary = |name: &&String| name.ends_with(".tmp");
        let seen: Vec<_> = names().into_iter().filter(|name| temporary(&name)).collect();
        drop(held);
        work.join().unwrap();
        assert!(!ended, "it waits");
        assert!(seen.iter().eq(before.iter().filter(temporary)), "{seen:?} meanwhile");
    }

    #[test]
    fn gc_waits_for_whoever_makes_a_file_and_lets_it_be() {
        let fixture = fixture(512);
        fixture.append(1);
        for dir in ["/log", "/log/groups"] {
            fixture.disk.write_file(&Path::new(dir).join("0.tmp"), b"half").unwrap();
            let held = match dir {
                "/log" => append_lock(&fixture.log),
                _ => groups_lock(&fixture.log, LockMode::Shared),
            };
            let log = fixture.log.clone();
            waits(&fixture, held, move || drop(log.collect().unwrap()));
            assert_eq!(left(&fixture.disk, dir, &["0.tmp"]), [""; 0], "it was a leftover");
        }
    }

    #[test]
    fn whoever_makes_a_file_waits_for_gc() {
        let fixture = fixture(512);
        fixture.append(1);
        let log = || fixture.log.clone();
        let mut settings = log();
        waits(&fixture, append_lock(&log()), move || {
            settings.change_settings(|_| Ok::<(), Error>(())).unwrap();
        });
        let (group, now): (GroupName, _) = ("g".parse().unwrap(), Timestamp::default());
        let (commit, of) = (log(), group.clone());
        waits(&fixture, groups_lock(&log(), LockMode::Exclusive), move || {
            commit.commit(&of, Offset::new(1), now).unwrap();
        });
        // One that can't be read is replaced.
        let path = log().home.groups_dir().join(file_name::checkpoint(&group));
        fixture.disk.write_file(&path, b"nonsense").unwrap();
        let seek = log();
        waits(&fixture, groups_lock(&log(), LockMode::Exclusive), move || {
            seek.seek(&group, &SeekTarget::To(Start::Earliest), now).unwrap();
        });
    }
}
