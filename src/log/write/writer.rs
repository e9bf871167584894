//! A writer that holds the append lock, the end of the log known and whole: it
//! appends, raises the durable mark, and begins new segments.

use std::io::ErrorKind;

use super::prepare::{WriterState, create_segment, sealed_bytes};
use super::recover;
use crate::disk::{Access, DiskFile};
use crate::format::body::Body;
use crate::format::index_entry::IndexEntry;
use crate::format::state::{EndState, Mark};
use crate::log::Log;
use crate::log::error::{Error, OutOfRange, Result};
use crate::log::find::{index_upkeep, table_file};
use crate::model::{Offset, Position, SegmentFacts, SegmentState, Timestamp};
use crate::policy::rolling::{ActiveSegment, Limits, is_old, must_roll};
use crate::segment::{NewBatch, SegmentWriter};

/// What an append did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The offset of the first record.
    pub base: Offset,
    /// The offset after the last one: the log end.
    pub next: Offset,
}

/// A writer that holds the lock.
pub(crate) struct Writer<'a> {
    pub(crate) log: &'a Log,
    pub(crate) state: &'a mut WriterState,
}

impl Writer<'_> {
    /// The log end.
    pub(crate) fn end(&self) -> Offset {
        self.state.end.state().written.offset
    }

    /// Refuses to go on if somebody else appended.
    pub(crate) fn expect_end(&self, expected: Option<Offset>) -> Result<()> {
        let end = self.end();
        match expected {
            Some(expected) if expected != end => Err(OutOfRange::EndMoved { expected, end }.into()),
            _ => Ok(()),
        }
    }

    /// Appends `bodies` as one batch each, in a row.
    pub(crate) fn append(&mut self, bodies: &[Body<'_>], now: Timestamp) -> Result<Appended> {
        let now = now.max(self.state.end.state().time);
        self.check_room(bodies.iter().map(SegmentWriter::batch_len).sum())?;
        let base = self.state.end.state().written.offset;
        let mut rest = bodies;
        while !rest.is_empty() {
            let (here, later) = rest.split_at(self.count_fitting(rest, now));
            match here.is_empty() {
                true => self.roll()?,
                false => self.append_here(here, now)?,
            }
            rest = later;
        }
        Ok(Appended { base, next: self.state.end.state().written.offset })
    }

    /// How many of `bodies` the active segment takes before it is to be rolled.
    fn count_fitting(&self, bodies: &[Body<'_>], now: Timestamp) -> usize {
        let mut active = self.active();
        let fits = |body: &&Body<'_>| {
            let bytes = SegmentWriter::batch_len(body);
            let fits = !must_roll(&active, bytes, now, &self.limits());
            active.bytes += bytes;
            fits
        };
        bodies.iter().take_while(fits).count()
    }

    /// Appends `bodies` to the active segment.
    fn append_here(&mut self, bodies: &[Body<'_>], now: Timestamp) -> Result<()> {
        let end = self.state.end.state();
        let (mut next, synced) = (end.written.offset, end.durable.offset);
        let mut batches = Vec::with_capacity(bodies.len());
        for body in bodies {
            let base = next;
            next = base.forward(u64::from(body.records)).ok_or(Error::Failed)?;
            batches.push(NewBatch { base, next, synced, time: now, body: *body });
        }
        let path = self.log.home.segment_path(self.state.segment.segment());
        let mut begin = self.state.segment.position();
        self.state.segment.append_all(&batches).map_err(Error::io("write", path))?;
        let mut last = begin;
        let mut entries = Vec::with_capacity(batches.len());
        for batch in &batches {
            entries.push(IndexEntry { offset: batch.base, position: begin, time: now });
            (last, begin) = (begin, begin + SegmentWriter::batch_len(&batch.body));
        }
        self.write_end(last, next, now)?;
        self.state.first_time.get_or_insert(now);
        self.add_to_index(&entries);
        Ok(())
    }

    pub(crate) fn is_old(&self, now: Timestamp) -> bool {
        is_old(&self.active(), now, &self.limits())
    }

    fn limits(&self) -> Limits {
        let settings = &self.log.settings;
        Limits { bytes: settings.segment_size(), age: settings.segment_age() }
    }

    fn active(&self) -> ActiveSegment {
        let bytes = self.state.segment.position().get();
        ActiveSegment { bytes, first_time: self.state.first_time }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.state.segment.position() == Position::ZERO
    }

    /// Refuses what would make the log larger than it may be.
    fn check_room(&mut self, incoming: u64) -> Result<()> {
        let Some(limit) = self.log.settings.max_log_size else { return Ok(()) };
        let fits = |state: &WriterState| {
            let bytes = state.sealed_bytes.saturating_add(state.segment.position().get());
            bytes.saturating_add(incoming) <= limit
        };
        if !fits(self.state) {
            // gc may have made room.
            self.state.sealed_bytes = sealed_bytes(self.log)?;
        }
        if fits(self.state) { Ok(()) } else { Err(Error::Full { limit }) }
    }

    fn write_end(&mut self, last_batch: Position, next: Offset, time: Timestamp) -> Result<()> {
        let written = Mark {
            segment: self.state.segment.segment(),
            position: self.state.segment.position(),
            offset: next,
        };
        let old = self.state.end.state();
        let new = EndState { written, last_batch, time, ..old.clone() };
        self.state.end.store(new)
    }

    /// A failure here costs a later look-up time; the next writer fills it in.
    fn add_to_index(&mut self, entries: &[IndexEntry]) {
        if let Some(index) = &mut self.state.index
            && index.push_wanted(entries).is_err()
        {
            self.state.index = None;
        }
    }

    pub(crate) fn raise_durable(&mut self, captured: Mark) -> Result<Offset> {
        let old = self.state.end.state();
        if old.durable.offset < captured.offset {
            let new = EndState { durable: captured, ..old.clone() };
            self.state.end.store(new)?;
        }
        Ok(captured.offset)
    }

    /// Seals the active segment and begins the next one.
    pub(crate) fn roll(&mut self) -> Result<()> {
        let sealed = self.sealed_facts();
        let path = self.log.home.segment_path(sealed.base);
        if let Err(error) = self.state.segment.file().sync_data() {
            self.state.sync_failed = true;
            recover::mark_suspect(&mut self.state.end);
            return Err(Error::io("sync", path)(error));
        }
        let written = self.state.end.state().written;
        self.raise_durable(written)?;
        // Should this process be killed before it adds the segment, nobody trusts the table.
        let complete =
            table_file::current(self.log)?.is_some() && table_file::invalidate(self.log).is_ok();
        let file = begin_segment(self.log, sealed.next)?;
        let index = index_upkeep::for_writer(self.log, sealed.next, Position::ZERO);
        let beginning = Mark::beginning_of(sealed.next);
        let old = self.state.end.state();
        let new = EndState {
            written: beginning,
            last_batch: beginning.position,
            durable: beginning,
            ..old.clone()
        };
        self.state.end.store(new.clone())?;
        self.state.end.sync()?;
        // Now the older line goes too: whatever another process writes over one of
        // them, the other is durable and speaks of this segment.
        self.state.end.store(new)?;
        // The table is derived: without it a reader lists the directory.
        let _ = if complete {
            table_file::add(self.log, &sealed)
        } else {
            table_file::refresh(self.log)
        };
        self.state.segment = SegmentWriter::new(file, self.log.id, sealed.next, beginning.position);
        self.state.index = index;
        self.state.first_time = None;
        self.state.sealed_bytes += sealed.bytes;
        Ok(())
    }

    fn sealed_facts(&self) -> SegmentFacts {
        let end = self.state.end.state();
        let base = self.state.segment.segment();
        SegmentFacts {
            base,
            next: end.written.offset,
            // Only a segment that was replaced after it was sealed has gaps.
            records: end.written.offset.since(base),
            bytes: self.state.segment.position().get(),
            first_time: self.state.first_time,
            last_time: Some(end.time),
            state: SegmentState::Sealed,
        }
    }
}

/// The next segment, its name durable. One that is there already and empty was left by
/// a writer that was killed before it could say so in `end`.
fn begin_segment(log: &Log, base: Offset) -> Result<Box<dyn DiskFile>> {
    let created = create_segment(log, base);
    let Err(Error::Io { source, .. }) = &created else { return created };
    if source.kind() != ErrorKind::AlreadyExists {
        return created;
    }
    let file = log.home.open_segment(base, Access::ReadWrite)?;
    let bytes = file.size().map_err(Error::io("look at", log.home.segment_path(base)))?;
    if bytes > 0 {
        return created;
    }
    log.home.sync_dir(log.home.dir())?;
    Ok(file)
}
