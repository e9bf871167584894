//! While nothing crashes, the simulated disk answers as the system's does.

use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};

use proptest::prelude::{Strategy, prop, prop_oneof, proptest};

use super::path;
use crate::disk::real::RealDisk;
use crate::disk::simulated::SimulatedDisk;
use crate::disk::{Access, Disk, DiskFile, DiskLock, Entry, LockMode};

/// A call with names from a small set, so that they meet.
#[derive(Clone, Debug)]
enum Call {
    Open(usize, bool),
    CreateNew(usize),
    CreateDir(usize),
    Link(usize, usize),
    Rename(usize, usize),
    Remove(usize),
    SyncDir(usize),
    Write(usize, u64, Vec<u8>),
    Read(usize, u64),
    SetLen(usize, u64),
    Close(usize),
    IsAt(usize, usize),
    Lock(usize),
    Acquire(usize, bool),
    Release(usize),
    Unlock(usize),
}

const NAMES: [&str; 8] = ["a", "b", "c", "d", "d/a", "d/b", "a/b", "d/e/f"];

fn call() -> impl Strategy<Value = Call> {
    let name = || 0..NAMES.len();
    let any = || prop::bool::ANY;
    prop_oneof![
        (name(), any()).prop_map(|(name, write)| Call::Open(name, write)),
        name().prop_map(Call::CreateNew),
        name().prop_map(Call::CreateDir),
        (name(), name()).prop_map(|(from, to)| Call::Link(from, to)),
        (name(), name()).prop_map(|(from, to)| Call::Rename(from, to)),
        name().prop_map(Call::Remove),
        name().prop_map(Call::SyncDir),
        (0..4_usize, 0..20_u64, prop::collection::vec(1..9_u8, 0..9))
            .prop_map(|(file, position, bytes)| Call::Write(file, position, bytes)),
        (0..4_usize, 0..30_u64).prop_map(|(file, position)| Call::Read(file, position)),
        (0..4_usize, 0..30_u64).prop_map(|(file, length)| Call::SetLen(file, length)),
        (0..4_usize).prop_map(Call::Close),
        (0..4_usize, name()).prop_map(|(file, name)| Call::IsAt(file, name)),
        name().prop_map(Call::Lock),
        (0..3_usize, any()).prop_map(|(lock, shared)| Call::Acquire(lock, shared)),
        (0..3_usize).prop_map(Call::Release),
        (0..3_usize).prop_map(Call::Unlock),
    ]
}

/// A disk with what is open on it.
struct Program<'a> {
    disk: &'a dyn Disk,
    root: PathBuf,
    files: Vec<Box<dyn DiskFile>>,
    locks: Vec<Box<dyn DiskLock>>,
}

/// An answer that can be compared: an error by its number or kind.
fn told<T: Debug>(result: io::Result<T>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("{:?}", error.kind()),
    }
}

fn pick<T>(all: &[T], index: usize) -> Option<&T> {
    all.get(index % all.len().max(1))
}

impl<'a> Program<'a> {
    fn new(disk: &'a dyn Disk, root: &Path) -> Self {
        Self { disk, root: root.to_path_buf(), files: Vec::new(), locks: Vec::new() }
    }

    fn at(&self, name: usize) -> PathBuf {
        self.root.join(NAMES[name])
    }

    fn keep(&mut self, opened: io::Result<Box<dyn DiskFile>>) -> io::Result<()> {
        opened.map(|file| self.files.push(file))
    }

    fn answer(&mut self, call: &Call) -> String {
        let disk = self.disk;
        match call {
            Call::Open(name, write) => {
                let access = if *write { Access::ReadWrite } else { Access::Read };
                let opened = disk.open(&self.at(*name), access);
                told(self.keep(opened))
            }
            Call::CreateNew(name) => {
                let opened = disk.create_new(&self.at(*name));
                told(self.keep(opened))
            }
            Call::CreateDir(name) => told(disk.create_dir(&self.at(*name))),
            Call::Link(from, to) => told(disk.link(&self.at(*from), &self.at(*to))),
            Call::Rename(from, to) => told(disk.rename(&self.at(*from), &self.at(*to))),
            Call::Remove(name) => told(disk.remove_file(&self.at(*name))),
            Call::SyncDir(name) => told(disk.sync_dir(&self.at(*name))),
            Call::Lock(name) => told(disk.lock(&self.at(*name)).map(|lock| self.locks.push(lock))),
            Call::Acquire(lock, shared) => {
                let mode = if *shared { LockMode::Shared } else { LockMode::Exclusive };
                told(pick(&self.locks, *lock).map(|lock| lock.try_acquire(mode)).transpose())
            }
            Call::Release(lock) => {
                told(pick(&self.locks, *lock).map(|lock| lock.release()).transpose())
            }
            Call::Unlock(lock) => {
                let count = self.locks.len();
                told(Ok((count > 0).then(|| drop(self.locks.remove(lock % count)))))
            }
            Call::Close(file) => {
                let count = self.files.len();
                told(Ok((count > 0).then(|| drop(self.files.remove(file % count)))))
            }
            Call::IsAt(file, name) => {
                let path = self.at(*name);
                told(pick(&self.files, *file).map(|file| file.size_at(&path)).transpose())
            }
            Call::Write(file, ..) | Call::Read(file, _) | Call::SetLen(file, _) => {
                told(pick(&self.files, *file).map(|file| bytes_of(file.as_ref(), call)).transpose())
            }
        }
    }

