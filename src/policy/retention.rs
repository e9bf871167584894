//! What `gc` may delete: whole sealed segments, oldest first, that every group is
//! done with. The plan says of each segment why it goes or stays.

use crate::model::{GroupName, Offset, SegmentFacts, SegmentState};

/// A group and the next offset that it will read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupPosition {
    /// The group.
    pub group: GroupName,
    /// Its checkpoint.
    pub next: Offset,
}

/// Why a segment goes or stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Every group is past it, and nothing before it stays.
    Done,
    /// Some group still needs it: [`needed_by`] names them.
    Held,
    /// Records are appended to it.
    Active,
    /// Nobody said what is done with: there is no group.
    NoGroup,
    /// An older segment stays, and no hole is made.
    AfterKept,
}

impl Reason {
    /// Whether the segment goes.
    pub fn deletes(&self) -> bool {
        *self == Reason::Done
    }
}

/// One segment and what happens to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fate {
    /// The segment.
    pub segment: SegmentFacts,
    /// What happens, and why.
    pub reason: Reason,
}

/// How many groups a sentence names.
const NAMED: usize = 8;

impl Fate {
    /// The groups that hold the segment.
    pub fn holders<'a>(
        &'a self,
        groups: &'a [GroupPosition],
    ) -> impl Iterator<Item = &'a GroupName> {
        let held = self.reason == Reason::Held;
        needed_by(&self.segment, groups).filter(move |_| held)
    }

    /// The reason in words; of very many groups it names some.
    pub fn why(&self, groups: &[GroupPosition]) -> String {
        match self.reason {
            Reason::Done => "every group is done with it".to_owned(),
            Reason::Held => format!("needed by {}", names(self.holders(groups), ", ")),
            Reason::Active => "active: --roll seals it".to_owned(),
            Reason::NoGroup => "no group has read it".to_owned(),
            Reason::AfterKept => "an older segment stays".to_owned(),
        }
    }
}

/// The names of some groups, and how many more there are.
pub fn names<'a>(groups: impl Iterator<Item = &'a GroupName>, between: &str) -> String {
    let (mut text, mut count) = (String::new(), 0);
    for group in groups {
        count += 1;
        if count <= NAMED {
            text.push_str(if count > 1 { between } else { "" });
            text.push_str(group.as_str());
        }
    }
    if count > NAMED {
        text.push_str(&format!("{between}and {} more", count - NAMED));
    }
    text
}

/// The groups that still need some record of `segment`.
pub fn needed_by<'a>(
    segment: &SegmentFacts,
    groups: &'a [GroupPosition],
) -> impl Iterator<Item = &'a GroupName> {
    let next = segment.next;
    let empty = segment.next == segment.base;
    let needs = move |group: &&GroupPosition| group.next < next && !empty;
    groups.iter().filter(needs).map(|group| &group.group)
}

/// The fate of each segment, oldest first.
pub fn plan(
    segments: impl IntoIterator<Item = SegmentFacts>,
    groups: &[GroupPosition],
) -> Vec<Fate> {
    let mut kept = false;
    let decide = |segment: SegmentFacts| {
        let reason = reason(&segment, groups, kept);
        kept |= !reason.deletes();
        Fate { segment, reason }
    };
    segments.into_iter().map(decide).collect()
}

fn reason(segment: &SegmentFacts, groups: &[GroupPosition], kept: bool) -> Reason {
    if segment.state == SegmentState::Active {
        Reason::Active
    } else if groups.is_empty() {
        Reason::NoGroup
    } else if needed_by(segment, groups).next().is_some() {
        Reason::Held
    } else if kept {
        Reason::AfterKept
    } else {
        Reason::Done
    }
}

/// The bytes of sealed segments that `group` alone keeps from being deleted: only the
/// group that is furthest behind keeps any, up to where the next one stands.
pub fn held_bytes(segments: &[SegmentFacts], groups: &[GroupPosition], group: &GroupName) -> u64 {
    let is_it = |position: &&GroupPosition| position.group == *group;
    let Some(own) = groups.iter().find(is_it).map(|position| position.next) else { return 0 };
    let others = groups.iter().filter(|position| !is_it(position));
    let nearest = others.map(|position| position.next).min().unwrap_or(Offset::MAX);
    if nearest <= own {
        return 0;
    }
    let alone = |segment: &&SegmentFacts| {
        segment.state == SegmentState::Sealed && own < segment.next && segment.next <= nearest
    };
    segments.iter().filter(alone).map(|segment| segment.bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments() -> Vec<SegmentFacts> {
        let bounds = [(0, 100), (100, 200), (200, 300), (300, 350)];
        let segment = |&(base, next): &(u64, u64)| SegmentFacts {
            base: Offset::new(base),
            next: Offset::new(next),
            records: next - base,
            bytes: 1000,
            first_time: None,
            last_time: None,
            state: if base == 300 { SegmentState::Active } else { SegmentState::Sealed },
        };
        bounds.iter().map(segment).collect()
    }

    fn groups(positions: &[(&str, u64)]) -> Vec<GroupPosition> {
        let group = |&(name, next): &(&str, u64)| GroupPosition {
            group: name.parse().unwrap(),
            next: Offset::new(next),
        };
        positions.iter().map(group).collect()
    }

    fn deleted(positions: &[(&str, u64)]) -> usize {
        plan(segments(), &groups(positions)).iter().filter(|fate| fate.reason.deletes()).count()
    }

    #[test]
    fn only_what_every_group_has_passed_goes() {
        assert_eq!(deleted(&[("a", 350), ("b", 150)]), 1);
        assert_eq!(deleted(&[("a", 350), ("b", 99)]), 0);
        assert_eq!(deleted(&[("a", 200)]), 2);
        assert_eq!(deleted(&[("a", 350)]), 3);
    }

    #[test]
    fn without_groups_nothing_goes() {
        assert_eq!(deleted(&[]), 0);
    }

    #[test]
    fn the_plan_names_who_holds_a_segment() {
        let groups = groups(&[("a", 350), ("b", 150), ("c", 250)]);
        let plan = plan(segments(), &groups);
        let reasons: Vec<String> = plan.iter().map(|fate| fate.why(&groups)).collect();
        let expected = [
            "every group is done with it",
            "needed by b",
            "needed by b, c",
            "active: --roll seals it",
        ];
        assert_eq!(reasons, expected);
    }

    #[test]
    fn held_bytes_are_those_that_one_group_alone_keeps() {
        let groups = groups(&[("a", 350), ("b", 150), ("c", 250)]);
        let held = |name: &str| held_bytes(&segments(), &groups, &name.parse().unwrap());
        assert_eq!((held("a"), held("b"), held("c")), (0, 1000, 0));
    }
}
