//! Locks that behave like flock(2): on a file, held by an open handle, gone with it.

use std::collections::BTreeMap;

use super::journal::Inode;
use crate::disk::LockMode;

/// Who holds which lock. A holder is the number of an open handle.
#[derive(Debug, Default)]
pub(super) struct Locks {
    held: BTreeMap<Inode, Vec<(u64, LockMode)>>,
}

impl Locks {
    /// Takes the lock if nobody has it in the way. Going from one mode to the
    /// other lets go first, so that a refusal leaves nothing held, as on Linux.
    pub fn try_acquire(&mut self, file: Inode, holder: u64, mode: LockMode) -> bool {
        let held = self.held.entry(file).or_default();
        if held.contains(&(holder, mode)) {
            return true;
        }
        held.retain(|(other, _)| *other != holder);
        let shared = |(_, theirs): &(u64, LockMode)| *theirs == LockMode::Shared;
        let free = held.is_empty() || (mode == LockMode::Shared && held.iter().all(shared));
        if free {
            held.push((holder, mode));
        }
        free
    }

    /// Lets go.
    pub fn release(&mut self, file: Inode, holder: u64) {
        if let Some(held) = self.held.get_mut(&file) {
            held.retain(|(other, _)| *other != holder);
            if held.is_empty() {
                self.held.remove(&file);
            }
        }
    }
}
