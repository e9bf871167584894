//! The table of sealed segments from the directory itself: its names, and a survey of
//! each segment that no table knows. Names come and go meanwhile, so a verdict on their
//! sequence is given only if nothing changed, and not while somebody appends.

use std::time::Duration;

use super::table::SegmentTable;
use super::table_file::{self, stamp};
use super::tail::{missing_segment, open_if_there};
use crate::log::Log;
use crate::log::error::{Damage, Error, Result};
use crate::log::files::lock::AppendLock;
use crate::model::{Offset, Position, SegmentFacts};
use crate::segment::survey;

/// How often a directory that changes is listed again.
const TRIES: usize = 20;
/// How long a verdict waits for an append to end.
const PATIENCE: Duration = Duration::from_secs(1);

/// The table, and the directory's stamp while it is complete.
pub(crate) fn list(log: &Log) -> Result<(SegmentTable, u64)> {
    let (table, stamp) = list_locked(log)?;
    if table.damage.is_none() {
        return Ok((table, stamp));
    }
    // Without the lock: a roll may have been seen half. If the lock can't be had, it is
    // held by somebody who stands still, and so do the names.
    let lock = AppendLock::if_there(&log.home)?;
    let _held = lock.as_ref().map(|lock| lock.wait_shared(PATIENCE)).transpose()?;
    list_locked(log)
}

/// The same for whoever holds the append lock; gc may still remove segments.
pub(crate) fn list_locked(log: &Log) -> Result<(SegmentTable, u64)> {
    let mut failed = None;
    for _ in 0..TRIES {
        let before = stamp(&log.home)?;
        match list_once(log) {
            Ok(table) if stamp(&log.home)? == before => return Ok((table, before)),
            Ok(_) => {}
            // Unless gc removed it just now, it will be missing again.
            Err(error @ Error::Damage(_)) => failed = Some(error),
            Err(error) => return Err(error),
        }
    }
    match failed {
        Some(error) => Err(error),
        // It changes all the time: what was seen last serves, as not complete.
        None => Ok((list_once(log)?, 0)),
    }
}

fn list_once(log: &Log) -> Result<SegmentTable> {
    let start = log.start()?;
    let bases: Vec<Offset> =
        log.home.list_segments()?.into_iter().filter(|&base| base >= start).collect();
    let old = table_file::stored(log).map(SegmentTable::stored);
    let mut damage = None;
    let mut rows = Vec::with_capacity(bases.len());
    // Both are sorted, so that the old rows are passed once.
    let mut number = 0;
    for pair in bases.windows(2) {
        let mut known = None;
        while let Some(old) = old.as_ref().filter(|old| number < old.len()) {
            let Some(facts) = old.row(number) else {
                // Garbage, or a segment that was about to be replaced.
                number += 1;
                continue;
            };
            if facts.base > pair[0] {
                break;
            }
            number += 1;
            known = Some(facts).filter(|facts| facts.base == pair[0] && facts.next == pair[1]);
        }
        let facts = match known {
            Some(facts) => facts,
            None => survey_sealed(log, pair[0], pair[1], &mut damage)?,
        };
        rows.push(facts);
    }
    let active = bases.last().copied().unwrap_or(start);
    Ok(SegmentTable::of(rows, active, damage))
}

/// The facts of a sealed segment that no table knows; it must reach to `next`.
fn survey_sealed(
    log: &Log,
    base: Offset,
    next: Offset,
    damage: &mut Option<Damage>,
) -> Result<SegmentFacts> {
    let path = log.home.segment_path(base);
    let Some(file) = open_if_there(&log.home, base)? else {
        return Err(missing_segment(&log.home, base, base));
    };
    let mut facts = survey(file, log.id, base).map_err(Error::io("read", &path))?;
    if facts.next != next {
        let what = match facts.next.since(base) {
            0 => "nothing in it belongs there".to_owned(),
            _ => format!("it reaches to offset {}, but the next segment is {next}", facts.next),
        };
        let found = Damage { path, position: Position::ZERO, offset: facts.next.min(next), what };
        damage.get_or_insert(found);
        facts.next = next;
        facts.records = facts.records.min(next.since(base));
    }
    Ok(facts)
}
