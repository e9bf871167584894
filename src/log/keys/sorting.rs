//! Sorting entries for a table. Hashes are spread evenly, so that the first bits of each
//! say nearly where it belongs; what is left to sort are a few neighbours.

use crate::format::key_table::KeyEntry;

/// So many entries share the first bits of their hashes on the average.
const NEIGHBOURS: usize = 4;

/// A few are sorted by moving each to its place.
const FEW: usize = 16;

/// Sorts `entries`, which come by growing offsets, as a table has them. `room` is memory
/// for as many, kept for the next call.
pub(crate) fn sort(entries: &mut Vec<KeyEntry>, room: &mut Vec<KeyEntry>) {
    let Some(&any) = entries.first() else { return };
    let bits = (entries.len() / NEIGHBOURS).checked_ilog2().unwrap_or(0).max(1);
    let bucket = |entry: &KeyEntry| (entry.hash.get() >> (u128::BITS - bits)) as usize;
    let mut ends = vec![0usize; (1 << bits) + 1];
    entries.iter().for_each(|entry| ends[bucket(entry) + 1] += 1);
    for number in 1..ends.len() {
        ends[number] += ends[number - 1];
    }
    room.resize(entries.len(), any);
    // Backwards, so that of one hash the newest come first.
    for entry in entries.iter().rev() {
        let end = &mut ends[bucket(entry)];
        room[*end] = *entry;
        *end += 1;
    }
    let mut begin = 0;
    for &end in &ends[..1 << bits] {
        sort_bucket(&mut room[begin..end]);
        begin = end;
    }
    std::mem::swap(entries, room);
}

fn sort_bucket(entries: &mut [KeyEntry]) {
    if entries.len() > FEW {
        // So many are mostly of one hash, and in order then.
        return entries.sort_by_key(KeyEntry::place);
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
    use crate::format::key_hash::KeyHash;
    use crate::model::Offset;
    use proptest::prelude::{any, prop, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn it_is_sorted_and_all_there(hashes in prop::collection::vec(any::<u128>(), 0..300), mask in any::<u128>()) {
            let entry = |(offset, hash): (u64, &u128)| KeyEntry {
                hash: KeyHash::new(hash & mask), offset: Offset::new(offset), tombstone: false,
            };
            let mut entries: Vec<KeyEntry> = (0..).zip(&hashes).map(entry).collect();
            let mut expected = entries.clone();
            expected.sort_by_key(KeyEntry::place);
            sort(&mut entries, &mut Vec::new());
            prop_assert_eq!(entries, expected);
        }
    }
}
