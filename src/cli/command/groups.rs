//! `tapelog groups`: positions, lag, holder.

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use crate::cli::group::complete_group;
use crate::cli::listing::{Listing, print_json};
use crate::cli::session::{LogArgument, Session};
use crate::cli::text::duration::show_duration;
use crate::cli::text::size::human_size;
use crate::log::{Error, GroupStatus};
use crate::model::{GroupName, Offset};

/// Show where the groups are
///
/// POSITION is a group's checkpoint: the next offset to read. LAG is how many records
/// lie between it and the log end, TIME-LAG how long the first of them has been
/// waiting, HELD what this group alone keeps gc from deleting, HOLDER who consumes it
/// now.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  tapelog groups demo                     all groups
  tapelog groups demo -g me -J | jq .lag  a number for monitoring
  tapelog groups demo -g old --delete     let gc forget about old

JSON names:
  group, position, end, lag, lag_ms, holder (or null), held_bytes
")]
pub struct Groups {
    #[command(flatten)]
    log: LogArgument,

    /// Only this group; exit 3 if there is none
    #[arg(short, long, value_name = "GROUP", add = complete_group())]
    group: Option<GroupName>,

    /// Delete the group: its checkpoint and its history
    #[arg(long, requires = "group", conflicts_with = "json")]
    delete: bool,

    /// Print a line of JSON a group
    #[arg(short = 'J', long)]
    json: bool,
}

#[derive(Serialize)]
struct Row<'a> {
    group: &'a GroupName,
    position: Offset,
    end: Offset,
    lag: u64,
    lag_ms: u64,
    holder: Option<&'a str>,
    held_bytes: u64,
}

/// Runs the command.
///
/// # Errors
/// [`Error::NoGroup`]; what [`crate::log::Log::group_status`] says.
pub fn run(args: &Groups, session: &Session) -> Result<()> {
    let log = session.open(&args.log)?;
    if let (true, Some(group)) = (args.delete, &args.group) {
        return Ok(log.delete_group(group)?);
    }
    let mut groups = log.group_status(session.now()?)?;
    if let Some(wanted) = &args.group {
        groups.retain(|status| status.group == *wanted);
        if groups.is_empty() {
            return Err(Error::NoGroup(wanted.clone()).into());
        }
    }
    if args.json { print_json(groups.iter().map(row)) } else { table(&groups).print() }
}

fn row(status: &GroupStatus) -> Row<'_> {
    Row {
        group: &status.group,
        position: status.position,
        end: status.end,
        lag: status.lag,
        lag_ms: u64::try_from(status.lag_time.as_millis()).unwrap_or(u64::MAX),
        holder: status.holder.as_deref(),
        held_bytes: status.held_bytes,
    }
}

fn table(groups: &[GroupStatus]) -> Listing {
    let columns = ["GROUP", ">POSITION", ">END", ">LAG", ">TIME-LAG", ">HELD", "HOLDER"];
    let mut listing = Listing::new(&columns);
    for status in groups {
        listing.row([
            status.group.to_string(),
            status.position.to_string(),
            status.end.to_string(),
            status.lag.to_string(),
            show_duration(status.lag_time),
            human_size(status.held_bytes),
            status.holder.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    listing
}
