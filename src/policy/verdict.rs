//! Torn or damaged: the one rule that tells an unfinished end from a loss.
//!
//! Bad bytes where offset N is expected are **damage** if N is below the durable
//! mark, or below the `synced` of any later good batch, or if a later segment
//! exists: those bytes had been made safe. Otherwise everything from there on,
//! good batches included, is **torn tail**: what a crash leaves, never promised to anyone.

use crate::model::Offset;

/// What is known around bad bytes, or around an end that comes too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// The offset that was expected there.
    pub expected: Offset,
    /// The durable mark in `end`.
    pub durable: Offset,
    /// The highest `synced` of any good header behind that place.
    pub synced_later: Option<Offset>,
    /// Whether a segment with a higher base offset exists.
    pub later_segment: bool,
}

/// What bad bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// An unfinished or unsynced end.
    Torn,
    /// A loss of what was safe.
    Damaged,
}

/// Applies the rule.
pub fn judge(around: &Surroundings) -> Verdict {
    let was_synced = around.expected < around.durable
        || around.synced_later.is_some_and(|synced| around.expected < synced);
    if was_synced || around.later_segment { Verdict::Damaged } else { Verdict::Torn }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(durable: u64, synced_later: Option<u64>, later_segment: bool) -> Verdict {
        judge(&Surroundings {
            expected: Offset::new(10),
            durable: Offset::new(durable),
            synced_later: synced_later.map(Offset::new),
            later_segment,
        })
    }

    #[test]
    fn unsynced_bytes_at_the_end_are_torn() {
        assert_eq!(around(10, None, false), Verdict::Torn);
        assert_eq!(around(0, Some(10), false), Verdict::Torn);
    }

    #[test]
    fn what_was_once_safe_is_damage() {
        assert_eq!(around(11, None, false), Verdict::Damaged);
        assert_eq!(around(0, Some(11), false), Verdict::Damaged);
        assert_eq!(around(10, None, true), Verdict::Damaged);
    }
}
