//! The tables of the key index: the header page, and a page of entries.

use tapelog::format::key_hash::KeyHash;
use tapelog::format::key_table::{
    KeyEntry, NewPage, NoHeader, PAGE_ENTRIES, PAGE_LEN, Page, PageBytes, TableHeader, TableOf,
};
use tapelog::model::{LogId, Offset};

use super::draw::Draw;

const LOG: LogId = LogId::new(7);
const OF: TableOf =
    TableOf { log: LOG, first: Offset::new(400), next: Offset::new(1 << 40), homes: 9 };

/// A page that begins with the input.
fn page_of(input: &[u8]) -> PageBytes {
    let mut page = [0; PAGE_LEN];
    let length = input.len().min(PAGE_LEN);
    page[..length].copy_from_slice(&input[..length]);
    page
}

/// The header page: as it is, and with magic, log id and checksum made right.
pub fn key_table(input: &[u8]) {
    let mut page = page_of(input);
    check_header(&page);
    page[..8].copy_from_slice(b"tapekey1");
    page[8..16].copy_from_slice(&LOG.get().to_le_bytes());
    let crc = crc32fast::hash(&page[..64]);
    page[64..68].copy_from_slice(&crc.to_le_bytes());
    page[68..].fill(0);
    check_header(&page);
}

fn check_header(page: &PageBytes) {
    let Ok(header) = TableHeader::decode(page, LOG) else { return };
    assert_eq!(header.encode(), *page);
    assert!(header.of.first <= header.of.next && header.of.homes <= header.pages);
    assert_eq!(TableHeader::decode(page, LogId::new(8)), Err(NoHeader::OtherLog));
    let home = header.of.home(KeyHash::new(u128::MAX));
    assert!(home < header.pages || header.pages == 0);
}

/// A page of entries: as it is, with its checksum made right, and made of the input.
pub fn key_page(input: &[u8]) {
    let mut draw = Draw::new(input);
    let number = draw.u64();
    let mut page = page_of(draw.rest());
    check_page(&page, number);
    let of = [LOG.get(), OF.first.get(), OF.next.get(), OF.homes, number].map(u64::to_le_bytes);
    let crc = crc32fast::hash(&[&page[4..], &of.concat()].concat());
    page[..4].copy_from_slice(&crc.to_le_bytes());
    check_page(&page, number);
    made_of(input);
}

fn check_page(bytes: &PageBytes, number: u64) {
    let Some(page) = Page::check(bytes, &OF, number) else { return };
    assert!(page.len() <= PAGE_ENTRIES && page.entry(page.len()).is_none());
    let entries = (0..page.len()).filter_map(|entry| page.entry(entry));
    assert!(entries.clone().all(|entry| entry.offset >= OF.first));
    let _ = page.count_before(KeyHash::new(1 << 127), Offset::new(500));
    assert!(Page::check(bytes, &OF, number ^ 1).is_none());
    assert!(Page::check(bytes, &TableOf { log: LogId::new(8), ..OF }, number).is_none());
}

fn made_of(input: &[u8]) {
    let mut draw = Draw::new(input);
    let mut entries = Vec::new();
    while !draw.is_empty() && entries.len() < PAGE_ENTRIES {
        let hash = KeyHash::new(u128::from(draw.u16()) << 100);
        let offset = Offset::new(400 + u64::from(draw.u16()));
        entries.push(KeyEntry { hash, offset, tombstone: draw.u8() % 2 == 1 });
    }
    entries.sort_by_key(KeyEntry::place);
    let (mut page, mut out) = (NewPage::default(), Vec::new());
    entries.iter().for_each(|entry| page.push(entry, &OF));
    page.finish(&OF, 3, &mut out);
    let bytes: PageBytes = out.try_into().expect("a page");
    let page = Page::check(&bytes, &OF, 3).expect("the page just made");
    let read: Vec<_> = (0..page.len()).filter_map(|entry| page.entry(entry)).collect();
    assert_eq!(read, entries);
    let (hash, offset) = (KeyHash::new(5 << 100), Offset::new(500));
    let target = (hash, std::cmp::Reverse(offset));
    let before = entries.iter().filter(|entry| entry.place() <= target).count();
    assert_eq!(page.count_before(hash, offset), before);
}
