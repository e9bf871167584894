//! What was handed over and what is committed of it. Records are given to the
//! output in slices; a slice counts once the reader has taken its last byte. The
//! group's checkpoint follows, never ahead of that, and never more than one commit
//! interval behind what was given.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::output::Output;
use super::signals::Signals;
use crate::cli::printer::Printer;
use crate::format::batch::Header;
use crate::log::{Consumer, Log, Reader, Reading};
use crate::model::{Offset, Timestamp};

/// Records that were given to the output together.
#[derive(Clone, Copy, Debug)]
struct Slice {
    first: Offset,
    next: Offset,
    /// The append time of the last one.
    time: Timestamp,
    /// The checksum of their batch, which compaction may replace meanwhile.
    batch: u32,
    /// The output's count of bytes before and after it.
    begin: u64,
    end: u64,
}

/// When checkpoints are stored.
#[derive(Clone, Copy, Debug)]
pub struct CommitInterval {
    /// After at most so many records.
    pub records: u64,
    /// After so long.
    pub time: Duration,
}

/// Follows what one group hands over.
#[derive(Debug)]
pub struct HandOver {
    consumer: Consumer,
    interval: CommitInterval,
    /// Whether records are committed before they are handed over.
    ahead: bool,
    given: VecDeque<Slice>,
    /// Records given since the last commit.
    uncommitted: u64,
    last_commit: Instant,
    last_sync: Instant,
    synced: bool,
}

/// Stored checkpoints are synced this often.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// How long a check of the pipe may wait for the next one.
const SHORTEST_PAUSE: Duration = Duration::from_micros(200);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

impl HandOver {
    /// Follows `consumer`, or goes ahead of it.
    pub fn new(consumer: Consumer, interval: CommitInterval, ahead: bool) -> HandOver {
        HandOver {
            consumer,
            interval,
            ahead,
            given: VecDeque::new(),
            uncommitted: 0,
            last_commit: Instant::now(),
            last_sync: Instant::now(),
            synced: true,
        }
    }

    /// How many records the next slice may have: a fraction of the interval, so
    /// that commits go on while the reader takes what is in the pipe. Those that are
    /// committed ahead wait for nobody.
    pub fn slice_limit(&self) -> u64 {
        if self.ahead { self.interval.records } else { (self.interval.records / 4).max(1) }
    }

    /// Waits until `records` more may be given without going more than one commit
    /// interval beyond the checkpoint.
    ///
    /// # Errors
    /// What the disk says; a signal ends the waiting without an error.
    pub fn make_room(
        &mut self,
        records: u64,
        output: &Output,
        signals: &Signals,
        now: Timestamp,
    ) -> Result<()> {
        let fits = |this: &Self| this.uncommitted + records <= this.interval.records.max(records);
        if fits(self) {
            return Ok(());
        }
        self.commit_taken(output, Instant::now(), now)?;
        let mut pause = SHORTEST_PAUSE;
        while !fits(self) && signals.caught().is_none() && !output.is_closed() {
            signals.rest(pause)?;
            pause = (pause * 2).min(LONGEST_PAUSE);
            self.commit_taken(output, Instant::now(), now)?;
        }
        Ok(())
    }

    /// Takes note of records that were given to the output.
    pub fn gave(&mut self, first: Offset, next: Offset, batch: &Header, begin: u64, end: u64) {
        let (time, batch) = (batch.append_time, batch.body_crc);
        self.give(Slice { first, next, time, batch, begin, end });
    }

    /// Takes note of what up to `next` needs no output, a gap for instance: it counts as
    /// handed over once all before it does. `sent` is the output's count of bytes.
    pub fn passed(&mut self, next: Offset, time: Timestamp, sent: u64) {
        let first = self.given.back().map_or(self.consumer.position(), |slice| slice.next);
        if next > first {
            self.give(Slice { first, next, time, batch: 0, begin: sent, end: sent });
        }
    }

    fn give(&mut self, slice: Slice) {
        self.uncommitted = self.uncommitted.saturating_add(slice.next.since(slice.first));
        self.given.push_back(slice);
    }

    /// Commits up to `next` before those records are handed over, durably: what a crash
    /// then keeps from being handed over is never handed over again.
    ///
    /// # Errors
    /// What the disk says.
    pub fn commit_ahead(&mut self, next: Offset, time: Timestamp, now: Timestamp) -> Result<()> {
        self.given.clear();
        self.uncommitted = 0;
        self.commit(next, time, now)?;
        self.last_commit = Instant::now();
        self.sync()
    }

