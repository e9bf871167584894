//! `tapelog consume`: print records.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use regex::bytes::Regex;

use crate::cli::failure::{Ended, Status, Usage};
use crate::cli::group::complete_group;
use crate::cli::printer::Format;
use crate::cli::session::{LogArgument, Session};
use crate::cli::stream::consumption::{Consumption, Until};
use crate::cli::stream::delivery::handler::Handler;
use crate::cli::stream::delivery::options::{Delivery, Takers};
use crate::cli::stream::follow::Follower;
use crate::cli::stream::jumps::Jumps;
use crate::cli::stream::output::Output;
use crate::cli::stream::progress::Progress;
use crate::cli::stream::reach::{backward_end, forward_end, lies_behind_damage};
use crate::cli::stream::signals::Signals;
use crate::cli::text::count::parse_count;
use crate::cli::text::duration::parse_duration;
use crate::cli::text::escapes::one_line;
use crate::cli::text::filter::{Filter, parse_header};
use crate::cli::text::range::{is_backwards, parse_span};
use crate::cli::text::when::parse_time;
use crate::log::{Claim, Consumer, Error as LogError, KeyIndex, Log, Skipped};
use crate::model::{GroupName, Offset, Span, Start, Timestamp};

/// Print records
///
/// Like cat: everything from the log start to the log end, then done. With -f it
/// goes on as tail -f does; without it, what is appended meanwhile is left out. With -g
/// it begins at the group's checkpoint and moves
/// the checkpoint behind what was handed over: written, and on a pipe taken by the
/// reader; on a socket, what was written counts as handed over. After a crash at most
/// one commit interval is printed again, and nothing is lost.
#[derive(Args, Debug)]
#[command(override_usage = "tapelog consume [OPTIONS] <LOG> [-- <CMD>...]")]
#[command(after_long_help = "\
Examples:
  tapelog consume demo                    everything
  tapelog consume demo --tail 10 -f       the last ten, then whatever comes
  tapelog consume demo -g billing -n 100  the group's next hundred
  tapelog consume demo -o @-1h            what came in the last hour
  tapelog consume demo -o 100:200 -J      a range, as JSON
  tapelog consume demo -F '%o %v\\n'       a template
  tapelog consume demo -K : --grep error  keys and values, of some records
  tapelog consume demo -r -n 1            the newest record
  tapelog consume demo -g me --exec 'mail -s new me'  a run for each record
  tapelog consume demo -g me --batch 100 -- ./load  one for each hundred
  tapelog consume demo -g me --ack-from acks -J | ./work > acks
  head takes more from the pipe than it prints: with -g use -n instead

START:
  earliest, latest  the first record, or what comes after the last
  N, -N, +N         offset N, the last N records, N after the log start
  @TIME             the first record appended at or after TIME
  A:B, A:, :B       from A up to but not including B; a B beyond the log
                    end is no error: there reading stops, or with -f waits

TIME:
  2026-11-29T15:00:00Z, 2026-11-29, yesterday  UTC if there is no zone
  1764428400, 1764428400000                    Unix seconds, milliseconds
  -1h, '1 hour ago'                            before now

FORMAT:
  %o offset, %k key, %v or %s value, %h headers, %T time in ms
  %K, %V or %S       length of key or value in bytes; -1 if there is none
  %d{FORMAT}         the time by strftime, in UTC; RFC 3339 without braces
  %v{hex} {base64} {json}   another form; also after %k, %s, %h
  %%, \\n \\t \\xHH   a percent sign, escapes; no newline is added

JSON names:
  offset, next  the record's offset, and the one to commit behind it
  ts            its own time, else when it was appended, in ms
  append_ts     when it was appended, in ms
  key           its key, if it has one; key_base64 if that is not UTF-8
  headers       name, value, name, value, …; or headers_base64
  payload       its value, or null; payload_base64 if that is not UTF-8

Index:
  --key jumps over what holds no such record, by the index of keys: damage
  there is not met. tapelog verify checks every byte. Without a good index,
  and with --skip-damage, all is read.

Commands:
  The command's input is the record's value and nothing else; with -J, -F,
  -K or --batch what would have been printed. Its output is ours. Its
  environment tells of the record:
  TAPELOG_OFFSET                its offset; the first of a batch
  TAPELOG_NEXT                  the offset to commit behind it or the batch
  TAPELOG_COUNT                 how many records it is given
  TAPELOG_KEY, TAPELOG_TIME     key, and time in ms; not of a batch
  TAPELOG_HEADER_name           the header of this name; not of a batch
  TAPELOG_ATTEMPT               1, or more with --retry
  TAPELOG_GROUP                 the group
  What an environment can't hold is not set: what has a NUL, and all beyond
  96 KiB. A batch ends at 4 MiB too.
  Exit 0 acknowledges. Any other end is a failed attempt, a signal too; but
  126, 127 and a program that can't be started end consume with 8 at once.
  After SIGINT or SIGTERM the command that runs may end; a second one does
  not wait. Dead letters have headers beside their own: tapelog-reason,
  tapelog-attempts, tapelog-offset, tapelog-group.

