//! Reading records in order, across segments. A reader stops at the log end and
//! may be asked again; it passes no bad bytes unless it is told to, and it gives a
//! verdict on them only when no append is in progress.

use std::path::PathBuf;

use super::error::{Damage, Error, OutOfRange, Result};
use super::note::Note;
use super::skip::Skip;
use crate::disk::DiskFile;
use crate::format::batch::{Codec, GapReason, HEADER_LEN, Header, Layout};
use crate::format::body::{self, BodyError, Records};
use crate::format::state::Mark;
use crate::log::Log;
use crate::log::files::lock::AppendLock;
use crate::log::find::locate;
use crate::log::find::table::SegmentTable;
use crate::log::find::tail::{
    judge_bad, missing_records, missing_segment, next_segment, open_if_there,
};
use crate::model::{Offset, Position, Start, Timestamp};
use crate::segment::{Bad, Inflater, SegmentReader, Step};

/// Reads a log from some offset on.
#[derive(Debug)]
pub struct Reader {
    pub(super) log: Log,
    pub(super) place: Place,
    /// The first offset wanted: the batch that holds it may begin earlier.
    from: Offset,
    /// Where the table says that the segment being read must end, if it is sealed.
    pub(super) bound: Option<Offset>,
    /// Let go once the reader is past what it knows.
    table: Option<SegmentTable>,
    told_of_torn_tail: bool,
    looked_beyond: bool,
    inflater: Inflater,
    /// The gap that was passed last, unless records came after it: where it ends, and its time.
    gap: Option<(Offset, Timestamp)>,
    /// What damage was passed, if it may be.
    pub(super) skip: Option<Skip>,
}

#[derive(Debug)]
pub(super) enum Place {
    In(SegmentReader),
    /// Before a segment that is not made yet.
    Before(Offset),
}

/// What a reader found.
#[derive(Debug)]
pub enum Reading<'a> {
    /// Records, all of one batch.
    Records(Piece<'a>),
    /// The log ends here, for now.
    End,
}

/// The records of one batch, or the last of them.
#[derive(Clone, Debug)]
pub struct Piece<'a> {
    /// The batch's header.
    pub header: Header,
    /// Its body, inflated.
    pub body: &'a [u8],
    /// The first offset wanted; the header's base or later.
    pub from: Offset,
    /// Where the body lies in a file, if it is stored as it is.
    pub stored: Option<Stored<'a>>,
}

/// Bytes in a file that are the same as some in memory.
#[derive(Clone, Copy, Debug)]
pub struct Stored<'a> {
    /// The file.
    pub file: &'a dyn DiskFile,
    /// Where they begin.
    pub position: Position,
}

impl<'a> Piece<'a> {
    /// All records of the batch, from its base on.
    ///
    /// # Errors
    /// [`BodyError`] if the body can't be read as its layout.
    pub fn records(&self) -> std::result::Result<Records<'a>, BodyError> {
        body::records(&self.header, self.body)
    }
}

impl Reader {
    /// Reads `log` from `offset` on, which must lie within its bounds.
    ///
    /// # Errors
    /// [`Error::OutOfRange`]; what the disk says.
    pub fn open(log: &Log, offset: Offset) -> Result<Reader> {
        let mut table = SegmentTable::load(log)?;
        let place = match locate::reader_at(log, &mut table, offset)? {
            Some(reader) => Place::In(reader),
            None => Place::Before(offset),
        };
        let mut reader = Reader { table: Some(table), ..Reader::at(log, place, offset) };
        reader.find_bound();
        Ok(reader)
    }

    pub(super) fn at(log: &Log, place: Place, from: Offset) -> Reader {
        Reader {
            log: log.clone(),
            place,
            from,
            bound: None,
            table: None,
            told_of_torn_tail: false,
            looked_beyond: false,
            inflater: Inflater::default(),
            gap: None,
            skip: None,
        }
    }

    /// Reads `log` from where `start` is now. A place that the user did not name by its
    /// offset is looked up again if gc went by it meanwhile.
    ///
    /// # Errors
    /// As [`Log::resolve`] and [`Reader::open`].
    pub fn open_at(log: &Log, start: Start) -> Result<Reader> {
        const TRIES: usize = 100;
        for _ in 0..TRIES {
            match log.resolve(start).and_then(|offset| Reader::open(log, offset)) {
                Err(Error::OutOfRange(OutOfRange::BeforeStart { .. }))
                    if !matches!(start, Start::At(_)) => {}
                opened => return opened,
            }
        }
        Reader::open(log, log.resolve(start)?)
    }

