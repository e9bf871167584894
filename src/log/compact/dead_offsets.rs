//! A set of offsets: those of the records that compaction takes.

use std::ops::Range;

use crate::model::Offset;

/// So many offsets share a piece, which takes no memory while none of them is in the set.
const PIECE: u64 = 1 << 16;

/// Dead records of a range of offsets. Takes a bit for each offset, where there are any.
#[derive(Debug)]
pub(crate) struct DeadOffsets {
    range: Range<Offset>,
    pieces: Vec<Option<Box<[u64; PIECE as usize / 64]>>>,
}

impl DeadOffsets {
    /// None yet, of this range.
    pub(crate) fn none_in(range: Range<Offset>) -> DeadOffsets {
        let pieces = range.end.since(range.start).div_ceil(PIECE);
        DeadOffsets { range, pieces: (0..pieces).map(|_| None).collect() }
    }

    /// Adds an offset, if it is in the range.
    pub(crate) fn add(&mut self, offset: Offset) {
        if !self.range.contains(&offset) {
            return;
        }
        let (piece, word, bit) = self.place(offset);
        if let Some(piece) = self.pieces.get_mut(piece) {
            piece.get_or_insert_with(|| Box::new([0; PIECE as usize / 64]))[word] |= bit;
        }
    }

    /// Whether the record at `offset` is dead.
    pub(crate) fn holds(&self, offset: Offset) -> bool {
        let (piece, word, bit) = self.place(offset);
        let piece = self.pieces.get(piece).and_then(Option::as_ref);
        self.range.contains(&offset) && piece.is_some_and(|piece| piece[word] & bit != 0)
    }

    /// Whether there may be one from `from` to before `next`: never false if there is.
    pub(crate) fn may_hold_any(&self, from: Offset, next: Offset) -> bool {
        let first = (from.since(self.range.start) / PIECE) as usize;
        let last = (next.back(1).since(self.range.start) / PIECE) as usize;
        let pieces = self.pieces.iter().take(last.saturating_add(1)).skip(first);
        from < next && pieces.flatten().next().is_some()
    }

    fn place(&self, offset: Offset) -> (usize, usize, u64) {
        let number = offset.since(self.range.start);
        ((number / PIECE) as usize, (number % PIECE / 64) as usize, 1 << (number % 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_there_and_nothing_else() {
        let offset = Offset::new;
        let mut dead = DeadOffsets::none_in(offset(100)..offset(300_000));
        let added = [100, 101, 163, 164, 65_635, 65_636, 299_999];
        added.into_iter().chain([0, 99, 300_000, 400_000]).for_each(|n| dead.add(offset(n)));
        let found: Vec<u64> = (0..500_000).filter(|&n| dead.holds(offset(n))).collect();
        assert_eq!(found, added);
        assert!(dead.may_hold_any(offset(100), offset(101)));
        assert!(!dead.may_hold_any(offset(140_000), offset(150_000)));
        assert!(dead.may_hold_any(offset(140_000), offset(300_000)));
        assert!(!dead.may_hold_any(offset(100), offset(100)));
    }
}
