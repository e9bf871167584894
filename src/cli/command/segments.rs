//! `tapelog segments`: the segments, and who still needs them.

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use crate::cli::failure::end_with;
use crate::cli::listing::{Listing, print_json, show_time};
use crate::cli::session::{LogArgument, Session};
use crate::cli::text::size::human_size;
use crate::log::{Bounds, Error, Log, SegmentListing};
use crate::model::{GroupName, Offset, SegmentFacts, SegmentState, Timestamp};
use crate::policy::retention::{GroupPosition, names, needed_by};

/// Show the segments, and which groups still need them
///
/// A segment is one file of the log. The newest is active: records are appended to
/// it. The others are sealed; gc deletes those that no group needs, oldest first.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  tapelog segments demo            one line a segment
  tapelog segments demo --summary  one line for all
  tapelog segments demo -J | jq 'select(.needed_by == [\"old\"]).bytes'

JSON names:
  first, next, records, bytes, first_time, last_time (ms, or null),
  state (active or sealed), needed_by
  with --summary: segments, records, bytes, start, end, durable
")]
pub struct Segments {
    #[command(flatten)]
    log: LogArgument,

    /// One line for the whole log
    #[arg(long)]
    summary: bool,

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
    first_time: Option<Timestamp>,
    last_time: Option<Timestamp>,
    state: SegmentState,
    needed_by: Vec<&'a GroupName>,
}

#[derive(Serialize)]
struct Summary {
    segments: usize,
    records: u64,
    bytes: u64,
    start: Offset,
    end: Offset,
    durable: Offset,
}

/// Runs the command.
///
/// # Errors
/// [`Error::Damage`] and checkpoints that can't be read, after the listing; what the
/// disk says.
pub fn run(args: &Segments, session: &Session) -> Result<()> {
    let log = session.open(&args.log)?;
    if args.summary {
        // Groups have no part in it, so a bad checkpoint does not disturb.
        let (segments, damage) = log.segments()?;
        print_summary(&summary(&log, &segments)?, args.json)?;
        return end_with(damage.map(Error::from));
    }
    let SegmentListing { segments, groups, damage, bad_groups } = log.segment_listing()?;
    match args.json {
        false => table(&segments, &groups).print()?,
        true => print_json(segments.iter().map(|facts| row(facts, &groups)))?,
    }
    let bad_groups = bad_groups.into_iter().map(|bad| bad.why);
    end_with(bad_groups.chain(damage.map(Error::from)))
}

fn row<'a>(facts: &SegmentFacts, groups: &'a [GroupPosition]) -> Row<'a> {
    Row {
        first: facts.base,
        next: facts.next,
        records: facts.records,
        bytes: facts.bytes,
        first_time: facts.first_time,
        last_time: facts.last_time,
        state: facts.state,
        needed_by: needed_by(facts, groups).collect(),
    }
}

fn table(segments: &[SegmentFacts], groups: &[GroupPosition]) -> Listing {
    let columns =
        [">FIRST", ">NEXT", ">RECORDS", ">BYTES", "FIRST-TIME", "LAST-TIME", "STATE", "NEEDED-BY"];
    let mut listing = Listing::new(&columns);
    for facts in segments {
        let names = names(needed_by(facts, groups), ",");
        listing.row([
            facts.base.to_string(),
            facts.next.to_string(),
            facts.records.to_string(),
            facts.bytes.to_string(),
            show_time(facts.first_time),
            show_time(facts.last_time),
            state(facts.state).to_owned(),
            if names.is_empty() { "-".to_owned() } else { names },
        ]);
    }
    listing
}

fn state(state: SegmentState) -> &'static str {
    match state {
        SegmentState::Active => "active",
        SegmentState::Sealed => "sealed",
    }
}

fn summary(log: &Log, segments: &[SegmentFacts]) -> Result<Summary> {
    let Bounds { start, end, durable, .. } = log.bounds()?;
    Ok(Summary {
        segments: segments.len(),
        records: segments.iter().map(|facts| facts.records).sum(),
        bytes: segments.iter().map(|facts| facts.bytes).sum(),
        start,
        end,
        durable,
    })
}

fn print_summary(summary: &Summary, json: bool) -> Result<()> {
    if json {
        return print_json([summary]);
    }
    let columns = [">SEGMENTS", ">RECORDS", ">SIZE", ">START", ">END", ">DURABLE"];
    let mut listing = Listing::new(&columns);
    listing.row([
        summary.segments.to_string(),
        summary.records.to_string(),
        human_size(summary.bytes),
        summary.start.to_string(),
        summary.end.to_string(),
        summary.durable.to_string(),
    ]);
    listing.print()
}
