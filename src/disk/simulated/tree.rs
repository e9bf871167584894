//! Directories and files at one moment, without any memory of how they came to be.
//! A clone costs little: the bytes are shared until one side changes them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path};
use std::sync::Arc;

use rustix::io::Errno;

use super::Seeded;
use super::journal::{Inode, Made, NameChange, NewEntry, Step};

/// The directory that every path starts from.
pub(super) const ROOT: Inode = 1;
/// Longer files are refused: a hole is kept in memory like any bytes.
pub(super) const LONGEST_FILE: u64 = 1 << 30;

/// The entries of a directory.
pub(super) type Entries = BTreeMap<OsString, Inode>;

/// What an inode is.
#[derive(Clone, Debug)]
pub(super) enum Node {
    File { bytes: Arc<Vec<u8>>, links: u32 },
    Directory { entries: Arc<Entries>, stamp: u64 },
    Other,
}

impl Node {
    pub fn file(bytes: Vec<u8>) -> Self {
        Self::File { bytes: Arc::new(bytes), links: 0 }
    }

    pub fn directory(stamp: u64) -> Self {
        Self::Directory { entries: Arc::default(), stamp }
    }
}

/// A tree of directories.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    nodes: BTreeMap<Inode, Node>,
}

impl Tree {
    /// An empty root.
    pub fn new() -> Self {
        Self { nodes: BTreeMap::from([(ROOT, Node::directory(0))]) }
    }

    pub fn get(&self, inode: Inode) -> Option<&Node> {
        self.nodes.get(&inode)
    }

    pub fn put(&mut self, inode: Inode, node: Node) {
        self.nodes.insert(inode, node);
    }

    pub fn forget(&mut self, inode: Inode) {
        self.nodes.remove(&inode);
    }

    /// Whether no name leads to this file any more.
    pub fn is_unlinked(&self, inode: Inode) -> bool {
        matches!(self.get(inode), Some(Node::File { links: 0, .. }))
    }

    /// The bytes of a file; none for anything else.
    pub fn bytes(&self, inode: Inode) -> &[u8] {
        match self.get(inode) {
            Some(Node::File { bytes, .. }) => bytes,
            _ => &[],
        }
    }

    /// The bytes of a file, to change them.
    pub fn bytes_mut(&mut self, inode: Inode) -> Option<&mut Vec<u8>> {
        match self.nodes.get_mut(&inode) {
            Some(Node::File { bytes, .. }) => Some(Arc::make_mut(bytes)),
            _ => None,
        }
    }

    /// The bytes of one of the files; none if there is no file.
    pub fn a_file(&self, seeded: &mut Seeded) -> Arc<Vec<u8>> {
        let files = self.nodes.values().filter_map(|node| match node {
            Node::File { bytes, .. } => Some(bytes),
            _ => None,
        });
        let number = seeded.below(files.clone().count() as u64) as usize;
        files.skip(number).map(Arc::clone).next().unwrap_or_default()
    }

    /// The lengths of all files together, unlinked ones that are still open included.
    pub fn used(&self) -> u64 {
        self.nodes.keys().map(|inode| self.bytes(*inode).len() as u64).sum()
    }

    /// The entries of a directory; an error for anything else.
    pub fn entries(&self, inode: Inode) -> io::Result<&Entries> {
        match self.get(inode) {
            Some(Node::Directory { entries, .. }) => Ok(entries),
            Some(_) => Err(Errno::NOTDIR.into()),
            None => Err(Errno::NOENT.into()),
        }
    }

    /// What `path` names. Relative paths start at the root too; `..` is refused.
    pub fn find(&self, path: &Path) -> io::Result<Inode> {
        let mut inode = ROOT;
        for component in path.components() {
            match component {
                Component::RootDir | Component::CurDir => {}
                Component::Normal(name) => {
                    inode = *self.entries(inode)?.get(name).ok_or(Errno::NOENT)?;
                }
                Component::ParentDir | Component::Prefix(_) => return Err(Errno::INVAL.into()),
            }
        }
        Ok(inode)
    }

    /// The directory that `path` lies in, and its name there, which may be free.
    pub fn place<'a>(&self, path: &'a Path) -> io::Result<(Inode, &'a OsStr)> {
        let name = path.file_name().ok_or(Errno::BUSY)?;
        let dir = self.find(path.parent().unwrap_or(Path::new("")))?;
        self.entries(dir)?;
        Ok((dir, name))
    }

    /// Does what a step says.
    pub fn apply(&mut self, step: &Step) {
        match step {
            Step::Write { file, position, bytes } => {
                if let Some(old) = self.bytes_mut(*file) {
                    overwrite(old, *position as usize, bytes);
                }
            }
            Step::SetLen { file, bytes } => {
                if let Some(old) = self.bytes_mut(*file) {
                    old.resize(*bytes as usize, 0);
                }
            }
            Step::Names(change) => {
                self.make(change);
                change.entries.iter().for_each(|entry| self.set_entry(entry, change.stamp));
            }
            Step::Sync { .. } | Step::SyncFailed { .. } | Step::SyncDir { .. } => {}
        }
    }

    /// Brings into being what a change of names makes, without a name yet.
    pub fn make(&mut self, change: &NameChange) {
        match change.made {
            Some((inode, Made::File)) => self.put(inode, Node::file(Vec::new())),
            Some((inode, Made::Directory)) => self.put(inode, Node::directory(change.stamp)),
            None => {}
        }
    }

    /// Lets a name stand for something else.
    pub fn set_entry(&mut self, new: &NewEntry, new_stamp: u64) {
        let Some(Node::Directory { entries, stamp }) = self.nodes.get_mut(&new.dir) else { return };
        *stamp = new_stamp;
        let entries = Arc::make_mut(entries);
        let old = match new.to {
            Some(inode) => entries.insert(new.name.clone(), inode),
            None => entries.remove(&new.name),
        };
        self.count_links(new.to, |links| *links += 1);
        self.count_links(old, |links| *links = links.saturating_sub(1));
    }

    fn count_links(&mut self, inode: Option<Inode>, change: impl FnOnce(&mut u32)) {
        if let Some(Node::File { links, .. }) = inode.and_then(|inode| self.nodes.get_mut(&inode)) {
            change(links);
        }
    }

    /// Gives a directory another stamp.
    pub fn set_stamp(&mut self, dir: Inode, new: u64) {
        if let Some(Node::Directory { stamp, .. }) = self.nodes.get_mut(&dir) {
            *stamp = new;
        }
    }
}

/// Puts bytes over others, with zeros between where these end before `position`.
pub(super) fn overwrite(old: &mut Vec<u8>, position: usize, new: &[u8]) {
    let end = position + new.len();
    if old.len() < end {
        old.resize(end, 0);
    }
    old[position..end].copy_from_slice(new);
}
