//! The power cut: goes along a journal, knows at each step what is durable and
//! what is not, and gives disks that may be left. How the rest is drawn is in
//! [`super::fate`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::fate::{CrashStyle, FileChange, Standing, Unsynced, surviving_bytes, surviving_names};
use super::journal::{Inode, NameChange, Step};
use super::state::State;
use super::tree::{Node, ROOT, Tree, overwrite};
use super::{Seeded, SimulatedDisk};

/// Marks the stamp of a directory that was left in a state it never had.
const NEVER_SEEN: u64 = 1 << 63;

/// A place in a disk's journal, from which disks can be had as a power cut there
/// may leave them. Going forward costs little, an image about as much as the bytes
/// that are not durable.
#[derive(Clone, Debug)]
pub struct CrashPlayer {
    start: Arc<Start>,
    at: usize,
    /// What is durable at this place, with inodes that may have no name yet.
    durable: Tree,
    /// The changes of each file that are not.
    files: BTreeMap<Inode, Vec<Unsynced>>,
    /// The changes of names that are not.
    names: Vec<Arc<NameChange>>,
    stamp: u64,
}

/// What the journal starts from.
#[derive(Debug)]
struct Start {
    base: Tree,
    base_stamp: u64,
    journal: Vec<Step>,
    boot: u64,
    next_inode: Inode,
    space: Option<u64>,
}

impl CrashPlayer {
    pub(super) fn new(state: &State) -> Self {
        Self::at_start(Arc::new(Start {
            base: state.base.clone(),
            base_stamp: state.base_stamp,
            journal: state.journal.clone(),
            boot: state.boot,
            next_inode: state.next_inode,
            space: state.space,
        }))
    }

    fn at_start(start: Arc<Start>) -> Self {
        let (durable, stamp) = (start.base.clone(), start.base_stamp);
        Self { start, at: 0, durable, files: BTreeMap::new(), names: Vec::new(), stamp }
    }

