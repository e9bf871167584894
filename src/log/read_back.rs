//! Reading a log from its end to its beginning, a block at a time. Batches can be
//! read forwards only, so the index names a place some 64 KiB back, and what lies
//! between that and the block read last is read and kept.

use super::find::locate;
use super::{Log, Piece, Reader, Reading, Result, Skipped};
use crate::format::batch::Header;
use crate::model::Offset;

/// Reads a log backwards.
#[derive(Debug)]
pub struct BackReader {
    log: Log,
    from: Offset,
    /// Everything from here on was read.
    until: Offset,
    /// The damage that was passed, if it may be.
    skipped: Option<Skipped>,
}

/// Batches in a row.
#[derive(Debug)]
pub struct Block {
    batches: Vec<(Header, Vec<u8>)>,
    end: Offset,
}

impl Block {
    /// The batches, oldest first; the last one may reach beyond [`end`](Self::end).
    pub fn pieces(&self) -> impl DoubleEndedIterator<Item = Piece<'_>> {
        self.batches.iter().map(|(header, body)| {
            let from = header.base;
            Piece { header: header.clone(), body, from, stored: None }
        })
    }

    /// The offset before which the block's records end.
    pub fn end(&self) -> Offset {
        self.end
    }
}

impl BackReader {
    /// Reads the records of `log` from before `until` down to `from`.
    pub fn open(log: &Log, from: Offset, until: Offset) -> BackReader {
        BackReader { log: log.clone(), from, until, skipped: None }
    }

    /// Lets this reader pass damage instead of ending with it.
    pub fn skip_damage(&mut self) {
        self.skipped.get_or_insert_default();
    }

    /// The damage that was passed so far.
    pub fn skipped(&self) -> Skipped {
        self.skipped.unwrap_or_default()
    }

    /// The offset before which the next block ends.
    pub fn until(&self) -> Offset {
        self.until
    }

    /// Passes over what lies from `until` on.
    pub fn go_back_to(&mut self, until: Offset) {
        self.until = self.until.min(until);
    }

    /// The block before the one read last; `None` if there is none.
    ///
    /// # Errors
    /// As [`Reader::read`].
    pub fn read(&mut self) -> Result<Option<Block>> {
        if self.until <= self.from {
            return Ok(None);
        }
        let end = self.until;
        let begin = locate::block_of(&self.log, end.back(1))?.max(self.from);
        let mut reader = match self.skipped {
            Some(_) => Reader::open_skipping(&self.log, begin)?,
            None => Reader::open(&self.log, begin)?,
        };
        let mut batches = Vec::new();
        while reader.next_offset() < end {
            match reader.read_before(end)? {
                Reading::Records(piece) if piece.from < end => {
                    batches.push((piece.header, piece.body.to_vec()));
                }
                Reading::Records(_) | Reading::End => break,
            }
        }
        if let Some(skipped) = &mut self.skipped {
            skipped.add(reader.skipped());
        }
        self.until = begin;
        Ok(Some(Block { batches, end }))
    }
}
