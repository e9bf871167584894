//! Which tables of the key index are looked into, and which are merged into one.

use std::ops::Range;

use crate::model::Offset;

/// So many tables of a kind are merged into one.
const FAN_IN: usize = 8;

/// Which of `tables`, the entries of each, the oldest first, are to be merged: always
/// the newest ones, two or more. `None` while there are few enough.
///
/// Going back from the newest, tables are counted; the count begins anew at one that is
/// larger than all newer ones together. So there are fewer than `FAN_IN` of a count, and
/// the sum at least doubles with each: however tables come, `tables` has a length in the
/// order of the logarithm of its sum, and an entry is moved about as often. Those with
/// more than `most` entries are not touched again, and none behind them.
pub fn to_merge(tables: &[u64], most: u64) -> Option<Range<usize>> {
    let (mut sum, mut count) = (0u64, 0);
    for (number, &entries) in tables.iter().enumerate().rev() {
        if entries > most {
            return None;
        }
        if entries > sum {
            count = 0;
        }
        sum = sum.saturating_add(entries);
        count += 1;
        if count >= FAN_IN {
            return Some(number..tables.len());
        }
    }
    None
}

/// What covers a range of offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stretch {
    /// The table number so and so covers it, and perhaps more.
    Table(usize, Range<Offset>),
    /// No table does.
    Bare(Range<Offset>),
}

/// The stretches of `range` one after the other, each covered by one of `tables` or by
/// none: from wherever one ends, by the table that reaches furthest. Tables may lie
/// within others, as those do that were merged just now; one that reaches beyond `range`
/// is none of this log's.
pub fn cover(tables: &[Range<Offset>], range: Range<Offset>) -> Vec<Stretch> {
    let mut stretches = Vec::new();
    let ours = || tables.iter().enumerate().filter(|(_, table)| table.end <= range.end);
    let mut at = range.start;
    while at < range.end {
        let over = ours().filter(|(_, table)| table.start <= at && table.end > at);
        let stretch = match over.max_by_key(|(_, table)| table.end) {
            Some((number, table)) => Stretch::Table(number, at..table.end),
            None => {
                let begins = ours().map(|(_, table)| table.start).filter(|&start| start > at);
                Stretch::Bare(at..begins.min().unwrap_or(range.end))
            }
        };
        let (Stretch::Table(_, covered) | Stretch::Bare(covered)) = &stretch;
        at = covered.end;
        stretches.push(stretch);
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{Strategy, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};

    /// Adds a table and merges as long as there is something to merge; says how many
    /// entries that moved.
    fn add(tables: &mut Vec<u64>, entries: u64, most: u64) -> u64 {
        tables.push(entries);
        let mut moved = 0;
        while let Some(range) = to_merge(tables, most) {
            let sum: u64 = tables[range.clone()].iter().sum();
            assert_eq!((range.end, range.len() > 1), (tables.len(), true));
            tables.splice(range, [sum]);
            moved += sum;
        }
        moved
    }

    #[test]
    fn eight_of_a_kind_become_one() {
        let mut tables = Vec::new();
        let moved: u64 = (0..512).map(|_| add(&mut tables, 1, u64::MAX)).sum();
        assert_eq!(tables, [512]);
        assert_eq!(moved, 3 * 512, "each entry three times");
    }

    #[test]
    fn the_largest_stay_as_they_are() {
        let mut tables = Vec::new();
        for _ in 0..1000 {
            add(&mut tables, 10, 100);
        }
        assert!(tables.iter().all(|&entries| entries <= 8 * 100));
        assert!(tables.iter().filter(|&&entries| entries <= 100).count() < 50);
    }

    fn sizes() -> impl Strategy<Value = Vec<u64>> {
        let any =
            prop_oneof![0..3u64, 0..100u64, 0..1_000_000u64, prop::sample::select(vec![0, 1, 8])];
        prop::collection::vec(any, 0..300)
    }

    proptest! {
        #[test]
        fn tables_stay_few_and_moves_too_whatever_comes(sizes in sizes()) {
            let (mut tables, mut moved, mut sum) = (Vec::new(), 0, 0);
            for entries in sizes {
                moved += add(&mut tables, entries, u64::MAX);
                sum += entries;
                let kinds = 2 + (64 - sum.leading_zeros()) as usize;
                prop_assert!(tables.len() <= (FAN_IN - 1) * kinds, "{:?}", tables);
                prop_assert_eq!(tables.iter().sum::<u64>(), sum);
                prop_assert!(moved <= sum * 2 * kinds as u64, "{} moved of {}", moved, sum);
            }
        }

        #[test]
        fn every_offset_is_covered_once_by_a_table_that_has_it_or_by_none(
            given in prop::collection::vec((0..60u64, 1..40u64), 0..12), start in 0..40u64,
        ) {
            let table = |(first, length)| Offset::new(first)..Offset::new(first + length);
            let tables: Vec<_> = given.into_iter().map(table).collect();
            let range = Offset::new(start)..Offset::new(70);
            let mut at = range.start;
            for stretch in cover(&tables, range.clone()) {
                let covered = match stretch {
                    Stretch::Table(number, covered) => {
                        let table = &tables[number];
                        prop_assert!(table.start <= covered.start && table.end == covered.end);
                        covered
                    }
                    Stretch::Bare(bare) => {
                        let has = |table: &Range<Offset>| {
                            table.end <= range.end && table.start < bare.end && table.end > bare.start
                        };
                        prop_assert!(!tables.iter().any(has));
                        bare
                    }
                };
                prop_assert_eq!(covered.start, at);
                prop_assert!(covered.start < covered.end);
                at = covered.end;
            }
            prop_assert_eq!(at, range.end);
        }
    }
}
