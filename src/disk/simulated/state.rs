//! What a simulated disk remembers, behind its one lock. Every change of the tree
//! while the machine runs goes through [`State::record`], so that the journal tells
//! all; what the calls check first is in [`super::calls`] and [`super::handle`].

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;

use super::faults::Faults;
use super::journal::{Inode, Made, NameChange, NewEntry, Step};
use super::locks::Locks;
use super::tree::{Node, ROOT, Tree};
use crate::disk::FileSystem;

#[derive(Debug)]
pub(super) struct State {
    /// What a program sees.
    pub tree: Tree,
    /// What was durable before the journal's first step.
    pub base: Tree,
    /// Every change since then.
    pub journal: Vec<Step>,
    pub faults: Faults,
    pub locks: Locks,
    /// How long all files together may be.
    pub space: Option<u64>,
    /// What the disk passes itself off as.
    pub file_system: FileSystem,
    /// The start of the machine, as a number.
    pub boot: u64,
    /// The last stamp that a directory was given, now and before the journal.
    pub stamp: u64,
    pub base_stamp: u64,
    pub next_inode: Inode,
    next_holder: u64,
    /// How many handles each open file has.
    handles: BTreeMap<Inode, usize>,
}

impl State {
    pub fn new() -> Self {
        Self::started(Tree::new(), 0, 0, ROOT + 1)
    }

    /// A machine that starts with this tree, all of it durable.
    pub fn started(tree: Tree, boot: u64, stamp: u64, next_inode: Inode) -> Self {
        Self {
            base: tree.clone(),
            tree,
            journal: Vec::new(),
            faults: Faults::default(),
            locks: Locks::default(),
            space: None,
            file_system: FileSystem::Local,
            boot,
            stamp,
            base_stamp: stamp,
            next_inode,
            next_holder: 0,
            handles: BTreeMap::new(),
        }
    }

    /// The same without open files, locks and faults.
    pub fn copy(&self) -> Self {
        let mut copy = Self::started(self.tree.clone(), self.boot, self.stamp, self.next_inode);
        copy.base = self.base.clone();
        copy.base_stamp = self.base_stamp;
        copy.journal.clone_from(&self.journal);
        copy.space = self.space;
        copy.file_system = self.file_system.clone();
        self.handles.keys().for_each(|inode| copy.reap(*inode));
        copy
    }

    pub fn settle(&mut self) {
        self.base = self.tree.clone();
        self.base_stamp = self.stamp;
        self.journal.clear();
    }

    /// Does one change and notes it.
    pub fn record(&mut self, step: Step) {
        self.tree.apply(&step);
        self.journal.push(step);
    }

    /// Changes names, all at once; gives the inode that was made with them.
    pub fn change_names(
        &mut self,
        verb: &'static str,
        made: Option<Made>,
        entries: &[(Inode, OsString, Option<Inode>)],
    ) -> Inode {
        let inode = self.next_inode;
        self.next_inode += Inode::from(made.is_some());
        self.stamp += 1;
        let replaced: Vec<Inode> =
            entries.iter().filter_map(|(dir, name, _)| self.inode_at(*dir, name)).collect();
        let entries = entries.iter().map(|(dir, name, to)| NewEntry {
            dir: *dir,
            name: name.clone(),
            to: if made.is_some() { Some(inode) } else { *to },
        });
        self.record(Step::Names(Arc::new(NameChange {
            verb,
            made: made.map(|made| (inode, made)),
            entries: entries.collect(),
            stamp: self.stamp,
        })));
        replaced.into_iter().for_each(|inode| self.reap(inode));
        inode
    }

    fn inode_at(&self, dir: Inode, name: &OsString) -> Option<Inode> {
        self.tree.entries(dir).ok()?.get(name).copied()
    }

    /// A handle on a file comes; its number is that of a holder of locks.
    pub fn open_handle(&mut self, inode: Inode) -> u64 {
        *self.handles.entry(inode).or_default() += 1;
        self.next_holder += 1;
        self.next_holder
    }

    /// A handle goes, and with it what it locked, and a file that had only it.
    pub fn close_handle(&mut self, inode: Inode, holder: u64) {
        self.locks.release(inode, holder);
        let count = self.handles.entry(inode).or_default();
        *count = count.saturating_sub(1);
        if *count == 0 {
            self.handles.remove(&inode);
            self.reap(inode);
        }
    }

    /// Forgets a file that neither a name nor a handle leads to.
    fn reap(&mut self, inode: Inode) {
        if self.tree.is_unlinked(inode) && !self.handles.contains_key(&inode) {
            self.tree.forget(inode);
        }
    }

    /// How many bytes of `count` find room when they are written at `position`.
    pub fn room(&self, inode: Inode, position: u64, count: u64) -> io::Result<u64> {
        let length = self.tree.bytes(inode).len() as u64;
        let growth = (position + count).saturating_sub(length);
        let free = match self.space {
            Some(space) => space.saturating_sub(self.tree.used()),
            None => u64::MAX,
        };
        match count.saturating_sub(growth.saturating_sub(free)) {
            0 if count > 0 => Err(Errno::NOSPC.into()),
            room => Ok(room),
        }
    }

    /// Puts something in place of what `path` names, outside the journal. A file
    /// that is there keeps its inode, so that those who have it open see it.
    pub fn tamper(&mut self, path: &Path, node: Node) -> io::Result<()> {
        let (dir, name) = self.place_for(path)?;
        self.stamp += 1;
        let old = self.inode_at(dir, &name);
        match (old.and_then(|inode| self.tree.get(inode)), node) {
            (Some(Node::Directory { .. }), _) => return Err(Errno::ISDIR.into()),
            (Some(Node::File { links, .. }), Node::File { bytes, .. }) => {
                let links = *links;
                old.into_iter().for_each(|inode| {
                    self.tree.put(inode, Node::File { bytes: Arc::clone(&bytes), links });
                });
            }
            (_, node) => {
                let inode = self.next_inode;
                self.next_inode += 1;
                self.tree.put(inode, node);
                self.tree.set_entry(&NewEntry { dir, name, to: Some(inode) }, self.stamp);
                old.into_iter().for_each(|inode| self.reap(inode));
            }
        }
        self.settle();
        Ok(())
    }

    /// The place of `path`, whose missing directories are made.
    fn place_for(&mut self, path: &Path) -> io::Result<(Inode, OsString)> {
        for above in path.ancestors().skip(1).collect::<Vec<_>>().into_iter().rev() {
            if let Err(error) = self.tree.find(above) {
                if error.kind() != io::ErrorKind::NotFound {
                    return Err(error);
                }
                let (dir, name) = self.tree.place(above)?;
                let entry = (dir, name.to_owned(), None);
                self.change_names("make directory", Some(Made::Directory), &[entry]);
            }
        }
        let (dir, name) = self.tree.place(path)?;
        Ok((dir, name.to_owned()))
    }
}
