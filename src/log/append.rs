//! Appending. A writer takes the append lock for each batch, reads `end` to see
//! whether somebody else wrote meanwhile, writes the batch behind the last one
//! and says so in `end`. Syncing goes on without the lock; the durable mark is
//! raised afterwards, under it.
//!
//! ```text
//! lock ── end ── roll? ── write batch ── write end ── unlock      append
//! capture end ── fdatasync ── lock ── raise durable in end ── unlock   sync
//! ```

use super::error::{Error, Result};
use super::lock::AppendLock;
use super::slot_file::SlotFile;
use super::table::{self, SegmentTable};
use super::tail::{self, Tail};
use super::{Log, index_upkeep, recover};
use crate::disk::Access;
use crate::format::batch::{MAX_BATCH, MAX_SINGLE, Place};
use crate::format::body::Body;
use crate::format::file_name;
use crate::format::index_entry::IndexEntry;
use crate::format::state::{EndState, Mark};
use crate::model::{Offset, Position, SegmentFacts, SegmentState, Timestamp};
use crate::policy::rolling::{ActiveSegment, Limits, is_old, must_roll};
use crate::segment::{Index, NewBatch, SegmentWriter, header_at};

/// What an append did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The offset of the first record.
    pub base: Offset,
    /// The offset after the last one: the log end.
    pub next: Offset,
}

/// A writer of one log. Any number may be at work, in any number of processes.
#[derive(Debug)]
pub struct Appender {
    log: Log,
    lock: AppendLock,
    state: Option<WriterState>,
    /// An append failed: nothing more is appended.
    failed: bool,
    /// A sync failed: nothing more is said to be durable.
    sync_failed: bool,
}

/// What a writer knows while nobody else has written.
#[derive(Debug)]
struct WriterState {
    end: SlotFile<EndState>,
    segment: SegmentWriter,
    first_time: Option<Timestamp>,
    index: Option<Index>,
    /// The size of all sealed segments, where a limit makes it matter.
    sealed_bytes: u64,
}

impl Appender {
    /// A writer of `log`. Mends a torn tail.
    ///
    /// # Errors
    /// [`Error::Damage`] where the log's end, or the names of its segments, are
    /// damaged; what the disk says.
    pub fn open(log: &Log) -> Result<Appender> {
        let lock = AppendLock::of(&log.home)?;
        let mut appender =
            Appender { log: log.clone(), lock, state: None, failed: false, sync_failed: false };
        appender.locked(|_| Ok(()))?;
        Ok(appender)
    }

    /// Appends the records of `body` as one batch at `now`. They are safe only
    /// after a [`sync`](Self::sync).
    ///
    /// # Errors
    /// [`Error::Full`]; [`Error::Damage`] met; what the disk says, after which this
    /// writer stores nothing more.
    pub fn append(&mut self, body: &Body<'_>, now: Timestamp) -> Result<Appended> {
        if self.failed || self.sync_failed {
            return Err(Error::Failed);
        }
        let appended = self.locked(|writer| writer.append(body, now));
        self.failed = matches!(&appended, Err(error) if !error.leaves_the_log_as_it_was());
        appended
    }

    /// Makes everything appended before this call durable and says up to where the
    /// log is. On an error nothing is known of what was not yet durable.
    ///
    /// # Errors
    /// What the disk says; this writer stores nothing more then.
    pub fn sync(&mut self) -> Result<Offset> {
        let Some(state) = self.state.as_ref().filter(|_| !self.sync_failed) else {
            return Err(Error::Failed);
        };
        let captured = state.end.state().written;
        if state.end.state().durable.offset >= captured.offset {
            return Ok(captured.offset);
        }
        let synced = state.segment.file().sync_data();
        let path = self.log.home.segment_path(captured.segment);
        let failed = synced.map_err(Error::io("sync", path)).err();
        self.sync_failed = failed.is_some();
        self.locked(|writer| match failed {
            None => writer.raise_durable(captured),
            Some(error) => {
                writer.mark_suspect();
                Err(error)
            }
        })
    }

    /// Seals the active segment, if it holds a record, and begins a new one.
    ///
    /// # Errors
    /// What the disk says.
    pub fn seal(&mut self) -> Result<()> {
        self.locked(|writer| if writer.is_empty() { Ok(()) } else { writer.roll() })
    }

    /// Seals the active segment if it is past its age.
    ///
    /// # Errors
    /// What the disk says.
    pub fn seal_if_old(&mut self, now: Timestamp) -> Result<()> {
        self.locked(|writer| {
            if is_old(&writer.active(), now, &writer.limits()) { writer.roll() } else { Ok(()) }
        })
    }