    /// Everything under the root.
    fn everything(&self, dir: &Path) -> Vec<(PathBuf, Option<Entry>)> {
        let mut found = Vec::new();
        for name in self.disk.list(dir).unwrap() {
            let path = dir.join(name);
            let mut entry = self.disk.entry(&path).unwrap();
            if entry == Some(Entry::Directory) {
                found.extend(self.everything(&path));
            }
            let relative = path.strip_prefix(&self.root).unwrap().to_path_buf();
            found.push((relative, entry.take()));
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        found
    }
}

/// What a call on an open file answers, and the length after it.
fn bytes_of(file: &dyn DiskFile, call: &Call) -> io::Result<(usize, Vec<u8>, u64)> {
    let mut buffer = vec![0; 16];
    let count = match call {
        Call::Write(_, position, bytes) => {
            let (first, second) = bytes.split_at(bytes.len() / 2);
            file.write_at(&[io::IoSlice::new(first), io::IoSlice::new(second)], *position)?
        }
        Call::Read(_, position) => file.read_at(&mut buffer, *position)?,
        Call::SetLen(_, length) => file.set_len(*length).map(|()| 0)?,
        _ => 0,
    };
    Ok((count, buffer, file.size()?))
}

proptest! {
    #[test]
    fn every_call_answers_as_on_the_real_disk(calls in prop::collection::vec(call(), 1..40)) {
        let dir = tempfile::tempdir().unwrap();
        let simulated = SimulatedDisk::new();
        simulated.create_dir(path("/log")).unwrap();
        let mut real = Program::new(&RealDisk, dir.path());
        let mut ours = Program::new(&simulated, path("/log"));
        for call in &calls {
            proptest::prop_assert_eq!(ours.answer(call), real.answer(call), "{:?}", call);
        }
        let root = ours.root.clone();
        proptest::prop_assert_eq!(ours.everything(&root), real.everything(dir.path()));
    }
}

#[test]
fn what_is_no_regular_file_is_told_apart() {
    let disk = SimulatedDisk::new();
    disk.place_link(path("/link")).unwrap();
    disk.create_dir(path("/dir")).unwrap();
    assert_eq!(disk.entry(path("/link")).unwrap(), Some(Entry::Other));
    for name in ["/link", "/dir"] {
        for access in [Access::Read, Access::ReadWrite] {
            let refused = disk.open(path(name), access).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{name}");
        }
    }
    assert_eq!(disk.lock(path("/link")).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    assert!(disk.create_new(path("/link")).is_err());
    assert!(disk.place_link(path("/dir")).is_err());
    let image = disk.crash_image(usize::MAX, 0, super::RANDOM);
    assert_eq!(image.entry(path("/link")).unwrap(), Some(Entry::Other));
    disk.remove_file(path("/link")).unwrap();
    assert_eq!(disk.entry(path("/link")).unwrap(), None);
}

#[test]
fn a_lock_that_cannot_change_its_mode_is_lost() {
    let disk = SimulatedDisk::new();
    disk.write_file(path("/lock"), b"").unwrap();
    let [first, second] = [(), ()].map(|()| disk.lock(path("/lock")).unwrap());
    assert!(first.try_acquire(LockMode::Shared).unwrap());
    assert!(second.try_acquire(LockMode::Shared).unwrap());
    assert!(!first.try_acquire(LockMode::Exclusive).unwrap());
    assert!(second.try_acquire(LockMode::Exclusive).unwrap(), "the first let go");
    drop(second);
    assert!(first.try_acquire(LockMode::Exclusive).unwrap());
}
