//! Handing records to a command: a lot at a time, as often as it takes. An exit status
//! of 0 acknowledges the lot; then the group's checkpoint follows.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::dead_letters::{DeadLetters, Reason};
use super::lot::Lot;
use super::program::{Ending, How, Program};
use super::retry::Backoff;
use crate::cli::failure::{Ended, Status, say};
use crate::cli::printer::Printer;
use crate::cli::session::Session;
use crate::cli::stream::consumption::Consumption;
use crate::cli::stream::hand_over::HandOver;
use crate::cli::stream::output::Output;
use crate::cli::stream::signals::Signals;
use crate::format::record::RecordView;
use crate::log::{Log, Piece, Reader, Reading};
use crate::model::{Offset, Timestamp};

/// What becomes of records that the command can't handle.
#[derive(Debug)]
pub enum OnFailure {
    /// They end the run.
    Stop,
    /// They are told, counted, and passed.
    Skip,
    /// They go to a log of their own.
    DeadLetter(Box<DeadLetters>),
}

/// What is done for each lot.
#[derive(Debug)]
pub struct Orders {
    /// What is run.
    pub program: Program,
    /// How often more than once.
    pub retries: u64,
    /// After which pauses.
    pub backoff: Backoff,
    /// And if that does not help.
    pub on_failure: OnFailure,
}

/// Hands records to a command.
#[derive(Debug)]
pub struct Handler {
    orders: Orders,
    lot: Lot,
    /// All before this is handed over, or was dropped by a filter.
    settled: Offset,
    /// How many records were passed that the command could not handle.
    skipped: u64,
}

/// What a handler needs of the reading that it is a part of.
struct Around<'a> {
    session: &'a Session,
    log: &'a Log,
    printer: &'a Printer,
    signals: &'a Signals,
    output: &'a Output,
    hand_over: &'a mut HandOver,
}

/// The last attempt at a lot.
#[derive(Clone, Copy, Debug)]
struct Failure {
    how: How,
    attempts: u64,
}

impl Handler {
    /// Hands over what comes from `from` on, in lots of `batch` records, or one by one.
    pub fn new(orders: Orders, batch: Option<u64>, from: Offset) -> Handler {
        Handler { orders, lot: Lot::new(batch, from), settled: from, skipped: 0 }
    }

    /// How many records were passed that the command could not handle.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Takes a record, if it is wanted; says whether it is.
    fn take(&mut self, record: &RecordView<'_>, around: &mut Around<'_>) -> Result<bool> {
        let (begins, next, time) = (self.lot.is_empty(), self.lot.next, self.lot.time);
        let wanted = self.lot.add(record, around.printer);
        if wanted && begins {
            // What was dropped before it needs no acknowledgement.
            self.settle(next, time, around)?;
        }
        if self.lot.is_full() {
            self.hand_over(around)?;
        }
        Ok(wanted)
    }

    /// Nothing more comes before `next`, for now.
    fn reach(&mut self, next: Offset, time: Timestamp, around: &mut Around<'_>) -> Result<()> {
        self.lot.reach(next, time);
        if self.lot.is_empty() { self.settle(next, time, around) } else { Ok(()) }
    }

    /// Takes note that all before `next` is done with.
    fn settle(&mut self, next: Offset, time: Timestamp, around: &mut Around<'_>) -> Result<()> {
        if next > self.settled {
            let sent = around.output.sent();
            around.hand_over.passed(next, time, sent);
            self.settled = next;
        }
        around.hand_over.commit_if_due(around.output, around.session.now()?)
    }

    /// Hands over what waits.
    fn hand_over(&mut self, around: &mut Around<'_>) -> Result<()> {
        if self.lot.is_empty() {
            return Ok(());
        }
        let (next, time) = (self.lot.next, self.lot.time);
        if around.hand_over.goes_ahead() {
            around.hand_over.commit_ahead(next, time, around.session.now()?)?;
            self.settled = next;
        }
        if let Some(failure) = self.attempt(around)? {
            self.fail(failure, around)?;
        }
        self.settle(next, time, around)?;
        self.lot.clear();
        Ok(())
    }

    /// Runs the command until it succeeds, or for the last time.
    fn attempt(&self, around: &mut Around<'_>) -> Result<Option<Failure>> {
        let Around { session, output, signals, hand_over, .. } = around;
        let group = hand_over.consumer().group().clone();
        let mut tick = || {
            hand_over.commit_if_due(output, session.now()?)?;
            Ok(hand_over.until_due())
        };
        let mut attempts = 1;
        loop {
            let environment = self.lot.environment(group.as_str(), attempts);
            match self.orders.program.run(&self.lot.bytes, &environment, &mut tick)? {
                Ending::Done => return Ok(None),
                Ending::NotRun(why) => bail!(self.stop(&why, around)),
                Ending::Failed(how) => {
                    // Whoever ended us may have ended the command too.
                    if let Some(signal) = signals.caught() {
                        bail!(signal);
                    }
                    if attempts > self.orders.retries {
                        return Ok(Some(Failure { how, attempts }));
                    }
                }
            }
            pause(self.orders.backoff.pause(attempts), signals, &mut tick)?;
            attempts += 1;
        }
    }

