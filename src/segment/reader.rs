//! Reads the batches of one segment in order, every byte checked before it is
//! handed on. What bad bytes mean, torn or damaged, is decided elsewhere.

use std::io;

use thiserror::Error;

use crate::disk::{DiskFile, read_full};
use crate::format::batch::{HEADER_LEN, Header, HeaderError, Place};
use crate::format::body::{self, BodyError};
use crate::model::{LogId, Offset, Position};

/// What is read at once while batches are small: fits a core's cache.
const WINDOW: usize = 128 << 10;
/// From this size on a batch is read by itself, together with the next header,
/// so that nothing needs to be moved inside the window.
const LARGE: usize = 32 << 10;
/// What is read at once while only headers are wanted.
const SKIM: usize = 4 << 10;

/// A batch whose header and body have been checked.
#[derive(Clone, Debug)]
pub struct Batch<'a> {
    /// Its header.
    pub header: Header,
    /// Where it begins.
    pub position: Position,
    /// Its stored body.
    pub body: &'a [u8],
    /// Header and body as they lie in the file.
    pub bytes: &'a [u8],
}

/// What stands at a reader's position.
#[derive(Debug)]
pub enum Step<'a> {
    /// A good batch; the reader stands behind it now.
    Batch(Batch<'a>),
    /// Nothing: the file ends here.
    End,
    /// Bytes that are no good batch; the reader stays before them.
    Bad(Bad),
}

/// Bytes that are not the batch expected there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// The offset that was expected.
    pub offset: Offset,
    /// Where in the segment.
    pub position: Position,
    /// What is wrong.
    pub reason: BadReason,
}

/// What is wrong with a batch.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadReason {
    /// Its header is.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// Its records are.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// The file ends inside it.
    #[error("the file ends inside a batch")]
    Short,
    /// It begins at another offset than the one before it ended.
    #[error("a batch at offset {0} stands here")]
    Sequence(Offset),
}

/// Reads one segment, batch after batch.
#[derive(Debug)]
pub struct SegmentReader {
    file: Box<dyn DiskFile>,
    log: LogId,
    segment: Offset,
    /// Where the next batch begins.
    position: Position,
    /// The offset it must have.
    next: Offset,
    /// Bytes of the file; those of `position` begin at `start`.
    window: Vec<u8>,
    start: usize,
    filled: usize,
    /// The batch that was stepped over last, still in the window.
    last: Option<(Header, Position)>,
}

impl SegmentReader {
    /// Reads the segment at `segment` from the batch at `position` on, which must begin at `next`.
    pub fn new(
        file: Box<dyn DiskFile>,
        log: LogId,
        segment: Offset,
        position: Position,
        next: Offset,
    ) -> Self {
        let window = Vec::new();
        SegmentReader {
            file,
            log,
            segment,
            position,
            next,
            window,
            start: 0,
            filled: 0,
            last: None,
        }
    }

    /// The base offset of the segment.
    pub fn segment(&self) -> Offset {
        self.segment
    }

    /// Where the next batch begins.
    pub fn position(&self) -> Position {
        self.position
    }

    /// The offset of the next batch.
    pub fn next_offset(&self) -> Offset {
        self.next
    }

    /// The file.
    pub fn file(&self) -> &dyn DiskFile {
        self.file.as_ref()
    }

    /// Goes to the batch at `position`, which must begin at `next`.
    pub fn go_to(&mut self, position: Position, next: Offset) {
        self.forget_window();
        self.position = position;
        self.next = next;
    }

