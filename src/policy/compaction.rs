//! What `gc --compact` may rewrite, and which records it takes out: those that a newer
//! record of the same key replaces, and tombstones that are old enough.

use super::retention::{GroupPosition, needed_by};
use crate::model::{Offset, SegmentFacts, SegmentState};

/// Who is asked before a segment is compacted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Nobody is: segments that groups have not read yet are compacted too.
    pub even_unread: bool,
    /// Where there is no group, nobody needs to be.
    pub even_without_groups: bool,
}

/// What keeps a segment from being compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Some group still needs it: [`needed_by`] names them.
    Held,
    /// Records are appended to it.
    Active,
    /// Nobody said what has been read: there is no group.
    NoGroup,
}

/// What keeps `segment` from being compacted, if anything does. The segments where nothing
/// does are the first ones of a log, without a hole: an old tombstone may only go where all
/// older records of its key go too.
pub fn obstacle(
    segment: &SegmentFacts,
    groups: &[GroupPosition],
    scope: Scope,
) -> Option<Obstacle> {
    if segment.state == SegmentState::Active {
        Some(Obstacle::Active)
    } else if scope.even_unread {
        None
    } else if groups.is_empty() {
        (!scope.even_without_groups).then_some(Obstacle::NoGroup)
    } else {
        needed_by(segment, groups).next().map(|_| Obstacle::Held)
    }
}

/// Whether a key's newest record goes too: if it is a tombstone that was appended before
/// `tombstones_before`. Of the older ones, all go.
pub fn newest_is_dead(offset: Offset, is_tombstone: bool, tombstones_before: Offset) -> bool {
    is_tombstone && offset < tombstones_before
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(base: u64, next: u64, state: SegmentState) -> SegmentFacts {
        SegmentFacts {
            base: Offset::new(base),
            next: Offset::new(next),
            records: next - base,
            bytes: 1000,
            first_time: None,
            last_time: None,
            state,
        }
    }

    fn group(next: u64) -> Vec<GroupPosition> {
        vec![GroupPosition { group: "a".parse().unwrap(), next: Offset::new(next) }]
    }

    #[test]
    fn only_what_every_group_has_passed_is_compacted_unless_told_otherwise() {
        let sealed = segment(100, 200, SegmentState::Sealed);
        let with = |groups: &[GroupPosition], even_unread, even_without_groups| {
            obstacle(&sealed, groups, Scope { even_unread, even_without_groups })
        };
        assert_eq!(with(&group(200), false, false), None);
        assert_eq!(with(&group(199), false, true), Some(Obstacle::Held));
        assert_eq!(with(&group(0), true, false), None);
        assert_eq!(with(&[], false, false), Some(Obstacle::NoGroup));
        assert_eq!((with(&[], false, true), with(&[], true, false)), (None, None));
    }

    #[test]
    fn the_active_segment_is_never_compacted() {
        let active = segment(100, 200, SegmentState::Active);
        let all = Scope { even_unread: true, even_without_groups: true };
        assert_eq!(obstacle(&active, &group(200), all), Some(Obstacle::Active));
    }

    #[test]
    fn of_the_newest_records_only_old_tombstones_go() {
        let before = Offset::new(10);
        assert!(newest_is_dead(Offset::new(9), true, before));
        assert!(!newest_is_dead(Offset::new(10), true, before));
        assert!(!newest_is_dead(Offset::new(9), false, before));
    }
}
