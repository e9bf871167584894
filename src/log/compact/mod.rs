//! Compaction: sealed segments keep the newest record of each key and every record without
//! one. Offsets stay as they were, so that gaps are left; nothing else changes.
//!
//! ```text
//! groups settled ── end settled ── keys read anew ── dead records found ── per segment, oldest first:
//!     keys/ locked ── written anew there ── synced and read back
//!         ── append lock: row forgotten ── put in place ── index and table made anew
//! ```
//!
//! Each step is one that a crash leaves done or undone, and the next run goes on from
//! there. Oldest first, so that no tombstone goes before what it deletes. Appends and reads
//! go on: whoever has the old file open reads that to its end, which is the same offset.

#[cfg(test)]
mod tests;
mod thin_batch;
mod thin_segment;

use super::Log;
use super::error::{Error, Result};
use crate::disk::{DiskFile, LockMode};
use crate::format::file_name;
use crate::log::Appender;
use crate::log::files::lock::AppendLock;
use crate::log::find::{index_upkeep, table_file};
use crate::log::groups::status::GroupsLock;
use crate::log::keys::DeadOffsets;
use crate::log::keys::directory::KeysLock;
use crate::log::replacement::{Replacement, Whole};
use crate::model::{Offset, SegmentFacts, Timestamp};
use crate::policy::compaction::{Obstacle, Scope, obstacle};
use crate::policy::retention::GroupPosition;
use crate::segment::SegmentWriter;
use thin_segment::ThinSegment;

/// So many offsets are looked at in one pass: a bit for each is 32 MiB.
const PASS: u64 = 1 << 28;

/// How a log is to be compacted.
#[derive(Clone, Copy, Debug)]
pub struct CompactionTerms {
    /// Who is asked.
    pub scope: Scope,
    /// Tombstones that were appended before go, if they are the newest of their key.
    pub tombstones_before: Timestamp,
}

/// What compaction does to a segment, or did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Records go.
    Compacted {
        /// How many.
        removed: u64,
        /// The size of the segment without them.
        bytes: u64,
    },
    /// Nothing: each of its records is the newest of its key, or has none.
    Clean,
    /// Nothing, as this keeps it from being looked at.
    Kept(Obstacle),
}

/// One segment and what compaction does to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionFate {
    /// The segment as it was before.
    pub segment: SegmentFacts,
    /// What happens.
    pub outcome: Outcome,
}

/// What a compaction will do, or did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// The fate of each segment, oldest first.
    pub fates: Vec<CompactionFate>,
    /// The groups that were asked.
    pub groups: Vec<GroupPosition>,
}

impl CompactionFate {
    /// How many records go.
    pub fn removed(&self) -> u64 {
        if let Outcome::Compacted { removed, .. } = self.outcome { removed } else { 0 }
    }

    /// How many bytes that saves; a few less than none where gaps take more.
    pub fn saved(&self) -> i64 {
        match self.outcome {
            Outcome::Compacted { bytes, .. } => {
                self.segment.bytes.cast_signed() - bytes.cast_signed()
            }
            _ => 0,
        }
    }
}

impl Log {
    /// What [`Log::compact`] would do. `watch` is told how many bytes more were gone through.
    ///
    /// # Errors
    /// As [`Log::compact`].
    pub fn plan_compaction(
        &self,
        terms: &CompactionTerms,
        watch: &mut dyn FnMut(u64),
    ) -> Result<Compaction> {
        let plan = self.candidates(terms, self.group_positions()?)?;
        let mut measure = |facts: &_, dead: &_| self.measure(facts, dead, watch);
        self.each_candidate(plan, terms, &mut measure, &|_| ())
    }

    /// Compacts the sealed segments that every group is done with, oldest first, or others
    /// by `terms`. `watch` is told how many bytes more were gone through.
    ///
    /// # Errors
    /// [`Error::Damage`] met, after which the segments behind are left as they are;
    /// [`Error::Unreadable`] for a damaged checkpoint; [`Error::Busy`] while checkpoints are
    /// being placed; what the disk says. What was compacted until then stays so.
    pub fn compact(
        &self,
        terms: &CompactionTerms,
        watch: &mut dyn FnMut(u64),
    ) -> Result<Compaction> {
        let alone = GroupsLock::take(self, LockMode::Exclusive)?;
        // No checkpoint that a power cut could take back is trusted.
        let groups = self.settle_groups()?;
        self.remove_leftovers(&alone)?;
        drop(alone);
        let plan = self.candidates(terms, groups)?;
        if plan.fates.iter().any(|fate| fate.outcome == Outcome::Clean) {
            Appender::open(self)?.settle_end()?;
            // A record goes on the word of the index alone: it has to speak of what is there,
            // and all of that has to be readable.
            self.cover_keys_anew()?;
        }
        let mut compact = |facts: &_, dead: &_| self.compact_segment(facts, dead, watch);
        // Derived: if this fails, the next run finds them dead once more, and gone.
        self.each_candidate(plan, terms, &mut compact, &|dead| drop(self.forget_dead(dead)))
    }

