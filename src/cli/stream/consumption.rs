//! The loop from log to output: forwards, with a group or without, to an end or
//! following; or backwards.

use std::ops::Range;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::delivery::acks::Acks;
use super::delivery::handler::Handler;
use super::follow::Follower;
use super::hand_over::HandOver;
use super::jumps::Jumps;
use super::output::Output;
use super::progress::Progress;
use super::signals::{Signalled, Signals};
use crate::cli::failure::OutputClosed;
use crate::cli::printer::{Printer, Slice, SliceLimits};
use crate::cli::session::Session;
use crate::format::batch::Header;
use crate::log::{BackReader, Log, Piece, Reader, Reading, Skipped};
use crate::model::{Offset, Start, Timestamp};

/// What is put together is written when it has so many bytes.
const FLUSH: usize = 256 << 10;

/// Where reading stops.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// Nowhere.
    Open,
    /// Before this offset, which may not be there yet.
    Offset(Offset),
    /// Before the first record appended at this moment or later.
    Time(Timestamp),
}

impl Until {
    /// What `until` means in `log`; an offset beyond its end stays that.
    ///
    /// # Errors
    /// What [`Log::resolve`] says.
    pub fn resolve(log: &Log, until: Option<Start>) -> Result<Until> {
        Ok(match until {
            None => Until::Open,
            Some(Start::At(offset)) => Until::Offset(offset),
            Some(Start::Time(time)) => Until::Time(time),
            Some(Start::AfterStart(records)) => {
                Until::Offset(log.start()?.forward(records).unwrap_or(Offset::MAX))
            }
            Some(start) => Until::Offset(log.resolve(start)?),
        })
    }

    /// The first offset of `piece` that is not wanted.
    fn end_in(self, piece: &Piece<'_>) -> Offset {
        match self {
            Until::Open => piece.header.next,
            Until::Offset(offset) => offset.min(piece.header.next),
            Until::Time(time) if piece.header.append_time >= time => piece.from,
            Until::Time(_) => piece.header.next,
        }
    }

    /// Whether nothing before it can come any more.
    fn is_reached(self, next: Offset, now: Timestamp) -> bool {
        match self {
            Until::Open => false,
            Until::Offset(offset) => next >= offset,
            Until::Time(time) => now >= time,
        }
    }
}

/// The loop from log to output.
#[derive(Debug)]
pub struct Consumption<'a> {
    /// The clock and the notes.
    pub session: &'a Session,
    /// The log.
    pub log: &'a Log,
    /// What is printed of it.
    pub printer: Printer,
    /// What may end it.
    pub signals: Signals,
    /// Where to.
    pub output: Output,
    /// The group that reads, if one does.
    pub hand_over: Option<HandOver>,
    /// The command that gets the records instead of the output, if there is one.
    pub handler: Option<Handler>,
    /// Who says what of the output is done with, if its reader does.
    pub acks: Option<Acks>,
    /// How far it is.
    pub progress: Progress,
    /// Where it may jump to, if only some keys are wanted and an index tells.
    pub jumps: Option<Jumps<'a>>,
    /// Where it stops.
    pub until: Until,
    /// Before which offset it stops whatever `until` says.
    pub end: Offset,
    /// Whether damage is passed instead of ending the reading.
    pub skip_damage: bool,
    /// The damage that was passed.
    pub skipped: Skipped,
    /// How many records may still be printed.
    pub left: u64,
    /// How many records were printed.
    pub printed: u64,
}

