//! Acknowledgements from whoever reads our output: the next offset to read, a line each,
//! through a pipe. A line counts once it is read here, and the checkpoint follows at
//! once; what was printed and not acknowledged is printed again by the next run.
//!
//! Printing and reading take turns in one loop, so that two full pipes are no deadlock.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rustix::event::{PollFd, PollFlags};

use super::ack_source::AckSource;
use crate::cli::failure::{Ended, OutputClosed, Status};
use crate::cli::printer::Slice;
use crate::cli::session::Session;
use crate::cli::stream::output::{Output, wait};
use crate::cli::stream::signals::Signals;
use crate::log::Consumer;
use crate::model::{Offset, Timestamp};

/// So many stretches are told apart; of more, times are known less exactly.
const MOST_STRETCHES: usize = 4096;
/// Stored checkpoints are synced this often.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// Once its reader has gone, an acknowledgement is waited for so long.
const PATIENCE: Duration = Duration::from_secs(1);
/// The pause where an output that had room took nothing.
const STALL: Duration = Duration::from_millis(20);

/// Reads acknowledgements, and moves one group's checkpoint.
#[derive(Debug)]
pub struct Acks {
    source: AckSource,
    consumer: Consumer,
    /// What was printed and is not acknowledged.
    given: VecDeque<Stretch>,
    /// The offset behind the last record that was printed.
    printed: Offset,
    /// The offset behind the last one that was printed or dropped, and its append time.
    passed: (Offset, Timestamp),
    /// The last acknowledgement.
    acked: Offset,
    /// Whether a line was refused.
    refused: bool,
    synced: bool,
    last_sync: Instant,
}

/// Records in a row.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    next: Offset,
    /// Not before the append time of any of them.
    time: Timestamp,
    records: u64,
}