    /// Every segment, taken for clean where nothing keeps it from being compacted.
    fn candidates(
        &self,
        terms: &CompactionTerms,
        groups: Vec<GroupPosition>,
    ) -> Result<Compaction> {
        let (segments, damage) = self.segments()?;
        if let Some(damage) = damage {
            return Err(damage.into());
        }
        let fate = |segment: SegmentFacts| {
            let obstacle = obstacle(&segment, &groups, terms.scope);
            let outcome = obstacle.map_or(Outcome::Clean, Outcome::Kept);
            CompactionFate { segment, outcome }
        };
        Ok(Compaction { fates: segments.into_iter().map(fate).collect(), groups })
    }

    /// Does `work` to each candidate, and `finish` once all with some of the same dead records
    /// are done. One for which it comes to nothing was deleted by gc.
    fn each_candidate(
        &self,
        mut plan: Compaction,
        terms: &CompactionTerms,
        work: &mut dyn FnMut(&SegmentFacts, &DeadOffsets) -> Result<Option<Outcome>>,
        finish: &dyn Fn(&DeadOffsets),
    ) -> Result<Compaction> {
        let is_candidate = |fate: &CompactionFate| fate.outcome == Outcome::Clean;
        let count = plan.fates.iter().take_while(|fate| is_candidate(fate)).count();
        let kept = plan.fates.split_off(count);
        let mut done = Vec::with_capacity(count + kept.len());
        let mut rest = plan.fates.into_iter().map(|fate| fate.segment).peekable();
        while let Some(first) = rest.peek().map(|facts| facts.base) {
            let mut pass = Vec::from_iter(rest.next());
            while let Some(facts) = rest.next_if(|facts| facts.next.since(first) <= PASS) {
                pass.push(facts);
            }
            let next = pass.last().map_or(first, |facts| facts.next);
            let tombstones_before = self.first_at(terms.tombstones_before, &self.bounds()?)?;
            let dead = self.dead_offsets(first..next, tombstones_before)?;
            for segment in pass {
                if let Some(outcome) = work(&segment, &dead)? {
                    done.push(CompactionFate { segment, outcome });
                }
            }
            finish(&dead);
        }
        done.extend(kept);
        Ok(Compaction { fates: done, groups: plan.groups })
    }

    /// What compaction of a segment would come to.
    fn measure(
        &self,
        facts: &SegmentFacts,
        dead: &DeadOffsets,
        watch: &mut dyn FnMut(u64),
    ) -> Result<Option<Outcome>> {
        let Some(mut old) = ThinSegment::open(self, facts, dead)? else { return Ok(None) };
        let mut bytes = 0;
        let removed = old.write(watch, &mut |batch| {
            bytes += SegmentWriter::batch_len(&batch.body);
            Ok(())
        })?;
        let compacted = Outcome::Compacted { removed, bytes };
        Ok(Some(if removed > 0 { compacted } else { Outcome::Clean }))
    }

    /// Compacts a segment, if anything in it is dead. Whoever makes files in `keys/` waits
    /// meanwhile, for one segment at a time.
    fn compact_segment(
        &self,
        facts: &SegmentFacts,
        dead: &DeadOffsets,
        watch: &mut dyn FnMut(u64),
    ) -> Result<Option<Outcome>> {
        let _alone = KeysLock::take(self)?;
        loop {
            let Some(mut old) = ThinSegment::open(self, facts, dead)? else { return Ok(None) };
            if !dead.may_contain_any(facts.base, facts.next) || !old.has_dead()? {
                watch(facts.bytes);
                return Ok(Some(Outcome::Clean));
            }
            let dir = self.home.keys_dir();
            let mut new = Replacement::begin(self, facts.base, &dir, Some(old.file()))?;
            let removed = old.write(watch, &mut |batch| new.append(batch))?;
            let new = new.finish()?;
            let bytes = new.bytes();
            if self.replace(facts.base, old.file(), new)? {
                return Ok(Some(Outcome::Compacted { removed, bytes }));
            }
            // gc deleted it meanwhile, or repair mended it.
        }
    }

    /// Puts `new` in the place of the segment's old file; says whether that was still there.
    fn replace(&self, base: Offset, old: &dyn DiskFile, new: Whole<'_>) -> Result<bool> {
        let lock = AppendLock::of(&self.home)?;
        let _held = lock.acquire(&self.home)?;
        let path = self.home.segment_path(base);
        if self.start()? > base || !old.is_at(&path).map_err(Error::io("look at", &path))? {
            return Ok(false);
        }
        table_file::forget_row(self, base)?;
        new.put_in_place()?;
        // Derived: if this fails, it costs the next reader time only.
        if self.home.exists(&self.home.path(file_name::index(base)))? {
            let _ = index_upkeep::make_anew(self, base);
        }
        let _ = table_file::refresh(self);
        Ok(true)
    }
}
