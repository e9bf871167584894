//! `tapelog seek`: move a checkpoint anywhere.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{ArgGroup, Args};
use serde::Serialize;

use crate::cli::failure::Usage;
use crate::cli::group::{GroupArgument, complete_group};
use crate::cli::listing::{print_json, print_lines};
use crate::cli::session::{LogArgument, Session};
use crate::cli::text::count::parse_shift;
use crate::cli::text::duration::parse_duration;
use crate::cli::text::range::{parse_offset, parse_start};
use crate::cli::text::when::parse_time;
use crate::log::{Move, SeekTarget};
use crate::model::{GroupName, Offset, Start, Timestamp};

/// Move a group's checkpoint anywhere
///
/// Acts at once, prints the old and the new position, and writes the move down, so
/// that --undo takes it back. A group that is being consumed is left alone: exit 5.
/// A group that is new is made. Give one of --to…, --shift-by, --by-duration,
/// --from-file and --undo.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("target").required(true))]
#[command(override_usage = "\
tapelog seek [OPTIONS] --group <GROUP> --to <PLACE> <LOG>
       tapelog seek [OPTIONS] --group <GROUP> --undo <LOG>")]
#[command(after_long_help = "\
Examples:
  tapelog seek demo -g me --to earliest     read everything again
  tapelog seek demo -g me --to @-1h         the last hour
  tapelog seek demo -g me --to-datetime 2026-11-29T15:00:00Z
  tapelog seek demo -g me --shift-by -100   a hundred back
  tapelog seek demo -g me --to-group other  where another group is
  tapelog seek demo -g me --undo            take the last seek back

PLACE:
  earliest, latest  the first record, or what comes after the last
  N, -N, +N         offset N, the last N records, N after the log start
  @TIME             the first record appended at or after TIME, which is
                    written as for consume: @2026-11-29, @-1h, @yesterday

JSON names:
  group, from (null if the group is new), to
")]
pub struct Seek {
    #[command(flatten)]
    log: LogArgument,

    #[command(flatten)]
    group: GroupArgument,

    /// To a place in the log
    #[arg(long, value_name = "PLACE", group = "target", allow_hyphen_values = true)]
    to: Option<String>,

    /// To the log start
    #[arg(long, group = "target")]
    to_earliest: bool,

    /// To the log end
    #[arg(long, group = "target")]
    to_latest: bool,

    /// To an offset
    #[arg(long, value_name = "OFFSET", group = "target", value_parser = parse_offset)]
    to_offset: Option<Offset>,

    /// Forward by N records, or back if N is negative; stops at the log's ends
    #[arg(long, value_name = "N", group = "target", value_parser = parse_shift, allow_hyphen_values = true)]
    shift_by: Option<i64>,

    /// To the first record appended at or after TIME
    #[arg(long, value_name = "TIME", group = "target", allow_hyphen_values = true)]
    to_datetime: Option<String>,

    /// To the first record appended so long ago or later
    #[arg(long, value_name = "DUR", group = "target", value_parser = parse_duration, allow_hyphen_values = true)]
    by_duration: Option<Duration>,

    /// To where it is already: only checks that the log holds it
    #[arg(long, group = "target")]
    to_current: bool,

    /// To where another group is
    #[arg(long, value_name = "GROUP", group = "target", add = complete_group())]
    to_group: Option<GroupName>,

    /// To where FILE says: lines of groups -J, or Kafka's topic,partition,offset
    #[arg(long, value_name = "FILE", group = "target")]
    from_file: Option<PathBuf>,

    /// Take the last seek back; once more, the one before it
    #[arg(long, group = "target")]
    undo: bool,

    /// Only say what would be done
    #[arg(long, conflicts_with = "execute")]
    dry_run: bool,

    /// Does nothing: seek always acts. Kafka's tool needs it
    #[arg(long)]
    execute: bool,

    /// Print the move as a line of JSON
    #[arg(short = 'J', long)]
    json: bool,
}

