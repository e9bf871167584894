//! The table of sealed segments, `segments.index`: one header, then a row a
//! segment, oldest first, so that a segment is found without listing the directory.
//!
//! ```text
//! header  at  bytes                     row  at  bytes
//!          0    8   "tapelog1"                 0    8   first offset
//!          8    8   log id                     8    8   next offset
//!         16    8   directory stamp           16    8   size in bytes
//!         24    8   rows                      24    8   records
//!         32    8   next of the last row      32    8   first append time
//!         40    8   generation                40    8   last append time
//!         48    4   zero                      48    4   zero
//!         52    4   CRC-32 of bytes 0–51      52    4   CRC-32 of bytes 0–51, log id,
//!                                                       generation, row number
//! ```
//!
//! The stamp is the directory's when the table was written: while it still holds,
//! no name was added or removed, and the table is complete. The generation changes
//! when the rows are numbered anew, so that a reader never mixes old and new ones.

use crate::model::{LogId, Offset, SegmentFacts, SegmentState, Timestamp};

/// The size of the header and of each row, in bytes.
pub const ROW_LEN: usize = 56;

const MAGIC: u64 = u64::from_le_bytes(*b"tapelog1");
const CRC_AT: usize = 52;

/// What the table says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableHeader {
    /// The directory's stamp when the table was complete.
    pub stamp: u64,
    /// How many rows follow.
    pub rows: u64,
    /// The next offset of the last row: the active segment's base.
    pub next: Offset,
    /// Which numbering of the rows this is.
    pub generation: u64,
}

impl TableHeader {
    /// The header's bytes in log `log`.
    pub fn encode(&self, log: LogId) -> [u8; ROW_LEN] {
        pack([MAGIC, log.get(), self.stamp, self.rows, self.next.get(), self.generation], &[])
    }

    /// Reads the header; `None` if it is none of log `log`.
    pub fn decode(bytes: &[u8; ROW_LEN], log: LogId) -> Option<TableHeader> {
        let [magic, id, stamp, rows, next, generation] = unpack(bytes, &[])?;
        let ours = magic == MAGIC && id == log.get();
        ours.then_some(TableHeader { stamp, rows, next: Offset::new(next), generation })
    }
}

/// The bytes of row `number` of log `log`'s table.
pub fn encode_row(facts: &SegmentFacts, log: LogId, generation: u64, number: u64) -> [u8; ROW_LEN] {
    let time = |time: Option<Timestamp>| time.unwrap_or_default().as_millis().cast_unsigned();
    let fields = [
        facts.base.get(),
        facts.next.get(),
        facts.bytes,
        facts.records,
        time(facts.first_time),
        time(facts.last_time),
    ];
    pack(fields, &[log.get(), generation, number])
}

/// Reads row `number` of log `log`'s table; `None` if it is no such row.
pub fn decode_row(
    bytes: &[u8; ROW_LEN],
    log: LogId,
    generation: u64,
    number: u64,
) -> Option<SegmentFacts> {
    let context = [log.get(), generation, number];
    let [base, next, size, records, first, last] = unpack(bytes, &context)?;
    let time = |millis: u64| Some(Timestamp::from_millis(millis.cast_signed()));
    Some(SegmentFacts {
        base: Offset::new(base),
        next: Offset::new(next),
        records,
        bytes: size,
        first_time: time(first),
        last_time: time(last),
        state: SegmentState::Sealed,
    })
}

fn pack(fields: [u64; 6], context: &[u64]) -> [u8; ROW_LEN] {
    let mut bytes = [0; ROW_LEN];
    for (place, field) in bytes.chunks_exact_mut(8).zip(fields) {
        place.copy_from_slice(&field.to_le_bytes());
    }
    let crc = row_crc(&bytes, context);
    bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn unpack(bytes: &[u8; ROW_LEN], context: &[u64]) -> Option<[u64; 6]> {
    if bytes[CRC_AT..] != row_crc(bytes, context).to_le_bytes() {
        return None;
    }
    Some(std::array::from_fn(|field| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[field * 8..field * 8 + 8]);
        u64::from_le_bytes(word)
    }))
}

fn row_crc(bytes: &[u8; ROW_LEN], context: &[u64]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..CRC_AT]);
    for number in context {
        hasher.update(&number.to_le_bytes());
    }
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_header_count_only_where_they_were_written() {
        let log = LogId::new(5);
        let header = TableHeader { stamp: 3, rows: 2, next: Offset::new(9), generation: 7 };
        assert_eq!(TableHeader::decode(&header.encode(log), log), Some(header));
        assert_eq!(TableHeader::decode(&header.encode(log), LogId::new(6)), None);
        let facts = SegmentFacts {
            base: Offset::new(4),
            next: Offset::new(9),
            records: 5,
            bytes: 1000,
            first_time: Some(Timestamp::from_millis(-3)),
            last_time: Some(Timestamp::from_millis(8)),
            state: SegmentState::Sealed,
        };
        let row = encode_row(&facts, log, 7, 1);
        assert_eq!(decode_row(&row, log, 7, 1), Some(facts));
        assert_eq!(decode_row(&row, log, 7, 0), None);
        assert_eq!(decode_row(&row, log, 8, 1), None);
        assert_eq!(decode_row(&[0; ROW_LEN], log, 7, 1), None);
    }
}