impl Acks {
    /// Reads acknowledgements from the file `name`, or from the handle of that number, for
    /// what `consumer` prints.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(name: &OsStr, consumer: Consumer) -> Result<Acks> {
        let position = consumer.position();
        Ok(Acks {
            source: AckSource::open(name)?,
            consumer,
            given: VecDeque::new(),
            printed: position,
            passed: (position, Timestamp::default()),
            acked: position,
            refused: false,
            synced: true,
            last_sync: Instant::now(),
        })
    }

    /// For polling: readable when acknowledgements come, or end.
    pub fn handle(&self) -> Option<PollFd<'_>> {
        self.source.handle()
    }

    /// How long nothing needs to be done: for ever, unless something is to be synced.
    pub fn until_due(&self) -> Option<Duration> {
        (!self.synced).then_some(SYNC_INTERVAL)
    }

    /// Prints `slice`, whose last record was appended at `time`.
    ///
    /// # Errors
    /// As [`Output::write`]; as [`hear`](Self::hear).
    pub fn print(
        &mut self,
        slice: &Slice<'_>,
        time: Timestamp,
        output: &mut Output,
        signals: &Signals,
        now: Timestamp,
    ) -> Result<()> {
        self.hear(now)?;
        // Noted before it is written: an answer may come at once.
        self.gave(slice, time);
        let mut bytes = slice.bytes;
        while !bytes.is_empty() {
            let written = output.try_write(bytes)?;
            bytes = &bytes[written..];
            if written == 0 {
                let mut fds = vec![output.room()];
                fds.push(PollFd::from_borrowed_fd(signals.handle(), PollFlags::IN));
                fds.extend(self.handle());
                wait(&mut fds, Some(STALL))?;
                if let Some(signal) = signals.caught() {
                    bail!(signal);
                }
                self.hear(now)?;
            }
        }
        Ok(())
    }

    fn gave(&mut self, slice: &Slice<'_>, time: Timestamp) {
        self.passed = (slice.next, time);
        if slice.printed == 0 {
            return;
        }
        self.printed = slice.printed_to;
        let new = Stretch { next: slice.printed_to, time, records: slice.printed };
        let many = self.given.len() >= MOST_STRETCHES;
        match self.given.back_mut() {
            Some(last) if last.time == time || many => {
                *last = Stretch { records: last.records + new.records, ..new };
            }
            _ => self.given.push_back(new),
        }
    }

    /// Reads what is there of acknowledgements, and stores the last.
    ///
    /// # Errors
    /// A line that can't be one, or can't be true; [`OutputClosed`] if they have ended,
    /// as then nobody works on what is printed; what the disk says.
    pub fn hear(&mut self, now: Timestamp) -> Result<()> {
        self.hear_some(now)?;
        if self.source.has_ended() {
            bail!(OutputClosed);
        }
        if !self.synced && self.last_sync.elapsed() >= SYNC_INTERVAL {
            self.settle(now)?;
        }
        Ok(())
    }

    fn hear_some(&mut self, now: Timestamp) -> Result<()> {
        while self.source.fill()? {
            let taken = self.take_lines();
            self.refused |= taken.is_err();
            // What was good is kept, and before it is taken: a kill must not repeat it.
            self.store(now)?;
            self.source.take()?;
            taken?;
        }
        Ok(())
    }

    fn take_lines(&mut self) -> Result<()> {
        while let Some(next) = self.source.next_line()? {
            if let Some(why) = self.objection(next) {
                let line = Some(format!("{}: {why}", self.source.place()));
                bail!(Ended { status: Status::OutOfRange, line });
            }
            self.acked = next;
        }
        Ok(())
    }

    /// Why `next` can't be acknowledged.
    fn objection(&self, next: Offset) -> Option<String> {
        let (passed, _) = self.passed;
        match next {
            next if next < self.acked => {
                Some(format!("{next} goes back, {} is acknowledged already", self.acked))
            }
            next if next > passed => {
                Some(format!("{next} was not handed over: that reaches to {passed}"))
            }
            _ => None,
        }
    }

    /// Stores what is acknowledged; a power cut may take it back until the next sync.
    fn store(&mut self, now: Timestamp) -> Result<()> {
        if self.acked <= self.consumer.position() {
            return Ok(());
        }
        let mut time = None;
        while let Some(stretch) = self.given.front_mut() {
            time = Some(stretch.time);
            if stretch.next > self.acked {
                stretch.records = stretch.records.min(stretch.next.since(self.acked));
                break;
            }
            self.given.pop_front();
        }
        self.commit(self.acked, time.unwrap_or(self.passed.1), now)
    }

    fn commit(&mut self, next: Offset, time: Timestamp, now: Timestamp) -> Result<()> {
        self.consumer.commit(next, time, now)?;
        self.synced = false;
        Ok(())
    }

    /// Makes durable what is stored. Where all that was printed is acknowledged, what was
    /// dropped behind it is done with too.
    fn settle(&mut self, now: Timestamp) -> Result<()> {
        let (passed, time) = self.passed;
        if self.acked >= self.printed && passed > self.consumer.position() {
            self.commit(passed, time, now)?;
        }
        if !self.synced {
            self.consumer.sync()?;
            (self.synced, self.last_sync) = (true, Instant::now());
        }
        Ok(())
    }

    /// Ends the output, so that its reader knows that all is printed, and waits until that
    /// is acknowledged or nobody can acknowledge any more. `read` is how the reading ended.
    ///
    /// # Errors
    /// An [`Ended`] with [`Status::HandlerFailed`] if something is not acknowledged; as
    /// [`hear`](Self::hear).
    pub fn finish(
        mut self,
        read: &Result<()>,
        output: &mut Output,
        signals: &Signals,
        session: &Session,
    ) -> Result<()> {
        let closed = output.close();
        let has_gone = read.as_ref().is_err_and(|error| error.is::<OutputClosed>());
        let patience = has_gone.then_some(PATIENCE);
        let heard = self.await_rest(patience, signals, session);
        self.settle(session.now()?)?;
        closed.and(heard)?;
        let records: u64 = self.given.iter().map(|stretch| stretch.records).sum();
        if self.acked >= self.printed || signals.caught().is_some() {
            return Ok(());
        }
        let (group, acked) = (self.consumer.group(), self.acked);
        let noun = if records == 1 { "record was" } else { "records were" };
        let line = format!(
            "{records} {noun} handed over and not acknowledged: group {group} goes on at {acked}"
        );
        bail!(Ended { status: Status::HandlerFailed, line: Some(line) })
    }

    /// Hears until all is acknowledged, or for `patience` nothing came.
    fn await_rest(
        &mut self,
        patience: Option<Duration>,
        signals: &Signals,
        session: &Session,
    ) -> Result<()> {
        let mut last = (self.acked, Instant::now());
        loop {
            if !self.refused {
                self.hear_some(session.now()?)?;
            }
            if last.0 < self.acked {
                last = (self.acked, Instant::now());
            }
            let waits = self.acked < self.printed && !self.source.has_ended() && !self.refused;
            if !waits || signals.caught().is_some() {
                return Ok(());
            }
            let left = patience.map(|patience| patience.saturating_sub(last.1.elapsed()));
            if left == Some(Duration::ZERO) {
                return Ok(());
            }
            let mut fds = vec![PollFd::from_borrowed_fd(signals.handle(), PollFlags::IN)];
            fds.extend(self.handle());
            wait(&mut fds, left)?;
        }
    }
}
