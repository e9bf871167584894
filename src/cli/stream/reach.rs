//! How far a log reaches for one reading of it, above all where its end is damaged.

use anyhow::Result;

use crate::log::{Error as LogError, Log, Reader, Reading, Skipped};
use crate::model::{Offset, Start};

/// Where reading ends that does not follow: at the log end as it is now, so that it
/// does not chase an end that its own reader moves. Damage there is still met and told.
pub fn forward_end(log: &Log) -> Offset {
    match log.bounds() {
        Ok(bounds) if bounds.damage.is_none() => bounds.end,
        // Where the end can't be told, the reader meets what is there.
        _ => Offset::MAX,
    }
}

/// The offset before which reading backwards begins, and the damage that lies before it.
/// Damage at the log's end hides what the newest record is.
///
/// # Errors
/// That damage, unless it is to be skipped; what [`Log::resolve`] says.
pub fn backward_end(
    log: &Log,
    until: Option<Start>,
    skip_damage: bool,
) -> Result<(Offset, Skipped)> {
    let bounds = log.bounds()?;
    let wanted = match until {
        None => Offset::MAX,
        Some(Start::At(offset)) => offset,
        // What resolves to the end may lie beyond damage there.
        Some(until) => match log.resolve(until)? {
            end if end == bounds.end => Offset::MAX,
            before => before,
        },
    };
    match bounds.damage {
        Some(_) if skip_damage && wanted > bounds.end => {
            let mut reader = Reader::open_skipping(log, bounds.end)?;
            while let Reading::Records(_) = reader.read()? {}
            Ok((wanted.min(reader.next_offset()), reader.skipped()))
        }
        Some(damage) if wanted > bounds.end => Err(LogError::from(damage).into()),
        // An end beyond the log's is the log's.
        _ => Ok((wanted.min(bounds.end), Skipped::default())),
    }
}

/// Whether damage hides if the log reaches to `offset`: then that is what is to be passed.
pub fn lies_behind_damage(log: &Log, offset: Offset) -> bool {
    match log.bounds() {
        Ok(bounds) => bounds.damage.is_some() && offset > bounds.end,
        Err(error) => matches!(error, LogError::Damage(_) | LogError::Unreadable { .. }),
    }
}