    fn fail(&mut self, failure: Failure, around: &mut Around<'_>) -> Result<()> {
        let Failure { how, attempts } = failure;
        let times = if attempts == 1 { "attempt" } else { "attempts" };
        let why = format!("the command ended with {how} at {attempts} {times}");
        match &mut self.orders.on_failure {
            OnFailure::Stop => bail!(self.stop(&why, around)),
            OnFailure::Skip => {
                say(&format!("skipped {}: {why}", self.lot.name()));
                self.skipped += self.lot.count;
            }
            OnFailure::DeadLetter(letters) => {
                let reason = Reason { how: how.to_string(), attempts };
                bury(letters, &self.lot, &reason, around)?;
                around.session.note(&format!("{} to the dead letters: {why}", self.lot.name()));
                // At once, so that no other run adds them again.
                self.settle(self.lot.next, self.lot.time, around)?;
                around.hand_over.commit_now(around.output, around.session.now()?)?;
            }
        }
        Ok(())
    }

    /// How the run ends for a lot that is not done.
    fn stop(&self, why: &str, around: &Around<'_>) -> Ended {
        let consumer = around.hand_over.consumer();
        let group = consumer.group();
        let place = match (consumer.commits(), around.hand_over.goes_ahead()) {
            (false, _) => format!("group {group} is where commit left it"),
            (true, true) => format!("group {group} goes on at {}, behind it", self.lot.next),
            (true, false) => format!("group {group} goes on at {}", self.lot.first),
        };
        let line = format!("{}: {why}; {place}", self.lot.name());
        Ended { status: Status::HandlerFailed, line: Some(line) }
    }
}

/// A pause, with `tick` called meanwhile when it asks for that.
fn pause(
    length: Duration,
    signals: &Signals,
    tick: &mut dyn FnMut() -> Result<Option<Duration>>,
) -> Result<()> {
    let begun = Instant::now();
    loop {
        let left = length.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Ok(());
        }
        signals.rest(tick()?.map_or(left, |due| due.min(left)))?;
        if let Some(signal) = signals.caught() {
            bail!(signal);
        }
    }
}

/// Adds the records of `lot` to the dead letters, durably.
fn bury(letters: &mut DeadLetters, lot: &Lot, reason: &Reason, around: &Around<'_>) -> Result<()> {
    let now = around.session.now()?;
    // They were read before; what is damaged between them was passed.
    let mut reader = Reader::open_skipping(around.log, lot.first)?;
    while reader.next_offset() < lot.next {
        let Reading::Records(piece) = reader.read()? else { break };
        let records = piece.records();
        let records = records.with_context(|| format!("offset {} can't be read", piece.from))?;
        let is_in_lot = |offset: Offset| lot.first <= offset && offset < lot.next;
        for record in records.filter(|record| is_in_lot(record.offset)) {
            if around.printer.wants(&record) {
                letters.add(&record, reason, now)?;
            }
        }
    }
    letters.sync(now)
}

impl Consumption<'_> {
    /// Gives what is wanted of `piece` before `end` to the command; says whether more may
    /// be wanted.
    pub(in crate::cli::stream) fn hand_to_command(
        &mut self,
        piece: &Piece<'_>,
        end: Offset,
    ) -> Result<bool> {
        let (left, mut printed) = (self.left, 0);
        let Some((handler, mut around)) = self.handler_and_around() else { return Ok(false) };
        let records = piece.records();
        let records = records.with_context(|| format!("offset {} can't be read", piece.from))?;
        for record in records.skip_while(|record| record.offset < piece.from) {
            if record.offset >= end || left == printed {
                break;
            }
            if let Some(signal) = around.signals.caught() {
                bail!(signal);
            }
            printed += u64::from(handler.take(&record, &mut around)?);
        }
        if printed < left {
            handler.reach(end, piece.header.append_time, &mut around)?;
        }
        self.left -= printed;
        self.printed += printed;
        Ok(end == piece.header.next)
    }

    /// Gives the command what waits for more to come, as nothing comes for now.
    pub(in crate::cli::stream) fn hand_over_rest(&mut self) -> Result<()> {
        match self.handler_and_around() {
            Some((handler, mut around)) => handler.hand_over(&mut around),
            None => Ok(()),
        }
    }

    /// Takes note that nothing before `next` is wanted but what waits for the command.
    pub(in crate::cli::stream) fn command_passes(
        &mut self,
        next: Offset,
        time: Timestamp,
    ) -> Result<()> {
        match self.handler_and_around() {
            Some((handler, mut around)) => handler.reach(next, time, &mut around),
            None => Ok(()),
        }
    }

    fn handler_and_around(&mut self) -> Option<(&mut Handler, Around<'_>)> {
        let Consumption { session, log, printer, signals, output, hand_over, handler, .. } = self;
        let around =
            Around { session, log, printer, signals, output, hand_over: hand_over.as_mut()? };
        Some((handler.as_mut()?, around))
    }
}
