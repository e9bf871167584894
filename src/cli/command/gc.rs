//! `tapelog gc`: delete what every group is done with.

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use crate::cli::listing::{Listing, print_json};
use crate::cli::session::{LogArgument, Session};
use crate::cli::text::size::human_size;
use crate::log::Collection;
use crate::model::{GroupName, Offset};
use crate::policy::retention::{Fate, GroupPosition};

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
    held_by: Vec<&'a GroupName>,
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
        // Before anything changes: a checkpoint that can't be read forbids it all.
        log.group_positions()?;
        log.seal_active(args.roll, session.now()?)?;
        log.collect()?
    };
    if plan.groups.is_empty() {
        session.note(
            "no group reads this log, so nothing is deleted: \
             tapelog seek LOG -g NAME --to latest says that all may go",
        );
    }
    if args.json {
        return print_json(plan.fates.iter().map(|fate| row(fate, &plan.groups)));
    }
    let printed = table(&plan, args.dry_run).print();
    if !args.dry_run {
        tell_deleted(&plan, session);
    }
    printed
}

/// Says how much went, if anything did.
fn tell_deleted(plan: &Collection, session: &Session) {
    let (count, bytes) =
        plan.deleted().fold((0, 0), |(count, bytes), fate| (count + 1, bytes + fate.segment.bytes));
    let segments = if count == 1 { "segment" } else { "segments" };
    if count > 0 {
        session.note(&format!("deleted {count} {segments}, {}", human_size(bytes)));
    }
}

fn row<'a>(fate: &'a Fate, groups: &'a [GroupPosition]) -> Row<'a> {
    Row {
        first: fate.segment.base,
        next: fate.segment.next,
        records: fate.segment.records,
        bytes: fate.segment.bytes,
        action: action(fate),
        reason: fate.why(groups),
        held_by: fate.holders(groups).collect(),
    }
}

fn action(fate: &Fate) -> &'static str {
    if fate.reason.deletes() { "delete" } else { "keep" }
}

fn table(plan: &Collection, dry_run: bool) -> Listing {
    let word = |fate: &Fate| match (fate.reason.deletes(), dry_run) {
        (true, false) => "deleted",
        _ => action(fate),
    };
    let mut listing = Listing::new(&[">FIRST", ">NEXT", ">BYTES", "ACTION", "WHY"]);
    for fate in &plan.fates {
        listing.row([
            fate.segment.base.to_string(),
            fate.segment.next.to_string(),
            fate.segment.bytes.to_string(),
            word(fate).to_owned(),
            fate.why(&plan.groups),
        ]);
    }
    listing
}