impl Seek {
    fn target(&self, now: Timestamp) -> Result<SeekTarget> {
        let usage = |option: &str, why: String| Usage(format!("{option}: {why}"));
        let to = |start| Ok(SeekTarget::To(start));
        if let Some(text) = &self.to {
            return to(parse_start(text, now).map_err(|why| usage("--to", why))?);
        }
        if let Some(offset) = self.to_offset {
            return to(Start::At(offset));
        }
        if let Some(records) = self.shift_by {
            return Ok(SeekTarget::By(records));
        }
        if let Some(text) = &self.to_datetime {
            let text = text.strip_prefix('@').unwrap_or(text);
            return to(Start::Time(
                parse_time(text, now).map_err(|why| usage("--to-datetime", why))?,
            ));
        }
        if let Some(duration) = self.by_duration {
            let ago = Start::Time(now.before(duration));
            return to(if duration.is_zero() { Start::Latest } else { ago });
        }
        if let Some(group) = &self.to_group {
            return Ok(SeekTarget::Group(group.clone()));
        }
        if let Some(path) = &self.from_file {
            return to(Start::At(offset_in_file(path, &self.group.group)?));
        }
        Ok(match (self.to_earliest, self.to_latest, self.undo) {
            (true, _, _) => SeekTarget::To(Start::Earliest),
            (_, true, _) => SeekTarget::To(Start::Latest),
            (_, _, true) => SeekTarget::Undo,
            _ => SeekTarget::Current,
        })
    }
}

/// Runs the command.
///
/// # Errors
/// What [`crate::log::Log::seek`] says.
pub fn run(args: &Seek, session: &Session) -> Result<()> {
    let now = session.now()?;
    let target = args.target(now)?;
    let log = session.open(&args.log)?;
    let group = &args.group.group;
    let done = match args.dry_run {
        true => log.plan_seek(group, &target)?,
        false => log.seek(group, &target, now)?,
    };
    print_move(&done, &target, args.json)
}

fn print_move(done: &Move, target: &SeekTarget, json: bool) -> Result<()> {
    #[derive(Serialize)]
    struct Row<'a> {
        group: &'a GroupName,
        from: Option<Offset>,
        to: Offset,
    }
    let Move { group, from, to } = done;
    if json {
        return print_json([Row { group, from: *from, to: *to }]);
    }
    let from = from.map_or_else(|| "new".to_owned(), |from| from.to_string());
    // The moment that was sought, so that a zone that was not meant is noticed.
    let moment = match target {
        SeekTarget::To(Start::Time(time)) => format!(", the first record from {time} on"),
        _ => String::new(),
    };
    print_lines([format!("{group}: {from} -> {to}{moment}")])
}

/// The position of `group` in a file of `groups -J`, or the only one in Kafka's CSV.
fn offset_in_file(path: &PathBuf, group: &GroupName) -> Result<Offset> {
    let text =
        fs::read_to_string(path).with_context(|| format!("can't read {}", path.display()))?;
    if let Some(offset) = text.lines().find_map(|line| position_in_json(line, group)) {
        return Ok(offset);
    }
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let csv: Vec<_> = lines.iter().filter_map(|line| row_of_csv(line)).collect();
    let path = path.display();
    match csv.as_slice() {
        [(0, offset)] if lines.len() == 1 => Ok(*offset),
        [(partition, _)] if lines.len() == 1 => {
            bail!("{path} is about partition {partition}: a log has partition 0 only")
        }
        [_, ..] => {
            bail!("{path} has more than one line: give the one topic,partition,offset of this log")
        }
        [] => bail!(
            "{path} has no position for group {group}: give lines of groups -J, \
             or one line topic,partition,offset"
        ),
    }
}

fn position_in_json(line: &str, group: &GroupName) -> Option<Offset> {
    let row: serde_json::Value = serde_json::from_str(line).ok()?;
    let named = row.get("group")?.as_str()? == group.as_str();
    named.then(|| row.get("position")?.as_u64()).flatten().map(Offset::new)
}

/// The partition and the offset in a line of Kafka's.
fn row_of_csv(line: &str) -> Option<(u64, Offset)> {
    let fields: Vec<&str> = line.split(',').map(|field| field.trim().trim_matches('"')).collect();
    match fields.as_slice() {
        [_topic, partition, offset] => partition.parse().ok().zip(parse_offset(offset).ok()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_found_in_both_kinds_of_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("positions");
        let group = "g".parse().unwrap();
        for text in [
            "{\"group\":\"a\",\"position\":1}\n{\"group\":\"g\",\"position\":7}\n",
            "\"demo\",0,7\n",
        ] {
            fs::write(&path, text).unwrap();
            assert_eq!(offset_in_file(&path, &group).unwrap(), Offset::new(7));
        }
        let refusals = [
            ("demo,0,7\ndemo,1,8\n", "more than one line"),
            ("demo,1,8\n", "partition 1"),
            ("{\"group\":\"a\",\"position\":1}\n", "no position for group g"),
            ("demo,x,8\n", "no position for group g"),
        ];
        for (text, why) in refusals {
            fs::write(&path, text).unwrap();
            let said = offset_in_file(&path, &group).unwrap_err().to_string();
            assert!(said.contains(why), "{said}");
        }
    }
}
