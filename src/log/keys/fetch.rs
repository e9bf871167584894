//! Reading single records by their offsets.

use crate::format::batch::Header;
use crate::format::body::Records;
use crate::format::record::RecordView;
use crate::log::{Damage, Error, Log, OutOfRange, Piece, Reader, Reading, Result};
use crate::model::{Offset, Position};

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
        let holds = |header: &Header| header.base <= offset && offset < header.next;
        if !self.batch.as_ref().is_some_and(|(header, _)| holds(header)) {
            self.batch = self.read(offset)?;
        }
        let Some((header, body)) = &self.batch else { return Ok(Fetched::Gone) };
        let piece = Piece { header: header.clone(), body, from: header.base, stored: None };
        let mut records = records_of(&self.log, &piece)?;
        let found = records.find(|record| record.offset == offset);
        Ok(found.map_or(Fetched::Gone, Fetched::Record))
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

/// The records of `piece`, whose body was checked as it was read.
fn records_of<'a>(log: &Log, piece: &Piece<'a>) -> Result<Records<'a>> {
    let damage = |error| Damage {
        path: log.home.dir().to_owned(),
        position: Position::ZERO,
        offset: piece.header.base,
        what: format!("{error}"),
    };
    piece.records().map_err(|error: crate::format::body::BodyError| damage(error).into())
}