Acknowledgements:
  Make the pipe with mkfifo. Write what -J prints as next: one more than
  the last offset that is done with. A line counts when it is read; it may
  not go back, nor beyond what was printed. At the end consume closes its
  output and waits until all is acknowledged, or the pipe is closed: what
  is not acknowledged then is told, exit 8, and comes again next time.
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
    #[arg(long, hide_short_help = true)]
    fail_empty: bool,

    /// Go on at earliest or latest if the place is gone
    ///
    /// Instead of exit 6.
    #[arg(long, value_name = "WHERE", hide_possible_values = true)]
    out_of_range: Option<Nearest>,

    /// Go on with the next good record behind damage; exit with 4 all the same
    #[arg(long, hide_short_help = true)]
    skip_damage: bool,

    /// Only records with this key; may be repeated
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    key: Vec<String>,

    /// Only records with this header; may be repeated, then all of them
    #[arg(short = 'H', long = "header", value_name = "NAME=VALUE", allow_hyphen_values = true)]
    headers: Vec<String>,

    /// Only records whose value matches this regex
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true)]
    grep: Option<String>,

    /// --since and --until go by the records' own times
    #[arg(long, conflicts_with = "offset", hide_short_help = true)]
    own_time: bool,

    /// The newest record first
    #[arg(short, long, conflicts_with_all = ["follow", "timeout", "group", "commit_every"])]
    reverse: bool,

    #[command(flatten)]
    delivery: Delivery,

    #[command(flatten)]
    format: Format,
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

impl Consume {
    /// The part of the log that the options name.
    fn span(&self, now: Timestamp) -> Result<Span> {
        let usage = |option: &str, why: String| Usage(format!("{option}: {why}"));
        let mut span = match &self.offset {
            Some(text) => parse_span(text, now).map_err(|why| usage("--offset", why))?,
            None => Span { from: self.tail.map(Start::Last), until: None },
        };
        let plain = span;
        if let Some(time) = self.time("--since", &self.since, now)? {
            span.from = Some(Start::Time(time));
        }
        if let Some(time) = self.time("--until", &self.until, now)? {
            if span.until.is_some() {
                bail!(Usage("--until and the end of --offset: give one of them".to_owned()));
            }
            span.until = Some(Start::Time(time));
        }
        if is_backwards(span) {
            bail!(Usage("--until lies before the start: give the earlier time first".to_owned()));
        }
        // The records' own times are a matter of the filter.
        Ok(if self.own_time { plain } else { span })
    }

    /// The records that are wanted.
    fn filter(&self, now: Timestamp) -> Result<Filter> {
        let header =
            |text: &String| parse_header(text).map_err(|why| Usage(format!("--header: {why}")));
        let grep = match &self.grep {
            Some(text) => Some(
                Regex::new(text)
                    .map_err(|error| Usage(format!("--grep: {}", one_line(&error.to_string()))))?,
            ),
            None => None,
        };
        let own_time = match self.own_time {
            true => Some((
                self.time("--since", &self.since, now)?,
                self.time("--until", &self.until, now)?,
            )),
            false => None,
        };
        Ok(Filter {
            keys: self.key.iter().map(|key| key.as_bytes().to_vec()).collect(),
            headers: self.headers.iter().map(header).collect::<Result<_, Usage>>()?,
            grep,
            own_time,
        })
    }

    fn time(
        &self,
        option: &str,
        text: &Option<String>,
        now: Timestamp,
    ) -> Result<Option<Timestamp>> {
        let parsed = text.as_ref().map(|text| parse_time(text, now)).transpose();
        Ok(parsed.map_err(|why| Usage(format!("{option}: {why}")))?)
    }

    /// The index, if only some keys are wanted and nothing keeps it from being used. Damage
    /// that is to be passed has to be met.
    fn key_index(&self, log: &Log) -> Option<KeyIndex> {
        let is_of_use = !self.key.is_empty() && !self.skip_damage;
        // What is wrong with the log, reading it tells.
        is_of_use.then(|| KeyIndex::open(log).ok()).flatten()
    }
}

