//! A table of the key index, `keys/FIRST-NEXT.table`: where the keyed records of a range
//! of offsets are, by the hashes of their keys. A header page, then pages of entries,
//! sorted by hash and, under one hash, the newest first.
//!
//! ```text
//! header  at  bytes                        page  at  bytes
//!          0    8   "tapekey1"                    0    4   CRC-32 of the rest of the page,
//!          8    8   log id                                 log id, first, next, homes,
//!         16    8   first offset                           page number
//!         24    8   next offset                   4    2   entries
//!         32    8   entries                       6   20   zero
//!         40    8   homes                        26   22   each entry:
//!         48    8   pages                               16   hash
//!         56    8   append time of the record          6   (offset − first) × 2,
//!                   before next, in ms                       and 1 more for a tombstone
//!         64    4   CRC-32 of bytes 0–63
//!         68        zero to the page's end
//! ```
//!
//! The hash alone names the page where a look-up begins, its *home*: as far into the
//! `homes` first pages as the hash is into all hashes. An entry stands there, or, if
//! entries before it have filled that page, in the next one with room. So one page is
//! read, seldom two. Where one hash fills many pages, its place among them is found by
//! bisection, as all that stand between its home and it are full.

use std::cmp::Reverse;
use std::ops::Range;

use super::key_hash::KeyHash;
use crate::model::{LogId, Offset, Timestamp};

/// The size of the header and of each page of entries, in bytes.
pub const PAGE_LEN: usize = 4096;

/// How many entries a page has room for.
pub const PAGE_ENTRIES: usize = (PAGE_LEN - ENTRIES_AT) / ENTRY_LEN;

/// A table covers fewer offsets than this, so that 47 bits tell them apart.
pub const MOST_OFFSETS: u64 = 1 << 47;

const MAGIC: u64 = u64::from_le_bytes(*b"tapekey1");
const HEADER_CRC_AT: usize = 64;
const COUNT_AT: usize = 4;
const ENTRIES_AT: usize = 26;
const ENTRY_LEN: usize = 22;
const HASH_LEN: usize = 16;

/// So full are pages on the average: fuller, and more look-ups read a second page.
const FILL: Range<u64> = 19..20;

/// A page as it lies in the file.
pub type PageBytes = [u8; PAGE_LEN];

/// A keyed record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyEntry {
    /// The hash of its key.
    pub hash: KeyHash,
    /// Where it is.
    pub offset: Offset,
    /// Whether it is one without a value.
    pub tombstone: bool,
}

impl KeyEntry {
    /// Its place among others: by hash, then the newest first.
    pub fn place(&self) -> (KeyHash, Reverse<Offset>) {
        (self.hash, Reverse(self.offset))
    }
}

/// Which table a page belongs to, and how its entries are spread: one of another is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableOf {
    /// The log.
    pub log: LogId,
    /// The range of offsets whose keyed records it has.
    pub first: Offset,
    /// The offset after them.
    pub next: Offset,
    /// How many pages hashes name as their homes.
    pub homes: u64,
}

impl TableOf {
    /// A table with room for so many entries.
    pub fn with_room(log: LogId, first: Offset, next: Offset, entries: u64) -> TableOf {
        let pages = entries.saturating_mul(FILL.end).div_ceil(PAGE_ENTRIES as u64 * FILL.start);
        TableOf { log, first, next, homes: pages }
    }

    /// The page that `hash` names, if there is any.
    pub fn home(&self, hash: KeyHash) -> u64 {
        let high = hash.get() >> 64;
        ((high * u128::from(self.homes)) >> 64) as u64
    }
}

/// What a table says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableHeader {
    /// Which one it is.
    pub of: TableOf,
    /// How many entries it has.
    pub entries: u64,
    /// How many pages of entries follow.
    pub pages: u64,
    /// When the last record of its range was appended. A log in which that is later was
    /// rewritten since, from a copy older than the table, and the table is none of its.
    pub time: Timestamp,
}

/// What a header page is, if it is not a good one of the log's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoHeader {
    /// One of another log.
    OtherLog,
    /// Garbage.
    Garbage,
}

