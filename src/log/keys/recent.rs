//! The keys of the newest records, in memory.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::format::key_hash::KeyHash;
use crate::model::Offset;

/// No older record of the key is here.
const NONE: u32 = u32::MAX;

/// The offsets of the records in a range of offsets, by their keys' hashes.
#[derive(Debug)]
pub(super) struct Recent {
    newest: HashMap<KeyHash, u32, BuildHasherDefault<AsIs>>,
    records: Vec<Noted>,
    start: Offset,
    end: Offset,
}

#[derive(Clone, Copy, Debug)]
struct Noted {
    hash: KeyHash,
    offset: Offset,
    /// The number of the record before it with the same hash.
    older: u32,
}

/// A hash of a key is one already.
#[derive(Clone, Copy, Debug, Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0.rotate_left(8) ^ u64::from(byte));
    }

    fn write_u128(&mut self, hash: u128) {
        self.0 = hash as u64;
    }
}

impl Recent {
    /// None yet, of a range that begins at `start`.
    pub(super) fn beginning_at(start: Offset) -> Recent {
        Recent { newest: HashMap::default(), records: Vec::new(), start, end: start }
    }

    /// The start of the range.
    pub(super) fn start(&self) -> Offset {
        self.start
    }

    /// The end of the range.
    pub(super) fn end(&self) -> Offset {
        self.end
    }

    /// How many records it has.
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// Adds a record. Offsets grow.
    pub(super) fn add(&mut self, hash: KeyHash, offset: Offset) {
        let number = u32::try_from(self.records.len()).unwrap_or(NONE);
        let older = self.newest.insert(hash, number).unwrap_or(NONE);
        self.records.push(Noted { hash, offset, older });
    }

    /// Says that the range reaches to `end`.
    pub(super) fn reach(&mut self, end: Offset) {
        self.end = self.end.max(end);
    }

    /// Lets the range begin at `start`.
    pub(super) fn forget_before(&mut self, start: Offset) {
        let old = std::mem::replace(self, Recent::beginning_at(start));
        let kept = old.records.iter().filter(|record| record.offset >= start);
        kept.for_each(|record| self.add(record.hash, record.offset));
        self.reach(old.end);
    }

    /// The newest record of a key.
    pub(super) fn newest(&self, hash: KeyHash) -> Option<Offset> {
        self.back_from(hash).next()
    }

    /// The records of a key from `from` on, the oldest first.
    pub(super) fn all_from(&self, hash: KeyHash, from: Offset) -> Vec<Offset> {
        let mut offsets: Vec<Offset> =
            self.back_from(hash).take_while(|&offset| offset >= from).collect();
        offsets.reverse();
        offsets
    }

    /// The records of a key before `before`, the newest first.
    pub(super) fn all_before(&self, hash: KeyHash, before: Offset) -> Vec<Offset> {
        self.back_from(hash).skip_while(|&offset| offset >= before).collect()
    }

    fn back_from(&self, hash: KeyHash) -> impl Iterator<Item = Offset> {
        let record = |number: u32| self.records.get(number as usize);
        let newest = self.newest.get(&hash).and_then(|&number| record(number));
        let older = move |noted: &&Noted| record(noted.older);
        std::iter::successors(newest, older).map(|noted| noted.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_found_in_both_orders_and_forgotten() {
        let mut recent = Recent::beginning_at(Offset::new(5));
        let (a, b) = (KeyHash::new(1), KeyHash::new(2));
        for (hash, offset) in [(a, 5), (b, 6), (a, 7), (a, 9)] {
            recent.add(hash, Offset::new(offset));
        }
        recent.reach(Offset::new(12));
        let from = |recent: &Recent, from| {
            let all = recent.all_from(a, Offset::new(from)).into_iter();
            all.map(Offset::get).collect::<Vec<_>>()
        };
        let before = |before| {
            let all = recent.all_before(a, Offset::new(before)).into_iter();
            all.map(Offset::get).collect::<Vec<_>>()
        };
        assert_eq!((from(&recent, 0), from(&recent, 6)), (vec![5, 7, 9], vec![7, 9]));
        assert_eq!((before(12), before(9)), (vec![9, 7, 5], vec![7, 5]));
        assert_eq!(recent.newest(KeyHash::new(3)), None);
        recent.forget_before(Offset::new(7));
        assert_eq!((recent.newest(b), from(&recent, 0)), (None, vec![7, 9]));
        assert_eq!((recent.start().get(), recent.end().get(), recent.len()), (7, 12, 2));
    }
}
