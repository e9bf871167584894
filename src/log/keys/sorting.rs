//! Sorting entries for a table. Hashes are spread evenly, so that the first bits of each
//! say nearly where it belongs; what is left to sort are a few neighbours.

use std::cmp::Reverse;

use crate::format::key_hash::KeyHash;
use crate::format::key_table::KeyEntry;
use crate::model::Offset;

/// So many entries share the first bits of their hashes on the average.
const NEIGHBOURS: usize = 4;

/// A few are sorted by moving each to its place.
const FEW: usize = 16;

/// Entries on their way into one table, which come by growing offsets. Its memory serves
/// one table after the other.
#[derive(Debug, Default)]
pub(crate) struct Sorter {
    entries: Vec<Packed>,
    room: Vec<Packed>,
    /// Where the entries of each bucket end.
    ends: Vec<u32>,
}

/// An entry without a hole in it: memory traffic is what sorting costs.
#[derive(Clone, Copy, Debug)]
struct Packed {
    high: u64,
    low: u64,
    /// The offset, twice, and 1 more for a tombstone.
    offset: u64,
}

impl Packed {
    fn place(&self) -> (u64, u64, Reverse<u64>) {
        (self.high, self.low, Reverse(self.offset))
    }

    fn entry(&self) -> KeyEntry {
        let hash = KeyHash::new(u128::from(self.high) << 64 | u128::from(self.low));
        let (offset, tombstone) = (Offset::new(self.offset >> 1), self.offset & 1 == 1);
        KeyEntry { hash, offset, tombstone }
    }
}

impl Sorter {
    /// Adds an entry.
    pub(crate) fn push(&mut self, entry: &KeyEntry) {
        let hash = entry.hash.get();
        // An offset has 63 bits.
        let offset = entry.offset.get() << 1 | u64::from(entry.tombstone);
        self.entries.push(Packed { high: (hash >> 64) as u64, low: hash as u64, offset });
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Gives `each` all entries as a table has them, and forgets them.
    pub(crate) fn drain<E>(
        &mut self,
        each: impl FnMut(KeyEntry) -> Result<(), E>,
    ) -> Result<(), E> {
        self.sort();
        let drained = self.room.iter().map(Packed::entry).try_for_each(each);
        self.room.clear();
        drained
    }

    /// Moves the entries, sorted, into the room.
    fn sort(&mut self) {
        self.room.clear();
        let Some(&any) = self.entries.first() else { return };
        let bits = (self.entries.len() / NEIGHBOURS).checked_ilog2().unwrap_or(0).max(1);
        let bucket = |entry: &Packed| (entry.high >> (u64::BITS - bits)) as usize;
        self.ends.clear();
        self.ends.resize((1 << bits) + 1, 0);
        self.entries.iter().for_each(|entry| self.ends[bucket(entry) + 1] += 1);
        for number in 1..self.ends.len() {
            self.ends[number] += self.ends[number - 1];
        }
        self.room.resize(self.entries.len(), any);
        // Backwards, so that of one hash the newest come first.
        for entry in self.entries.iter().rev() {
            let end = &mut self.ends[bucket(entry)];
            self.room[*end as usize] = *entry;
            *end += 1;
        }
        self.entries.clear();
        let mut begin = 0;
        for &end in &self.ends[..1 << bits] {
            sort_bucket(&mut self.room[begin..end as usize]);
            begin = end as usize;
        }
    }
}

fn sort_bucket(entries: &mut [Packed]) {
    if entries.len() > FEW {
        // So many are mostly of one hash, and in order then.
        return entries.sort_by_key(Packed::place);
    }
    for number in 1..entries.len() {
        let mut at = number;
        while at > 0 && entries[at].place() < entries[at - 1].place() {
            entries.swap(at, at - 1);
            at -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn it_is_sorted_and_all_there(hashes in prop::collection::vec(any::<(u128, bool)>(), 0..300), mask in any::<u128>()) {
            let entry = |(offset, &(hash, tombstone)): (u64, &(u128, bool))| KeyEntry {
                hash: KeyHash::new(hash & mask), offset: Offset::new(offset), tombstone,
            };
            let mut expected: Vec<KeyEntry> = (0..).zip(&hashes).map(entry).collect();
            let mut sorter = Sorter::default();
            for _ in 0..2 {
                expected.sort_by_key(|entry| entry.offset);
                expected.iter().for_each(|entry| sorter.push(entry));
                prop_assert_eq!(sorter.len(), expected.len());
                let mut sorted = Vec::new();
                let _ = sorter.drain(|entry| { sorted.push(entry); Ok::<_, ()>(()) });
                expected.sort_by_key(KeyEntry::place);
                prop_assert_eq!(&sorted, &expected);
            }
        }
    }
}