/// Runs the command.
///
/// # Errors
/// Whatever ends it early; what was handed over before is committed.
pub fn run(args: &Consume, session: &Session) -> Result<()> {
    let now = session.now()?;
    let span = args.span(now)?;
    args.delivery.check(args.group.as_ref())?;
    let filter = args.filter(now)?;
    let keys = filter.keys.clone();
    let mut printer = args.format.printer(filter)?;
    if args.delivery.hands_over_one_by_one() {
        printer = printer.without_delimiter();
    }
    let signals = Signals::watch().context("can't watch for signals")?;
    let log = session.open(&args.log)?;
    let follows = args.follow || args.timeout.is_some();
    // Watching begins before reading, so that nothing appended in between is missed.
    let follower = follows.then(|| Follower::of(log.home().clone(), args.timeout)).transpose()?;
    let (from, consumer) = begin(args, session, &log, span.from, &signals)?;
    let Takers { hand_over, handler, acks } = args.delivery.takers(consumer, &log, session)?;
    let output = if handler.is_some() { Output::of_others() } else { Output::standard()? };
    let until = Until::resolve(&log, span.until)?;
    let index = args.key_index(&log);
    let last = if follows { Offset::MAX } else { forward_end(&log) };
    let shows = handler.is_none() && !output.is_terminal();
    let mut consumption = Consumption {
        session,
        log: &log,
        printer,
        signals,
        progress: Progress::of_bytes("reading", 0, shows),
        output,
        hand_over,
        jumps: None,
        handler,
        acks,
        until,
        end: last,
        skip_damage: args.skip_damage,
        skipped: Skipped::default(),
        left: args.count.unwrap_or(u64::MAX),
        printed: 0,
    };
    let read = match args.reverse {
        true => {
            let (until, skipped) = backward_end(&log, span.until, args.skip_damage)?;
            if let Some(index) = &index {
                consumption.jumps = Some(Jumps::backwards(&log, index, &keys)?);
            }
            let read = consumption.read_back(from, until);
            // Counted once, be it met again.
            consumption.skipped = consumption.skipped.max(skipped);
            read
        }
        false => {
            if let Some(index) = &index {
                consumption.jumps = Some(Jumps::forwards(&log, index, &keys, until, last)?);
            }
            consumption.read(from, follower)
        }
    };
    let (printed, skipped) = (consumption.printed, consumption.skipped);
    let failed = consumption.handler.as_ref().map_or(0, Handler::skipped);
    consumption.finish(read)?;
    if skipped.places > 0 {
        bail!(passed_damage(skipped));
    }
    if failed > 0 {
        bail!(passed_failures(failed));
    }
    if args.fail_empty && printed == 0 {
        bail!(Ended { status: Status::Missing, line: None });
    }
    Ok(())
}

/// How a run ends that passed damage.
fn passed_damage(skipped: Skipped) -> Ended {
    let Skipped { places, offsets } = skipped;
    let line = format!(
        "skipped damage at {places} {} with {offsets} {}: \
         tapelog verify LOG shows it, --repair sets it aside",
        if places == 1 { "place" } else { "places" },
        if offsets == 1 { "offset" } else { "offsets" },
    );
    Ended { status: Status::Damage, line: Some(line) }
}

/// How a run ends that passed records which the command could not handle.
fn passed_failures(records: u64) -> Ended {
    let noun = if records == 1 { "record" } else { "records" };
    let line = format!("skipped {records} {noun} that the command could not handle");
    Ended { status: Status::Partly, line: Some(line) }
}

/// Where reading begins, and the group that reads, if there is one.
fn begin(
    args: &Consume,
    session: &Session,
    log: &Log,
    from: Option<Start>,
    signals: &Signals,
) -> Result<(Offset, Option<Consumer>)> {
    let chosen = args.out_of_range.map(Nearest::start);
    let Some(group) = &args.group else {
        let start = from.unwrap_or(Start::Earliest);
        if let (Start::At(offset), true) = (start, args.skip_damage)
            && lies_behind_damage(log, offset)
        {
            return Ok((offset, None));
        }
        let resolved = match (log.resolve(start), chosen) {
            (Err(LogError::OutOfRange(range)), Some(nearest)) => {
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
    let claim = || {
        Ok(Claim {
            start: from.unwrap_or(Start::Earliest),
            out_of_range: chosen,
            commits: args.delivery.commits(),
            holder: format!("process {} since {}", std::process::id(), session.now()?),
        })
    };
    let consumer = args.delivery.claim(log, group, claim, session, signals)?;
    Ok((consumer.position(), Some(consumer)))
}
