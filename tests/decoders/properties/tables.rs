//! The derived files that are searched: a segment's index, the table of segments.

use std::path::Path;

use tapelog::disk::simulated::SimulatedDisk;
use tapelog::disk::{Access, Disk, DiskFile};
use tapelog::format::index_entry::{ENTRY_LEN, IndexEntry, IndexOf};
use tapelog::format::segment_row::{ROW_LEN, TableHeader, decode_row, encode_row};
use tapelog::model::{LogId, Offset, Position, SegmentFacts, Timestamp};
use tapelog::segment::Index;

use super::draw::Draw;

const LOG: LogId = LogId::new(7);
const OF: IndexOf = IndexOf { log: LOG, segment: Offset::new(400) };

/// An entry: as it is, and with its checksum made right.
pub fn index_entry(input: &[u8]) {
    let mut draw = Draw::new(input);
    let number = draw.u64();
    let mut bytes = draw.array();
    check_entry(&bytes, number);
    seal_entry(&mut bytes, number);
    check_entry(&bytes, number);
}

fn check_entry(bytes: &[u8; ENTRY_LEN], number: u64) {
    let Some(entry) = IndexEntry::decode(bytes, OF, number) else { return };
    assert_eq!(entry.encode(OF, number), *bytes);
    assert_eq!(IndexEntry::decode(bytes, OF, number ^ 1), None);
    let other = IndexOf { log: LogId::new(8), ..OF };
    assert_eq!(IndexEntry::decode(bytes, other, number), None);
}

fn seal_entry(bytes: &mut [u8; ENTRY_LEN], number: u64) {
    let of = [LOG.get(), OF.segment.get(), number].map(u64::to_le_bytes).concat();
    let crc = crc32fast::hash(&[&bytes[..24], &of].concat());
    bytes[24..].copy_from_slice(&u64::from(crc).to_le_bytes());
}

/// The input as an index; then an index of entries drawn from it, searched.
pub fn index_file(input: &[u8]) {
    let (offset, time) = (Offset::new(Draw::new(input).u64()), Timestamp::default());
    if let Ok(mut index) = Index::open(file(input), OF) {
        let found = index.find_offset(offset).ok().flatten();
        assert!(found.is_none_or(|entry| entry.offset <= offset));
        let found = index.find_time(time).ok().flatten();
        assert!(found.is_none_or(|entry| entry.time < time));
        let _ = index.cut(Position::new(offset.get()));
    }
    searched(input);
}

fn searched(input: &[u8]) {
    let mut draw = Draw::new(input);
    let wanted = draw.u16();
    let mut index = Index::open(file(&[]), OF).expect("an empty index");
    let mut entries = Vec::new();
    let mut at = 0;
    while !draw.is_empty() && entries.len() < 40 {
        at += 1 + u64::from(draw.u8()) * 50;
        let time = Timestamp::from_millis(at as i64 / 3);
        let entry = IndexEntry { offset: Offset::new(at), position: Position::new(at * 2), time };
        index.push(&[entry]).expect("room on the simulated disk");
        entries.push(entry);
    }
    let (offset, time) = (Offset::new(wanted.into()), Timestamp::from_millis(wanted.into()));
    let walk = |holds: &dyn Fn(&IndexEntry) -> bool| {
        entries.iter().rev().find(|entry| holds(entry)).copied()
    };
    let found = index.find_offset(offset).expect("a good index");
    assert_eq!(found, walk(&|entry| entry.offset <= offset));
    assert_eq!(index.find_time(time).expect("a good index"), walk(&|entry| entry.time < time));
    index.cut(Position::new(wanted.into())).expect("a good index");
    assert_eq!(index.last(), walk(&|entry| entry.position.get() < wanted.into()));
}

fn file(bytes: &[u8]) -> Box<dyn DiskFile> {
    let disk = SimulatedDisk::new();
    let path = Path::new("/index");
    disk.write_file(path, bytes).expect("a file on the simulated disk");
    disk.open(path, Access::ReadWrite).expect("the file just written")
}

/// The header and a row: as they are, and with their checksums made right.
pub fn segment_table(input: &[u8]) {
    let mut draw = Draw::new(input);
    let (generation, number) = (draw.u64(), draw.u64());
    let mut bytes: [u8; ROW_LEN] = draw.array();
    check_row(&bytes, generation, number);
    seal_row(&mut bytes, &[LOG.get(), generation, number]);
    check_row(&bytes, generation, number);
    check_table_header(&bytes);
    bytes[..8].copy_from_slice(b"tapelog1");
    bytes[8..16].copy_from_slice(&LOG.get().to_le_bytes());
    seal_row(&mut bytes, &[]);
    check_table_header(&bytes);
}

fn check_row(bytes: &[u8; ROW_LEN], generation: u64, number: u64) {
    let Some(facts) = decode_row(bytes, LOG, generation, number) else { return };
    let again: [u8; ROW_LEN] = encode_row(&facts, LOG, generation, number);
    let read: Option<SegmentFacts> = decode_row(&again, LOG, generation, number);
    assert_eq!(read, Some(facts));
    assert_eq!(decode_row(bytes, LOG, generation, number ^ 1), None);
}

fn check_table_header(bytes: &[u8; ROW_LEN]) {
    let Some(header) = TableHeader::decode(bytes, LOG) else { return };
    assert_eq!(TableHeader::decode(&header.encode(LOG), LOG), Some(header));
    assert_eq!(TableHeader::decode(bytes, LogId::new(8)), None);
}

fn seal_row(bytes: &mut [u8; ROW_LEN], context: &[u64]) {
    let context: Vec<u8> = context.iter().flat_map(|number| number.to_le_bytes()).collect();
    let crc = crc32fast::hash(&[&bytes[..52], &context].concat());
    bytes[52..].copy_from_slice(&crc.to_le_bytes());
}
