//! One entry of a segment's offset and time index: a batch and where it begins.
//! Entry `n` stands at `n × 32` in the file, and offsets, positions and times
//! all go up, so one binary search serves all three.
//!
//! ```text
//!  at  bytes  field (little-endian)
//!   0    8    the batch's base offset
//!   8    8    its position
//!  16    8    its append time, ms
//!  24    4    CRC-32 of bytes 0–23, the log id, the segment's base offset, n
//!  28    4    zero
//! ```

use crate::model::{LogId, Offset, Position, Timestamp};

/// The size of an entry in bytes.
pub const ENTRY_LEN: usize = 32;

/// A batch of a segment and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// The offset of its first record.
    pub offset: Offset,
    /// Where it begins.
    pub position: Position,
    /// When it was appended.
    pub time: Timestamp,
}

/// Which index an entry belongs to: one from another file is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexOf {
    /// The log.
    pub log: LogId,
    /// The segment's base offset.
    pub segment: Offset,
}

impl IndexEntry {
    /// The bytes of entry `number` of the index `of`.
    pub fn encode(&self, of: IndexOf, number: u64) -> [u8; ENTRY_LEN] {
        let mut bytes = [0; ENTRY_LEN];
        bytes[0..8].copy_from_slice(&self.offset.get().to_le_bytes());
        bytes[8..16].copy_from_slice(&self.position.get().to_le_bytes());
        bytes[16..24].copy_from_slice(&self.time.as_millis().to_le_bytes());
        let crc = entry_crc(&bytes[..24], of, number);
        bytes[24..28].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads entry `number` of the index `of`; `None` if it is no such entry.
    pub fn decode(bytes: &[u8; ENTRY_LEN], of: IndexOf, number: u64) -> Option<IndexEntry> {
        let [offset, position, time, tail] = std::array::from_fn(|field| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[field * 8..field * 8 + 8]);
            u64::from_le_bytes(word)
        });
        if tail != u64::from(entry_crc(&bytes[..24], of, number)) {
            return None;
        }
        Some(IndexEntry {
            offset: Offset::new(offset),
            position: Position::new(position),
            time: Timestamp::from_millis(time.cast_signed()),
        })
    }
}

fn entry_crc(fields: &[u8], of: IndexOf, number: u64) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(fields);
    hasher.update(&of.log.get().to_le_bytes());
    hasher.update(&of.segment.get().to_le_bytes());
    hasher.update(&number.to_le_bytes());
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_counts_only_where_it_was_written() {
        let entry = IndexEntry {
            offset: Offset::new(500),
            position: Position::new(70_000),
            time: Timestamp::from_millis(12),
        };
        let of = IndexOf { log: LogId::new(1), segment: Offset::new(400) };
        let bytes = entry.encode(of, 3);
        assert_eq!(IndexEntry::decode(&bytes, of, 3), Some(entry));
        assert_eq!(IndexEntry::decode(&bytes, of, 4), None);
        let other = IndexOf { log: LogId::new(2), ..of };
        assert_eq!(IndexEntry::decode(&bytes, other, 3), None);
        for garbage in [[0; ENTRY_LEN], [0xFF; ENTRY_LEN]] {
            assert_eq!(IndexEntry::decode(&garbage, of, 0), None);
        }
    }
}
