//! The system's own files: the only place that calls it for them. Handles are
//! closed on exec, and the last part of a path is never followed as a link. A call
//! that a signal interrupted is made again; std does that by itself where it can.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use rustix::fs::{self, FileType, FlockOperation, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::SpliceFlags;

use super::{
    Access, Disk, DiskFile, DiskLock, Entry, FileSystem, HeldDirectory, LockMode, Rights,
    file_system,
};

/// Files are made readable and writable for everyone that the umask lets.
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);
const DIR_MODE: Mode = Mode::from_raw_mode(0o777);
/// The bits of a mode that are no file type.
const ALL_RIGHTS: u32 = 0o7777;
/// `NONBLOCK` so that a pipe in a file's place is refused instead of waited for.
const ALWAYS: OFlags = OFlags::CLOEXEC.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK);

/// The disk of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn DiskFile>> {
        let mode = match access {
            Access::Read => OFlags::RDONLY,
            Access::ReadWrite => OFlags::RDWR,
        };
        let fd = open(path, mode | ALWAYS).map_err(link_in_place)?;
        let stat = fs::fstat(&fd)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(not_a_file());
        }
        Ok(Box::new(RealFile { file: fd.into(), identity: Identity::of(&stat) }))
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | ALWAYS;
        let fd = retry_on_intr(|| fs::open(path, flags, FILE_MODE))?;
        let identity = Identity::of(&fs::fstat(&fd)?);
        Ok(Box::new(RealFile { file: fd.into(), identity }))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        Ok(fs::mkdir(path, DIR_MODE)?)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        Ok(fs::link(from, to)?)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Ok(fs::rename(from, to)?)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        Ok(fs::unlink(path)?)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = open(path, flags)?;
        Ok(retry_on_intr(|| fs::fsync(&fd))?)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<OsString>> {
        let entries = loop {
            match std::fs::read_dir(path) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                opened => break opened?,
            }
        };
        entries.map(|entry| entry.map(|entry| entry.file_name())).collect()
    }

    fn entry(&self, path: &Path) -> io::Result<Option<Entry>> {
        match fs::lstat(path) {
            Ok(stat) => Ok(Some(entry_of(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn dir_stamp(&self, path: &Path) -> io::Result<u64> {
        let stat = fs::stat(path)?;
        let seconds = (stat.st_mtime as u64).wrapping_mul(1_000_000_000);
        Ok(seconds.wrapping_add(stat.st_mtime_nsec as u64))
    }

    fn hold_dir(&self, path: &Path) -> io::Result<Box<dyn HeldDirectory>> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = open(path, flags)?;
        let identity = Identity::of(&fs::fstat(&fd)?);
        Ok(Box::new(RealDirectory { _fd: fd, identity }))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>> {
        let fd = open(path, OFlags::RDONLY | ALWAYS).map_err(link_in_place)?;
        let stat = fs::fstat(&fd)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile | FileType::Directory => {
                Ok(Box::new(RealLock { fd, identity: Identity::of(&stat) }))
            }
            _ => Err(not_a_file()),
        }
    }

    fn file_system(&self, path: &Path) -> io::Result<FileSystem> {
        let number = retry_on_intr(|| fs::statfs(path))?.f_type as u32;
        if number != file_system::FUSE {
            return Ok(file_system::of_number(number));
        }
        let device = fs::stat(path)?.st_dev;
        let mounts = std::fs::read("/proc/self/mountinfo")?;
        let device = (fs::major(device), fs::minor(device));
        Ok(file_system::of_fuse(&String::from_utf8_lossy(&mounts), device))
    }

    fn boot_id(&self) -> io::Result<String> {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        Ok(text.trim().to_owned())
    }
}

fn open(path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    retry_on_intr(|| fs::open(path, flags, Mode::empty()))
}

/// What `open` says of a link, or of a directory that is to be written, in words
/// that a user understands.
fn link_in_place(error: Errno) -> io::Error {
    match error {
        Errno::LOOP | Errno::ISDIR => not_a_file(),
        other => other.into(),
    }
}

fn not_a_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a regular file (links are not followed here)")
}

fn entry_of(stat: &Stat) -> Entry {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Entry::File { bytes: stat.st_size as u64 },
        FileType::Directory => Entry::Directory,
        _ => Entry::Other,
    }
}

/// Which file an open handle is on. No other one has this device and number as long as
/// the handle is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    fn of(stat: &Stat) -> Identity {
        Identity { device: stat.st_dev, inode: stat.st_ino }
    }

    /// What was looked up, if it is this file.
    fn matching(self, found: rustix::io::Result<Stat>) -> io::Result<Option<Stat>> {
        match found {
            Ok(found) => Ok((Identity::of(&found) == self).then_some(found)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

#[derive(Debug)]
struct RealDirectory {
    /// Kept open for the sake of `identity`.
    _fd: OwnedFd,
    identity: Identity,
}

impl HeldDirectory for RealDirectory {
    fn is_at(&self, path: &Path) -> io::Result<bool> {
        Ok(self.identity.matching(fs::stat(path))?.is_some())
    }
}

#[derive(Debug)]
struct RealFile {
    file: File,
    identity: Identity,
}

impl DiskFile for RealFile {
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        self.file.read_at(buffer, position)
    }

    fn write_at(&self, parts: &[io::IoSlice<'_>], position: u64) -> io::Result<usize> {
        Ok(match parts {
            // The system has less to look at.
            [part] => rustix::io::pwrite(&self.file, part, position)?,
            parts => rustix::io::pwritev(&self.file, parts, position)?,
        })
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.size())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn begin_write_back(&self, position: u64, bytes: u64) {
        // Linux starts to write the dirty pages of a range that is said not to be needed
        // (mm/fadvise.c), and drops only those that are on the disk already.
        let bytes = NonZeroU64::new(bytes);
        let _ = fs::fadvise(&self.file, position, bytes, fs::Advice::DontNeed);
    }

    fn splice_to(&self, position: u64, bytes: usize, pipe: BorrowedFd<'_>) -> io::Result<usize> {
        let mut from = position;
        let flags = SpliceFlags::NONBLOCK;
        match rustix::pipe::splice(&self.file, Some(&mut from), pipe, None, bytes, flags) {
            Err(Errno::INVAL | Errno::NOSYS) => Err(io::ErrorKind::Unsupported.into()),
            moved => Ok(moved?),
        }
    }

    fn rights(&self) -> io::Result<Rights> {
        let stat = fs::fstat(&self.file)?;
        Ok(Rights { user: stat.st_uid, group: stat.st_gid, mode: stat.st_mode & ALL_RIGHTS })
    }

    fn set_rights(&self, rights: Rights) -> io::Result<()> {
        let Rights { user, group, mode } = self.rights()?;
        let user = (user != rights.user).then(|| Uid::from_raw(rights.user));
        let group = (group != rights.group).then(|| Gid::from_raw(rights.group));
        let is_given_away = user.is_some() || group.is_some();
        if is_given_away {
            retry_on_intr(|| fs::fchown(&self.file, user, group))?;
        }
        // Last, as giving a file away takes some of these from it.
        if is_given_away || mode != rights.mode {
            retry_on_intr(|| fs::fchmod(&self.file, Mode::from_raw_mode(rights.mode)))?;
        }
        Ok(())
    }

    fn size_at(&self, path: &Path) -> io::Result<Option<u64>> {
        let found = self.identity.matching(fs::lstat(path))?;
        Ok(found.map(|stat| stat.st_size as u64))
    }
}

#[derive(Debug)]
struct RealLock {
    fd: OwnedFd,
    identity: Identity,
}

impl DiskLock for RealLock {
    fn try_acquire(&self, mode: LockMode) -> io::Result<bool> {
        let operation = match mode {
            LockMode::Shared => FlockOperation::NonBlockingLockShared,
            LockMode::Exclusive => FlockOperation::NonBlockingLockExclusive,
        };
        match retry_on_intr(|| fs::flock(&self.fd, operation)) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn acquire(&self, mode: LockMode) -> io::Result<()> {
        let operation = match mode {
            LockMode::Shared => FlockOperation::LockShared,
            LockMode::Exclusive => FlockOperation::LockExclusive,
        };
        Ok(retry_on_intr(|| fs::flock(&self.fd, operation))?)
    }

    fn release(&self) -> io::Result<()> {
        Ok(retry_on_intr(|| fs::flock(&self.fd, FlockOperation::Unlock))?)
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        Ok(self.identity.matching(fs::lstat(path))?.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_or_a_pipe_in_place_of_a_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link, pipe) =
            (dir.path().join("target"), dir.path().join("link"), dir.path().join("pipe"));
        RealDisk.create_new(&target).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, FILE_MODE, 0).unwrap();
        for path in [&link, &pipe, &dir.path().to_path_buf()] {
            for access in [Access::Read, Access::ReadWrite] {
                let refused = RealDisk.open(path, access).unwrap_err();
                assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{path:?}");
            }
        }
        assert_eq!(RealDisk.entry(&link).unwrap(), Some(Entry::Other));
    }

    #[test]
    fn a_file_takes_the_rights_of_another_whatever_the_umask_is() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (dir.path().join("one"), dir.path().join("other"));
        let (one, other) =
            (RealDisk.create_new(&one).unwrap(), RealDisk.create_new(&other).unwrap());
        for mode in [0o600, 0o666, 0o640, 0o2660] {
            one.set_rights(Rights { mode, ..one.rights().unwrap() }).unwrap();
            other.set_rights(one.rights().unwrap()).unwrap();
            assert_eq!((other.rights().unwrap().mode, one.rights().unwrap().mode), (mode, mode));
        }
        let rights = Rights { user: 65534, group: 65534, mode: 0o640 };
        match rustix::process::geteuid().is_root() {
            true => {
                other.set_rights(rights).unwrap();
                assert_eq!(other.rights().unwrap(), rights);
            }
            false => {
                let refused = other.set_rights(rights).unwrap_err();
                assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
            }
        }
    }

    #[test]
    fn the_disk_of_this_machine_is_local() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(RealDisk.file_system(dir.path()).unwrap(), FileSystem::Local);
        let missing = RealDisk.file_system(&dir.path().join("missing")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_held_directory_is_known_through_a_link_and_from_one_in_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("target"), dir.path().join("link"));
        RealDisk.create_dir(&target).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let held = RealDisk.hold_dir(&link).unwrap();
        assert!(held.is_at(&link).unwrap() && held.is_at(&target).unwrap());
        std::fs::remove_dir(&target).unwrap();
        assert!(!held.is_at(&link).unwrap());
        RealDisk.create_dir(&target).unwrap();
        assert!(!held.is_at(&link).unwrap(), "another one");
    }

    #[test]
    fn an_exclusive_lock_keeps_others_out_until_it_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        RealDisk.create_new(&path).unwrap();
        let (first, second) = (RealDisk.lock(&path).unwrap(), RealDisk.lock(&path).unwrap());
        assert!(first.try_acquire(LockMode::Exclusive).unwrap());
        assert!(!second.try_acquire(LockMode::Shared).unwrap());
        drop(first);
        assert!(second.try_acquire(LockMode::Shared).unwrap());
        assert!(second.is_at(&path).unwrap());
        RealDisk.remove_file(&path).unwrap();
        assert!(!second.is_at(&path).unwrap());
    }
}
