//! The facts of every segment, for listings and plans.

use super::error::{Damage, Error, Result};
use super::{BadGroup, Log};
use crate::format::batch::Place;
use crate::log::find::table::SegmentTable;
use crate::log::find::tail::{Tail, open_if_there};
use crate::model::{Offset, Position, SegmentFacts, SegmentState};
use crate::policy::retention::GroupPosition;
use crate::segment::{header_at, survey};

/// How often segments are listed again while new ones are made.
const TRIES: usize = 20;

/// The segments and who still needs them, as far as that can be read.
#[derive(Debug)]
pub struct SegmentListing {
    /// The segments, oldest first.
    pub segments: Vec<SegmentFacts>,
    /// The groups: [`needed_by`](crate::policy::retention::needed_by) says who needs which.
    pub groups: Vec<GroupPosition>,
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
        for _ in 0..TRIES {
            let tail = match self.tail() {
                Err(Error::Damage(damage)) => return self.segments_up_to(damage),
                tail => tail?,
            };
            let mut table = SegmentTable::load(self)?;
            let mut facts = table.all(self, self.start()?)?;
            let end = tail.mark.segment;
            // Segments that were sealed since the end was looked at.
            facts.retain(|facts| facts.base < end);
            if facts.last().map_or(table.active, |last| last.next) == end {
                facts.extend(self.active_facts(&tail)?);
                return Ok((facts, table.damage));
            }
        }
        // Rolling faster than it can be listed: what the directory holds is true enough.
        let mut table = SegmentTable::load(self)?;
        Ok((table.all(self, self.start()?)?, table.damage))
    }

    /// The segments of a log whose end is damaged, as far as headers are good.
    fn segments_up_to(&self, damage: Damage) -> Result<(Vec<SegmentFacts>, Option<Damage>)> {
        let mut table = SegmentTable::load(self)?;
        let mut facts = table.all(self, self.start()?)?;
        facts.extend(self.surveyed(table.active)?);
        Ok((facts, Some(damage)))
    }

    /// Every segment with the groups that need it.
    ///
    /// # Errors
    /// What the disk says.
    pub fn segment_listing(&self) -> Result<SegmentListing> {
        let (groups, bad_groups) = self.readable_positions()?;
        let (segments, damage) = self.segments()?;
        Ok(SegmentListing { segments, groups, damage, bad_groups })
    }

    fn active_facts(&self, tail: &Tail) -> Result<Option<SegmentFacts>> {
        let base = tail.mark.segment;
        let Some(file) = open_if_there(&self.home, base)? else { return Ok(None) };
        let place = Place { log: self.id, segment: base, position: Position::ZERO };
        let first = header_at(file.as_ref(), &place);
        let first = first.map_err(Error::io("read", self.home.segment_path(base)))?;
        // In an empty segment a torn tail may stand there.
        let is_empty = tail.mark.position == Position::ZERO;
        let first_time = first.filter(|_| !is_empty).map(|header| header.append_time);
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
