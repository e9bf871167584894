//! The header that stands before every batch of records. A batch is what one
//! append wrote: this header, then a body of `stored` bytes (see [`super::body`]).
//!
//! ```text
//!  at  bytes  field (little-endian)
//!   0    4    magic            F5 't' 'l' 'b'
//!   4    1    version          1
//!   5    1    layout           1 lines, 2 columns, 3 gap
//!   6    1    codec            0 none, 1 LZ4 block, 2 Zstandard frame
//!                              of a gap the reason: 1 compacted, 2 damaged
//!   7    1    flags            0
//!   8    8    base offset      of the first record
//!  16    4    next delta       next offset − base offset
//!  20    4    records
//!  24    8    synced           the durable mark when this was written
//!  32    8    append time      ms since 1970; never goes down along a log
//!  40    8    log id
//!  48    4    stored length    of the body as it lies here
//!  52    4    raw length       of the body without compression
//!  56    4    CRC-32 of the stored body
//!  60    4    CRC-32 of bytes 0–59, the segment's base offset and the batch's position
//! ```
//!
//! The last checksum covers where the batch stands, so a batch that lies anywhere
//! else (a copy, a log file inside a record) is no batch there.

use thiserror::Error;

use crate::model::{LogId, Offset, Position, Timestamp};

/// The size of a header in bytes.
pub const HEADER_LEN: usize = 64;
/// The first bytes of every batch: never valid UTF-8, so rare in text.
pub const MAGIC: [u8; 4] = [0xF5, b't', b'l', b'b'];
/// The largest record, in bytes.
pub const MAX_RECORD: usize = 64 << 20;
/// The largest body of a batch that holds more than one record, in bytes.
pub const MAX_BATCH: usize = 4 << 20;
/// The largest body of a batch with one record: its value, its terminator, its columns.
pub const MAX_SINGLE: usize = MAX_RECORD + 4096;

const VERSION: u8 = 1;
const CRC_AT: usize = 60;

/// How a body is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// The values, each with a newline, and nothing else.
    Lines,
    /// Columns: for what lines can't say.
    Columns,
    /// No records: the offsets from base to next are missing, knowingly.
    Gap(GapReason),
}

/// Why the offsets of a gap are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapReason {
    /// Compaction took their records, because later ones have the same keys.
    Compacted,
    /// Their records were damaged or lost; repair set aside what was left of them.
    Damaged,
}

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// Not at all.
    None,
    /// An LZ4 block.
    Lz4,
    /// A Zstandard frame.
    Zstd,
}

/// Where a batch stands: its log, its segment's base offset, its position there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The log it belongs to.
    pub log: LogId,
    /// The base offset of the segment.
    pub segment: Offset,
    /// The position of the header's first byte.
    pub position: Position,
}

/// A header that has been checked: its checksum fits its place and its numbers fit each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// How the body is laid out.
    pub layout: Layout,
    /// How the body is compressed.
    pub codec: Codec,
    /// The offset of the first record.
    pub base: Offset,
    /// The offset after the last record.
    pub next: Offset,
    /// How many records there are.
    pub records: u32,
    /// All offsets before this one were synced when the batch was written.
    pub synced: Offset,
    /// When it was appended.
    pub append_time: Timestamp,
    /// The body's length as stored.
    pub stored: u32,
    /// The body's length when inflated.
    pub raw: u32,
    /// CRC-32 of the stored body.
    pub body_crc: u32,
}

/// Why 64 bytes are no header.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// They don't begin like one.
    #[error("no batch begins here")]
    Magic,
    /// The checksum is wrong, or is that of another place or log.
    #[error("the header's checksum is wrong")]
    Checksum,
    /// A sound header of a kind that this version doesn't know.
    #[error("{what} {value} is unknown to this version")]
    Newer {
        /// Which field.
        what: &'static str,
        /// Its value.
        value: u8,
    },
    /// A batch larger than this version takes.
    #[error("the batch at offset {base} claims {bytes} bytes, more than a batch may have")]
    TooLarge {
        /// The offset of its first record.
        base: Offset,
        /// The length it claims.
        bytes: u64,
    },
    /// A sound checksum over numbers that can't be.
    #[error("the header's {0} can't be right")]
    Impossible(&'static str),
}

impl Header {
    /// The batch's whole length, header and body, in bytes.
    pub fn batch_len(&self) -> u64 {
        HEADER_LEN as u64 + u64::from(self.stored)
    }

