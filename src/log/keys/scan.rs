//! Reading the keys of records straight from the segments, without touching values.

use crate::format::batch::{Codec, Layout};
use crate::format::body::BodyError;
use crate::format::codec::inflate;
use crate::format::columns::{self, Columns};
use crate::format::key_hash::KeyHash;
use crate::format::key_table::KeyEntry;
use crate::log::Log;
use crate::log::error::{Error, OutOfRange, Result};
use crate::log::find::locate;
use crate::log::find::table::SegmentTable;
use crate::log::find::tail::{missing_segment, next_segment};
use crate::model::{Offset, Position, Timestamp};
use crate::segment::{Bad, SegmentReader, Step};

/// Reads the keys of a log's records in order, batch after batch.
#[derive(Debug)]
pub(crate) struct KeyScan {
    log: Log,
    /// None before a segment that is not made yet, where nothing is to be read.
    reader: Option<SegmentReader>,
    from: Offset,
    /// The append time of the last batch read.
    time: Timestamp,
    inflated: Vec<u8>,
}

impl KeyScan {
    /// Reads the keys of `log` from `from` on.
    pub(crate) fn open(log: &Log, from: Offset) -> Result<KeyScan> {
        let reader = locate::reader_at(log, &mut SegmentTable::load(log)?, from)?;
        let (time, inflated) = (Timestamp::from_millis(i64::MIN), Vec::new());
        Ok(KeyScan { log: log.clone(), reader, from, time, inflated })
    }

    /// All before it was read.
    pub(crate) fn reached(&self) -> Offset {
        self.reader.as_ref().map_or(self.from, |reader| reader.next_offset().max(self.from))
    }

    /// When the last record before [`reached`](Self::reached) was appended; the earliest
    /// moment before anything was read.
    pub(crate) fn time(&self) -> Timestamp {
        self.time
    }

    /// Reads the next batch, if it begins before `to`, which must lie in the log, and
    /// gives `each` its keyed records before that; says whether it did.
    pub(crate) fn step(&mut self, to: Offset, mut each: impl FnMut(KeyEntry)) -> Result<bool> {
        if self.reached() >= to {
            return Ok(false);
        }
        let Some(reader) = &mut self.reader else { return Ok(false) };
        let path = self.log.home.segment_path(reader.segment());
        let has_no_keys = |layout: &Layout| *layout != Layout::Columns;
        let passed = reader.skip_if(|header| has_no_keys(&header.layout));
        if let Some(header) = passed.map_err(Error::io("read", &path))? {
            self.time = header.append_time;
            return Ok(true);
        }
        let (header, position, stored) = match reader.step().map_err(Error::io("read", &path))? {
            Step::Batch(batch) => (batch.header, batch.position, batch.body),
            Step::Bad(bad) => return Err(Error::bad(path, &bad)),
            Step::End => return self.enter_next().map(|()| true),
        };
        self.time = header.append_time;
        let wanted = |offset| self.from <= offset && offset < to;
        let mut read = || {
            let body = match header.codec {
                Codec::None => stored,
                codec => {
                    inflate(codec, stored, header.raw as usize, &mut self.inflated)?;
                    &self.inflated
                }
            };
            if header.layout != Layout::Columns || !columns::has_keys(body) {
                return Ok(());
            }
            let mut records = Columns::open(body, header.records as usize)?;
            let mut next = header.base;
            for _ in 0..header.records {
                let (gap, key, tombstone) = records.next_key().ok_or(BodyError::Layout)?;
                let offset = next.forward(gap).ok_or(BodyError::Layout)?;
                next = offset.forward(1).ok_or(BodyError::Layout)?;
                if let Some(key) = key.filter(|_| wanted(offset)) {
                    each(KeyEntry { hash: KeyHash::of(self.log.id, key), offset, tombstone });
                }
            }
            Ok(())
        };
        let bad = |reason: BodyError| Bad { offset: header.base, position, reason: reason.into() };
        read().map_err(|reason| Error::bad(path, &bad(reason)))?;
        Ok(true)
    }

    /// Goes on in the segment behind the one that ended.
    fn enter_next(&mut self) -> Result<()> {
        let Some(reader) = &mut self.reader else { return Ok(()) };
        let base = reader.next_offset();
        if let Some(file) = next_segment(&self.log.home, reader)? {
            *reader = SegmentReader::new(file, self.log.id, base, Position::ZERO, base);
            return Ok(());
        }
        let start = self.log.start()?;
        if start > base {
            return Err(OutOfRange::before_start(base, start, start).into());
        }
        Err(missing_segment(&self.log.home, base, base))
    }
}
