//! The calls of [`Disk`]: what each checks, in the system's order and with its
//! errors, and what it then asks of the state.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;

use super::handle::{Handle, SimulatedDirectory, SimulatedFile, SimulatedLock};
use super::journal::{Inode, Made, Step};
use super::state::State;
use super::tree::{Node, Tree};
use super::{Class, Seeded, SimulatedDisk};
use crate::disk::{Access, Disk, DiskFile, DiskLock, Entry, FileSystem, HeldDirectory};

impl Disk for SimulatedDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.state();
        state.faults.meet(Class::Open)?;
        let inode = state.tree.find(path)?;
        match state.tree.get(inode) {
            Some(Node::File { .. }) => Ok(self.file(&mut state, inode, access)),
            _ => Err(not_a_file()),
        }
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.state();
        state.faults.meet(Class::Create)?;
        let entry = free_place(&state.tree, path, None)?;
        let inode = state.change_names("create", Some(Made::File), &[entry]);
        Ok(self.file(&mut state, inode, Access::ReadWrite))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.faults.meet(Class::Create)?;
        let entry = free_place(&state.tree, path, None)?;
        state.change_names("make directory", Some(Made::Directory), &[entry]);
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.faults.meet(Class::Link)?;
        let inode = state.tree.find(from)?;
        let entry = free_place(&state.tree, to, Some(inode))?;
        if let Some(Node::Directory { .. }) = state.tree.get(inode) {
            return Err(Errno::PERM.into());
        }
        state.change_names("link", None, &[entry]);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.faults.meet(Class::Rename)?;
        let (from_dir, from_name) = state.tree.place(from)?;
        let (to_dir, to_name) = state.tree.place(to)?;
        let moved = entry_at(&state.tree, from_dir, from_name)?.ok_or(Errno::NOENT)?;
        let replaced = entry_at(&state.tree, to_dir, to_name)?;
        if replaced == Some(moved) {
            return Ok(()); // two names of one file both stay: so does the system
        }
        may_replace(&state.tree, (from, moved), (to, replaced))?;
        let entries =
            [(from_dir, from_name.to_owned(), None), (to_dir, to_name.to_owned(), Some(moved))];
        state.change_names("rename", None, &entries);
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.faults.meet(Class::Remove)?;
        let (dir, name) = state.tree.place(path)?;
        let inode = entry_at(&state.tree, dir, name)?.ok_or(Errno::NOENT)?;
        if let Some(Node::Directory { .. }) = state.tree.get(inode) {
            return Err(Errno::ISDIR.into());
        }
        state.change_names("remove", None, &[(dir, name.to_owned(), None)]);
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.faults.meet(Class::SyncDir)?;
        let dir = state.tree.find(path)?;
        state.tree.entries(dir)?;
        state.record(Step::SyncDir { dir });
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<OsString>> {
        let state = self.look()?;
        let dir = state.tree.find(path)?;
        Ok(state.tree.entries(dir)?.keys().cloned().collect())
    }

    fn entry(&self, path: &Path) -> io::Result<Option<Entry>> {
        let state = self.look()?;
        let inode = match state.tree.find(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            found => found?,
        };
        Ok(state.tree.get(inode).map(|node| match node {
            Node::File { bytes, .. } => Entry::File { bytes: bytes.len() as u64 },
            Node::Directory { .. } => Entry::Directory,
            Node::Other => Entry::Other,
        }))
    }

    fn dir_stamp(&self, path: &Path) -> io::Result<u64> {
        let state = self.look()?;
        match state.tree.get(state.tree.find(path)?) {
            Some(Node::Directory { stamp, .. }) => Ok(*stamp),
            _ => Ok(0),
        }
    }

    fn hold_dir(&self, path: &Path) -> io::Result<Box<dyn HeldDirectory>> {
        let mut state = self.look()?;
        let inode = state.tree.find(path)?;
        state.tree.entries(inode)?;
        Ok(Box::new(SimulatedDirectory { handle: self.handle(&mut state, inode) }))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>> {
        let mut state = self.state();
        state.faults.meet(Class::Lock)?;
        let inode = state.tree.find(path)?;
        match state.tree.get(inode) {
            Some(Node::File { .. } | Node::Directory { .. }) => {
                Ok(Box::new(SimulatedLock { handle: self.handle(&mut state, inode) }))
            }
            _ => Err(not_a_file()),
        }
    }

    fn file_system(&self, path: &Path) -> io::Result<FileSystem> {
        let state = self.look()?;
        state.tree.find(path)?;
        Ok(state.file_system.clone())
    }

    fn boot_id(&self) -> io::Result<String> {
        let mut seeded = Seeded::new(self.look()?.boot);
        let (high, low) = (seeded.next_u64(), seeded.next_u64());
        let digits = format!("{high:016x}{low:016x}");
        let cuts = [(0, 8), (8, 12), (12, 16), (16, 20), (20, 32)];
        Ok(cuts.map(|(from, to)| &digits[from..to]).join("-"))
    }
}

impl SimulatedDisk {
    fn look(&self) -> io::Result<std::sync::MutexGuard<'_, State>> {
        let mut state = self.state();
        state.faults.meet(Class::Look)?;
        Ok(state)
    }

    fn handle(&self, state: &mut State, inode: Inode) -> Handle {
        let holder = state.open_handle(inode);
        Handle { state: Arc::clone(&self.state), inode, holder }
    }

    fn file(&self, state: &mut State, inode: Inode, access: Access) -> Box<dyn DiskFile> {
        Box::new(SimulatedFile { handle: self.handle(state, inode), access })
    }
}

fn not_a_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a regular file (links are not followed here)")
}

fn entry_at(tree: &Tree, dir: Inode, name: &OsStr) -> io::Result<Option<Inode>> {
    Ok(tree.entries(dir)?.get(name).copied())
}

/// The place of a name that nothing has yet, and what it is to stand for.
fn free_place(
    tree: &Tree,
    path: &Path,
    to: Option<Inode>,
) -> io::Result<(Inode, OsString, Option<Inode>)> {
    if tree.find(path).is_ok() {
        return Err(Errno::EXIST.into());
    }
    let (dir, name) = tree.place(path)?;
    Ok((dir, name.to_owned(), to))
}

/// Whether `moved` at `from` may come to `to`, in place of `replaced`.
fn may_replace(
    tree: &Tree,
    (from, moved): (&Path, Inode),
    (to, replaced): (&Path, Option<Inode>),
) -> io::Result<()> {
    let above = |path: &Path, inode: Inode| {
        path.ancestors().skip(1).any(|dir| tree.find(dir).ok() == Some(inode))
    };
    if above(to, moved) {
        return Err(Errno::INVAL.into());
    }
    let Some(replaced) = replaced else { return Ok(()) };
    if above(from, replaced) {
        return Err(Errno::NOTEMPTY.into());
    }
    let is_dir = tree.entries(moved).is_ok();
    match (is_dir, tree.entries(replaced)) {
        (true, Err(_)) => Err(Errno::NOTDIR.into()),
        (false, Ok(_)) => Err(Errno::ISDIR.into()),
        (true, Ok(entries)) if !entries.is_empty() => Err(Errno::NOTEMPTY.into()),
        _ => Ok(()),
    }
}
