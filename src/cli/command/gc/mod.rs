//! `tapelog gc`: delete what every group is done with, or compact it.

mod collection;
mod compaction;

use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;

use crate::cli::failure::Usage;
use crate::cli::session::{LogArgument, Session};
use crate::cli::text::duration::parse_duration;
use crate::format::settings::Cleanup;
use crate::model::{GroupName, Offset, SegmentFacts};

/// Delete the segments that every group is done with, or compact them
///
/// Whole sealed segments go, oldest first; offsets never start again. Without a
/// group nothing goes, as nobody has said what is done with. What is printed says
/// for each segment why it goes or stays.
///
/// With --compact nothing is deleted but what newer records replace: a sealed segment
/// that every group is done with keeps the newest record of each key, and every record
/// without a key. Offsets stay as they are, with gaps, and so does the active segment.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  tapelog gc demo --dry-run  what would go, and who holds the rest
  tapelog gc demo            delete it
  tapelog gc demo --roll     the segment that was appended to, too
  tapelog gc demo --compact --even-unread --roll
                             keep what is newest, read or not, and look
                             into the segment that was appended to, too
  tapelog config demo cleanup=compact
                             from now on a plain gc compacts

Compaction:
  A key's newest record stays. If it is a tombstone, it goes once it is
  older than --tombstone-age, so that readers have time to see it. Appends
  and readers go on meanwhile. If it is killed, nothing is lost, and the
  next run goes on. It reads all records first, and ends with 4 where it
  can't. It needs room for one segment and the index: on a full disk only
  a gc that deletes helps.

JSON names:
  first, next, records, bytes, action (delete, compact or keep), reason,
  held_by, removed_records, saved_bytes
")]
pub struct Gc {
    #[command(flatten)]
    log: LogArgument,

    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,

    /// Seal the active segment first, so that it can go too
    #[arg(long)]
    roll: bool,

    /// Delete no segment, but the records in them that newer ones replace
    #[arg(long)]
    compact: bool,

    /// Compact what groups have not read yet, too
    #[arg(long)]
    even_unread: bool,

    /// How long compaction keeps a tombstone
    #[arg(long, value_name = "DUR", default_value = "24h", value_parser = parse_duration)]
    tombstone_age: Duration,

    /// Print a line of JSON a segment
    #[arg(short = 'J', long)]
    json: bool,
}

/// One segment and what becomes of it.
#[derive(Serialize)]
struct Row<'a> {
    first: Offset,
    next: Offset,
    records: u64,
    bytes: u64,
    action: &'static str,
    reason: String,
    held_by: Vec<&'a GroupName>,
    removed_records: u64,
    saved_bytes: i64,
}

impl<'a> Row<'a> {
    /// A segment that stays as it is.
    fn kept(segment: &SegmentFacts, reason: String, held_by: Vec<&'a GroupName>) -> Row<'a> {
        Row {
            first: segment.base,
            next: segment.next,
            records: segment.records,
            bytes: segment.bytes,
            action: "keep",
            reason,
            held_by,
            removed_records: 0,
            saved_bytes: 0,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// What [`crate::log::Log::collect`] and [`crate::log::Log::compact`] say.
pub fn run(args: &Gc, session: &Session) -> Result<()> {
    let log = session.open(&args.log)?;
    let compacts = args.compact || log.settings().cleanup() == Cleanup::Compact;
    if args.even_unread && !compacts {
        bail!(Usage("--even-unread needs --compact".to_owned()));
    }
    if !args.dry_run {
        // Before anything changes: a checkpoint that can't be read forbids it all.
        log.group_positions()?;
        log.seal_active(args.roll, session.now()?)?;
    }
    match compacts {
        true => compaction::run(args, &log, session),
        false => collection::run(args, &log, session),
    }
}
