//! Which records of a log are dead.

use std::collections::HashMap;
use std::ops::Range;

use super::dead_offsets::DeadOffsets;
use crate::format::key_hash::KeyHash;
use crate::log::keys::records_of;
use crate::log::{Log, Reader, Reading, Result};
use crate::model::Offset;
use crate::policy::compaction::newest_is_dead;

/// The dead records in `range`: those with a newer durable record of their key, and those
/// that are a key's newest, but a tombstone before `tombstones_before`. Equal hashes are
/// taken for equal keys here: they have 128 bits, of a function that nobody who doesn't
/// know the log's id can work towards.
///
/// # Errors
/// As [`Log::bounds`] and [`Reader::read`].
pub(super) fn dead_offsets(
    log: &Log,
    range: Range<Offset>,
    tombstones_before: Offset,
) -> Result<DeadOffsets> {
    let bounds = log.bounds()?;
    let mut dead = DeadOffsets::none_in(range);
    let mut newest: HashMap<KeyHash, (Offset, bool)> = HashMap::new();
    let mut reader = Reader::open(log, bounds.start)?;
    while reader.next_offset() < bounds.durable {
        let Reading::Records(piece) = reader.read()? else { break };
        for record in records_of(log, &piece)?.filter(|record| record.offset < bounds.durable) {
            let Some(key) = record.content.key else { continue };
            let found = (record.offset, record.content.value.is_none());
            if let Some((older, _)) = newest.insert(KeyHash::of(log.id, key), found) {
                dead.add(older);
            }
        }
    }
    let newest = newest.into_values();
    let goes = |&(offset, tombstone): &(Offset, bool)| {
        newest_is_dead(offset, tombstone, tombstones_before)
    };
    newest.filter(goes).for_each(|(offset, _)| dead.add(offset));
    Ok(dead)
}
