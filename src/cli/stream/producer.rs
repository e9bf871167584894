//! The loop from input to log: what is read is framed into records, shaped, gathered
//! into batches, appended, and made safe when that is due.

use std::io;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::framing::{Framer, Oversize};
use super::gather::Gathered;
use super::input::Input;
use super::output::{NAME, Output};
use super::progress::Progress;
use super::promise::{Oversized, Policy, SyncPolicy, too_big};
use super::receipts::Receipts;
use super::shape::{Misfit, Shape};
use super::signals::{Signalled, Signals};
use super::unique::Unique;
use crate::cli::failure::{Ended, OutputClosed, Status, Usage};
use crate::cli::session::Session;
use crate::format::body::Body;
use crate::log::{Appended, Appender, Placed};
use crate::model::Offset;

/// How far a record that is too large is read to tell its size.
const LONGEST_MEASURED: u64 = 1 << 30;

/// Which of the records that wait are appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// Those that make a batch as large as it may be.
    FullBatches,
    /// All.
    All,
}

/// Appends what inputs hold.
#[derive(Debug)]
pub struct Producer<'a> {
    session: &'a Session,
    appender: Appender,
    framer: Framer,
    shape: Shape,
    policy: Policy,
    signals: Signals,
    output: Output,
    /// Set once something could not be printed: what comes after a gap must not be.
    muted: bool,
    progress: Progress,
    gathered: Gathered,
    /// Set if only records with new keys are appended.
    unique: Option<Unique>,
    receipts: Receipts,
    /// Since when something is appended that is not synced.
    unsynced_since: Option<Instant>,
    stored: u64,
    skipped: u64,
    /// The input ended inside a record that was passed over.
    has_ended: bool,
}

