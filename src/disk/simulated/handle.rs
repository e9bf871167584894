//! Open files and locks: they keep their file although its name moves or goes.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::{MutexGuard, PoisonError};

use rustix::io::Errno;

use super::journal::{Inode, Step};
use super::state::State;
use super::tree::LONGEST_FILE;
use super::{Class, Shared};
use crate::disk::{Access, DiskFile, DiskLock, HeldDirectory, LockMode, Rights};

/// What keeps a file open.
#[derive(Debug)]
pub(super) struct Handle {
    pub state: Shared,
    pub inode: Inode,
    pub holder: u64,
}

impl Handle {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        let mut state = self.state();
        state.faults.meet(Class::Look)?;
        match state.tree.find(path) {
            Ok(inode) => Ok(inode == self.inode),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.state().close_handle(self.inode, self.holder);
    }
}

#[derive(Debug)]
pub(super) struct SimulatedFile {
    pub handle: Handle,
    pub access: Access,
}

impl SimulatedFile {
    fn refuse_reader(&self, refusal: Errno) -> io::Result<()> {
        match self.access {
            Access::ReadWrite => Ok(()),
            Access::Read => Err(refusal.into()),
        }
    }
}

impl DiskFile for SimulatedFile {
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        let mut state = self.handle.state();
        let most = state.faults.meet(Class::Read)?;
        let bytes = state.tree.bytes(self.handle.inode);
        let start = usize::try_from(position).unwrap_or(usize::MAX).min(bytes.len());
        let count = buffer.len().min(bytes.len() - start).min(most);
        buffer[..count].copy_from_slice(&bytes[start..start + count]);
        Ok(count)
    }

    fn write_at(&self, parts: &[io::IoSlice<'_>], position: u64) -> io::Result<usize> {
        let mut state = self.handle.state();
        let most = state.faults.meet(Class::Write)?;
        self.refuse_reader(Errno::BADF)?;
        let wanted: usize = parts.iter().map(|part| part.len()).sum();
        if wanted == 0 {
            return Ok(0);
        }
        if position.saturating_add(wanted as u64) > LONGEST_FILE {
            return Err(Errno::FBIG.into());
        }
        let room = state.room(self.handle.inode, position, wanted as u64)?;
        let count = most.min(room as usize).min(wanted);
        let bytes = first_bytes(parts, count).into();
        state.record(Step::Write { file: self.handle.inode, position, bytes });
        Ok(count)
    }

    fn size(&self) -> io::Result<u64> {
        let mut state = self.handle.state();
        state.faults.meet(Class::Look)?;
        Ok(state.tree.bytes(self.handle.inode).len() as u64)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        let mut state = self.handle.state();
        state.faults.meet(Class::SetLen)?;
        self.refuse_reader(Errno::INVAL)?;
        if bytes > LONGEST_FILE {
            return Err(Errno::FBIG.into());
        }
        let length = state.tree.bytes(self.handle.inode).len() as u64;
        let growth = bytes.saturating_sub(length);
        if state.room(self.handle.inode, length, growth)? < growth {
            return Err(Errno::NOSPC.into());
        }
        state.record(Step::SetLen { file: self.handle.inode, bytes });
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.handle.state();
        let file = self.handle.inode;
        let met = state.faults.meet(Class::Sync);
        state.record(if met.is_ok() { Step::Sync { file } } else { Step::SyncFailed { file } });
        met.map(|_| ())
    }

    /// Takes no step: what was not synced may survive anyhow.
    fn begin_write_back(&self, _position: u64, _bytes: u64) {}

    fn splice_to(&self, _position: u64, _bytes: usize, _pipe: BorrowedFd<'_>) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// All files here are everybody's.
    fn rights(&self) -> io::Result<Rights> {
        Ok(Rights { user: 0, group: 0, mode: 0o666 })
    }

    /// Takes no step: there is nothing to change.
    fn set_rights(&self, _rights: Rights) -> io::Result<()> {
        Ok(())
    }

    fn size_at(&self, path: &Path) -> io::Result<Option<u64>> {
        let is_at = self.handle.is_at(path)?;
        Ok(is_at.then(|| self.handle.state().tree.bytes(self.handle.inode).len() as u64))
    }
}

/// The first `count` bytes of `parts`, joined.
fn first_bytes(parts: &[io::IoSlice<'_>], count: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(count);
    for part in parts {
        bytes.extend_from_slice(&part[..part.len().min(count - bytes.len())]);
    }
    bytes
}

#[derive(Debug)]
pub(super) struct SimulatedLock {
    pub handle: Handle,
}

impl DiskLock for SimulatedLock {
    fn try_acquire(&self, mode: LockMode) -> io::Result<bool> {
        let mut state = self.handle.state();
        state.faults.meet(Class::Lock)?;
        Ok(state.locks.try_acquire(self.handle.inode, self.handle.holder, mode))
    }

    fn acquire(&self, mode: LockMode) -> io::Result<()> {
        while !self.try_acquire(mode)? {
            std::thread::yield_now();
        }
        Ok(())
    }

    fn release(&self) -> io::Result<()> {
        let mut state = self.handle.state();
        state.locks.release(self.handle.inode, self.handle.holder);
        Ok(())
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        self.handle.is_at(path)
    }
}

/// There are no links to directories here, so it is at its own path or moved.
#[derive(Debug)]
pub(super) struct SimulatedDirectory {
    pub handle: Handle,
}

impl HeldDirectory for SimulatedDirectory {
    fn is_at(&self, path: &Path) -> io::Result<bool> {
        self.handle.is_at(path)
    }
}
