//! One batch without its dead records. What stays keeps its offset, its times and its
//! bytes; only the batch around it is made anew.

use crate::format::batch::{Codec, GapReason, Header, Layout, MAX_BATCH};
use crate::format::body::{self, Body, BodyError};
use crate::format::codec::{Compression, compress};
use crate::format::columns;
use crate::format::record::Content;
use crate::log::keys::DeadOffsets;
use crate::model::Offset;
use crate::segment::{Inflater, NewBatch};

/// What is left of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) enum Left<'a> {
    /// All of it.
    Whole,
    /// No record.
    Nothing,
    /// These batches in its place: more than one only where one would be too large.
    Some(&'a [ThinBatch]),
}

/// A batch that has lost records.
#[derive(Debug)]
pub(super) struct ThinBatch {
    base: Offset,
    next: Offset,
    records: u32,
    codec: Codec,
    raw: u32,
    bytes: Vec<u8>,
}

impl ThinBatch {
    /// How many records it has left.
    pub(super) fn records(&self) -> u32 {
        self.records
    }

    /// The batch to be written, which was once part of that of `header`.
    pub(super) fn as_new(&self, header: &Header) -> NewBatch<'_> {
        let ThinBatch { base, next, records, codec, raw, ref bytes } = *self;
        let body = Body { layout: Layout::Columns, codec, records, raw, bytes };
        NewBatch { base, next, synced: header.synced, time: header.append_time, body }
    }
}

/// Takes dead records out of batches, one batch after the other, in the same memory.
#[derive(Debug, Default)]
pub(super) struct Thinner {
    inflater: Inflater,
    left: Vec<ThinBatch>,
}

impl Thinner {
    /// What is left of the batch of `header`, whose checksums are right.
    ///
    /// # Errors
    /// [`BodyError`] if its body is not what the header says.
    pub(super) fn thin<'a>(
        &'a mut self,
        header: &Header,
        stored: &[u8],
        dead: &DeadOffsets,
    ) -> Result<Left<'a>, BodyError> {
        match header.layout {
            Layout::Gap(GapReason::Compacted) => return Ok(Left::Nothing),
            Layout::Columns if dead.may_contain_any(header.base, header.next) => {}
            // Lines have no keys.
            _ => return Ok(Left::Whole),
        }
        let raw = self.inflater.open(header, stored)?;
        let records = body::records(header, raw)?.filter(|record| !dead.contains(record.offset));
        let left: Vec<_> = records.map(|record| (record.offset, record.content)).collect();
        if left.len() == header.records as usize {
            return Ok(Left::Whole);
        }
        self.left.clear();
        if left.is_empty() {
            return Ok(Left::Nothing);
        }
        let compression = match header.codec {
            Codec::None => Compression::None,
            Codec::Lz4 => Compression::Lz4,
            Codec::Zstd => Compression::Zstd(Compression::DEFAULT_LEVEL),
        };
        put(header.base, header.next, &left, compression, &mut self.left);
        Ok(Left::Some(&self.left))
    }
}

/// Puts what is left of the offsets from `base` to `next` into a batch; into more where that
/// would be too large, as gaps take room too.
fn put(
    base: Offset,
    next: Offset,
    left: &[(Offset, Content<'_>)],
    compression: Compression,
    out: &mut Vec<ThinBatch>,
) {
    let mut expected = base;
    let with_gap = |&(offset, content): &(Offset, _)| {
        let gap = offset.since(expected);
        expected = offset.forward(1).unwrap_or(Offset::MAX);
        (gap, content)
    };
    let with_gaps: Vec<(u64, Content<'_>)> = left.iter().map(with_gap).collect();
    let mut raw = Vec::new();
    columns::encode(&with_gaps, &mut raw);
    if raw.len() > MAX_BATCH && left.len() > 1 {
        let (first, second) = left.split_at(left.len() / 2);
        let middle = second.first().map_or(next, |(offset, _)| *offset);
        put(base, middle, first, compression, out);
        put(middle, next, second, compression, out);
        return;
    }
    let raw_len = raw.len() as u32;
    let mut stored = Vec::new();
    let codec = compress(compression, &raw, &mut stored);
    let bytes = if codec == Codec::None { raw } else { stored };
    out.push(ThinBatch { base, next, records: left.len() as u32, codec, raw: raw_len, bytes });
}