    /// How many bytes of records one batch should hold at most, so that segments
    /// keep their size.
    pub fn batch_room(&self) -> usize {
        const PIECE: u64 = 128 << 10;
        let header = crate::format::batch::HEADER_LEN as u64;
        self.log.settings.segment_size().saturating_sub(header).min(PIECE) as usize
    }

    /// Does `work` under the append lock, the end of the log known and whole.
    fn locked<T>(&mut self, work: impl FnOnce(&mut Writer<'_>) -> Result<T>) -> Result<T> {
        let _held = self.lock.acquire(&self.log.home)?;
        let current = match &self.state {
            Some(state) => !state.end.has_changed()? && is_in_place(&self.log, state)?,
            None => false,
        };
        if !current {
            self.state = None;
            self.state = Some(WriterState::prepare(&self.log)?);
        }
        let Some(state) = self.state.as_mut() else { return Err(Error::Failed) };
        work(&mut Writer { log: &self.log, state })
    }
}

/// Whether the segment that is open is still the one in the log's directory.
fn is_in_place(log: &Log, state: &WriterState) -> Result<bool> {
    let path = log.home.segment_path(state.segment.segment());
    state.segment.file().is_at(&path).map_err(Error::io("look at", path))
}

impl WriterState {
    /// Finds the end of the log, mends it, and opens what an append needs.
    fn prepare(log: &Log) -> Result<WriterState> {
        let table = SegmentTable::load_locked(log)?;
        if let Some(damage) = table.damage {
            return Err(damage.into());
        }
        let mut end = open_end(log)?;
        let boot = log.home.disk().boot_id().unwrap_or_default();
        let tail = tail::find(log, end.as_ref().map(SlotFile::state), &boot)?;
        let base = tail.mark.segment;
        let segment = open_or_create_segment(log, &tail.mark)?;
        if tail.torn > 0 {
            recover::cut_torn_tail(&log.home, segment.as_ref(), &tail)?;
        }
        let suspect = end.as_ref().is_some_and(|end| end.state().suspect);
        if suspect {
            let from = tail.durable;
            let file = log.home.open_segment(from.segment, Access::ReadWrite)?;
            recover::rewrite_from(&log.home, log.id, file, &from)?;
        }
        let end = match end.take() {
            Some(end) if tail.as_written && !suspect => end,
            old => settle(log, old, segment.as_ref(), &tail, boot)?,
        };
        let place = Place { log: log.id, segment: base, position: Position::ZERO };
        let first = header_at(segment.as_ref(), &place)
            .map_err(Error::io("read", log.home.segment_path(base)))?;
        let sealed_bytes = match log.settings.max_log_size {
            Some(_) => sealed_bytes(log)?,
            None => 0,
        };
        let index = index_upkeep::for_writer(log, base, tail.mark.position);
        if !table::is_current(log)? {
            // Some file was made just now. The table is derived: failing here costs time only.
            let _ = table::refresh(log);
        }
        Ok(WriterState {
            end,
            index,
            segment: SegmentWriter::new(segment, log.id, base, tail.mark.position),
            first_time: first.map(|header| header.append_time),
            sealed_bytes,
        })
    }
}

fn sealed_bytes(log: &Log) -> Result<u64> {
    let rows = SegmentTable::load_locked(log)?.all(log, log.start()?)?;
    Ok(rows.iter().map(|facts| facts.bytes).sum())
}

/// `end` for writing, made anew if there is none or no line of it is good.
fn open_end(log: &Log) -> Result<Option<SlotFile<EndState>>> {
    let opened = log.open_end(Access::ReadWrite)?;
    if opened.is_none() {
        let path = log.home.path(file_name::END);
        log.home.tell(&super::Note::Rebuilt(path.clone()));
        if log.home.exists(&path)? {
            log.home.disk().remove_file(&path).map_err(Error::io("remove", &path))?;
        }
    }
    Ok(opened)
}

/// After a walk: syncs what was found and writes it down as the end.
fn settle(
    log: &Log,
    end: Option<SlotFile<EndState>>,
    segment: &dyn crate::disk::DiskFile,
    tail: &Tail,
    boot: String,
) -> Result<SlotFile<EndState>> {
    let path = log.home.segment_path(tail.mark.segment);
    segment.sync_data().map_err(Error::io("sync", path))?;
    if tail.durable.segment != tail.mark.segment {
        let old = log.home.open_segment(tail.durable.segment, Access::ReadWrite)?;
        let path = log.home.segment_path(tail.durable.segment);
        old.sync_data().map_err(Error::io("sync", path))?;
    }
    log.home.sync_dir(log.home.dir())?;
    let state = EndState {
        log: log.id,
        boot,
        written: tail.mark,
        last_batch: tail.last_batch,
        durable: tail.mark,
        time: tail.time,
        suspect: false,
    };
    let path = log.home.path(file_name::END);
    match end {
        Some(mut end) => {
            end.store(state)?;
            Ok(end)
        }
        None => {
            SlotFile::create(&log.home, &path, &state)?;
            SlotFile::open(&log.home, &path, Access::ReadWrite)
        }
    }
}

/// The active segment, its name durable: a process may have been killed between
/// making a name and syncing it, of `log.json` too.
fn open_or_create_segment(log: &Log, end: &Mark) -> Result<Box<dyn crate::disk::DiskFile>> {
    if end.position == Position::ZERO {
        log.home.sync_dir(log.home.dir())?;
    }
    match log.home.open_segment(end.segment, Access::ReadWrite) {
        Err(error) if error.is_not_found() => create_segment(log, end.segment),
        opened => opened,
    }
}

/// A new, empty segment whose name is durable.
fn create_segment(log: &Log, base: Offset) -> Result<Box<dyn crate::disk::DiskFile>> {
    let path = log.home.segment_path(base);
    let file = log.home.disk().create_new(&path).map_err(Error::io("create", &path))?;
    log.home.sync_dir(log.home.dir())?;
    Ok(file)
}

/// Keeps a batch within what readers will take.
fn bound(body: &Body<'_>) -> Result<()> {
    let limit = if body.records > 1 { MAX_BATCH } else { MAX_SINGLE };
    if body.bytes.len() > limit {
        return Err(Error::TooBig { bytes: body.bytes.len() as u64, limit: limit as u64 });
    }
    Ok(())
}

/// A writer that holds the lock.
struct Writer<'a> {
    log: &'a Log,
    state: &'a mut WriterState,
}

