//! The facts of every segment, for listings and plans.

use super::error::{Damage, Error, Result};
use super::{BadGroup, Log};
use crate::format::batch::Place;
use crate::log::find::table::SegmentTable;
use crate::log::find::tail::{Tail, open_if_there};
use crate::model::{GroupName, Offset, Position, SegmentFacts, SegmentState};
use crate::policy::retention::{GroupPosition, needed_by};
use crate::segment::{header_at, survey};

/// A segment and who still needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentStatus {
    /// The segment.
    pub facts: SegmentFacts,
    /// The groups that have not read it to its end.
    pub needed_by: Vec<GroupName>,
}

/// The segments and who still needs them, as far as that can be read.
#[derive(Debug)]
pub struct SegmentListing {
    /// The segments, oldest first.
    pub segments: Vec<SegmentStatus>,
    /// The damage at the log's end.
    pub damage: Option<Damage>,
    /// The groups whose checkpoints can't be read: what they need is not known.
    pub bad_groups: Vec<BadGroup>,
}

impl Log {
    /// Every segment, oldest first, and the damage at the log's end, if there is any.
    ///
    /// # Errors
    /// What the disk says.
    pub fn segments(&self) -> Result<(Vec<SegmentFacts>, Option<Damage>)> {
        let mut table = SegmentTable::load(self)?;
        let mut facts = table.all(self, self.start()?)?;
        let damage = match self.tail() {
            Ok(tail) => {
                // Segments that were sealed since the table was loaded.
                if table.active < tail.mark.segment {
                    table = SegmentTable::load(self)?;
                    facts = table.all(self, self.start()?)?;
                }
                facts.extend(self.active_facts(&tail)?);
                table.damage
            }
            Err(Error::Damage(damage)) => {
                facts.extend(self.surveyed(table.active)?);
                Some(damage)
            }
            Err(error) => return Err(error),
        };
        Ok((facts, damage))
    }

    /// Every segment with the groups that need it.
    ///
    /// # Errors
    /// What the disk says.
    pub fn segment_listing(&self) -> Result<SegmentListing> {
        let (groups, bad_groups) = self.readable_positions()?;
        let (facts, damage) = self.segments()?;
        let segments = facts.into_iter().map(|facts| status(facts, &groups)).collect();
        Ok(SegmentListing { segments, damage, bad_groups })
    }

    fn active_facts(&self, tail: &Tail) -> Result<Option<SegmentFacts>> {
        let base = tail.mark.segment;
        let Some(file) = open_if_there(&self.home, base)? else { return Ok(None) };
        let place = Place { log: self.id, segment: base, position: Position::ZERO };
        let first = header_at(file.as_ref(), &place);
        let first = first.map_err(Error::io("read", self.home.segment_path(base)))?;
        let first_time = first.map(|header| header.append_time);
        Ok(Some(SegmentFacts {
            base,
            next: tail.mark.offset,
            records: tail.mark.offset.since(base),
            bytes: tail.mark.position.get(),
            first_time,
            last_time: first_time.map(|_| tail.time),
            state: SegmentState::Active,
        }))
    }

    /// The active segment as far as its headers are good, where its end is damaged.
    fn surveyed(&self, base: Offset) -> Result<Option<SegmentFacts>> {
        let Some(file) = open_if_there(&self.home, base)? else { return Ok(None) };
        let facts = survey(file, self.id, base);
        let facts = facts.map_err(Error::io("read", self.home.segment_path(base)))?;
        Ok(Some(SegmentFacts { state: SegmentState::Active, ..facts }))
    }
}

fn status(facts: SegmentFacts, groups: &[GroupPosition]) -> SegmentStatus {
    let needed_by = needed_by(&facts, groups).cloned().collect();
    SegmentStatus { facts, needed_by }
}
