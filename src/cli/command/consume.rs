//! `tapelog consume`: print records.

use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::cli::failure::{Ended, OutputClosed, Status, Usage};
use crate::cli::group::complete_group;
use crate::cli::printer::{Format, Printer};
use crate::cli::session::{LogArgument, Session};
use crate::cli::stream::follow::Follower;
use crate::cli::stream::hand_over::{CommitInterval, HandOver};
use crate::cli::stream::output::Output;
use crate::cli::stream::progress::Progress;
use crate::cli::stream::signals::{Signalled, Signals};
use crate::cli::text::count::parse_count;
use crate::cli::text::duration::parse_duration;
use crate::cli::text::range::parse_span;
use crate::cli::text::when::parse_time;
use crate::log::{Claim, Consumer, Log, Piece, Reader, Reading};
use crate::model::{GroupName, Offset, Span, Start, Timestamp};

/// Print records
///
/// Like cat: everything from the log start to the log end, then done. With -f it
/// goes on as tail -f does. With -g it begins at the group's checkpoint and moves
/// the checkpoint behind what was handed over: written, and on a pipe taken by the
/// reader. After a crash at most one commit interval is printed again, and nothing
/// is lost.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  tapelog consume demo                    everything
  tapelog consume demo --tail 10 -f       the last ten, then whatever comes
  tapelog consume demo -g billing -n 100  the group's next hundred
  tapelog consume demo -o @-1h            what came in the last hour
  tapelog consume demo -o 100:200 -J      a range, as JSON
  tapelog consume demo -F '%o %v\\n'       a template

START:
  earliest, latest  the first record, or what comes after the last
  N, -N, +N         offset N, the last N records, N after the log start
  @TIME             the first record appended at or after TIME
  A:B, A:, :B       from A up to but not including B

TIME:
  2026-11-29T15:00:00Z, 2026-11-29, yesterday  UTC if there is no zone
  1764428400, 1764428400000                    Unix seconds, milliseconds
  -1h, '1 hour ago'                            before now

JSON names:
  offset, next  the record's offset, and the one to commit behind it
  ts            its time, in ms
  append_ts     when it was appended, in ms
  payload       its value; payload_base64 if that is not UTF-8
")]
pub struct Consume {
    #[command(flatten)]
    log: LogArgument,

    /// Read as this group, from its checkpoint
    #[arg(short, long, value_name = "GROUP", add = complete_group())]
    group: Option<GroupName>,

    /// Where to begin, or A:B; with -g where a new group begins
    #[arg(short, long, value_name = "START", allow_hyphen_values = true)]
    offset: Option<String>,

    /// The last N records, as -o -N
    #[arg(long, value_name = "N", value_parser = parse_count, conflicts_with = "offset")]
    tail: Option<u64>,

    /// From the first record appended at or after TIME, as -o @TIME
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, conflicts_with_all = ["offset", "tail"])]
    since: Option<String>,

    /// Up to the first record appended at or after TIME
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<String>,

    /// Stop after N records
    #[arg(short = 'n', long = "count", value_name = "N", value_parser = parse_count)]
    count: Option<u64>,

    /// At the log end wait for more
    #[arg(short, long)]
    follow: bool,

    /// Follow, and end once nothing came for so long
    #[arg(long, value_name = "DUR", value_parser = parse_duration)]
    timeout: Option<Duration>,

    /// Exit with 3 if there was nothing to print
    #[arg(long)]
    fail_empty: bool,

    /// Move the checkpoint after hand-over, or leave it to tapelog commit
    #[arg(long, value_name = "WHEN", requires = "group", default_value = "after")]
    commit: Commit,

    /// Commit after N records or each DUR [default: whichever is first of 10000, 1s]
    #[arg(long, value_name = "N|DUR", requires = "group")]
    commit_every: Option<CommitEvery>,

    /// Where to go on if the log does not hold the place, instead of exit 6
    #[arg(long, value_name = "WHERE")]
    out_of_range: Option<Nearest>,

    #[command(flatten)]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Commit {
    After,
    Manual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Nearest {
    Earliest,
    Latest,
}