    /// The batch at the reader's position, which then moves behind it. After
    /// [`Step::End`] and [`Step::Bad`] the same place is read anew.
    ///
    /// # Errors
    /// Those of the disk: a place that can't be read is neither the end nor bad.
    pub fn step(&mut self) -> io::Result<Step<'_>> {
        match self.check_next()? {
            Checked::Good(header) => {
                let position = self.position;
                self.pass(&header);
                self.last = Some((header, position));
                // Just set, so there is one.
                Ok(self.last_batch().map_or(Step::End, Step::Batch))
            }
            Checked::End => Ok(Step::End),
            Checked::Bad(reason) => {
                self.forget_window();
                Ok(Step::Bad(Bad { offset: self.next, position: self.position, reason }))
            }
        }
    }

    /// Looks at the reader's place once more without moving: what is still bad
    /// there, or `None` for a good batch or the end.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn look_again(&mut self) -> io::Result<Option<Bad>> {
        self.forget_window();
        let found = self.check_next()?;
        self.forget_window();
        Ok(match found {
            Checked::Bad(reason) => {
                Some(Bad { offset: self.next, position: self.position, reason })
            }
            Checked::Good(_) | Checked::End => None,
        })
    }

    /// The batch that [`step`](Self::step) moved over last, until the next call of anything else.
    pub fn last_batch(&self) -> Option<Batch<'_>> {
        let (header, position) = self.last.clone()?;
        let begin = self.start.checked_sub(header.batch_len() as usize)?;
        let bytes = &self.window[begin..self.start];
        Some(Batch { header, position, body: &bytes[HEADER_LEN..], bytes })
    }

    /// Moves behind a batch without reading its body. `None` where [`step`](Self::step)
    /// must say what is there.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn skip_if(&mut self, wanted: impl Fn(&Header) -> bool) -> io::Result<Option<Header>> {
        if self.available() < HEADER_LEN && self.fill_window(HEADER_LEN, SKIM)? < HEADER_LEN {
            return Ok(None);
        }
        match self.header_here() {
            Ok(header) if header.base == self.next && wanted(&header) => {
                self.pass(&header);
                Ok(Some(header))
            }
            _ => Ok(None),
        }
    }

    fn check_next(&mut self) -> io::Result<Checked> {
        if self.available() < HEADER_LEN {
            match self.fill(HEADER_LEN)? {
                0 => return Ok(Checked::End),
                filled if filled < HEADER_LEN => return Ok(Checked::Bad(BadReason::Short)),
                _ => {}
            }
        }
        let header = match self.header_here() {
            Ok(header) => header,
            Err(error) => return Ok(Checked::Bad(error.into())),
        };
        if header.base != self.next {
            return Ok(Checked::Bad(BadReason::Sequence(header.base)));
        }
        let length = header.batch_len() as usize;
        if self.available() < length && self.fill(length)? < length {
            return Ok(Checked::Bad(BadReason::Short));
        }
        let stored = &self.window[self.start + HEADER_LEN..self.start + length];
        match body::check(&header, stored) {
            Ok(()) => Ok(Checked::Good(header)),
            Err(error) => Ok(Checked::Bad(error.into())),
        }
    }

    fn header_here(&self) -> Result<Header, HeaderError> {
        let mut bytes = [0; HEADER_LEN];
        bytes.copy_from_slice(&self.window[self.start..self.start + HEADER_LEN]);
        let place = Place { log: self.log, segment: self.segment, position: self.position };
        Header::decode(&bytes, &place)
    }

    /// Moves behind the batch of `header`, whose body may lie outside the window.
    fn pass(&mut self, header: &Header) {
        self.last = None;
        self.position = self.position + header.batch_len();
        self.next = header.next;
        self.start += header.batch_len() as usize;
        if self.start > self.filled {
            self.forget_window();
        }
    }

    fn available(&self) -> usize {
        self.filled - self.start
    }

    fn forget_window(&mut self) {
        self.last = None;
        self.start = 0;
        self.filled = 0;
    }

    /// Reads on until `need` bytes lie in the window, if the file has them; says
    /// how many do.
    fn fill(&mut self, need: usize) -> io::Result<usize> {
        self.fill_window(need, if need >= LARGE { need + HEADER_LEN } else { WINDOW })
    }

    fn fill_window(&mut self, need: usize, size: usize) -> io::Result<usize> {
        let size = size.max(need);
        self.last = None;
        self.window.copy_within(self.start..self.filled, 0);
        self.filled -= self.start;
        self.start = 0;
        if self.window.len() < size && self.filled == 0 {
            // Zeroed by the system: what a short file leaves of it is never touched.
            self.window = vec![0; size];
        } else if self.window.len() < size {
            self.window.resize(size, 0);
        }
        let target = &mut self.window[self.filled..size];
        let from = self.position.get() + self.filled as u64;
        self.filled += read_full(self.file.as_ref(), target, from)?;
        Ok(self.filled)
    }
}

enum Checked {
    Good(Header),
    End,
    Bad(BadReason),
}

/// The header of the batch at `place`, and nothing of its body: for looking up.
/// `None` if no good one stands there.
///
/// # Errors
/// Those of the disk.
pub fn header_at(file: &dyn DiskFile, place: &Place) -> io::Result<Option<Header>> {
    let mut bytes = [0; HEADER_LEN];
    if read_full(file, &mut bytes, place.position.get())? < HEADER_LEN {
        return Ok(None);
    }
    Ok(Header::decode(&bytes, place).ok())
}