    /// Commits if it is due.
    ///
    /// # Errors
    /// What the disk says.
    pub fn commit_if_due(&mut self, output: &Output, now: Timestamp) -> Result<()> {
        // Asked once: with a commit for each record, clocks are a good part of the time.
        let moment = Instant::now();
        let late = moment.duration_since(self.last_commit) >= self.interval.time;
        if late || self.uncommitted >= self.slice_limit() {
            self.commit_taken(output, moment, now)?;
        }
        if !self.synced && moment.duration_since(self.last_sync) >= SYNC_INTERVAL {
            self.sync()?;
        }
        Ok(())
    }

    /// Commits what was taken, durably, whether it is due or not.
    ///
    /// # Errors
    /// What the disk says.
    pub fn commit_now(&mut self, output: &Output, now: Timestamp) -> Result<()> {
        self.commit_taken(output, Instant::now(), now)?;
        if self.synced { Ok(()) } else { self.sync() }
    }

    /// Whether records are to be committed before they are handed over.
    pub fn goes_ahead(&self) -> bool {
        self.ahead
    }

    /// The group that reads.
    pub fn consumer(&self) -> &Consumer {
        &self.consumer
    }

    fn sync(&mut self) -> Result<()> {
        self.consumer.sync()?;
        self.last_sync = Instant::now();
        self.synced = true;
        Ok(())
    }

    /// How long nothing needs to be committed: for ever, if nothing waits.
    pub fn until_due(&self) -> Option<Duration> {
        let waiting = !self.given.is_empty() || !self.synced;
        waiting.then(|| {
            let left = self.interval.time.saturating_sub(self.last_commit.elapsed());
            left.clamp(LONGEST_PAUSE, Duration::from_millis(100))
        })
    }

    /// Commits the slices whose last byte was taken.
    fn commit_taken(&mut self, output: &Output, moment: Instant, now: Timestamp) -> Result<()> {
        let taken = output.taken();
        let mut last = None;
        while let Some(slice) = self.given.pop_front_if(|slice| slice.end <= taken) {
            self.uncommitted = self.uncommitted.saturating_sub(slice.next.since(slice.first));
            last = Some(slice);
        }
        if let Some(slice) = last {
            self.commit(slice.next, slice.time, now)?;
            self.last_commit = moment;
        }
        Ok(())
    }

    fn commit(&mut self, next: Offset, time: Timestamp, now: Timestamp) -> Result<()> {
        self.consumer.commit(next, time, now)?;
        self.synced = false;
        Ok(())
    }

    /// Waits for the reader to take everything, unless it goes or a signal comes;
    /// then commits what it took, to the last whole record, durably.
    ///
    /// # Errors
    /// What the disk says.
    pub fn finish(
        mut self,
        log: &Log,
        printer: &Printer,
        output: &Output,
        signals: &Signals,
        now: Timestamp,
    ) -> Result<()> {
        let mut pause = SHORTEST_PAUSE;
        while !self.ahead
            && output.taken() < output.sent()
            && !output.is_closed()
            && signals.caught().is_none()
        {
            signals.rest(pause)?;
            pause = (pause * 2).min(LONGEST_PAUSE);
            self.commit_if_due(output, now)?;
        }
        self.commit_taken(output, Instant::now(), now)?;
        if let Some(slice) = self.given.front().copied()
            && let Some(bytes) = output.taken().checked_sub(slice.begin)
        {
            let next = whole_until(log, printer, slice, bytes)?;
            if next > slice.first {
                self.commit(next, slice.time, now)?;
            }
        }
        if self.synced { Ok(()) } else { self.sync() }
    }
}

/// Where the whole records in a slice's first `bytes` bytes end: printed once more to see.
/// Of a batch that was replaced since, nobody knows; then the slice counts as not taken.
fn whole_until(log: &Log, printer: &Printer, slice: Slice, bytes: u64) -> Result<Offset> {
    let mut reader = Reader::open(log, slice.first)?;
    match reader.read()? {
        Reading::Records(piece) if piece.header.body_crc == slice.batch => {
            let whole = printer.whole_in(&piece, slice.first, bytes)?;
            Ok(whole.min(slice.next))
        }
        Reading::Records(_) | Reading::End => Ok(slice.first),
    }
}
