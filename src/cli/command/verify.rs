//! `tapelog verify`: check every byte, and mend what is damaged.

use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;

use crate::cli::failure::{Ended, Status};
use crate::cli::listing::{Listing, print_json};
use crate::cli::session::{LogArgument, Session};
use crate::cli::stream::progress::Progress;
use crate::log::{Error, Finding, Kind, Log, Repair, Verification};
use crate::model::{Offset, Position};

/// Check every byte of the log
///
/// Every batch, index, state file and name is read and checked, while writers go on.
/// A line is printed for each thing that is not as it should be; nothing is changed.
/// With --repair the log is mended: every good record stays where it is, damaged bytes
/// are set aside in quarantine/ with a note of what they were, a gap takes the place of
/// lost offsets so that readers pass them knowingly, and what can be worked out from the
/// rest is made anew. Nothing is deleted; killed at any point, it can be run again.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  tapelog verify demo           check; exit 0, or 4 if something is damaged
  tapelog verify demo --repair  mend it; exit 0 if the log is whole then
  tapelog verify demo -J | jq 'select(.kind == \"damaged\")'

Kinds:
  damaged     bytes that were safe have changed; repair sets them aside
  missing     safe records are gone, or their segment is; a gap is left
  stranger    a file with a segment's name that belongs elsewhere
  state       start, end or log.json is no good; it is made anew
  checkpoint  a group's place is no good: seek, only you know where to
  torn        an append that a crash left unfinished, never promised
  gap         damage that an earlier repair passed
  slot        one line of a two-slot file is bad, or the file is missing
  derived     an index or table is no good; nothing depends on it
  unread      a file that can't be read, so nothing is known: exit status 1
  The first five are damage: exit status 4.

Action:
  What --repair does about it: set-aside, gap, rebuild, none; or seek,
  which only you can do.

JSON names:
  file, position, first, next, kind, action
  position is null for a whole file, first and next where nothing is lost
  Beyond 100 places of one segment the rest is one line: from the first
  place, and first to next span all that is lost.
")]
pub struct Verify {
    #[command(flatten)]
    log: LogArgument,

    /// Mend what is found
    #[arg(long)]
    repair: bool,

    /// Print a line of JSON a finding
    #[arg(short = 'J', long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    file: String,
    position: Option<Position>,
    first: Option<Offset>,
    next: Option<Offset>,
    kind: &'static str,
    action: &'static str,
}

/// Runs the command.
///
/// # Errors
/// Exit status 4 for damage, after the listing; what the disk says.
pub fn run(args: &Verify, session: &Session) -> Result<()> {
    let restored = match args.repair {
        true => Log::restore(&session.home(&args.log)?)?,
        false => None,
    };
    let log = session.open(&args.log).inspect_err(|error| lost_log_json(error, args))?;
    let (segments, _) = log.segments().unwrap_or_default();
    let bytes = segments.iter().map(|facts| facts.bytes).sum();
    let mut progress = Progress::of_bytes("checking", bytes, true);
    let mut watch = |bytes| progress.add(bytes);
    let (mut found, left) = match args.repair {
        true => {
            let Repair { before, after } = log.repair(session.now()?, &mut watch)?;
            (before, after)
        }
        false => {
            let found = log.verify(&mut watch)?;
            (found.clone(), found)
        }
    };
    progress.finish();
    found.findings.splice(0..0, restored);
    // What came to light only once other things were mended.
    let is_new = |left: &&Finding| left.kind.is_damage() && !found.findings.contains(left);
    let new: Vec<Finding> = left.findings.iter().filter(is_new).cloned().collect();
    found.findings.extend(new);
    list(args, &found.findings)?;
    tell(args, &found, &left, session);
    match (left.damaged(), left.unread()) {
        (0, 0) => Ok(()),
        (0, unread) => bail!(not_all_read(unread)),
        (damaged, _) => bail!(still_damaged(args, damaged)),
    }
}

/// Lists a `log.json` that is no good: without the log's id nothing else can be checked.
fn lost_log_json(error: &anyhow::Error, args: &Verify) {
    if let Some(Error::Unreadable { path, what }) = error.downcast_ref() {
        let found = Finding::of_file(path.clone(), Kind::State, what.as_str());
        // What is wrong is said on stderr all the same.
        let _ = list(args, &[found]);
    }
}

fn list(args: &Verify, findings: &[Finding]) -> Result<()> {
    match args.json {
        true => print_json(findings.iter().map(row)),
        false if findings.is_empty() => Ok(()),
        false => table(findings).print(),
    }
}

fn not_all_read(unread: usize) -> Ended {
    let files = if unread == 1 { "file" } else { "files" };
    let line = format!(
        "{unread} {files} can't be read: see the listing, and run verify as a user who may read them"
    );
    Ended { status: Status::Failed, line: Some(line) }
}

fn row(found: &Finding) -> Row {
    Row {
        file: found.file.display().to_string(),
        position: found.position,
        first: found.offsets.map(|(first, _)| first),
        next: found.offsets.map(|(_, next)| next),
        kind: found.kind.name(),
        action: found.kind.action().name(),
    }
}

fn table(findings: &[Finding]) -> Listing {
    let mut listing =
        Listing::new(&["FILE", ">POSITION", ">FIRST", ">NEXT", "KIND", "ACTION", "WHY"]);
    let shown = |number: Option<String>| number.unwrap_or_else(|| "-".to_owned());
    for found in findings {
        listing.row([
            found.file.display().to_string(),
            shown(found.position.map(|position| position.to_string())),
            shown(found.offsets.map(|(first, _)| first.to_string())),
            shown(found.offsets.map(|(_, next)| next.to_string())),
            found.kind.name().to_owned(),
            found.kind.action().name().to_owned(),
            found.what.clone(),
        ]);
    }
    listing
}

/// What was looked at and, after a repair, what became of it.
fn tell(args: &Verify, found: &Verification, left: &Verification, session: &Session) {
    let mended = found.damaged().saturating_sub(left.damaged());
    let looked_at = format!(
        "{} {}, {} {}",
        left.segments,
        if left.segments == 1 { "segment" } else { "segments" },
        left.records,
        if left.records == 1 { "record" } else { "records" },
    );
    match (args.repair && mended > 0, left.damaged()) {
        (true, _) => session.note(&format!(
            "mended {mended} damaged {}{}; {looked_at}",
            if mended == 1 { "place" } else { "places" },
            if sets_aside(found) { "; what was there is kept in quarantine/" } else { "" },
        )),
        (false, 0) if left.unread() == 0 => session.note(&format!("{looked_at}: no damage")),
        _ => {}
    }
}

/// Whether anything was there to be set aside.
fn sets_aside(found: &Verification) -> bool {
    let kept = |kind| matches!(kind, Kind::Damaged | Kind::Stranger | Kind::State);
    found.findings.iter().any(|found| kept(found.kind))
}

fn still_damaged(args: &Verify, damaged: usize) -> Ended {
    let places = if damaged == 1 { "damaged place" } else { "damaged places" };
    let line = match args.repair {
        false => format!("{damaged} {places}: copy the log, then tapelog verify LOG --repair"),
        true => format!("{damaged} {places} left, which repair can't mend: see the listing"),
    };
    Ended { status: Status::Damage, line: Some(line) }
}
