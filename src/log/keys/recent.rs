//! The keys of the newest records, in memory.

use crate::format::key_hash::KeyHash;
use crate::model::Offset;

/// No record.
const NONE: u32 = u32::MAX;

/// The offsets of the records in a range of offsets, by their keys' hashes. Takes some
/// forty bytes a record.
#[derive(Debug)]
pub(super) struct Recent {
    /// The newest record of each hash, by number, in the slot that the hash names or the
    /// next free one; a power of two, and at most half of them are taken. A map of hashes
    /// would hold each of them a second time.
    slots: Vec<u32>,
    /// How many of them are taken.
    taken: usize,
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

impl Recent {
    /// None yet, of a range that begins at `start`.
    pub(super) fn beginning_at(start: Offset) -> Recent {
        Recent { slots: vec![NONE; 2], taken: 0, records: Vec::new(), start, end: start }
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
        self.records.push(Noted { hash, offset, older: NONE });
        if self.taken * 2 >= self.slots.len() {
            self.assign_slots(self.slots.len() * 2);
        } else {
            self.assign_slot(self.records.len() - 1);
        }
    }

    /// Says that the range reaches to `end`.
    pub(super) fn reach(&mut self, end: Offset) {
        self.end = self.end.max(end);
    }

    /// Lets the range begin at `start`.
    pub(super) fn forget_before(&mut self, start: Offset) {
        let gone = self.records.partition_point(|record| record.offset < start);
        self.records.drain(..gone);
        self.start = start;
        self.end = self.end.max(start);
        self.assign_slots(self.slots.len());
    }

    /// Spreads all records over so many slots.
    fn assign_slots(&mut self, count: usize) {
        self.slots.clear();
        self.slots.resize(count, NONE);
        self.taken = 0;
        (0..self.records.len()).for_each(|number| self.assign_slot(number));
    }

    /// Gives record `number`, the newest, its slot, which an older one of its hash may have.
    fn assign_slot(&mut self, number: usize) {
        let slot = self.slot_of(self.records[number].hash);
        let older = std::mem::replace(&mut self.slots[slot], number as u32);
        self.records[number].older = older;
        self.taken += usize::from(older == NONE);
    }

    /// The slot of `hash`, or the free one that it would get.
    fn slot_of(&self, hash: KeyHash) -> usize {
        let last = self.slots.len() - 1;
        let mut slot = hash.get() as usize & last;
        while self.record(self.slots[slot]).is_some_and(|record| record.hash != hash) {
            slot = (slot + 1) & last;
        }
        slot
    }

    fn record(&self, number: u32) -> Option<&Noted> {
        self.records.get(number as usize)
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
        let newest = self.record(self.slots[self.slot_of(hash)]);
        let older = move |noted: &&Noted| self.record(noted.older);
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

    #[test]
    fn hashes_that_name_one_slot_are_told_apart() {
        let mut recent = Recent::beginning_at(Offset::ZERO);
        // Many end in the same bits.
        let hash = |number: u64| KeyHash::new(u128::from(number % 300) << (number % 3 * 40));
        (0..2000).for_each(|number| recent.add(hash(number), Offset::new(number)));
        for start in [0, 1100, 1999, 2000] {
            recent.forget_before(Offset::new(start));
            for key in (0..300).map(hash) {
                let of_key = (start..2000).filter(|&number| hash(number) == key).map(Offset::new);
                let found = recent.all_from(key, Offset::ZERO);
                assert_eq!(found, of_key.collect::<Vec<_>>(), "from {start} on");
            }
        }
    }
}