    /// The header's bytes at `place`.
    ///
    /// # Errors
    /// [`HeaderError::Impossible`] for more offsets than the field can hold.
    pub fn encode(&self, place: &Place) -> Result<[u8; HEADER_LEN], HeaderError> {
        let delta = u32::try_from(self.next.since(self.base));
        let delta = delta.map_err(|_| HeaderError::Impossible("number of offsets"))?;
        let mut bytes = [0; HEADER_LEN];
        bytes[0..4].copy_from_slice(&MAGIC);
        bytes[4] = VERSION;
        bytes[5] = match self.layout {
            Layout::Lines => 1,
            Layout::Columns => 2,
            Layout::Gap(_) => 3,
        };
        bytes[6] = match (self.layout, self.codec) {
            (Layout::Gap(GapReason::Compacted), _) => 1,
            (Layout::Gap(GapReason::Damaged), _) => 2,
            (_, Codec::None) => 0,
            (_, Codec::Lz4) => 1,
            (_, Codec::Zstd) => 2,
        };
        bytes[8..16].copy_from_slice(&self.base.get().to_le_bytes());
        bytes[16..20].copy_from_slice(&delta.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.records.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.synced.get().to_le_bytes());
        bytes[32..40].copy_from_slice(&self.append_time.as_millis().to_le_bytes());
        bytes[40..48].copy_from_slice(&place.log.get().to_le_bytes());
        bytes[48..52].copy_from_slice(&self.stored.to_le_bytes());
        bytes[52..56].copy_from_slice(&self.raw.to_le_bytes());
        bytes[56..60].copy_from_slice(&self.body_crc.to_le_bytes());
        let crc = placed_crc(&bytes, place);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        Ok(bytes)
    }

    /// Reads the header of the batch at `place`.
    ///
    /// # Errors
    /// [`HeaderError`], in this order: no batch at all, a wrong checksum (or another
    /// place's), a kind unknown here, numbers that can't be.
    pub fn decode(bytes: &[u8; HEADER_LEN], place: &Place) -> Result<Header, HeaderError> {
        if bytes[0..4] != MAGIC {
            return Err(HeaderError::Magic);
        }
        if u32_at(bytes, CRC_AT) != placed_crc(bytes, place) {
            return Err(HeaderError::Checksum);
        }
        let newer = |what, value| HeaderError::Newer { what, value };
        if bytes[4] != VERSION {
            return Err(newer("version", bytes[4]));
        }
        let (layout, codec) = match (bytes[5], bytes[6]) {
            (3, 1) => (Layout::Gap(GapReason::Compacted), Codec::None),
            (3, 2) => (Layout::Gap(GapReason::Damaged), Codec::None),
            (3, other) => return Err(newer("gap of reason", other)),
            (1, codec) => (Layout::Lines, codec_of(codec)?),
            (2, codec) => (Layout::Columns, codec_of(codec)?),
            (other, _) => return Err(newer("layout", other)),
        };
        if bytes[7] != 0 {
            return Err(newer("flag set", bytes[7]));
        }
        if u64_at(bytes, 40) != place.log.get() {
            return Err(HeaderError::Checksum);
        }
        let base = Offset::new(u64_at(bytes, 8));
        let next = base.forward(u64::from(u32_at(bytes, 16)));
        let header = Header {
            layout,
            codec,
            base,
            next: next.ok_or(HeaderError::Impossible("offset"))?,
            records: u32_at(bytes, 20),
            synced: Offset::new(u64_at(bytes, 24)),
            append_time: Timestamp::from_millis(u64_at(bytes, 32).cast_signed()),
            stored: u32_at(bytes, 48),
            raw: u32_at(bytes, 52),
            body_crc: u32_at(bytes, 56),
        };
        header.check()
    }

    /// The log id that these bytes name, if they are a header at all.
    pub fn claimed_log(bytes: &[u8; HEADER_LEN]) -> LogId {
        LogId::new(u64_at(bytes, 40))
    }

    /// The durable mark in the header at `place`: of every one whose checksum is right,
    /// though its kind be unknown or its batch too large.
    pub fn synced_at(bytes: &[u8; HEADER_LEN], place: &Place) -> Option<Offset> {
        match Header::decode(bytes, place) {
            Ok(header) => Some(header.synced),
            Err(HeaderError::Newer { .. } | HeaderError::TooLarge { .. })
                if bytes[4] == VERSION =>
            {
                Some(Offset::new(u64_at(bytes, 24)))
            }
            Err(_) => None,
        }
    }

    /// Bounds every number before anything is done with it.
    fn check(self) -> Result<Header, HeaderError> {
        let offsets = self.next.since(self.base);
        if offsets == 0 || u64::from(self.records) > offsets {
            return Err(HeaderError::Impossible("number of records"));
        }
        let is_gap = matches!(self.layout, Layout::Gap(_));
        if is_gap != (self.records == 0) {
            return Err(HeaderError::Impossible("number of records"));
        }
        if self.layout == Layout::Lines && offsets != u64::from(self.records) {
            return Err(HeaderError::Impossible("number of records"));
        }
        if is_gap && (self.codec != Codec::None || self.raw != 0 || self.stored != 0) {
            return Err(HeaderError::Impossible("length"));
        }
        if self.synced > self.base {
            return Err(HeaderError::Impossible("durable mark"));
        }
        let limit = if self.records > 1 { MAX_BATCH } else { MAX_SINGLE };
        let largest = self.stored.max(self.raw);
        if largest as usize > limit {
            return Err(HeaderError::TooLarge { base: self.base, bytes: u64::from(largest) });
        }
        if self.codec == Codec::None && self.stored != self.raw {
            return Err(HeaderError::Impossible("length"));
        }
        Ok(self)
    }
}

