//! Goes through a whole segment and does not stop at what is bad in it: finds the next
//! batch behind that counts. One counts if its header fits its place, its body is
//! sound, and its offset has not been passed yet.

use std::io;
use std::ops::ControlFlow;

use super::inflater::Inflater;
use super::reader::{Bad, BadReason, SegmentReader, Step};
use super::scan::each_header;
use crate::disk::{DiskFile, read_full};
use crate::format::batch::{HEADER_LEN, Header, HeaderError, Place};
use crate::format::body;
use crate::model::{LogId, Offset, Position};

/// What comes next in a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A good batch; [`Salvage::last_body`] has its body.
    Batch(Header, Position),
    /// Bytes that are none.
    Bad(BadBytes),
}

/// Bytes that are no good batch, up to one that is, or to the end of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadBytes {
    /// Where they begin, and what is wrong with them.
    pub bad: Bad,
    /// Where they end.
    pub end: Position,
    /// The offset of the good batch that follows; `None` if none does.
    pub next: Option<Offset>,
}

/// Goes through one segment, from its beginning.
#[derive(Debug)]
pub struct Salvage {
    reader: SegmentReader,
    log: LogId,
    /// Nothing at or behind this place is looked at.
    length: Position,
    inflater: Inflater,
}

impl Salvage {
    /// Goes through the first `length` bytes of what `reader` reads, a segment of log `log`.
    pub fn new(reader: SegmentReader, log: LogId, length: Position) -> Salvage {
        Salvage { reader, log, length, inflater: Inflater::default() }
    }

    /// Where it is.
    pub fn position(&self) -> Position {
        self.reader.position()
    }

    /// The offset that is expected next.
    pub fn next_offset(&self) -> Offset {
        self.reader.next_offset()
    }

    /// The reader, to go on with.
    pub fn into_reader(self) -> SegmentReader {
        self.reader
    }

    /// The stored body of the last batch.
    pub fn last_body(&self) -> &[u8] {
        self.reader.last_batch().map_or(&[], |batch| batch.body)
    }

    /// What comes next; `None` at the end.
    ///
    /// # Errors
    /// Those of the disk: what can't be read is not bad.
    pub fn find(&mut self) -> io::Result<Option<Found>> {
        if self.position() >= self.length {
            return Ok(None);
        }
        let offset = self.next_offset();
        let bad = match self.reader.step()? {
            Step::End => return Ok(None),
            Step::Bad(bad) => bad,
            Step::Batch(batch) => match self.inflater.open(&batch.header, batch.body) {
                Ok(_) => return Ok(Some(Found::Batch(batch.header, batch.position))),
                Err(error) => Bad { offset, position: batch.position, reason: error.into() },
            },
        };
        let next = match bad.reason {
            BadReason::Header(HeaderError::Newer { .. }) => None,
            _ => self.pass(bad.position, offset)?,
        };
        Ok(Some(Found::Bad(BadBytes { bad, end: self.position(), next })))
    }

    /// Passes bad bytes at `position`, where `offset` was expected: goes to the next
    /// good batch and says which offset it has, or to the end.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn pass(&mut self, position: Position, offset: Offset) -> io::Result<Option<Offset>> {
        match self.next_good(position, offset)? {
            Some((position, base)) => {
                self.reader.go_to(position, base);
                Ok(Some(base))
            }
            None => {
                self.reader.go_to(self.length.max(position), offset);
                Ok(None)
            }
        }
    }

    /// Where the next good batch behind `bad` begins, and with which offset; or one of a
    /// later version, where the next look will stop.
    fn next_good(
        &mut self,
        bad: Position,
        expected: Offset,
    ) -> io::Result<Option<(Position, Offset)>> {
        let Salvage { reader, log, length, inflater } = self;
        let from = Place { log: *log, segment: reader.segment(), position: bad + 1 };
        let mut body = Vec::new();
        let found = each_header(reader.file(), from, |place, bytes| {
            if place.position >= *length {
                return Ok(ControlFlow::Break(None));
            }
            let counts = match Header::decode(bytes, place) {
                Err(HeaderError::Newer { .. }) => Some(expected),
                Err(_) => None,
                Ok(header) if header.base < expected => None,
                Ok(header) => {
                    read_body(reader.file(), place.position, &header, &mut body)?;
                    let sound = body::check(&header, &body)
                        .and_then(|()| inflater.open(&header, &body).map(drop));
                    sound.is_ok().then_some(header.base)
                }
            };
            Ok(match counts {
                Some(base) => ControlFlow::Break(Some((place.position, base))),
                None => ControlFlow::Continue(()),
            })
        })?;
        Ok(found.flatten())
    }
}

/// The stored body of the batch at `position`, as far as the file has it.
fn read_body(
    file: &dyn DiskFile,
    position: Position,
    header: &Header,
    body: &mut Vec<u8>,
) -> io::Result<()> {
    body.resize(header.stored as usize, 0);
    let read = read_full(file, body, (position + HEADER_LEN as u64).get())?;
    body.truncate(read);
    Ok(())
}
