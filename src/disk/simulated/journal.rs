//! The journal's words: one step for every change that a disk was asked for.
//! What a step does to a tree is in [`super::tree`], what a power cut makes of it
//! in [`super::crash`].

use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;

/// The number of a file or directory; never used again.
pub(super) type Inode = u64;

/// One change.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Bytes went into a file.
    Write { file: Inode, position: u64, bytes: Arc<[u8]> },
    /// A file was cut or extended with zeros.
    SetLen { file: Inode, bytes: u64 },
    /// A file's bytes and length were made durable.
    Sync { file: Inode },
    /// That failed: what was not durable then may never be.
    SyncFailed { file: Inode },
    /// Names were made, moved or removed, all or none.
    Names(Arc<NameChange>),
    /// A directory's entries were made durable.
    SyncDir { dir: Inode },
}

/// A change of names, which is atomic.
#[derive(Debug)]
pub(super) struct NameChange {
    /// The call that asked for it.
    pub verb: &'static str,
    /// The file or directory that came into being with it.
    pub made: Option<(Inode, Made)>,
    /// What each name stands for from then on.
    pub entries: Vec<NewEntry>,
    /// The stamp that the touched directories bear from then on.
    pub stamp: u64,
}

/// What a name stands for from now on; nothing if `to` is `None`.
#[derive(Clone, Debug)]
pub(super) struct NewEntry {
    pub dir: Inode,
    pub name: OsString,
    pub to: Option<Inode>,
}

/// What can come into being.
#[derive(Clone, Copy, Debug)]
pub(super) enum Made {
    File,
    Directory,
}

impl NameChange {
    /// Whether it touches this directory.
    pub fn touches(&self, dir: Inode) -> bool {
        self.entries.iter().any(|entry| entry.dir == dir)
    }

    /// Whether it touches a name that `other` touches too.
    pub fn shares_a_name(&self, other: &Self) -> bool {
        let same = |a: &NewEntry, b: &NewEntry| (a.dir, &a.name) == (b.dir, &b.name);
        self.entries.iter().any(|entry| other.entries.iter().any(|theirs| same(entry, theirs)))
    }
}

/// The words for step `index` of a journal, with the names that its files had by then.
pub(super) fn describe(journal: &[Step], index: usize) -> Option<String> {
    let (before, step) = (journal.get(..index)?, journal.get(index)?);
    let name = |inode: Inode| Name { inode, name: last_name(before, inode) };
    Some(match step {
        Step::Write { file, position, bytes } => {
            format!("write {} bytes at {position} of {}", bytes.len(), name(*file))
        }
        Step::SetLen { file, bytes } => format!("set the length of {} to {bytes}", name(*file)),
        Step::Sync { file } => format!("sync {}", name(*file)),
        Step::SyncFailed { file } => format!("fail to sync {}", name(*file)),
        Step::SyncDir { dir } => format!("sync the directory {}", name(*dir)),
        Step::Names(change) => {
            let names: Vec<_> = change.entries.iter().map(|entry| entry.name.display()).collect();
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            format!("{} {}", change.verb, names.join(" -> "))
        }
    })
}

struct Name<'a> {
    inode: Inode,
    name: Option<&'a OsString>,
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name {
            Some(name) => write!(f, "{}", name.display()),
            None => write!(f, "inode {}", self.inode),
        }
    }
}

/// The name that was last given to `inode`; none if it is older than the journal.
fn last_name(journal: &[Step], inode: Inode) -> Option<&OsString> {
    journal.iter().rev().find_map(|step| match step {
        Step::Names(change) => {
            change.entries.iter().find(|entry| entry.to == Some(inode)).map(|entry| &entry.name)
        }
        _ => None,
    })
}