/// The codec that a batch with records names.
fn codec_of(value: u8) -> Result<Codec, HeaderError> {
    match value {
        0 => Ok(Codec::None),
        1 => Ok(Codec::Lz4),
        2 => Ok(Codec::Zstd),
        value => Err(HeaderError::Newer { what: "codec", value }),
    }
}

/// CRC-32 over a header without its last field, then where it stands.
fn placed_crc(bytes: &[u8; HEADER_LEN], place: &Place) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..CRC_AT]);
    hasher.update(&place.segment.get().to_le_bytes());
    hasher.update(&place.position.get().to_le_bytes());
    hasher.finalize()
}

fn u32_at(bytes: &[u8; HEADER_LEN], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8; HEADER_LEN], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        Place { log: LogId::new(7), segment: Offset::new(100), position: Position::new(4096) }
    }

    fn header() -> Header {
        Header {
            layout: Layout::Lines,
            codec: Codec::None,
            base: Offset::new(130),
            next: Offset::new(133),
            records: 3,
            synced: Offset::new(120),
            append_time: Timestamp::from_millis(-1),
            stored: 12,
            raw: 12,
            body_crc: 0xDEAD_BEEF,
        }
    }

    /// Sets a byte and makes the checksum right again.
    fn forged(at: usize, value: u8) -> [u8; HEADER_LEN] {
        let mut bytes = header().encode(&place()).unwrap();
        bytes[at] = value;
        let crc = placed_crc(&bytes, &place());
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    #[test]
    fn comes_back_as_it_was() {
        let gap = |reason| Header {
            layout: Layout::Gap(reason),
            next: Offset::new(130 + u64::from(u32::MAX)),
            records: 0,
            stored: 0,
            raw: 0,
            body_crc: 0,
            ..header()
        };
        for header in [header(), gap(GapReason::Compacted), gap(GapReason::Damaged)] {
            let bytes = header.encode(&place()).unwrap();
            assert_eq!(Header::decode(&bytes, &place()), Ok(header));
        }
    }

    #[test]
    fn more_offsets_than_the_field_holds_are_not_written() {
        let next = Offset::new(131 + u64::from(u32::MAX));
        let far = Header { layout: Layout::Columns, next, ..header() };
        assert!(matches!(far.encode(&place()), Err(HeaderError::Impossible(_))));
    }

    #[test]
    fn the_bytes_are_these_and_no_others() {
        let hex: String =
            header().encode(&place()).unwrap().iter().map(|b| format!("{b:02x}")).collect();
        let golden = "f5746c620101000082000000000000000300000003000000780000000000000\
                      0ffffffffffffffff07000000000000000c0000000c000000efbeadde";
        assert_eq!(&hex[..120], golden);
    }

    #[test]
    fn any_flipped_bit_is_noticed() {
        let good = header().encode(&place()).unwrap();
        for bit in 0..HEADER_LEN * 8 {
            let mut bytes = good;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::decode(&bytes, &place()).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_batch_is_none_at_another_place_or_in_another_log() {
        let bytes = header().encode(&place()).unwrap();
        for elsewhere in [
            Place { log: LogId::new(8), ..place() },
            Place { segment: Offset::new(0), ..place() },
            Place { position: Position::new(0), ..place() },
        ] {
            assert_eq!(Header::decode(&bytes, &elsewhere), Err(HeaderError::Checksum));
        }
    }

    #[test]
    fn an_unknown_kind_under_a_good_checksum_is_newer_not_damaged() {
        for at in [4, 5, 6, 7] {
            let decoded = Header::decode(&forged(at, 9), &place());
            assert!(matches!(decoded, Err(HeaderError::Newer { value: 9, .. })), "{decoded:?}");
        }
    }

    #[test]
    fn numbers_that_cannot_be_are_refused_before_use() {
        // A body of another length raw, more records than offsets, none at all, a mark in the future.
        for (at, value) in [(48, 0xFF), (20, 4), (20, 0), (24, 200)] {
            let decoded = Header::decode(&forged(at, value), &place());
            assert!(matches!(decoded, Err(HeaderError::Impossible(_))), "{at}: {decoded:?}");
        }
        for at in [51, 55] {
            let decoded = Header::decode(&forged(at, 0xFF), &place());
            assert!(matches!(decoded, Err(HeaderError::TooLarge { .. })), "{at}: {decoded:?}");
        }
    }
}
