//! Finding records by their keys. The index knows, for the hash of each key, the offsets
//! of the records that have it. What it finds is a hint: the record is read, and its
//! offset and key compared, before anybody is told of it.

mod fetch;
pub(crate) mod lock;
mod recent;

pub use fetch::{Fetch, Fetched};

use super::{Damage, Log, Piece, Reader, Reading, Result};
use crate::format::body::Records;
use crate::format::key_hash::KeyHash;
use crate::model::{Offset, Position};
use recent::Recent;

/// The key index as it was when it was opened or last advanced: it knows the keys of all
/// records before [`end`](Self::end).
#[derive(Debug)]
pub struct KeyIndex {
    log: Log,
    /// The keys of records that no table covers.
    recent: Recent,
    /// The log start when it was opened.
    start: Offset,
}

impl KeyIndex {
    /// The index of `log` up to its log end.
    ///
    /// # Errors
    /// [`Error::Damage`](super::Error::Damage) where keys that no table covers can't be read; what the disk says.
    pub fn open(log: &Log) -> Result<KeyIndex> {
        let bounds = log.bounds()?;
        if let Some(damage) = bounds.damage {
            return Err(damage.into());
        }
        let recent = Recent::beginning_at(bounds.start);
        let mut index = KeyIndex { log: log.clone(), recent, start: bounds.start };
        index.advance(bounds.end)?;
        Ok(index)
    }

    /// All keys of records before it are known.
    pub fn end(&self) -> Offset {
        self.recent.end()
    }

    /// Learns the keys of the records from [`end`](Self::end) to before `end`, which are
    /// in the log. The caller may hold the append lock: nothing beyond `end` is looked at.
    ///
    /// # Errors
    /// As [`Log::bounds`] and [`Reader::read`].
    pub fn advance(&mut self, end: Offset) -> Result<()> {
        if self.end() >= end {
            return Ok(());
        }
        let mut reader = Reader::open(&self.log, self.end())?;
        while reader.next_offset() < end {
            let Reading::Records(piece) = reader.read()? else { break };
            let from = piece.from;
            let records = records_of(&self.log, &piece)?;
            for record in records.filter(|record| from <= record.offset && record.offset < end) {
                if let Some(key) = record.content.key {
                    self.recent.add(KeyHash::of(self.log.id(), key), record.offset);
                }
            }
        }
        self.recent.reach(end);
        Ok(())
    }

    /// Where the newest record of each key may be: with a hash equal to its.
    ///
    /// # Errors
    /// What the disk says.
    pub fn newest(&self, keys: &[KeyHash]) -> Result<Vec<Option<Offset>>> {
        Ok(keys.iter().map(|&key| self.recent.of(key).last().copied()).collect())
    }

    /// Where all records of a key may be, the oldest first. Some may be gone by now.
    ///
    /// # Errors
    /// What the disk says, then and for each item.
    pub fn versions(
        &self,
        key: KeyHash,
    ) -> Result<impl DoubleEndedIterator<Item = Result<Offset>> + use<'_>> {
        let kept = move |offset: &Offset| *offset >= self.start;
        Ok(self.recent.of(key).iter().copied().filter(kept).map(Ok))
    }
}

/// The records of `piece`, whose body was checked as it was read.
pub(crate) fn records_of<'a>(log: &Log, piece: &Piece<'a>) -> Result<Records<'a>> {
    let damage = |error| Damage {
        path: log.home.dir().to_owned(),
        position: Position::ZERO,
        offset: piece.header.base,
        what: format!("{error}"),
    };
    piece.records().map_err(|error: crate::format::body::BodyError| damage(error).into())
}