impl<'a> Producer<'a> {
    /// A producer that has not begun.
    ///
    /// # Errors
    /// What the system says of standard output.
    pub fn new(
        session: &'a Session,
        appender: Appender,
        framer: Framer,
        shape: Shape,
        policy: Policy,
        signals: Signals,
        progress: Progress,
    ) -> Result<Producer<'a>> {
        Ok(Producer {
            session,
            appender,
            framer,
            shape,
            policy,
            signals,
            output: Output::standard()?,
            muted: false,
            progress,
            gathered: Gathered::default(),
            unique: None,
            receipts: Receipts::default(),
            unsynced_since: None,
            stored: 0,
            skipped: 0,
            has_ended: false,
        })
    }

    /// Lets it append only records whose keys are new.
    pub fn append_only_new(&mut self, unique: Unique) {
        self.unique = Some(unique);
    }

    /// Appends everything from all inputs.
    ///
    /// # Errors
    /// Whatever ends it early; what was read as whole records before is stored.
    pub fn run(mut self, inputs: &[Input]) -> Result<()> {
        let taken = inputs.iter().try_for_each(|input| self.take(input));
        let taken = taken.and_then(|()| self.look_at_end());
        let dropped = self.framer.pending();
        // Whatever ended it: what was appended is made safe, and only then spoken of.
        let never = self.policy.sync == SyncPolicy::Never;
        let synced = if never { Ok(()) } else { self.sync_now() };
        if taken.is_ok() {
            self.appender.finish_keys();
        }
        self.progress.finish();
        if let Some(note) = self.unique.as_ref().and_then(Unique::repeats) {
            self.session.note(&note);
        }
        match taken {
            Ok(()) => synced.and_then(|()| self.partly()).and_then(|()| self.cut_off()),
            Err(error) if error.is::<Signalled>() => {
                if dropped > 0 {
                    self.session.note(&format!("dropped {dropped} bytes of an unfinished record"));
                }
                synced.and(Err(error))
            }
            Err(error) if error.is::<Ended>() => synced.and(Err(error)),
            Err(error) if self.stored == 0 => Err(error),
            Err(error) if self.policy.expected_end.is_some() => {
                // Not 6: that says that nothing was appended.
                let line = format!("{} stored, but then: {error:#}", records(self.stored));
                bail!(Ended { status: Status::Partly, line: Some(line) });
            }
            Err(error) => Err(error.context(format!("{} stored, but then", records(self.stored)))),
        }
    }

    /// An end that was expected is looked at though there was nothing to append.
    fn look_at_end(&mut self) -> Result<()> {
        match self.policy.expected_end {
            Some(expected) if self.stored == 0 => Ok(self.appender.expect_end(expected)?),
            _ => Ok(()),
        }
    }

    /// Ends with 9 if records were left out.
    fn partly(&self) -> Result<()> {
        let too_large = || {
            let (skipped, limit) = (records(self.skipped), self.shape.limit);
            format!("left out {skipped} larger than max-record-size, {limit} bytes")
        };
        let too_large = (self.skipped > 0).then(too_large);
        let refused = self.unique.as_ref().and_then(Unique::refusals);
        let mut left_out: Vec<String> = refused.into_iter().chain(too_large).collect();
        if left_out.is_empty() {
            return Ok(());
        }
        left_out.push(format!("{} stored", records(self.stored)));
        bail!(Ended { status: Status::Partly, line: Some(left_out.join("; ")) });
    }

    /// Ends by the signal that came while the last of it was printed.
    fn cut_off(&self) -> Result<()> {
        match self.signals.caught().filter(|_| self.muted) {
            Some(signal) => bail!(signal),
            None => Ok(()),
        }
    }

    /// Appends everything from one input.
    fn take(&mut self, input: &Input) -> Result<()> {
        let mut more = false;
        loop {
            if let Some(signal) = self.signals.caught() {
                self.append(input, Wanted::All)?;
                bail!(signal);
            }
            // While there is more at once, only what fills a batch is appended.
            more = more && input.is_ready(&self.signals, Some(Duration::ZERO))?;
            self.append(input, if more { Wanted::FullBatches } else { Wanted::All })?;
            if std::mem::take(&mut self.has_ended) {
                return self.append(input, Wanted::All);
            }
            if !more {
                self.sync_if_due()?;
                if !input.is_ready(&self.signals, self.until_sync())? {
                    continue;
                }
            }
            let read = input.read(self.framer.room())?;
            if read == 0 {
                self.framer.end_input();
                return self.append(input, Wanted::All);
            }
            self.framer.filled(read);
            self.progress.add(read as u64);
            more = true;
        }
    }

    /// Appends whole records that wait.
    fn append(&mut self, input: &Input, wanted: Wanted) -> Result<()> {
        if !self.shape.is_plain() || !self.framer.cuts_lines() {
            return self.append_shaped(input, wanted);
        }
        // What is synced by the batch is appended by the batch.
        let most = if self.policy.sync == SyncPolicy::Each { 1 } else { usize::MAX };
        loop {
            match self.framer.lines(wanted == Wanted::FullBatches, most) {
                Ok(bodies) if bodies.is_empty() => return Ok(()),
                Ok(bodies) => {
                    let expected = &mut self.policy.expected_end;
                    let appended = append(&mut self.appender, expected, &bodies, self.session)?;
                    if self.policy.tee.is_some() {
                        for body in &bodies {
                            print(&mut self.output, &mut self.muted, body.bytes, &self.signals)?;
                        }
                    }
                    self.appended(appended)?;
                }
                Err(oversize) => self.too_large(&oversize, input)?,
            }
        }
    }

    /// The same for records that are more than lines.
    fn append_shaped(&mut self, input: &Input, wanted: Wanted) -> Result<()> {
        loop {
            let limits = self.framer.limits();
            let full =
                self.gathered.len() >= limits.records || self.gathered.size() >= limits.bytes;
            if full {
                self.append_gathered()?;
            }
            match self.framer.record() {
                Ok(None) if wanted == Wanted::FullBatches => return Ok(()),
                Ok(None) => return self.append_gathered(),
                Ok(Some(piece)) => {
                    let room = limits.bytes.saturating_sub(self.gathered.size());
                    let misfit = if piece.len() > room && !self.gathered.is_empty() {
                        let piece = piece.to_vec();
                        self.append_gathered()?;
                        self.shape.add(&piece, &mut self.gathered)
                    } else {
                        self.shape.add(piece, &mut self.gathered)
                    };
                    if let Err(misfit) = misfit {
                        self.misfit(&misfit, input)?;
                    }
                }
                Err(oversize) => {
                    self.append_gathered()?;
                    self.too_large(&oversize, input)?;
                }
            }
        }
    }

    fn append_gathered(&mut self) -> Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        if self.unique.is_some() {
            return self.append_new();
        }
        let records = u32::try_from(self.gathered.len()).unwrap_or(u32::MAX);
        let (layout, bytes) = self.gathered.body();
        let body = Body::plain(layout, records, bytes);
        let expected = &mut self.policy.expected_end;
        let appended = append(&mut self.appender, expected, &[body], self.session)?;
        if let Some(delimiter) = &self.policy.tee {
            let values = self.gathered.contents();
            let values = values.iter().map(|record| record.value.unwrap_or_default());
            let text = values.flat_map(|value| [value, delimiter]).collect::<Vec<_>>().concat();
            print(&mut self.output, &mut self.muted, &text, &self.signals)?;
        }
        self.gathered.clear();
        self.appended(appended)
    }

    /// Appends those of the gathered records whose keys are new.
    fn append_new(&mut self) -> Result<()> {
        let Some(unique) = &mut self.unique else { return Ok(()) };
        let contents = self.gathered.contents();
        let (expected, now) = (self.policy.expected_end, self.session.now()?);
        let placed = unique.append(&mut self.appender, &contents, expected, now)?;
        let mut text = Vec::new();
        for (content, placed) in contents.iter().zip(&placed) {
            let (Placed::New(offset) | Placed::Same(offset)) = *placed else { continue };
            if matches!(placed, Placed::New(_)) {
                self.stored += 1;
                self.policy.expected_end = expected.and_then(|_| offset.forward(1));
                if let Some(delimiter) = &self.policy.tee {
                    text.extend_from_slice(content.value.unwrap_or_default());
                    text.extend_from_slice(delimiter);
                }
            }
            if self.policy.receipts {
                self.receipts.add_one(offset);
            }
        }
        print(&mut self.output, &mut self.muted, &text, &self.signals)?;
        self.gathered.clear();
        self.make_safe()
    }

    /// Takes note of an append.
    fn appended(&mut self, appended: Appended) -> Result<()> {
        self.stored += appended.next.since(appended.base);
        if self.policy.receipts {
            self.receipts.add(appended);
        }
        self.make_safe()
    }

    /// Syncs what was appended, if that is due.
    fn make_safe(&mut self) -> Result<()> {
        match self.policy.sync {
            SyncPolicy::Each => self.sync_now(),
            SyncPolicy::Never => self.print_receipts(),
            SyncPolicy::Every(_) if self.receipts.are_many() => self.sync_now(),
            SyncPolicy::Every(_) => {
                self.unsynced_since.get_or_insert_with(Instant::now);
                self.sync_if_due()
            }
        }
    }

    /// A piece of input that is no record: all before it is stored first.
    fn misfit(&mut self, misfit: &Misfit, input: &Input) -> Result<()> {
        self.append_gathered()?;
        let (line, limit) = (self.framer.line(), self.shape.limit);
        let place = format!("record {line} of the input, in {},", input.name());
        match misfit {
            Misfit::TooBig(_) if self.policy.oversized == Oversized::Skip => {
                self.skipped += 1;
                Ok(())
            }
            Misfit::NoKey => bail!(Usage(format!("{place} {misfit}"))),
            Misfit::TooBig(bytes) => bail!(too_big(&place, &format!("has {bytes} bytes"), limit)),
            _ => bail!("{place} {misfit}"),
        }
    }

    /// A record that is larger than the buffer may become.
    fn too_large(&mut self, oversize: &Oversize, input: &Input) -> Result<()> {
        if self.policy.oversized == Oversized::Skip {
            self.measure(input, u64::MAX)?;
            self.skipped += 1;
            return Ok(());
        }
        let place = format!("record {} of the input, in {},", oversize.line, input.name());
        let size = match oversize.whole {
            true => Some(oversize.seen),
            false => self.measure(input, LONGEST_MEASURED)?,
        };
        let limit = self.shape.limit;
        let size = match size {
            Some(size) => format!("has {size} bytes"),
            None => format!("has more than {limit} bytes"),
        };
        bail!(too_big(&place, &size, limit));
    }

    /// Passes over the record that is too large, reading on to its end, within reason;
    /// says its size.
    fn measure(&mut self, input: &Input, mut left: u64) -> Result<Option<u64>> {
        while left > 0 && self.signals.caught().is_none() {
            if let Some(size) = self.framer.skip_oversize() {
                return Ok(Some(size));
            }
            if !input.is_ready(&self.signals, None)? {
                break;
            }
            let read = input.read(self.framer.room())?;
            self.framer.filled(read);
            self.progress.add(read as u64);
            if read == 0 {
                self.has_ended = true;
                self.framer.end_input();
                return Ok(self.framer.skip_oversize());
            }
            left = left.saturating_sub(read as u64);
        }
        Ok(None)
    }

    fn until_sync(&self) -> Option<Duration> {
        match (self.policy.sync, self.unsynced_since) {
            (SyncPolicy::Every(interval), Some(since)) => {
                Some(interval.saturating_sub(since.elapsed()))
            }
            _ => None,
        }
    }

    fn sync_if_due(&mut self) -> Result<()> {
        if self.until_sync() == Some(Duration::ZERO) { self.sync_now() } else { Ok(()) }
    }

    fn sync_now(&mut self) -> Result<()> {
        self.appender.sync()?;
        self.unsynced_since = None;
        self.print_receipts()
    }

    fn print_receipts(&mut self) -> Result<()> {
        let (output, muted, signals) = (&mut self.output, &mut self.muted, &self.signals);
        self.receipts.print(|text| print(output, muted, text, signals))
    }
}

