//! Deleting: what is printed of it.

use anyhow::Result;

use super::{Gc, Row};
use crate::cli::listing::{Listing, print_json};
use crate::cli::session::Session;
use crate::cli::text::size::human_size;
use crate::log::{Collection, Log};
use crate::policy::retention::{Fate, GroupPosition};

/// Deletes, or says what would be deleted.
pub(super) fn run(args: &Gc, log: &Log, session: &Session) -> Result<()> {
    let plan = if args.dry_run { log.plan_collection()? } else { log.collect()? };
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
    let Fate { segment, reason } = fate;
    let kept = Row::kept(segment, fate.why(groups), fate.holders(groups).collect());
    match reason.deletes() {
        false => kept,
        true => Row {
            action: action(fate),
            removed_records: segment.records,
            saved_bytes: segment.bytes.cast_signed(),
            ..kept
        },
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