impl Consumption<'_> {
    /// Reads and prints from `from` on until there is a reason to stop.
    ///
    /// # Errors
    /// Whatever ended it early, a signal too.
    pub fn read(&mut self, from: Offset, follower: Option<Follower>) -> Result<()> {
        let mut reader = match self.skip_damage {
            true => Reader::open_skipping(self.log, from)?,
            false => Reader::open(self.log, from)?,
        };
        let read = self.read_on(&mut reader, follower);
        self.skipped = reader.skipped();
        read
    }

    fn read_on(&mut self, reader: &mut Reader, mut follower: Option<Follower>) -> Result<()> {
        let mut scratch = Vec::new();
        let mut last_print = Instant::now();
        while self.left > 0 {
            if let Some(signal) = self.signals.caught() {
                bail!(signal);
            }
            let end = match self.until {
                Until::Offset(offset) => offset.min(self.end),
                Until::Open | Until::Time(_) => self.end,
            };
            if reader.next_offset() >= end {
                break;
            }
            let passed = self.jump(reader)?;
            if reader.next_offset() >= end {
                break;
            }
            let reading = match reader.read() {
                Ok(reading) => reading,
                Err(error) => {
                    self.hand_over_rest()?;
                    return Err(error.into());
                }
            };
            match reading {
                Reading::Records(piece) => {
                    if let Some(jumps) = &mut self.jumps {
                        jumps.read(&piece.header);
                    }
                    if let Some(passed) = passed {
                        self.pass(&passed, &piece.header)?;
                    }
                    if !self.print(&piece, &mut scratch)? {
                        break;
                    }
                    last_print = Instant::now();
                }
                Reading::End if passed.is_some() => {
                    // Nothing is left where it ends: what it passed is read after all.
                    self.jumps = None;
                    let from = passed.map_or(reader.next_offset(), |passed| passed.start);
                    *reader = Reader::open(self.log, from)?;
                }
                Reading::End => {
                    self.hand_over_rest()?;
                    let now = self.session.now()?;
                    self.pass_gap(reader, now)?;
                    let Some(follower) = &mut follower else { return Ok(()) };
                    if self.until.is_reached(reader.next_offset(), now) {
                        return Ok(());
                    }
                    if !self.wait(follower, last_print)? {
                        return Ok(());
                    }
                }
            }
        }
        self.hand_over_rest()
    }

    /// Lets the reader jump over what holds nothing wanted; says what a group passes so.
    fn jump(&mut self, reader: &mut Reader) -> Result<Option<Range<Offset>>> {
        let next = reader.next_offset();
        let jump = self.jumps.as_mut().and_then(|jumps| jumps.over_from(next));
        let Some(place) = jump else { return Ok(None) };
        if self.hand_over.is_none() {
            *reader = Reader::open(self.log, place)?;
            return Ok(None);
        }
        // The last of them is read: its append time goes with the checkpoint.
        *reader = Reader::open(self.log, place.back(1).max(next))?;
        Ok(Some(next..place))
    }

    /// Counts what was jumped over as handed over, as what a filter drops.
    fn pass(&mut self, passed: &Range<Offset>, last: &Header) -> Result<()> {
        if self.handler.is_some() {
            return self.command_passes(passed.end, last.append_time);
        }
        let (next, bytes) = (passed.end, &[][..]);
        let slice = Slice { next, printed: 0, printed_to: passed.start, bytes, stored: None };
        self.give(passed.start, next, last, &slice)
    }

    /// Lets the group go on behind a gap at the end of the log.
    fn pass_gap(&mut self, reader: &Reader, now: Timestamp) -> Result<()> {
        if let (Some(hand_over), Some((next, time))) = (&mut self.hand_over, reader.passed_gap()) {
            hand_over.passed(next, time, self.output.sent());
            hand_over.commit_if_due(&self.output, now)?;
        }
        Ok(())
    }

    /// Prints what is wanted of `piece`; says whether more may be wanted.
    fn print(&mut self, piece: &Piece<'_>, scratch: &mut Vec<u8>) -> Result<bool> {
        let end = self.until.end_in(piece).min(self.end);
        if self.handler.is_some() {
            return self.hand_to_command(piece, end);
        }
        let printer = self.printer.clone();
        let cut = printer.begin(piece);
        let mut cut = cut.with_context(|| format!("offset {} can't be read", piece.from))?;
        while cut.next_offset() < end && self.left > 0 {
            let first = cut.next_offset();
            let records = self.hand_over.as_ref().map_or(u64::MAX, HandOver::slice_limit);
            let limits = SliceLimits { until: end, records, printed: self.left };
            let slice = cut.slice(&limits, scratch);
            let (printed, next) = (slice.printed, slice.next);
            self.give(first, next, &piece.header, &slice)?;
            self.left -= printed;
            self.printed += printed;
        }
        Ok(end == piece.header.next)
    }

    /// Gives one slice to the output.
    fn give(
        &mut self,
        first: Offset,
        next: Offset,
        batch: &Header,
        slice: &Slice<'_>,
    ) -> Result<()> {
        let bytes = slice.bytes;
        if let Some(acks) = &mut self.acks {
            acks.print(
                slice,
                batch.append_time,
                &mut self.output,
                &self.signals,
                self.session.now()?,
            )?;
            self.progress.add(bytes.len() as u64);
            return Ok(());
        }
        let Some(hand_over) = &mut self.hand_over else {
            self.output.write_stored(bytes, slice.stored, &self.signals)?;
            self.progress.add(bytes.len() as u64);
            return Ok(());
        };
        let now = self.session.now()?;
        if hand_over.goes_ahead() {
            hand_over.commit_ahead(next, batch.append_time, now)?;
            self.output.write_stored(bytes, slice.stored, &self.signals)?;
            self.progress.add(bytes.len() as u64);
            return Ok(());
        }
        hand_over.make_room(next.since(first), &self.output, &self.signals, now)?;
        let begin = self.output.sent();
        let end = begin + bytes.len() as u64;
        // Noted before it is written: a write may end half way.
        hand_over.gave(first, next, batch, begin, end);
        self.output.write_stored(bytes, slice.stored, &self.signals)?;
        self.progress.add(bytes.len() as u64);
        hand_over.commit_if_due(&self.output, now)
    }

    /// Reads and prints backwards: the newest record before `self.until` first, down
    /// to `from`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_back(&mut self, from: Offset, until: Offset) -> Result<()> {
        let mut reader = BackReader::open(self.log, from, until);
        if self.skip_damage {
            reader.skip_damage();
        }
        let mut out = Vec::new();
        while self.left > 0 {
            if let Some(jumps) = &mut self.jumps
                && let Some(before) = jumps.back_from(reader.until())
            {
                reader.go_back_to(before);
            }
            let block = reader.read();
            self.skipped = reader.skipped();
            let Some(block) = block? else { return Ok(()) };
            if let (Some(jumps), Some(piece)) = (&mut self.jumps, block.pieces().next()) {
                jumps.read(&piece.header);
            }
            for piece in block.pieces().rev() {
                self.print_back(&piece, from, until.min(block.end()), &mut out)?;
            }
            if let Some(signal) = self.signals.caught() {
                bail!(signal);
            }
        }
        Ok(())
    }

    /// Prints the records of one piece from `from` to before `until`, the newest first: a
    /// stretch at a time, as short records are many.
    fn print_back(
        &mut self,
        piece: &Piece<'_>,
        from: Offset,
        until: Offset,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        const STRETCH: usize = 16 << 10;
        let unreadable = || format!("offset {} can't be read", piece.from);
        let wanted = |offset: Offset| from <= offset && offset < until;
        let stretches = (piece.header.records as usize).div_ceil(STRETCH);
        for stretch in (0..stretches).rev() {
            let records = piece.records().with_context(unreadable)?;
            let records = records.skip(stretch * STRETCH).take(STRETCH);
            let mut records: Vec<_> = records.filter(|record| wanted(record.offset)).collect();
            while let Some(record) = records.pop().filter(|_| self.left > 0) {
                let printed = u64::from(self.printer.print_one(&record, out));
                self.left -= printed;
                self.printed += printed;
                if out.len() >= FLUSH || records.is_empty() {
                    self.output.write(out, &self.signals)?;
                    out.clear();
                }
            }
            if self.left == 0 {
                break;
            }
        }
        self.output.write(out, &self.signals)?;
        out.clear();
        Ok(())
    }

    /// Waits for more; false if there is a reason to end.
    fn wait(&mut self, follower: &mut Follower, last_print: Instant) -> Result<bool> {
        let due = self.hand_over.as_ref().and_then(HandOver::until_due);
        let due = due.or(self.acks.as_ref().and_then(Acks::until_due));
        let deadline = match self.until {
            Until::Time(time) => Some(time.since(self.session.now()?)),
            _ => None,
        };
        let limit = due.into_iter().chain(deadline).min();
        let goes_on = follower.wait(
            &self.signals,
            &self.output,
            self.acks.as_ref().and_then(Acks::handle),
            last_print,
            limit,
        )?;
        if self.output.is_closed() {
            bail!(OutputClosed);
        }
        let now = self.session.now()?;
        if let Some(acks) = &mut self.acks {
            acks.hear(now)?;
        }
        if let Some(hand_over) = &mut self.hand_over {
            hand_over.commit_if_due(&self.output, now)?;
        }
        Ok(goes_on)
    }

    /// Commits what was handed over, whatever ended the reading, and ends as that did.
    ///
    /// # Errors
    /// That, or what kept it from committing.
    pub fn finish(mut self, read: Result<()>) -> Result<()> {
        self.progress.finish();
        let now = self.session.now()?;
        let committed = match (self.hand_over, self.acks) {
            (Some(hand_over), _) => {
                hand_over.finish(self.log, &self.printer, &self.output, &self.signals, now)
            }
            (_, Some(acks)) => acks.finish(&read, &mut self.output, &self.signals, self.session),
            (None, None) => Ok(()),
        };
        let signalled = self.signals.caught();
        match read {
            Err(error) if !error.is::<OutputClosed>() && !error.is::<Signalled>() => Err(error),
            read => committed.and(signalled.map_or(read, |signal| Err(signal.into()))),
        }
    }
}
