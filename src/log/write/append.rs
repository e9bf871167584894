//! Appending. A writer takes the append lock for each batch, reads `end` to see
//! whether somebody else wrote meanwhile, writes the batch behind the last one
//! and says so in `end`. Syncing goes on without the lock; the durable mark is
//! raised afterwards, under it.
//!
//! ```text
//! lock ── end ── roll? ── write batch ── write end ── unlock           append
//! capture end ── fdatasync ── lock ── raise durable in end ── unlock   sync
//! ```

use super::prepare::WriterState;
use super::recover;
use super::writer::{Appended, Writer};
use crate::disk::Access;
use crate::format::batch::{Codec, HEADER_LEN, MAX_BATCH, MAX_SINGLE};
use crate::format::body::Body;
use crate::format::codec::{Compression, compress};
use crate::log::Log;
use crate::log::error::{Error, Result};
use crate::log::files::lock::AppendLock;
use crate::log::keys::upkeep::Uncovered;
use crate::model::{Offset, Timestamp};

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
    pub(super) compression: Compression,
    /// Compressed bodies.
    compressed: Vec<Vec<u8>>,
    /// What it appended and the key index may not cover.
    uncovered: Uncovered,
}

impl Appender {
    /// A writer of `log`. Mends a torn tail.
    ///
    /// # Errors
    /// [`Error::Damage`] where the log's end, or the names of its segments, are
    /// damaged; what the disk says.
    pub fn open(log: &Log) -> Result<Appender> {
        let lock = AppendLock::of(&log.home)?;
        let mut appender = Appender {
            log: log.clone(),
            lock,
            state: None,
            failed: false,
            sync_failed: false,
            compression: log.settings.compression(),
            compressed: Vec::new(),
            uncovered: Uncovered::default(),
        };
        appender.locked(|_| Ok(()))?;
        Ok(appender)
    }

    /// Compresses what is appended from now on, whatever the log's settings say.
    pub fn compress(&mut self, compression: Compression) {
        self.compression = compression;
    }

    /// Appends the records of `body`, not compressed yet, as one batch at `now`. They
    /// are safe only after a [`sync`](Self::sync).
    ///
    /// # Errors
    /// [`Error::Full`]; [`Error::Damage`] met; what the disk says, after which this
    /// writer stores nothing more.
    pub fn append(&mut self, body: &Body<'_>, now: Timestamp) -> Result<Appended> {
        self.append_at(None, std::slice::from_ref(body), now)
    }