impl Writer<'_> {
    fn append(&mut self, body: &Body<'_>, now: Timestamp) -> Result<Appended> {
        bound(body)?;
        let bytes = SegmentWriter::batch_len(body);
        let now = now.max(self.state.end.state().time);
        self.check_room(bytes)?;
        if must_roll(&self.active(), bytes, now, &self.limits()) {
            self.roll()?;
        }
        let base = self.state.end.state().written.offset;
        let next = base.forward(u64::from(body.records)).ok_or(Error::Failed)?;
        let synced = self.state.end.state().durable.offset;
        let batch = NewBatch { base, next, synced, time: now, body: *body };
        let path = self.log.home.segment_path(self.state.segment.segment());
        let begin = self.state.segment.append(&batch).map_err(Error::io("write", path))?;
        self.write_end(begin, next, now)?;
        self.state.first_time.get_or_insert(now);
        self.add_to_index(IndexEntry { offset: base, position: begin, time: now });
        Ok(Appended { base, next })
    }

    fn limits(&self) -> Limits {
        let settings = &self.log.settings;
        Limits { bytes: settings.segment_size(), age: settings.segment_age() }
    }

    fn active(&self) -> ActiveSegment {
        let bytes = self.state.segment.position().get();
        ActiveSegment { bytes, first_time: self.state.first_time }
    }

    fn is_empty(&self) -> bool {
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
    fn add_to_index(&mut self, entry: IndexEntry) {
        if let Some(index) = &mut self.state.index
            && index.wants(entry.position)
            && index.push(entry).is_err()
        {
            self.state.index = None;
        }
    }

    fn raise_durable(&mut self, captured: Mark) -> Result<Offset> {
        let old = self.state.end.state();
        if old.durable.offset < captured.offset {
            let new = EndState { durable: captured, ..old.clone() };
            self.state.end.store(new)?;
        }
        Ok(captured.offset)
    }

    /// Tells the next writer, as well as it can, that a sync failed.
    fn mark_suspect(&mut self) {
        let suspect = EndState { suspect: true, ..self.state.end.state().clone() };
        let _ = self.state.end.store(suspect);
    }

    /// Seals the active segment and begins the next one.
    fn roll(&mut self) -> Result<()> {
        let sealed = self.sealed_facts();
        let path = self.log.home.segment_path(sealed.base);
        if let Err(error) = self.state.segment.file().sync_data() {
            self.mark_suspect();
            return Err(Error::io("sync", path)(error));
        }
        let written = self.state.end.state().written;
        self.raise_durable(written)?;
        let complete = table::is_current(self.log)?;
        let file = create_segment(self.log, sealed.next)?;
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
        let _ = if complete { table::add(self.log, &sealed) } else { table::refresh(self.log) };
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
