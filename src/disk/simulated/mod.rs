//! A disk in memory whose power can be cut at any step: the instrument with which
//! the promises of the layers above are tested. It holds itself to the contract of
//! [`Disk`] and takes every liberty that it leaves, so nothing may be learnt from
//! it about what a certain file system happens to do better.
//!
//! Every change is a step in a journal. [`SimulatedDisk::crash_player`] goes along
//! it and gives, at each step, disks as a power cut there may leave them. What one
//! seed gave once it gives again.
//!
//! - Of bytes not synced, each sector of each write may be there or not, alone;
//!   the length is the synced one, the newest, or one between; what it covers
//!   without bytes reads as zeros, or as bytes of others, where the style says so.
//! - Of names not synced, each change may be there or not, alone; a rename is one
//!   change, so is a link. A directory takes along what is in it. A synced change
//!   brings along the earlier ones of the same names.
//! - A failed sync leaves all unsynced bytes and lengths in doubt for good: no later
//!   sync makes them durable, unless they are written or set again. A failed
//!   `sync_dir` changes nothing; a later one makes up for it.
//!
//! Beside that it fails on request, runs out of space, and has locks like the
//! system's. It is simpler than a real one in that a hole takes space like bytes,
//! names take none, links are not followed, `..` is refused and relative paths start
//! at the root.

mod calls;
mod crash;
mod fate;
mod faults;
mod handle;
mod journal;
mod locks;
mod seeded;
mod state;
#[cfg(test)]
mod tests;
mod tree;

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use crash::CrashPlayer;
pub use fate::CrashStyle;
pub use faults::{Class, Lasts, Trouble};
pub use seeded::Seeded;

use state::State;
use tree::{Node, ROOT};

#[cfg(doc)]
use super::Disk;
use super::FileSystem;

/// A disk in memory. See the module.
pub struct SimulatedDisk {
    state: Shared,
}

/// The state that a disk and its open files share.
type Shared = Arc<Mutex<State>>;

impl SimulatedDisk {
    /// An empty root directory, after the first start of its machine.
    #[must_use]
    pub fn new() -> Self {
        Self::of(State::new())
    }

    fn of(state: State) -> Self {
        Self { state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The journal and the power cut.
impl SimulatedDisk {
    /// The length of the journal. What was promised when it was this long must
    /// hold in every image from here on.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.state().journal.len()
    }

    /// What step `index` did, in words; `None` beyond the journal.
    #[must_use]
    pub fn describe_step(&self, index: usize) -> Option<String> {
        journal::describe(&self.state().journal, index)
    }

    /// A player of the journal as it is now, at its start.
    #[must_use]
    pub fn crash_player(&self) -> CrashPlayer {
        CrashPlayer::new(&self.state())
    }

    /// The disk as a power cut after the first `steps` steps may leave it: see
    /// [`CrashPlayer::image`], which is the quicker way to many of them.
    #[must_use]
    pub fn crash_image(&self, steps: usize, seed: u64, style: CrashStyle) -> Self {
        let mut player = self.crash_player();
        player.go_to(steps);
        player.image(seed, style)
    }

    /// Makes everything durable, doubtful bytes too, and empties the journal.
    pub fn settle(&self) {
        self.state().settle();
    }
}

/// Faults and limits.
impl SimulatedDisk {
    /// Lets the `nth` call of a class from now on go wrong; the next one is the
    /// first. Several faults may wait at once.
    pub fn fail_at(&self, class: Class, nth: u64, trouble: Trouble, lasts: Lasts) {
        self.state().faults.add(class, nth, trouble, lasts);
    }

    /// Takes all faults back.
    pub fn clear_faults(&self) {
        self.state().faults.clear();
    }

    /// How many calls of a class came so far, those that failed included.
    #[must_use]
    pub fn calls(&self, class: Class) -> u64 {
        self.state().faults.calls(class)
    }

    /// How many calls were troubled by a fault so far.
    #[must_use]
    pub fn faults_met(&self) -> u64 {
        self.state().faults.met()
    }

    /// Limits the lengths of all files together; `None` lifts it. What would go
    /// beyond is cut short, and without any room is an error of kind `StorageFull`.
    pub fn set_space(&self, bytes: Option<u64>) {
        self.state().space = bytes;
    }

    /// Lets the whole disk pass itself off as this kind.
    pub fn set_file_system(&self, kind: FileSystem) {
        self.state().file_system = kind;
    }

    /// The lengths of all files together, unlinked ones that are open included.
    #[must_use]
    pub fn used_space(&self) -> u64 {
        self.state().tree.used()
    }
}

/// Looking and tampering past the calls of [`Disk`]: nothing here is counted,
/// journalled or made to fail.
impl SimulatedDisk {
    /// The bytes of a file, synced or not; `None` if there is no such file.
    #[must_use]
    pub fn read_file(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state();
        match state.tree.get(state.tree.find(path).ok()?)? {
            Node::File { bytes, .. } => Some(bytes.to_vec()),
            Node::Directory { .. } | Node::Other => None,
        }
    }

    /// The names in a directory, sorted; `None` if there is no such directory.
    #[must_use]
    pub fn names(&self, path: &Path) -> Option<Vec<String>> {
        let state = self.state();
        let entries = state.tree.entries(state.tree.find(path).ok()?).ok()?;
        Some(entries.keys().map(|name| name.to_string_lossy().into_owned()).collect())
    }

    /// Gives a file these bytes, making it and its directories where needed, and
    /// settles the disk: see [`Self::settle`].
    ///
    /// # Errors
    /// Something else has the name.
    pub fn write_file(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.state().tamper(path, Node::file(bytes.to_vec()))
    }

    /// Puts something that is neither a file nor a directory there, in place of a
    /// file too, and settles the disk: see [`Self::settle`].
    ///
    /// # Errors
    /// A directory has the name.
    pub fn place_link(&self, path: &Path) -> io::Result<()> {
        self.state().tamper(path, Node::Other)
    }

    /// A copy that goes its own way: the same files, journal and boot, but no
    /// open files, locks or faults.
    #[must_use]
    pub fn snapshot(&self) -> Self {
        Self::of(self.state().copy())
    }

    /// A number for what a user would find: equal for equal names and bytes.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        hash_directory(&self.state(), ROOT, &mut hasher);
        hasher.finish()
    }
}

fn hash_directory(state: &State, dir: journal::Inode, hasher: &mut DefaultHasher) {
    let Ok(entries) = state.tree.entries(dir) else { return };
    entries.len().hash(hasher);
    for (name, inode) in entries {
        name.hash(hasher);
        match state.tree.get(*inode) {
            Some(Node::File { bytes, .. }) => bytes.hash(hasher),
            Some(Node::Directory { .. }) => hash_directory(state, *inode, hasher),
            Some(Node::Other) | None => u64::MAX.hash(hasher),
        }
    }
}

impl Default for SimulatedDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SimulatedDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedDisk").field("steps", &self.steps()).finish_non_exhaustive()
    }
}