    /// The same of several bodies in a row, a batch each: with less to do for each, and
    /// nobody's records in between.
    ///
    /// # Errors
    /// As [`append`](Self::append). The first batches may be there then.
    pub fn append_all(&mut self, bodies: &[Body<'_>], now: Timestamp) -> Result<Appended> {
        self.append_at(None, bodies, now)
    }

    /// The same, but only if the log end is `expected`.
    ///
    /// # Errors
    /// [`OutOfRange::EndMoved`](crate::log::OutOfRange::EndMoved) if it is another; as [`append`](Self::append).
    pub fn append_if_end(
        &mut self,
        expected: Offset,
        bodies: &[Body<'_>],
        now: Timestamp,
    ) -> Result<Appended> {
        self.append_at(Some(expected), bodies, now)
    }

    /// Whether the log end is `expected`.
    ///
    /// # Errors
    /// [`OutOfRange::EndMoved`](crate::log::OutOfRange::EndMoved) if it is another.
    pub fn expect_end(&mut self, expected: Offset) -> Result<()> {
        self.locked(|writer| writer.expect_end(Some(expected)))
    }

    fn append_at(
        &mut self,
        expected: Option<Offset>,
        bodies: &[Body<'_>],
        now: Timestamp,
    ) -> Result<Appended> {
        bodies.iter().try_for_each(bound)?;
        // Before the lock is taken, so that nobody waits for it.
        let mut room = std::mem::take(&mut self.compressed);
        room.resize_with(room.len().max(bodies.len()), Vec::new);
        let stored = bodies.iter().zip(&mut room).map(|(body, room)| {
            match compress(self.compression, body.bytes, room) {
                Codec::None => *body,
                codec => Body { codec, bytes: room, ..*body },
            }
        });
        let stored: Vec<Body<'_>> = stored.collect();
        let appended = self.changing(|writer| {
            writer.expect_end(expected)?;
            writer.append(&stored, now)
        });
        self.compressed = room;
        self.note_appended(bodies);
        appended
    }

    /// Says what was appended, as it was before it was compressed, so that a sync sees to
    /// it that its keys are found.
    pub(super) fn note_appended(&mut self, bodies: &[Body<'_>]) {
        self.uncovered.appended(bodies);
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
            self.uncovered.synced(&self.log, captured.offset);
            return Ok(captured.offset);
        }
        if let Err(error) = state.segment.file().sync_data() {
            self.sync_failed = true;
            self.mark_suspect();
            return Err(Error::io("sync", self.log.home.segment_path(captured.segment))(error));
        }
        let durable = self.locked(|writer| writer.raise_durable(captured))?;
        self.uncovered.synced(&self.log, durable);
        Ok(durable)
    }

    /// Marks the end as suspect, whoever wrote it last. What that one left is not mended
    /// first: its sync would go well, and call durable what this one's failed over.
    fn mark_suspect(&self) {
        if let Ok(_held) = self.lock.acquire(&self.log.home)
            && let Ok(Some(mut end)) = self.log.open_end(Access::ReadWrite)
        {
            recover::mark_suspect(&mut end);
        }
    }

    /// Makes sure that `end` speaks of the active segment and of none before it, whatever a
    /// power cut leaves of it: then sealed segments may be replaced.
    ///
    /// # Errors
    /// What the disk says.
    pub(crate) fn settle_end(&mut self) -> Result<()> {
        self.locked(|writer| writer.state.end.write_again())
    }

    /// Seals the active segment, if it holds a record, and begins a new one.
    ///
    /// # Errors
    /// What the disk says.
    pub fn seal(&mut self) -> Result<()> {
        self.changing(|writer| if writer.is_empty() { Ok(()) } else { writer.roll() })
    }

    /// Seals the active segment if it is past its age.
    ///
    /// # Errors
    /// What the disk says.
    pub fn seal_if_old(&mut self, now: Timestamp) -> Result<()> {
        self.changing(|writer| if writer.is_old(now) { writer.roll() } else { Ok(()) })
    }

    /// How many bytes of records one batch should hold at most, so that segments
    /// keep their size.
    pub fn batch_room(&self) -> usize {
        const PIECE: u64 = 128 << 10;
        // A codec finds more that repeats in a larger piece.
        const COMPRESSED_PIECE: u64 = 1 << 20;
        let piece = if self.compression == Compression::None { PIECE } else { COMPRESSED_PIECE };
        let header = HEADER_LEN as u64;
        self.log.settings.segment_size().saturating_sub(header).min(piece) as usize
    }

    /// Does `work` under the append lock, the end of the log known and whole.
    pub(super) fn locked<T>(
        &mut self,
        work: impl FnOnce(&mut Writer<'_>) -> Result<T>,
    ) -> Result<T> {
        let _held = self.lock.acquire(&self.log.home)?;
        let current = match &self.state {
            Some(state) => !state.end.has_changed()? && is_as_left(&self.log, state)?,
            None => false,
        };
        if !current {
            self.state = None;
            self.state = Some(WriterState::prepare(&self.log)?);
        }
        let Some(state) = self.state.as_mut() else { return Err(Error::Failed) };
        work(&mut Writer { log: &self.log, state })
    }

    /// The same for what changes the log, unless something failed: that is final.
    pub(super) fn changing<T>(
        &mut self,
        work: impl FnOnce(&mut Writer<'_>) -> Result<T>,
    ) -> Result<T> {
        if self.failed || self.sync_failed {
            return Err(Error::Failed);
        }
        let done = self.locked(work);
        // A roll syncs too, and if that fails no later sync proves anything.
        self.sync_failed |= self.state.as_ref().is_some_and(|state| state.sync_failed);
        self.failed = matches!(&done, Err(error) if !error.leaves_the_log_as_it_was());
        done
    }
}

/// Keeps a batch within what readers will take.
pub(super) fn bound(body: &Body<'_>) -> Result<()> {
    let limit = if body.records > 1 { MAX_BATCH } else { MAX_SINGLE };
    if body.bytes.len() > limit {
        return Err(Error::TooBig { bytes: body.bytes.len() as u64, limit: limit as u64 });
    }
    Ok(())
}

/// Whether the segment that is open is still the one in the log's directory and ends
/// where it did. A writer that was killed, or failed, before it could say so in `end`
/// may have left a batch behind: a reader may have seen it, so it stays.
fn is_as_left(log: &Log, state: &WriterState) -> Result<bool> {
    let path = log.home.segment_path(state.segment.segment());
    let size = state.segment.file().size_at(&path).map_err(Error::io("look at", path))?;
    Ok(size == Some(state.segment.position().get()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::batch::Layout;
    use crate::log::fixture::{Fixture, fixture};
    use std::path::Path;

    fn append(appender: &mut Appender, line: &str) -> u64 {
        let text = format!("{line}\n");
        let body = Body::plain(Layout::Lines, 1, text.as_bytes());
        let appended = appender.append(&body, Timestamp::from_millis(0)).unwrap();
        appender.sync().unwrap();
        appended.base.get()
    }

    const END: &str = "/log/end";

    fn end_file(fixture: &Fixture) -> Vec<u8> {
        fixture.disk.read_file(Path::new(END)).unwrap()
    }

    /// A writer at work, and what `end` says when another one has then done this and
    /// was killed before it said so there.
    fn beside_one_that_was_killed(work: impl Fn(&mut Appender)) -> (Fixture, Appender) {
        let fixture = fixture(1 << 20);
        let mut living = Appender::open(&fixture.log).unwrap();
        assert_eq!(append(&mut living, "a"), 0);
        let end = end_file(&fixture);
        work(&mut Appender::open(&fixture.log).unwrap());
        fixture.disk.write_file(Path::new(END), &end).unwrap();
        (fixture, living)
    }

    #[test]
    fn a_writer_notices_that_end_was_removed_or_replaced() {
        for replace in [false, true] {
            let fixture = fixture(1 << 20);
            let old = end_file(&fixture);
            let (mut one, mut two) =
                (Appender::open(&fixture.log).unwrap(), Appender::open(&fixture.log).unwrap());
            assert_eq!(append(&mut one, "a"), 0);
            let end = Path::new(END);
            crate::disk::Disk::remove_file(fixture.disk.as_ref(), end).unwrap();
            if replace {
                fixture.disk.write_file(end, &old).unwrap();
            }
            assert_eq!(append(&mut two, "b"), 1);
            assert_eq!(append(&mut one, "c"), 2);
            assert_eq!(fixture.log.bounds().unwrap().end, Offset::new(3));
        }
    }

    #[test]
    fn a_batch_that_a_killed_writer_left_is_not_written_over() {
        let (fixture, mut living) = beside_one_that_was_killed(|killed| {
            assert_eq!(append(killed, "bb"), 1);
        });
        assert_eq!(append(&mut living, "c"), 2);
        assert_eq!(fixture.log.bounds().unwrap().end, Offset::new(3));
    }

    #[test]
    fn a_segment_that_a_killed_writer_began_is_gone_on_with() {
        let (fixture, mut living) = beside_one_that_was_killed(|killed| killed.seal().unwrap());
        living.seal().unwrap();
        assert_eq!(append(&mut living, "b"), 1);
        assert_eq!(fixture.log.home.list_segments().unwrap(), [Offset::ZERO, Offset::new(1)]);
    }
}
