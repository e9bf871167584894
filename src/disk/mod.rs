//! The disk that a log stands on: a small trait with a written contract, the real
//! one and a simulated one whose power can be cut. Everything above asks a
//! [`Disk`]; only [`real`] calls the system.
//!
//! What is durable after a power cut:
//!
//! - the bytes and the length of a file, up to the last [`DiskFile::sync_data`]
//!   that returned. Later writes may survive whole, in part or not at all, in any
//!   order, torn at the device's sectors.
//! - a directory's entries, up to the last [`Disk::sync_dir`] that returned.
//!   Later ones may each survive or not, in any order. Syncing a file does
//!   **not** keep its name.
//!
//! What is atomic: creating, linking, renaming and removing a name. A write is
//! not: a reader beside it may see a part.
//!
//! A signal may interrupt [`DiskFile::read_at`] and [`DiskFile::write_at`], which
//! [`read_full`] and [`write_all`] then go on with. Every other call begins again by
//! itself.

mod file_system;
pub mod real;
pub mod simulated;
pub mod watch;

use std::ffi::OsString;
use std::fmt::Debug;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

pub use file_system::FileSystem;

/// A place that keeps files. See the module for what survives a power cut.
pub trait Disk: Send + Sync + Debug {
    /// Opens a regular file that exists. A link, a directory or a device in its
    /// place is an error of kind `InvalidInput`; it is not followed or waited for.
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn DiskFile>>;

    /// Creates a file that must not exist yet, for reading and writing.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Creates one directory, whose parent must exist.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Gives a file a second name, which must not exist yet.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Moves a name, in place of what `to` named before.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file's name.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Makes a directory's entries durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// The names in a directory, in no order, without `.` and `..`.
    fn list(&self, path: &Path) -> io::Result<Vec<OsString>>;

    /// What a name stands for, not following a link; `None` if nothing has it.
    fn entry(&self, path: &Path) -> io::Result<Option<Entry>>;

    /// A number that changes whenever a name in the directory `path` is made, moved or
    /// removed (the real disk's modification time). Only for noticing change.
    fn dir_stamp(&self, path: &Path) -> io::Result<u64>;

    /// Holds the directory that `path` leads to, links followed, so that another one
    /// in its place can be told from it. Permission to read it is not needed.
    fn hold_dir(&self, path: &Path) -> io::Result<Box<dyn HeldDirectory>>;

    /// A lock on the file or directory `path`, not yet taken. Reading permission is enough.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>>;

    /// What keeps the files in the directory that `path` leads to.
    fn file_system(&self, path: &Path) -> io::Result<FileSystem>;

    /// Something that differs after each start of the machine.
    fn boot_id(&self) -> io::Result<String>;
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// For reading only.
    Read,
    /// For reading and writing.
    ReadWrite,
}

/// What a name in a directory stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A regular file of this many bytes.
    File {
        /// Its length.
        bytes: u64,
    },
    /// A directory.
    Directory,
    /// A link, a pipe, a device.
    Other,
}

/// Whose a file is, and who may read and write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// The number of the user who owns it.
    pub user: u32,
    /// The number of its group.
    pub group: u32,
    /// The permission bits, as `chmod` takes them: at most `0o7777`.
    pub mode: u32,
}

/// An open file. It stays usable when its name is moved or removed.
pub trait DiskFile: Send + Debug {
    /// Reads some bytes from `position` on; 0 only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize>;

    /// Writes some of the bytes of `parts`, one after the other, from `position`
    /// on, and says how many. The file grows as needed.
    fn write_at(&self, parts: &[io::IoSlice<'_>], position: u64) -> io::Result<usize>;

    /// The file's length in bytes.
    fn size(&self) -> io::Result<u64>;

    /// Cuts the file, or extends it with zeros.
    fn set_len(&self, bytes: u64) -> io::Result<()>;

    /// Makes all bytes written so far, and the length, durable. After an error
    /// nothing is known of them, and a second call proves nothing.
    fn sync_data(&self) -> io::Result<()>;

    /// Begins to bring the bytes from `position` on to the disk, without waiting for it,
    /// so that the next [`sync_data`](Self::sync_data) has less to do. A hint: it promises
    /// nothing and can't fail.
    fn begin_write_back(&self, position: u64, bytes: u64);

    /// Moves some of the `bytes` bytes from `position` on into a pipe, without sleeping
    /// and without copying them; says how many.
    ///
    /// # Errors
    /// `Unsupported` where that can't be; `WouldBlock` while the pipe is full.
    fn splice_to(&self, position: u64, bytes: usize, pipe: BorrowedFd<'_>) -> io::Result<usize>;

    /// Whose it is, and who may use it.
    fn rights(&self) -> io::Result<Rights>;

    /// Gives it these rights, whatever the umask is. Those that it has are not set again.
    ///
    /// # Errors
    /// `PermissionDenied` where it may not be given away: only root may give a file to
    /// another user. Some of them may be set then.
    fn set_rights(&self, rights: Rights) -> io::Result<()>;

    /// The file's length in bytes, if `path` still names this very file.
    fn size_at(&self, path: &Path) -> io::Result<Option<u64>>;

    /// Whether `path` still names this very file.
    fn is_at(&self, path: &Path) -> io::Result<bool> {
        Ok(self.size_at(path)?.is_some())
    }
}

/// A directory that is held: as long as it is, no new one can be mistaken for it.
pub trait HeldDirectory: Send + Debug {
    /// Whether `path` still leads to this very directory, links followed.
    fn is_at(&self, path: &Path) -> io::Result<bool>;
}

/// Whether a lock is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// Any number of holders, but no exclusive one.
    Shared,
    /// One holder.
    Exclusive,
}

/// A kernel lock on an open file: it goes with its holder, however that ends.
/// Dropping it lets go.
pub trait DiskLock: Send + Sync + Debug {
    /// Takes the lock if nobody has it in the way; says whether it did.
    fn try_acquire(&self, mode: LockMode) -> io::Result<bool>;

    /// Takes the lock, after those who came before.
    fn acquire(&self, mode: LockMode) -> io::Result<()>;

    /// Lets go.
    fn release(&self) -> io::Result<()>;

    /// Whether `path` still names the file that this lock is on.
    fn is_at(&self, path: &Path) -> io::Result<bool>;
}

/// Reads until `buffer` is full or the file ends; says how much was read.
///
/// # Errors
/// Those of [`DiskFile::read_at`], except interruptions, which are retried.
pub fn read_full(file: &dyn DiskFile, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], position + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Writes all of `parts`, one after the other, from `position` on.
///
/// # Errors
/// Those of [`DiskFile::write_at`], except interruptions, which are retried.
/// Some bytes may have been written then.
pub fn write_all(file: &dyn DiskFile, parts: &[&[u8]], position: u64) -> io::Result<()> {
    let mut slices: Vec<io::IoSlice<'_>> =
        parts.iter().map(|part| io::IoSlice::new(part)).collect();
    let mut rest = &mut slices[..];
    io::IoSlice::advance_slices(&mut rest, 0);
    let mut done = 0;
    while !rest.is_empty() {
        match file.write_at(rest, position + done) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                done += count as u64;
                io::IoSlice::advance_slices(&mut rest, count);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
