//! The keys of the newest records, in memory.

use std::collections::HashMap;

use crate::format::key_hash::KeyHash;
use crate::model::Offset;

/// The offsets of the records in a range of offsets, by their keys' hashes.
#[derive(Debug)]
pub(super) struct Recent {
    offsets: HashMap<KeyHash, Vec<Offset>>,
    end: Offset,
}

impl Recent {
    /// None yet, of a range that begins at `start`.
    pub(super) fn beginning_at(start: Offset) -> Recent {
        Recent { offsets: HashMap::new(), end: start }
    }

    /// The end of the range.
    pub(super) fn end(&self) -> Offset {
        self.end
    }

    /// Adds a record. Offsets grow.
    pub(super) fn add(&mut self, key: KeyHash, offset: Offset) {
        self.offsets.entry(key).or_default().push(offset);
    }

    /// Says that the range reaches to `end`.
    pub(super) fn reach(&mut self, end: Offset) {
        self.end = self.end.max(end);
    }

    /// The offsets of a key's records, the oldest first.
    pub(super) fn of(&self, key: KeyHash) -> &[Offset] {
        self.offsets.get(&key).map_or(&[], Vec::as_slice)
    }
}
