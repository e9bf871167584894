//! Appends batches to one segment. Who may, and what must be checked before, is
//! the log's business.

use std::io;

use crate::disk::{DiskFile, write_all};
use crate::format::batch::{GapReason, HEADER_LEN, Header, Layout, Place};
use crate::format::body::Body;
use crate::model::{LogId, Offset, Position, Timestamp};

/// A batch to be appended.
#[derive(Clone, Copy, Debug)]
pub struct NewBatch<'a> {
    /// The offset of its first record.
    pub base: Offset,
    /// The offset after its last record.
    pub next: Offset,
    /// The durable mark.
    pub synced: Offset,
    /// When it is appended.
    pub time: Timestamp,
    /// Its records.
    pub body: Body<'a>,
}

impl<'a> NewBatch<'a> {
    /// The batch of `header`, as it is, for another file.
    pub fn as_it_is(header: &Header, stored: &'a [u8]) -> NewBatch<'a> {
        let Header { base, next, synced, append_time, layout, codec, records, raw, .. } = *header;
        let body = Body { layout, codec, records, raw, bytes: stored };
        NewBatch { base, next, synced, time: append_time, body }
    }

    /// Says that the offsets from `base` to before `next` are missing; of more than one
    /// gap can tell of, the first ones. All before them is durable. `time` is not later
    /// than that of any record which was there.
    pub fn gap(base: Offset, next: Offset, reason: GapReason, time: Timestamp) -> NewBatch<'a> {
        let offsets = next.since(base).min(u64::from(u32::MAX));
        let next = base.forward(offsets).unwrap_or(next);
        let body = Body { records: 0, ..Body::plain(Layout::Gap(reason), 0, &[]) };
        NewBatch { base, next, synced: base, time, body }
    }
}

/// An open segment and where its next batch goes.
#[derive(Debug)]
pub struct SegmentWriter {
    file: Box<dyn DiskFile>,
    log: LogId,
    segment: Offset,
    position: Position,
    /// What comes before is on its way to the disk.
    written_back: Position,
}

/// So many bytes are sent to the disk at once, ahead of the next sync.
const WRITE_BACK: u64 = 8 << 20;

impl SegmentWriter {
    /// Appends to the segment at `segment` from `position` on, its end.
    pub fn new(file: Box<dyn DiskFile>, log: LogId, segment: Offset, position: Position) -> Self {
        SegmentWriter { file, log, segment, position, written_back: position }
    }

    /// The file.
    pub fn file(&self) -> &dyn DiskFile {
        self.file.as_ref()
    }

    /// The base offset of the segment.
    pub fn segment(&self) -> Offset {
        self.segment
    }

    /// Where the next batch goes.
    pub fn position(&self) -> Position {
        self.position
    }

    /// The size of a batch with this body, in bytes.
    pub fn batch_len(body: &Body<'_>) -> u64 {
        HEADER_LEN as u64 + body.bytes.len() as u64
    }

    /// Writes one batch and says where it begins. The caller keeps the bounds of
    /// [`crate::format::batch`].
    ///
    /// # Errors
    /// Those of the disk. What was written in part is cut off again.
    pub fn append(&mut self, batch: &NewBatch<'_>) -> io::Result<Position> {
        let begin = self.position;
        self.append_all(std::slice::from_ref(batch)).map(|()| begin)
    }

    /// Writes batches that follow one another, in one go.
    ///
    /// # Errors
    /// As [`append`](Self::append); then none of them is there.
    pub fn append_all(&mut self, batches: &[NewBatch<'_>]) -> io::Result<()> {
        let begin = self.position;
        let mut end = begin;
        let mut headers = Vec::with_capacity(batches.len());
        for batch in batches {
            headers.push(self.header_at(end, batch)?);
            end = end + SegmentWriter::batch_len(&batch.body);
        }
        let bodies = batches.iter().map(|batch| batch.body.bytes);
        let parts = headers.iter().zip(bodies).flat_map(|(header, body)| [&header[..], body]);
        let parts: Vec<&[u8]> = parts.collect();
        if let Err(error) = write_all(self.file(), &parts, begin.get()) {
            // If even this fails, the rest is a torn tail that the next writer sets aside.
            let _ = self.file.set_len(begin.get());
            return Err(error);
        }
        self.position = end;
        self.begin_write_back();
        Ok(())
    }

    fn header_at(&self, position: Position, batch: &NewBatch<'_>) -> io::Result<[u8; HEADER_LEN]> {
        let length = u32::try_from(batch.body.bytes.len())
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let header = Header {
            layout: batch.body.layout,
            codec: batch.body.codec,
            base: batch.base,
            next: batch.next,
            records: batch.body.records,
            synced: batch.synced,
            append_time: batch.time,
            stored: length,
            raw: batch.body.raw,
            body_crc: crc32fast::hash(batch.body.bytes),
        };
        let place = Place { log: self.log, segment: self.segment, position };
        header.encode(&place).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
    }

    /// Sends to the disk what has gathered, so that the next sync is short.
    fn begin_write_back(&mut self) {
        let waiting = self.position.since(self.written_back);
        if waiting >= WRITE_BACK {
            self.file.begin_write_back(self.written_back.get(), waiting);
            self.written_back = self.position;
        }
    }
}