impl Nearest {
    fn start(self) -> Start {
        match self {
            Nearest::Earliest => Start::Earliest,
            Nearest::Latest => Start::Latest,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum CommitEvery {
    Records(u64),
    Time(Duration),
}

impl FromStr for CommitEvery {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text.parse::<u64>() {
            Ok(0) => Err("0 is no interval: give a number of records from 1, or a duration".into()),
            Ok(records) => Ok(CommitEvery::Records(records)),
            Err(_) => parse_duration(text).map(CommitEvery::Time),
        }
    }
}

impl Consume {
    /// The part of the log that the options name.
    fn span(&self, now: Timestamp) -> Result<Span> {
        let usage = |option: &str, why: String| Usage(format!("{option}: {why}"));
        let mut span = match &self.offset {
            Some(text) => parse_span(text, now).map_err(|why| usage("--offset", why))?,
            None => Span { from: self.tail.map(Start::Last), until: None },
        };
        if let Some(text) = &self.since {
            let time = parse_time(text, now).map_err(|why| usage("--since", why))?;
            span.from = Some(Start::Time(time));
        }
        if let Some(text) = &self.until {
            if span.until.is_some() {
                bail!(Usage("--until and the end of --offset: give one of them".to_owned()));
            }
            let time = parse_time(text, now).map_err(|why| usage("--until", why))?;
            span.until = Some(Start::Time(time));
        }
        Ok(span)
    }

    fn interval(&self) -> CommitInterval {
        let mut interval = CommitInterval { records: 10_000, time: Duration::from_secs(1) };
        match self.commit_every {
            Some(CommitEvery::Records(records)) => interval.records = records,
            Some(CommitEvery::Time(time)) => {
                interval = CommitInterval { records: u64::MAX, time };
            }
            None => {}
        }
        interval
    }
}

/// Runs the command.
///
/// # Errors
/// Whatever ends it early; what was handed over before is committed.
pub fn run(args: &Consume, session: &Session) -> Result<()> {
    let now = session.now()?;
    let span = args.span(now)?;
    let printer = args.format.printer()?;
    let signals = Signals::watch().context("can't watch for signals")?;
    let log = session.open(&args.log)?;
    let follows = args.follow || args.timeout.is_some();
    // Watching begins before reading, so that nothing appended in between is missed.
    let follower = follows.then(|| Follower::of(log.home().clone(), args.timeout));
    let (from, hand_over) = begin(args, session, &log, span.from, now)?;
    let output = Output::standard()?;
    let until = Until::resolve(&log, span.until)?;
    let total = 0;
    let mut consumption = Consumption {
        session,
        log: &log,
        printer,
        signals,
        progress: Progress::of_bytes("reading", total, !rustix::termios::isatty(output.handle())),
        output,
        hand_over,
        until,
        left: args.count.unwrap_or(u64::MAX),
        printed: 0,
    };
    let read = consumption.read(from, follower);
    let printed = consumption.printed;
    consumption.finish(read)?;
    if args.fail_empty && printed == 0 {
        bail!(Ended { status: Status::Missing, line: None });
    }
    Ok(())
}

/// Where reading begins, and the group that reads, if there is one.
fn begin(
    args: &Consume,
    session: &Session,
    log: &Log,
    from: Option<Start>,
    now: Timestamp,
) -> Result<(Offset, Option<HandOver>)> {
    let chosen = args.out_of_range.map(Nearest::start);
    let Some(group) = &args.group else {
        let start = from.unwrap_or(Start::Earliest);
        let resolved = match (log.resolve(start), chosen) {
            (Err(crate::log::Error::OutOfRange(range)), Some(nearest)) => {
                let to = log.resolve(nearest)?;
                session.note(&format!("{range}; going on at {to}"));
                to
            }
            (resolved, _) => resolved?,
        };
        return Ok((resolved, None));
    };
    if from.is_some() && log.group_position(group)?.is_some() {
        bail!(Usage(format!(
            "group {group} has a checkpoint already, a start places new groups only: \
             move it with tapelog seek LOG -g {group} --to …"
        )));
    }
    let claim = Claim {
        start: from.unwrap_or(Start::Earliest),
        out_of_range: chosen,
        commits: args.commit == Commit::After,
        holder: format!("process {} since {now}", std::process::id()),
    };
    let consumer = Consumer::claim(log, group, &claim, now)?;
    Ok((consumer.position(), Some(HandOver::new(consumer, args.interval()))))
}

/// Where reading stops.
#[derive(Clone, Copy, Debug)]
enum Until {
    /// Nowhere.
    Open,
    /// Before this offset, which may not be there yet.
    Offset(Offset),
    /// Before the first record appended at this moment or later.
    Time(Timestamp),
}

impl Until {
    fn resolve(log: &Log, until: Option<Start>) -> Result<Until> {
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
struct Consumption<'a> {
    session: &'a Session,
    log: &'a Log,
    printer: Printer,
    signals: Signals,
    output: Output,
    hand_over: Option<HandOver>,
    progress: Progress,
    until: Until,
    /// How many records may still be printed.
    left: u64,
    printed: u64,
}

impl Consumption<'_> {
    /// Reads and prints from `from` on until there is a reason to stop.
    fn read(&mut self, from: Offset, mut follower: Option<Follower>) -> Result<()> {
        let mut reader = Reader::open(self.log, from)?;
        let mut scratch = Vec::new();
        let mut last_print = Instant::now();
        while self.left > 0 {
            if let Some(signal) = self.signals.caught() {
                bail!(signal);
            }
            if let Until::Offset(end) = self.until
                && reader.next_offset() >= end
            {
                return Ok(());
            }
            match reader.read()? {
                Reading::Records(piece) => {
                    if !self.print(&piece, &mut scratch)? {
                        return Ok(());
                    }
                    last_print = Instant::now();
                }
                Reading::End => {
                    let now = self.session.now()?;
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
        Ok(())
    }

    /// Prints what is wanted of `piece`; says whether more may be wanted.
    fn print(&mut self, piece: &Piece<'_>, scratch: &mut Vec<u8>) -> Result<bool> {
        let end = self.until.end_in(piece);
        let mut first = piece.from;
        while first < end && self.left > 0 {
            let limit = self.hand_over.as_ref().map_or(u64::MAX, HandOver::slice_limit);
            let wanted = end.since(first).min(limit).min(self.left);
            let next = first.forward(wanted).unwrap_or(end);
            let bytes = self.printer.print(piece, first, next, scratch);
            let bytes = bytes.with_context(|| format!("offset {first} can't be read"))?;
            self.give(first, next, piece.header.append_time, bytes)?;
            self.left -= wanted;
            self.printed += wanted;
            first = next;
        }
        Ok(end == piece.header.next)
    }

    /// Gives one slice to the output.
    fn give(&mut self, first: Offset, next: Offset, time: Timestamp, bytes: &[u8]) -> Result<()> {
        let Some(hand_over) = &mut self.hand_over else {
            self.output.write(bytes, &self.signals)?;
            self.progress.add(bytes.len() as u64);
            return Ok(());
        };
        let now = self.session.now()?;
        hand_over.make_room(next.since(first), &self.output, &self.signals, now)?;
        let begin = self.output.sent();
        let end = begin + bytes.len() as u64;
        // Noted before it is written: a write may end half way.
        hand_over.gave(first, next, time, begin, end);
        self.output.write(bytes, &self.signals)?;
        self.progress.add(bytes.len() as u64);
        hand_over.commit_if_due(&self.output, now)
    }

    /// Waits for more; false if there is a reason to end.
    fn wait(&mut self, follower: &mut Follower, last_print: Instant) -> Result<bool> {
        let due = self.hand_over.as_ref().and_then(HandOver::until_due);
        let deadline = match self.until {
            Until::Time(time) => Some(time.since(self.session.now()?)),
            _ => None,
        };
        let limit = due.into_iter().chain(deadline).min();
        let goes_on = follower.wait(&self.signals, &self.output, last_print, limit)?;
        if self.output.is_closed() {
            bail!(OutputClosed);
        }
        let now = self.session.now()?;
        if let Some(hand_over) = &mut self.hand_over {
            hand_over.commit_if_due(&self.output, now)?;
        }
        Ok(goes_on)
    }

    /// Commits what was handed over, whatever ended the reading, and ends as that did.
    fn finish(mut self, read: Result<()>) -> Result<()> {
        self.progress.finish();
        let now = self.session.now()?;
        let committed = match self.hand_over {
            Some(hand_over) => {
                hand_over.finish(self.log, &self.printer, &self.output, &self.signals, now)
            }
            None => Ok(()),
        };
        let signalled = self.signals.caught();
        match read {
            Err(error) if !error.is::<OutputClosed>() && !error.is::<Signalled>() => Err(error),
            read => committed.and(signalled.map_or(read, |signal| Err(signal.into()))),
        }
    }
}
