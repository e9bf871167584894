//! Reading single records by their offsets.

use super::records_of;
use crate::format::batch::Header;
use crate::format::record::RecordView;
use crate::log::{Error, Log, OutOfRange, Piece, Reader, Reading, Result};
use crate::model::Offset;

/// Reads records by their offsets. What was read last is kept, so that records near to
/// each other, in their order, cost little.
#[derive(Debug)]
pub struct Fetch {
    log: Log,
    batch: Option<(Header, Vec<u8>)>,
}

/// What is at an offset.
#[derive(Debug)]
pub enum Fetched<'a> {
    /// A record.
    Record(RecordView<'a>),
    /// None: it was compacted away, or gc deleted it.
    Gone,
}

impl Fetch {
    /// Reads records of `log`.
    pub fn of(log: &Log) -> Fetch {
        Fetch { log: log.clone(), batch: None }
    }

    /// The record at `offset`.
    ///
    /// # Errors
    /// [`Error::Damage`] where it can't be read; what the disk says.
    pub fn at(&mut self, offset: Offset) -> Result<Fetched<'_>> {
        let log = self.log.clone();
        let Some(piece) = self.batch(offset)? else { return Ok(Fetched::Gone) };
        let found = records_of(&log, &piece)?.find(|record| record.offset == offset);
        Ok(found.map_or(Fetched::Gone, Fetched::Record))
    }

    /// The batch that holds `offset`, or the next one where that is missing; `None` if
    /// gc deleted it, or the log ends before it.
    ///
    /// # Errors
    /// As [`at`](Self::at).
    pub(super) fn batch(&mut self, offset: Offset) -> Result<Option<Piece<'_>>> {
        let holds = |header: &Header| header.base <= offset && offset < header.next;
        if !self.batch.as_ref().is_some_and(|(header, _)| holds(header)) {
            self.batch = self.read(offset)?;
        }
        Ok(self.batch.as_ref().map(|(header, body)| Piece {
            header: header.clone(),
            body,
            from: header.base,
            stored: None,
        }))
    }

    /// The batch that holds `offset`; `None` if there is none.
    fn read(&self, offset: Offset) -> Result<Option<(Header, Vec<u8>)>> {
        let read = Reader::open(&self.log, offset);
        let mut reader = match read {
            Err(Error::OutOfRange(OutOfRange::BeforeStart { .. })) => return Ok(None),
            read => read?,
        };
        Ok(match reader.read()? {
            Reading::Records(piece) => Some((piece.header, piece.body.to_vec())),
            Reading::End => None,
        })
    }
}