impl TableHeader {
    /// The header page.
    pub fn encode(&self) -> PageBytes {
        let of = &self.of;
        let (log, first, next) = (of.log.get(), of.first.get(), of.next.get());
        let time = self.time.as_millis() as u64;
        let fields = [MAGIC, log, first, next, self.entries, of.homes, self.pages, time];
        let mut page = [0; PAGE_LEN];
        for (place, field) in page.chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        let crc = crc32fast::hash(&page[..HEADER_CRC_AT]);
        page[HEADER_CRC_AT..HEADER_CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
        page
    }

    /// Reads the header page of a table of log `log`.
    ///
    /// # Errors
    /// [`NoHeader`]
    pub fn decode(page: &PageBytes, log: LogId) -> Result<TableHeader, NoHeader> {
        let crc = crc32fast::hash(&page[..HEADER_CRC_AT]);
        let (fields, rest) = page.split_at(HEADER_CRC_AT);
        let is_sealed = rest[..4] == crc.to_le_bytes() && rest[4..].iter().all(|&byte| byte == 0);
        let [magic, id, first, next, entries, homes, pages, time] = std::array::from_fn(|field| {
            let mut word = [0; 8];
            word.copy_from_slice(&fields[field * 8..field * 8 + 8]);
            u64::from_le_bytes(word)
        });
        let (first, next) = (Offset::new(first), Offset::new(next));
        let bounded = first <= next && next <= Offset::MAX && next.since(first) < MOST_OFFSETS;
        // Beyond its homes a table has no more pages than what begins at the last one fills.
        let most = homes.saturating_add(entries.div_ceil(PAGE_ENTRIES as u64));
        let fits = pages >= homes && pages <= most && (homes > 0 || pages == 0);
        if magic != MAGIC || !is_sealed || !bounded || !fits {
            return Err(NoHeader::Garbage);
        }
        let of = TableOf { log: LogId::new(id), first, next, homes };
        let time = Timestamp::from_millis(time as i64);
        let ours = id == log.get();
        ours.then_some(TableHeader { of, entries, pages, time }).ok_or(NoHeader::OtherLog)
    }

    /// The size of the file in bytes; `None` if no file is so large.
    pub fn file_len(&self) -> Option<u64> {
        self.pages.checked_add(1)?.checked_mul(PAGE_LEN as u64)
    }
}

/// Where page `number` begins in the file.
pub fn page_at(number: u64) -> u64 {
    number.saturating_add(1).saturating_mul(PAGE_LEN as u64)
}

/// A page of entries in the making.
#[derive(Debug)]
pub struct NewPage {
    bytes: Box<PageBytes>,
    entries: usize,
}

impl Default for NewPage {
    fn default() -> Self {
        NewPage { bytes: Box::new([0; PAGE_LEN]), entries: 0 }
    }
}

impl NewPage {
    /// Whether there is no room left.
    pub fn is_full(&self) -> bool {
        self.entries == PAGE_ENTRIES
    }

    /// Whether it has no entry yet.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Adds an entry behind the others, in a page of table `of` that is not full.
    pub fn push(&mut self, entry: &KeyEntry, of: &TableOf) {
        let at = ENTRIES_AT + self.entries * ENTRY_LEN;
        let place = &mut self.bytes[at..at + ENTRY_LEN];
        place[..HASH_LEN].copy_from_slice(&entry.hash.get().to_le_bytes());
        let packed = entry.offset.since(of.first) << 1 | u64::from(entry.tombstone);
        place[HASH_LEN..].copy_from_slice(&packed.to_le_bytes()[..ENTRY_LEN - HASH_LEN]);
        self.entries += 1;
    }

    /// The bytes of page `number` of table `of`, put at the end of `out`; the next page
    /// begins.
    pub fn finish(&mut self, of: &TableOf, number: u64, out: &mut Vec<u8>) {
        self.bytes[COUNT_AT..COUNT_AT + 2].copy_from_slice(&(self.entries as u16).to_le_bytes());
        // What an earlier page left behind the last entry.
        self.bytes[ENTRIES_AT + self.entries * ENTRY_LEN..].fill(0);
        let crc = page_crc(&self.bytes, of, number);
        self.bytes[..COUNT_AT].copy_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(self.bytes.as_slice());
        self.entries = 0;
    }
}

/// A page of entries whose checksum is right.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    bytes: &'a PageBytes,
    first: Offset,
    entries: usize,
}

