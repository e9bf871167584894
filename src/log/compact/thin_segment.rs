//! One segment without its dead records: batch after batch, those that lost none as they
//! are, runs of those that lost all as one gap.

use super::thin_batch::{Left, ThinBatch, Thinner};
use crate::disk::DiskFile;
use crate::format::batch::{GapReason, Header};
use crate::log::Log;
use crate::log::error::{Damage, Error, Result};
use crate::log::find::tail::open_if_there;
use crate::log::keys::DeadOffsets;
use crate::model::{Offset, Position, SegmentFacts, Timestamp};
use crate::segment::{Bad, NewBatch, SegmentReader, Step};

/// Where the batches go that are left.
pub(super) type Put<'a> = &'a mut dyn FnMut(&NewBatch<'_>) -> Result<()>;

/// A sealed segment, to be gone through.
#[derive(Debug)]
pub(super) struct ThinSegment<'a> {
    log: &'a Log,
    /// Where it has to end.
    next: Offset,
    reader: SegmentReader,
    dead: &'a DeadOffsets,
    thinner: Thinner,
}

/// Offsets in a row that have no record left, not written yet.
struct Gap {
    base: Offset,
    next: Offset,
    time: Timestamp,
}

impl<'a> ThinSegment<'a> {
    /// The segment of `facts` without those of `dead`; `None` if gc removed it.
    pub(super) fn open(
        log: &'a Log,
        facts: &SegmentFacts,
        dead: &'a DeadOffsets,
    ) -> Result<Option<ThinSegment<'a>>> {
        let base = facts.base;
        if log.start()? > base {
            return Ok(None);
        }
        let Some(file) = open_if_there(&log.home, base)? else { return Ok(None) };
        let reader = SegmentReader::new(file, log.id, base, Position::ZERO, base);
        let thinner = Thinner::default();
        Ok(Some(ThinSegment { log, next: facts.next, reader, dead, thinner }))
    }

    /// The file that is gone through.
    pub(super) fn file(&self) -> &dyn DiskFile {
        self.reader.file()
    }

    /// Whether it holds a dead record. Reads no further than to the first one, and leaves
    /// the segment to be gone through from the beginning.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub(super) fn has_dead(&mut self) -> Result<bool> {
        let base = self.reader.segment();
        let mut found = false;
        while !found && let Some((header, left, _)) = self.step()? {
            // A gap has lost its records already.
            found = !matches!(left, Left::Whole) && header.records > 0;
        }
        self.reader.go_to(Position::ZERO, base);
        Ok(found)
    }

    /// Hands on what is left of it; says how many records are not.
    ///
    /// # Errors
    /// [`Error::Damage`] where it can't be read; what `put` and the disk say.
    pub(super) fn write(&mut self, watch: &mut dyn FnMut(u64), put: Put<'_>) -> Result<u64> {
        let mut removed = 0;
        let mut gap: Option<Gap> = None;
        while let Some((header, left, stored)) = self.step()? {
            watch(header.batch_len());
            let kept = match left {
                Left::Nothing => {
                    // A gap has the time of the first batch that is missing: whoever is in the
                    // midst of it must find none before its place that is later than was there.
                    let Header { base, append_time: time, .. } = header;
                    gap.get_or_insert(Gap { base, next: base, time }).next = header.next;
                    0
                }
                Left::Whole => {
                    close(&mut gap, put)?;
                    put(&NewBatch::as_it_is(&header, stored))?;
                    header.records
                }
                Left::Some(batches) => {
                    close(&mut gap, put)?;
                    batches.iter().try_for_each(|batch| put(&batch.as_new(&header)))?;
                    batches.iter().map(ThinBatch::records).sum()
                }
            };
            removed += u64::from(header.records - kept);
        }
        close(&mut gap, put)?;
        Ok(removed)
    }

    /// The next batch, what is left of it, and its body as stored.
    fn step(&mut self) -> Result<Option<(Header, Left<'_>, &[u8])>> {
        let path = self.log.home.segment_path(self.reader.segment());
        let offset = self.reader.next_offset();
        match self.reader.step().map_err(Error::io("read", &path))? {
            Step::Batch(_) => {}
            Step::Bad(bad) => return Err(Error::bad(path, &bad)),
            Step::End if offset == self.next => return Ok(None),
            Step::End => {
                let what =
                    format!("it reaches to offset {offset}, but has to end at {}", self.next);
                let position = self.reader.position();
                return Err(Damage { path, position, offset, what }.into());
            }
        }
        let Some(batch) = self.reader.last_batch() else { return Ok(None) };
        match self.thinner.thin(&batch.header, batch.body, self.dead) {
            Ok(left) => Ok(Some((batch.header, left, batch.body))),
            Err(reason) => {
                let bad = Bad { offset, position: batch.position, reason: reason.into() };
                Err(Error::bad(path, &bad))
            }
        }
    }
}

/// Writes the gap, if there is one.
fn close(gap: &mut Option<Gap>, put: Put<'_>) -> Result<()> {
    let Some(Gap { mut base, next, time }) = gap.take() else { return Ok(()) };
    while base < next {
        let batch = NewBatch::gap(base, next, GapReason::Compacted, time);
        put(&batch)?;
        base = batch.next;
    }
    Ok(())
}
