//! Sorting entries for a table. Hashes are spread evenly, so that the first bits of each
//! say nearly where it belongs; what is left to sort are a few neighbours.

use crate::format::key_table::KeyEntry;

/// So many entries share the first bits of their hashes on the average.
const NEIGHBOURS: usize = 4;

/// Sorts `entries` as a table has them, in place, with as much memory again.
pub(crate) fn sort(entries: &mut Vec<KeyEntry>) {
    let bits = (entries.len() / NEIGHBOURS).checked_ilog2().unwrap_or(0).max(1);
    let bucket = |entry: &KeyEntry| (entry.hash.get() >> (u128::BITS - bits)) as usize;
    let mut ends = vec![0usize; (1 << bits) + 1];
    entries.iter().for_each(|entry| ends[bucket(entry) + 1] += 1);
    for number in 1..ends.len() {
        ends[number] += ends[number - 1];
    }
    let mut sorted = entries.clone();
    for entry in &*entries {
        let end = &mut ends[bucket(entry)];
        sorted[*end] = *entry;
        *end += 1;
    }
    let mut begin = 0;
    for &end in &ends[..1 << bits] {
        // Many share their first bits only where they share all: such a sort is quick too.
        sorted[begin..end].sort_unstable_by_key(KeyEntry::place);
        begin = end;
    }
    *entries = sorted;
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
            sort(&mut entries);
            prop_assert_eq!(entries, expected);
        }
    }
}
