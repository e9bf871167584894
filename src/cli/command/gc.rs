//! `tapelog gc`: delete what every group is done with.

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use crate::cli::listing::{Listing, print_json};
use crate::cli::session::{LogArgument, Session};
use crate::log::Collection;
use crate::model::{GroupName, Offset};
use crate::policy::retention::Fate;

/// Delete the segments that every group is done with
///
/// Whole sealed segments go, oldest first; offsets never start again. Without a
/// group nothing goes, as nobody has said what is done with. What is printed says
/// for each segment why it goes or stays.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  tapelog gc demo --dry-run  what would go, and who holds the rest
  tapelog gc demo            delete it
  tapelog gc demo --roll     the segment that was appended to, too

JSON names:
  first, next, records, bytes, action (delete or keep), reason, held_by
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

    /// Print a line of JSON a segment
    #[arg(short = 'J', long)]
    json: bool,
}

#[derive(Serialize)]
struct Row<'a> {
    first: Offset,
    next: Offset,
    records: u64,
    bytes: u64,
    action: &'static str,
    reason: String,
    held_by: &'a [GroupName],
}

/// Runs the command.
///
/// # Errors
/// What [`crate::log::Log::collect`] says.
pub fn run(args: &Gc, session: &Session) -> Result<()> {
    let log = session.open(&args.log)?;
    let plan = if args.dry_run {
        log.plan_collection()?
    } else {
        log.seal_active(args.roll, session.now()?)?;
        log.collect()?
    };
    if plan.groups == 0 {
        session.note("no group reads this log, so nothing is done with and nothing goes");
    }
    match args.json {
        true => print_json(plan.fates.iter().map(row)),
        false => table(&plan).print(),
    }
}

fn row(fate: &Fate) -> Row<'_> {
    Row {
        first: fate.segment.base,
        next: fate.segment.next,
        records: fate.segment.records,
        bytes: fate.segment.bytes,
        action: action(fate),
        reason: fate.reason.to_string(),
        held_by: fate.reason.holders(),
    }
}

fn action(fate: &Fate) -> &'static str {
    if fate.reason.deletes() { "delete" } else { "keep" }
}

fn table(plan: &Collection) -> Listing {
    let mut listing = Listing::new(&[">FIRST", ">NEXT", ">BYTES", "ACTION", "WHY"]);
    for fate in &plan.fates {
        listing.row([
            fate.segment.base.to_string(),
            fate.segment.next.to_string(),
            fate.segment.bytes.to_string(),
            action(fate).to_owned(),
            fate.reason.to_string(),
        ]);
    }
    listing
}
