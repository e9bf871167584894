//! `tapelog groups`: positions, lag, holder.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use crate::cli::failure::end_with;
use crate::cli::group::complete_group;
use crate::cli::listing::{Listing, print_json};
use crate::cli::session::{LogArgument, Session};
use crate::cli::stream::delivery::drained::wait_until_drained;
use crate::cli::text::duration::{brief_duration, parse_duration};
use crate::cli::text::size::human_size;
use crate::log::{BadGroup, Error, GroupListing, GroupStatus};
use crate::model::{GroupName, Offset};

/// Show where the groups are
///
/// POSITION is a group's checkpoint: the next offset to read. LAG is how many records
/// lie between it and the log end, TIME-LAG how long the first of them has been
/// waiting, HELD what this group alone keeps gc from deleting (segments shows what
/// it keeps together with others), HOLDER who consumes it now.
///
/// While a group is consumed, POSITION trails what was printed by up to one commit
/// interval: a second or 10000 records. A group whose checkpoint can't be read is
/// shown with question marks, and groups ends with 4.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  tapelog groups demo                     all groups
  tapelog groups demo -g me -J | jq .lag  a number for monitoring
  tapelog groups demo -g old --delete     let gc forget about old
  tapelog groups demo -g me --wait-drained --timeout 5m && echo all is read

JSON names:
  group, position, end, lag, lag_ms, holder (or null), held_bytes;
  null for what can't be read of a group
")]
pub struct Groups {
    #[command(flatten)]
    log: LogArgument,

    /// Only this group; exit 3 if there is none
    #[arg(short, long, value_name = "GROUP", add = complete_group())]
    group: Option<GroupName>,

    /// Delete the group: its checkpoint and its history, but no dead letters
    #[arg(long, requires = "group", conflicts_with = "json")]
    delete: bool,

    /// Wait until the group has read everything and committed that, and print nothing
    #[arg(long, requires = "group", conflicts_with_all = ["delete", "json"])]
    wait_drained: bool,

    /// Exit with 11 if that takes longer
    #[arg(long, value_name = "DUR", requires = "wait_drained", value_parser = parse_duration)]
    timeout: Option<Duration>,

    /// Print a line of JSON a group
    #[arg(short = 'J', long)]
    json: bool,
}

#[derive(Serialize)]
struct Row<'a> {
    group: &'a GroupName,
    position: Option<Offset>,
    end: Offset,
    lag: Option<u64>,
    lag_ms: Option<u64>,
    holder: Option<&'a str>,
    held_bytes: Option<u64>,
}

/// Runs the command.
///
/// # Errors
/// [`Error::NoGroup`]; a deadline; checkpoints that can't be read and damage at the log's end, after
/// the listing; what [`crate::log::Log::group_listing`] says.
pub fn run(args: &Groups, session: &Session) -> Result<()> {
    let log = session.open(&args.log)?;
    if let (true, Some(group)) = (args.delete, &args.group) {
        log.delete_group(group)?;
        if log.has_dead_letters(group)? {
            let dir = log.dead_letters_dir(group);
            session.note(&format!("kept its dead letters: rm -r {} deletes them", dir.display()));
        }
        return Ok(());
    }
    if let (true, Some(group)) = (args.wait_drained, &args.group) {
        return wait_until_drained(&log, group, args.timeout);
    }
    let mut groups = log.group_listing(session.now()?)?;
    if let Some(wanted) = &args.group {
        groups.good.retain(|status| status.group == *wanted);
        groups.bad.retain(|bad| bad.group == *wanted);
        if groups.good.is_empty() && groups.bad.is_empty() {
            return Err(Error::NoGroup(wanted.clone()).into());
        }
    }
    match args.json {
        true => print_json(rows(&groups))?,
        false => table(&rows(&groups)).print()?,
    }
    let bad = groups.bad.into_iter().map(|bad| bad.why);
    end_with(bad.chain(groups.damage.map(Error::from)))
}

/// All groups in the order of their names.
fn rows(groups: &GroupListing) -> Vec<Row<'_>> {
    let good = groups.good.iter().map(row);
    let bad = groups.bad.iter().map(|bad| bad_row(bad, groups.end));
    let mut rows: Vec<_> = good.chain(bad).collect();
    rows.sort_by_key(|row| row.group);
    rows
}

fn row(status: &GroupStatus) -> Row<'_> {
    Row {
        group: &status.group,
        position: Some(status.position),
        end: status.end,
        lag: Some(status.lag),
        lag_ms: Some(u64::try_from(status.lag_time.as_millis()).unwrap_or(u64::MAX)),
        holder: status.holder.as_deref(),
        held_bytes: Some(status.held_bytes),
    }
}

/// A group whose checkpoint can't be read: where it stands is not known.
fn bad_row(bad: &BadGroup, end: Offset) -> Row<'_> {
    Row {
        group: &bad.group,
        position: None,
        end,
        lag: None,
        lag_ms: None,
        holder: bad.holder.as_deref(),
        held_bytes: None,
    }
}

fn table(rows: &[Row<'_>]) -> Listing {
    let columns = ["GROUP", ">POSITION", ">END", ">LAG", ">TIME-LAG", ">HELD", "HOLDER"];
    let mut listing = Listing::new(&columns);
    for row in rows {
        listing.row([
            row.group.to_string(),
            known(row.position, |position| position.to_string()),
            row.end.to_string(),
            known(row.lag, |lag| lag.to_string()),
            known(row.lag_ms, |ms| brief_duration(Duration::from_millis(ms))),
            known(row.held_bytes, human_size),
            row.holder.unwrap_or("-").to_owned(),
        ]);
    }
    listing
}

/// A cell, or a question mark for what is not known.
fn known<T>(value: Option<T>, show: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "?".to_owned(), show)
}