/// Appends batches, if the log ends where it is expected to.
fn append(
    appender: &mut Appender,
    expected_end: &mut Option<Offset>,
    bodies: &[Body<'_>],
    session: &Session,
) -> Result<Appended> {
    let now = session.now()?;
    let appended = match *expected_end {
        Some(expected) => appender.append_if_end(expected, bodies, now)?,
        None => appender.append_all(bodies, now)?,
    };
    *expected_end = expected_end.map(|_| appended.next);
    Ok(appended)
}

/// Prints `bytes`, unless something before them could not be printed. A signal that
/// comes while the output is full is no error here: what was read is still appended,
/// and then that signal is met. An output that was closed is one: `produce` must not
/// end as if all were well.
fn print(output: &mut Output, muted: &mut bool, bytes: &[u8], signals: &Signals) -> Result<()> {
    if *muted {
        return Ok(());
    }
    let printed = output.write(bytes, signals);
    *muted = printed.is_err();
    match printed {
        Err(error) if error.is::<Signalled>() => Ok(()),
        Err(error) if error.is::<OutputClosed>() => {
            Err(io::Error::from(io::ErrorKind::BrokenPipe)).context(NAME)
        }
        printed => printed,
    }
}

fn records(count: u64) -> String {
    format!("{count} record{}", if count == 1 { "" } else { "s" })
}