    /// The offset of the next record that [`read`](Self::read) will give, if there is one.
    pub fn next_offset(&self) -> Offset {
        let reached = match &self.place {
            Place::In(reader) => reader.next_offset(),
            Place::Before(base) => *base,
        };
        reached.max(self.from)
    }

    /// Where the gap ends that this reader stands behind, and its append time. No record
    /// that was there was appended before that.
    pub fn passed_gap(&self) -> Option<(Offset, Timestamp)> {
        self.gap.filter(|(next, _)| *next == self.next_offset())
    }

    /// The next records, or the end of the log, for now.
    ///
    /// # Errors
    /// [`Error::Damage`] where safe records are missing or wrong; [`Error::OutOfRange`]
    /// where gc overtook this reader; what the disk says.
    pub fn read(&mut self) -> Result<Reading<'_>> {
        self.read_before(Offset::MAX)
    }

    /// The same, but gaps are passed no further than to `end`, which then counts as the end
    /// of the log.
    pub(super) fn read_before(&mut self, end: Offset) -> Result<Reading<'_>> {
        loop {
            if self.next_offset() >= end {
                return Ok(Reading::End);
            }
            match self.advance() {
                Ok(Advanced::Records) => break,
                Ok(Advanced::Again) => {}
                Ok(Advanced::End) => return Ok(Reading::End),
                Err(error) => {
                    if !self.pass_damage(error)? {
                        return Ok(Reading::End);
                    }
                }
            }
        }
        let Place::In(reader) = &self.place else { return Ok(Reading::End) };
        let Some(batch) = reader.last_batch() else { return Ok(Reading::End) };
        let from = self.from.max(batch.header.base);
        let (body, stored) = match batch.header.codec {
            Codec::None => {
                let position = batch.position + HEADER_LEN as u64;
                (batch.body, Some(Stored { file: reader.file(), position }))
            }
            Codec::Lz4 | Codec::Zstd => (self.inflater.last(), None),
        };
        Ok(Reading::Records(Piece { header: batch.header, body, from, stored }))
    }

    fn advance(&mut self) -> Result<Advanced> {
        let reader = match &mut self.place {
            Place::In(reader) => reader,
            Place::Before(base) => {
                let base = *base;
                return self.enter(base);
            }
        };
        let path = self.log.home.segment_path(reader.segment());
        let batch = match reader.step().map_err(Error::io("read", &path))? {
            Step::Batch(batch) => batch,
            Step::End => return self.at_end_of_file(),
            Step::Bad(bad) => return self.at_bad_bytes(&bad),
        };
        let (header, position) = (batch.header, batch.position);
        let is_gap = matches!(header.layout, Layout::Gap(_));
        self.gap = is_gap.then_some((header.next, header.append_time));
        if header.records == 0 || header.next <= self.from {
            self.within_bound(&header)?;
            self.tell_of_gap(&header, path);
            return Ok(Advanced::Again);
        }
        if let Err(reason) = self.inflater.open(&header, batch.body) {
            let bad = Bad { offset: header.base, position, reason: reason.into() };
            return Err(Error::bad(path, &bad));
        }
        self.within_bound(&header)?;
        Ok(Advanced::Records)
    }

    /// Says that records are missing which were wanted: repair has passed them.
    fn tell_of_gap(&self, header: &Header, path: PathBuf) {
        if header.layout == Layout::Gap(GapReason::Damaged) && header.next > self.from {
            let from = header.base.max(self.from);
            self.log.home.tell(&Note::Gap { path, from, next: header.next });
        }
    }

    /// A batch that reaches into the next segment, or a segment in the midst of another.
    fn within_bound(&mut self, header: &Header) -> Result<()> {
        let Some(bound) = self.bound.filter(|&bound| header.next > bound) else { return Ok(()) };
        let what = format!("records of another segment reach over its beginning, offset {bound}");
        let path = self.log.home.segment_path(bound);
        let damage = Damage { path, position: Position::ZERO, offset: bound, what };
        self.bound = None;
        self.pass_stranger(damage, header.base)
    }

    /// Goes on in the segment at `base`, if it is there now.
    pub(super) fn enter(&mut self, base: Offset) -> Result<Advanced> {
        let Some(file) = open_if_there(&self.log.home, base)? else {
            return self.nothing_at(base);
        };
        self.place = Place::In(SegmentReader::new(file, self.log.id, base, Position::ZERO, base));
        self.find_bound();
        Ok(Advanced::Again)
    }

    fn find_bound(&mut self) {
        self.bound = None;
        if let (Place::In(reader), Some(table)) = (&self.place, &self.table) {
            self.bound = table.base_after(reader.segment());
            if self.bound.is_none() {
                self.table = None;
            }
        }
    }

    /// The segment's file ends: the next segment, the log end, or something missing.
    fn at_end_of_file(&mut self) -> Result<Advanced> {
        let Place::In(reader) = &self.place else { return Ok(Advanced::End) };
        let base = reader.next_offset();
        match next_segment(&self.log.home, reader)? {
            Some(_) => self.enter(base),
            None => self.nothing_at(base),
        }
    }

    /// Nothing is at offset `next`, which ends the log unless more was there once.
    fn nothing_at(&mut self, next: Offset) -> Result<Advanced> {
        let durable = self.durable()?;
        let cut_off = durable <= next && self.is_cut_off(next)?;
        if durable <= next && !cut_off {
            return Ok(Advanced::End);
        }
        // `end` was read after the segment: what is missing may have come meanwhile.
        if self.is_there_now(next)? {
            return Ok(Advanced::Again);
        }
        let start = self.log.start()?;
        if start > next {
            return Err(OutOfRange::before_start(next, start, durable.max(start)).into());
        }
        Err(match &self.place {
            Place::In(reader) if !cut_off && reader.segment() == self.active_segment()? => {
                missing_records(&self.log.home, &mark(reader), durable)
            }
            _ => missing_segment(&self.log.home, next, next),
        })
    }

    /// Whether a segment lies beyond the end that was found: looked at once, since
    /// what is made later follows on.
    fn is_cut_off(&mut self, next: Offset) -> Result<bool> {
        if self.looked_beyond {
            return Ok(false);
        }
        self.looked_beyond = true;
        Ok(SegmentTable::load(&self.log)?.active > next)
    }

    fn is_there_now(&mut self, next: Offset) -> Result<bool> {
        let Place::In(reader) = &mut self.place else {
            return self.log.home.exists(&self.log.home.segment_path(next));
        };
        if next != reader.segment() && self.log.home.exists(&self.log.home.segment_path(next))? {
            return Ok(true);
        }
        let length = reader.file().size();
        let length =
            length.map_err(Error::io("read", self.log.home.segment_path(reader.segment())))?;
        Ok(length > reader.position().get())
    }

    /// Bad bytes: half an append, a torn tail, or damage.
    fn at_bad_bytes(&mut self, bad: &Bad) -> Result<Advanced> {
        let lock = AppendLock::if_there(&self.log.home)?;
        let held = lock.as_ref().map(AppendLock::try_shared).transpose()?;
        let somebody_appends = matches!(held, Some(None));
        let durable = self.durable()?;
        if somebody_appends && durable <= bad.offset {
            return Ok(Advanced::End);
        }
        let Place::In(reader) = &mut self.place else { return Ok(Advanced::End) };
        let segment = reader.segment();
        let path = self.log.home.segment_path(segment);
        // Look again: now nobody is writing there, or it was synced before.
        let bad = match reader.look_again().map_err(Error::io("read", path.clone()))? {
            Some(bad) => bad,
            None => return Ok(Advanced::Again),
        };
        let torn = judge_bad(&self.log.home, self.log.id, segment, reader.file(), &bad, durable)?;
        if !self.told_of_torn_tail {
            self.told_of_torn_tail = true;
            self.log.home.tell(&Note::TornTail { path, bytes: torn, end: bad.offset });
        }
        Ok(Advanced::End)
    }

    fn durable(&mut self) -> Result<Offset> {
        let end = self.log.end_state().or_else(|error| self.pass_bad_state(error))?;
        Ok(end.map_or(Offset::ZERO, |end| end.durable.offset))
    }

    fn active_segment(&self) -> Result<Offset> {
        Ok(self.log.end_state()?.map_or(Offset::ZERO, |end| end.written.segment))
    }
}

pub(super) enum Advanced {
    /// Over a batch with records that are wanted.
    Records,
    /// Somewhere; look again.
    Again,
    /// Nowhere: the log ends.
    End,
}

fn mark(reader: &SegmentReader) -> Mark {
    Mark { segment: reader.segment(), position: reader.position(), offset: reader.next_offset() }
}