    /// How many steps the journal has.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.start.journal.len()
    }

    /// How many of them are done at this place.
    #[must_use]
    pub const fn at(&self) -> usize {
        self.at
    }

    /// Goes to where the first `steps` steps are done, at most to the end. Going
    /// back is allowed, and starts anew.
    pub fn go_to(&mut self, steps: usize) {
        if steps < self.at {
            *self = Self::at_start(Arc::clone(&self.start));
        }
        let start = Arc::clone(&self.start);
        for step in start.journal.iter().take(steps).skip(self.at) {
            self.advance(step);
            self.at += 1;
        }
    }

    /// The disk as a power cut at this place may leave it: everything on it is
    /// durable, its journal is empty, and the machine has started again.
    #[must_use]
    pub fn image(&self, seed: u64, style: CrashStyle) -> SimulatedDisk {
        let mut seeded = Seeded::derived(seed, self.at as u64);
        let boot = self.start.boot ^ (seeded.next_u64() | 1);
        let tree = self.left(style, &mut seeded);
        self.disk(State::started(tree, boot, self.stamp, self.start.next_inode))
    }

    /// The disk after the process was killed at this place: nothing is lost, locks
    /// and open files are gone, and what was not durable still is not.
    #[must_use]
    pub fn killed(&self) -> SimulatedDisk {
        let tree = self.left(CrashStyle::KeepAll, &mut Seeded::new(0));
        let mut state = State::started(tree, self.start.boot, self.stamp, self.start.next_inode);
        state.base = self.start.base.clone();
        state.base_stamp = self.start.base_stamp;
        state.journal = self.start.journal[..self.at].to_vec();
        self.disk(state)
    }

    fn disk(&self, mut state: State) -> SimulatedDisk {
        state.space = self.start.space;
        SimulatedDisk::of(state)
    }

    fn advance(&mut self, step: &Step) {
        match step {
            Step::Write { file, position, bytes } => {
                let change = FileChange::Write { position: *position, bytes: Arc::clone(bytes) };
                self.note(*file, change);
            }
            Step::SetLen { file, bytes } => self.note(*file, FileChange::SetLen(*bytes)),
            Step::Sync { file } => self.sync(*file),
            Step::SyncFailed { file } => self.stand(*file, Standing::Doubtful),
            Step::Names(change) => {
                self.durable.make(change);
                self.stamp = change.stamp;
                self.names.push(Arc::clone(change));
            }
            Step::SyncDir { dir } => self.sync_dir(*dir),
        }
    }

    fn note(&mut self, file: Inode, change: FileChange) {
        let unsynced = Unsynced { change, standing: Standing::Waiting };
        self.files.entry(file).or_default().push(unsynced);
    }

    /// What waits becomes durable, unless doubtful changes lie beneath: then the
    /// order has to be kept, and only the verdict is noted.
    fn sync(&mut self, file: Inode) {
        let waiting = |unsynced: &Unsynced| unsynced.standing == Standing::Waiting;
        if !self.files.get(&file).is_some_and(|changes| changes.iter().all(waiting)) {
            return self.stand(file, Standing::Settled);
        }
        let changes = self.files.remove(&file).unwrap_or_default();
        let Some(bytes) = self.durable.bytes_mut(file) else { return };
        for unsynced in changes {
            match unsynced.change {
                FileChange::Write { position, bytes: new } => {
                    overwrite(bytes, position as usize, &new);
                }
                FileChange::SetLen(length) => bytes.resize(length as usize, 0),
            }
        }
    }

    fn stand(&mut self, file: Inode, standing: Standing) {
        let changes = self.files.get_mut(&file).into_iter().flatten();
        changes
            .filter(|unsynced| unsynced.standing == Standing::Waiting)
            .for_each(|unsynced| unsynced.standing = standing);
    }

    /// The changes in `dir` become durable, and the earlier ones of the same names.
    fn sync_dir(&mut self, dir: Inode) {
        let mut synced: Vec<Arc<NameChange>> = Vec::new();
        let mut rest = Vec::new();
        for change in std::mem::take(&mut self.names).into_iter().rev() {
            if change.touches(dir) || synced.iter().any(|later| later.shares_a_name(&change)) {
                synced.push(change);
            } else {
                rest.push(change);
            }
        }
        rest.reverse();
        self.names = rest;
        for change in synced.iter().rev() {
            change.entries.iter().for_each(|entry| self.durable.set_entry(entry, change.stamp));
        }
    }

    /// The tree that is left.
    fn left(&self, style: CrashStyle, seeded: &mut Seeded) -> Tree {
        let named = self.with_names(style, seeded);
        let torn = self.torn_write(style, seeded);
        let stale = self.stale(style, seeded);
        let mut left = Tree::new();
        let mut bytes_of = |inode: Inode, durable: &Arc<Vec<u8>>| {
            let changes = match &torn {
                Some((file, changes)) if *file == inode => Some(changes),
                _ => self.files.get(&inode),
            };
            match changes {
                Some(changes) => surviving_bytes(durable, changes, &stale, style, seeded),
                None => Arc::clone(durable),
            }
        };
        gather(&named, ROOT, &mut left, &mut bytes_of);
        left
    }

    /// What lies where a file reaches without bytes.
    fn stale(&self, style: CrashStyle, seeded: &mut Seeded) -> Arc<Vec<u8>> {
        const ANY: usize = 8 << 10;
        match style {
            CrashStyle::Stale { .. } if seeded.one_in(3) => Arc::new(seeded.bytes(ANY)),
            CrashStyle::Stale { .. } => self.durable.a_file(seeded),
            _ => Arc::default(),
        }
    }

    /// What is durable, and those changes of names that are kept. A directory whose
    /// change is kept although an earlier one is lost bears a stamp it never had.
    fn with_names(&self, style: CrashStyle, seeded: &mut Seeded) -> Tree {
        let mut tree = self.durable.clone();
        let (mut holed, mut new) = (BTreeSet::new(), BTreeSet::new());
        let kept = surviving_names(self.names.len(), style, seeded);
        for (change, kept) in self.names.iter().zip(kept) {
            for entry in &change.entries {
                if !kept {
                    holed.insert(entry.dir);
                } else {
                    tree.set_entry(entry, change.stamp);
                    if holed.contains(&entry.dir) {
                        new.insert(entry.dir);
                    }
                }
            }
        }
        for dir in new {
            tree.set_stamp(dir, seeded.next_u64() | NEVER_SEEN);
        }
        tree
    }

    /// Sometimes, if the last step was a write: its file, whose last change stops
    /// at any byte.
    fn torn_write(&self, style: CrashStyle, seeded: &mut Seeded) -> Option<(Inode, Vec<Unsynced>)> {
        let random = style.sector().is_some() && seeded.one_in(4);
        let Some(Step::Write { file, position, bytes }) = self.last_step().filter(|_| random)
        else {
            return None;
        };
        let mut changes = self.files.get(file)?.clone();
        let count = seeded.between(1, bytes.len() as u64) as usize;
        changes.last_mut()?.change =
            FileChange::Write { position: *position, bytes: Arc::from(&bytes[..count]) };
        Some((*file, changes))
    }

    fn last_step(&self) -> Option<&Step> {
        self.start.journal.get(self.at.checked_sub(1)?)
    }
}

/// Copies what can be reached from `dir`, which `left` has already.
fn gather(
    from: &Tree,
    dir: Inode,
    left: &mut Tree,
    bytes_of: &mut impl FnMut(Inode, &Arc<Vec<u8>>) -> Arc<Vec<u8>>,
) {
    let Some(Node::Directory { entries, stamp }) = from.get(dir) else { return };
    left.put(dir, Node::Directory { entries: Arc::clone(entries), stamp: *stamp });
    for inode in entries.values() {
        match (left.get(*inode), from.get(*inode)) {
            (Some(Node::File { bytes, links }), _) => {
                let again = Node::File { bytes: Arc::clone(bytes), links: links + 1 };
                left.put(*inode, again);
            }
            (Some(_), _) | (None, None) => {}
            (None, Some(Node::File { bytes, .. })) => {
                left.put(*inode, Node::File { bytes: bytes_of(*inode, bytes), links: 1 });
            }
            (None, Some(Node::Directory { .. })) => gather(from, *inode, left, bytes_of),
            (None, Some(Node::Other)) => left.put(*inode, Node::Other),
        }
    }
}