impl<'a> Page<'a> {
    /// Page `number` of table `of`; `None` if it is no such page.
    pub fn check(bytes: &'a PageBytes, of: &TableOf, number: u64) -> Option<Page<'a>> {
        let entries = usize::from(u16::from_le_bytes([bytes[COUNT_AT], bytes[COUNT_AT + 1]]));
        let is_sealed = bytes[..COUNT_AT] == page_crc(bytes, of, number).to_le_bytes();
        let is_one = is_sealed && entries <= PAGE_ENTRIES;
        is_one.then_some(Page { bytes, first: of.first, entries })
    }

    /// A page of table `of` that was checked before.
    pub fn checked(bytes: &'a PageBytes, of: &TableOf) -> Page<'a> {
        let entries = usize::from(u16::from_le_bytes([bytes[COUNT_AT], bytes[COUNT_AT + 1]]));
        Page { bytes, first: of.first, entries: entries.min(PAGE_ENTRIES) }
    }

    /// How many entries it has.
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Whether no more would have gone in.
    pub fn is_full(&self) -> bool {
        self.entries == PAGE_ENTRIES
    }

    /// Entry `number`, counted from 0; `None` beyond the last one.
    pub fn entry(&self, number: usize) -> Option<KeyEntry> {
        if number >= self.entries {
            return None;
        }
        let at = ENTRIES_AT + number * ENTRY_LEN;
        let place = &self.bytes[at..at + ENTRY_LEN];
        let (mut hash, mut packed) = ([0; HASH_LEN], [0; 8]);
        hash.copy_from_slice(&place[..HASH_LEN]);
        packed[..ENTRY_LEN - HASH_LEN].copy_from_slice(&place[HASH_LEN..]);
        let packed = u64::from_le_bytes(packed);
        let offset = Offset::new(self.first.get().saturating_add(packed >> 1));
        let hash = KeyHash::new(u128::from_le_bytes(hash));
        Some(KeyEntry { hash, offset, tombstone: packed & 1 == 1 })
    }

    /// How many entries, counted from the first, stand before the entries of `hash` that
    /// are older than `offset`: in a page whose entries are in order.
    pub fn count_before(&self, hash: KeyHash, offset: Offset) -> usize {
        let target = (hash, Reverse(offset));
        let (mut low, mut high) = (0, self.entries);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.entry(middle) {
                Some(entry) if entry.place() <= target => low = middle + 1,
                _ => high = middle,
            }
        }
        low
    }
}

fn page_crc(bytes: &PageBytes, of: &TableOf, number: u64) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[COUNT_AT..]);
    for word in [of.log.get(), of.first.get(), of.next.get(), of.homes, number] {
        hasher.update(&word.to_le_bytes());
    }
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    const LOG: LogId = LogId::new(3);

    fn of(homes: u64) -> TableOf {
        TableOf { log: LOG, first: Offset::new(100), next: Offset::new(100 + (1 << 40)), homes }
    }

    fn page(entries: &[KeyEntry], of: &TableOf, number: u64) -> PageBytes {
        let (mut page, mut out) = (NewPage::default(), Vec::new());
        entries.iter().for_each(|entry| page.push(entry, of));
        page.finish(of, number, &mut out);
        out.try_into().unwrap()
    }

    #[test]
    fn a_header_counts_only_where_it_was_written() {
        let time = Timestamp::from_millis(-5);
        let header = TableHeader { of: of(2), entries: 200, pages: 3, time };
        let page = header.encode();
        assert_eq!(TableHeader::decode(&page, LOG), Ok(header));
        assert_eq!(TableHeader::decode(&page, LogId::new(4)), Err(NoHeader::OtherLog));
        for garbage in [[0; PAGE_LEN], [0xFF; PAGE_LEN]] {
            assert_eq!(TableHeader::decode(&garbage, LOG), Err(NoHeader::Garbage));
        }
        let too_many_pages = TableHeader { pages: 5, ..header };
        assert_eq!(TableHeader::decode(&too_many_pages.encode(), LOG), Err(NoHeader::Garbage));
    }

    #[test]
    fn a_table_with_room_takes_less_than_24_bytes_an_entry() {
        let entries = 10_000_000;
        let of = TableOf::with_room(LOG, Offset::ZERO, Offset::new(entries), entries);
        assert!(of.homes * (PAGE_LEN as u64) < entries * 24);
        assert!(of.homes * (PAGE_ENTRIES as u64) > entries);
        assert_eq!(TableOf::with_room(LOG, Offset::ZERO, Offset::new(9), 0).homes, 0);
    }

    #[test]
    fn homes_are_as_far_in_as_their_hashes_are() {
        let home = |hash| of(10).home(KeyHash::new(hash));
        assert_eq!((home(0), home(u128::MAX / 2), home(u128::MAX)), (0, 4, 9));
        assert_eq!(of(0).home(KeyHash::new(u128::MAX)), 0);
    }

    proptest! {
        #[test]
        fn entries_come_back_and_are_found(
            given in prop::collection::vec((0..8u128, 0..1u64 << 40, any::<bool>()), 0..PAGE_ENTRIES),
            hash in 0..8u128, offset in 0..1u64 << 40,
        ) {
            let entry = |&(hash, offset, tombstone): &(u128, u64, bool)| KeyEntry {
                hash: KeyHash::new(hash << 100), offset: Offset::new(100 + offset), tombstone,
            };
            let mut entries: Vec<KeyEntry> = given.iter().map(entry).collect();
            entries.sort_by_key(KeyEntry::place);
            let bytes = page(&entries, &of(5), 2);
            let page = Page::check(&bytes, &of(5), 2).unwrap();
            let read: Vec<KeyEntry> = (0..page.len()).filter_map(|n| page.entry(n)).collect();
            prop_assert_eq!(&read, &entries);
            let (hash, offset) = (KeyHash::new(hash << 100), Offset::new(offset));
            let before = entries.iter().filter(|entry| entry.place() <= (hash, Reverse(offset)));
            prop_assert_eq!(page.count_before(hash, offset), before.count());
            prop_assert!(Page::check(&bytes, &of(5), 3).is_none());
            prop_assert!(Page::check(&bytes, &of(6), 2).is_none());
        }
    }
}
