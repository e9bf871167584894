//! Compacting: what is printed of it.

use anyhow::Result;

use super::{Gc, Row};
use crate::cli::listing::{Listing, print_json};
use crate::cli::session::Session;
use crate::cli::stream::progress::Progress;
use crate::cli::text::count::counted;
use crate::cli::text::size::human_size;
use crate::format::settings::Cleanup;
use crate::log::{Compaction, CompactionFate, CompactionTerms, Log, Outcome};
use crate::model::{GroupName, Timestamp};
use crate::policy::compaction::{Obstacle, Scope};
use crate::policy::retention::{GroupPosition, names, needed_by};

/// Compacts, or says what that would save.
pub(super) fn run(args: &Gc, log: &Log, session: &Session) -> Result<()> {
    let terms = CompactionTerms {
        scope: Scope {
            even_unread: args.even_unread,
            even_without_groups: log.settings().cleanup() == Cleanup::Compact,
        },
        tombstones_before: before(session.now()?, args),
    };
    let (segments, _) = log.segments()?;
    let bytes = segments.iter().map(|facts| facts.bytes).sum();
    let mut progress = Progress::of_bytes("compacting", bytes, true);
    let mut watch = |bytes| progress.add(bytes);
    let done = match args.dry_run {
        true => log.plan_compaction(&terms, &mut watch),
        false => log.compact(&terms, &mut watch),
    };
    progress.finish();
    let plan = done?;
    if plan.fates.iter().any(|fate| fate.outcome == Outcome::Kept(Obstacle::NoGroup)) {
        session.note(
            "no group reads this log, so nothing is compacted: --even-unread does it all the \
             same, or for good tapelog config LOG cleanup=compact",
        );
    }
    if args.json {
        return print_json(plan.fates.iter().map(|fate| row(fate, &plan.groups)));
    }
    let printed = table(&plan, args.dry_run).print();
    tell_saved(&plan, args.dry_run, session);
    printed
}

/// The moment before which tombstones are old enough.
fn before(now: Timestamp, args: &Gc) -> Timestamp {
    let age = i64::try_from(args.tombstone_age.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.as_millis().saturating_sub(age))
}

/// Says what is saved, if anything is.
fn tell_saved(plan: &Compaction, dry_run: bool, session: &Session) {
    let compacted = plan.fates.iter().filter(|fate| fate.removed() > 0);
    let (mut segments, mut records, mut bytes) = (0, 0, 0);
    for fate in compacted {
        segments += 1;
        records += fate.removed();
        bytes += fate.saved();
    }
    if segments == 0 {
        return;
    }
    let done = if dry_run { "would compact" } else { "compacted" };
    // Gaps take room too: where few records go, more than that saves.
    let change = if bytes < 0 { "more than before" } else { "saved" };
    session.note(&format!(
        "{done} {}: {} removed, {} {change}",
        counted(segments, "segment", "segments"),
        counted(records, "record", "records"),
        human_size(bytes.unsigned_abs()),
    ));
}

fn row<'a>(fate: &'a CompactionFate, groups: &'a [GroupPosition]) -> Row<'a> {
    let kept = Row::kept(&fate.segment, why(fate, groups), holders(fate, groups).collect());
    match fate.outcome {
        Outcome::Compacted { removed, .. } => {
            Row { action: "compact", removed_records: removed, saved_bytes: fate.saved(), ..kept }
        }
        Outcome::Clean | Outcome::Kept(_) => kept,
    }
}

/// The groups that keep the segment from being compacted.
fn holders<'a>(
    fate: &'a CompactionFate,
    groups: &'a [GroupPosition],
) -> impl Iterator<Item = &'a GroupName> {
    let held = fate.outcome == Outcome::Kept(Obstacle::Held);
    needed_by(&fate.segment, groups).filter(move |_| held)
}

fn why(fate: &CompactionFate, groups: &[GroupPosition]) -> String {
    match fate.outcome {
        Outcome::Compacted { removed, .. } => {
            format!("{removed} of its {} go", counted(fate.segment.records, "record", "records"))
        }
        Outcome::Clean => "nothing newer replaces any of it".to_owned(),
        Outcome::Kept(Obstacle::Held) => {
            format!("needed by {}", names(holders(fate, groups), ", "))
        }
        Outcome::Kept(Obstacle::Active) => "active: --roll seals it".to_owned(),
        Outcome::Kept(Obstacle::NoGroup) => "no group has read it".to_owned(),
    }
}

fn table(plan: &Compaction, dry_run: bool) -> Listing {
    let mut listing = Listing::new(&[">FIRST", ">NEXT", ">BYTES", ">SAVED", "ACTION", "WHY"]);
    for fate in &plan.fates {
        let action = match (fate.outcome, dry_run) {
            (Outcome::Compacted { .. }, true) => "compact",
            (Outcome::Compacted { .. }, false) => "compacted",
            _ => "keep",
        };
        listing.row([
            fate.segment.base.to_string(),
            fate.segment.next.to_string(),
            fate.segment.bytes.to_string(),
            fate.saved().to_string(),
            action.to_owned(),
            why(fate, &plan.groups),
        ]);
    }
    listing
}
