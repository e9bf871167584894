//! Where the inputs begin: what is in the golden logs, in the form that each property
//! reads, and text that is nearly right.

use std::fs;
use std::path::{Path, PathBuf};

use tapelog::disk::simulated::SimulatedDisk;
use tapelog::disk::{Access, Disk};
use tapelog::format::batch::{Codec, Header, Layout};
use tapelog::format::codec;
use tapelog::format::key_table::{TableHeader, TableOf};
use tapelog::format::slots::SLOT_LEN;
use tapelog::model::{LogId, Offset, Position, Timestamp};
use tapelog::segment::{SegmentReader, Step};

const ID: LogId = LogId::new(0x0123_4567_89AB_CDEF);

/// The seeds of the property `name`.
pub fn of(name: &str) -> Vec<Vec<u8>> {
    match name {
        "batch_header" => batches().into_iter().map(|batch| batch.bytes[..64].to_vec()).collect(),
        "body" => batches().iter().map(body).collect(),
        "records" | "headers" => vec![b"\x1f\x02\x01k\x01v".to_vec(), (0..=255).collect()],
        "inflate" => batches().iter().map(packed).collect(),
        "end_file" => texts(&end_lines()),
        "start_file" => texts(&[
            r#"{"seq":1,"kept":0,"log":"0123456789abcdef","start":0"#,
            "{\"seq\":1,\"kept\":0,\"log\":\"0123456789abcdef\",\"start\":7\n\
             {\"seq\":2,\"kept\":1,\"log\":\"0123456789abcdef\",\"start\":9",
        ]),
        "checkpoint_file" => texts(&[
            r#"{"seq":3,"kept":2,"log":"0123456789abcdef","group":"g","next":5,"before":1,"stored":2"#,
            r#"{"seq":3,"kept":2,"log":"0123456789abcdef","group":"a.b","next":5,"before":null,"stored":-2"#,
        ]),
        "key_table" => vec![header_of_keys()],
        "log_json" => golden_files("log.json"),
        "names" => texts(&[
            "00000000000004750000.log",
            "00000000000004750000.index",
            "00000000000000000000-00000000000004750000.table",
            "billing.checkpoint",
            "7.tmp",
            "+7.tmp",
            "007.tmp",
            "0123456789abcdef",
            "zstd:22",
        ]),
        _ => vec![(0..200).collect()],
    }
}

/// The header page of a key table, as far as it is not zero.
fn header_of_keys() -> Vec<u8> {
    let (first, next) = (Offset::new(400), Offset::new(1 << 20));
    let of = TableOf::with_room(LogId::new(7), first, next, 300);
    TableHeader { of, entries: 300, pages: 3, time: Timestamp::from_millis(7) }.encode()[..68]
        .to_vec()
}

fn texts(texts: &[impl AsRef<[u8]>]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_ref().to_vec()).collect()
}

/// The lines of the golden logs' `end`, without padding and checksum.
fn end_lines() -> Vec<Vec<u8>> {
    let files = golden_files("end");
    let lines = files.iter().flat_map(|file| file.chunks(SLOT_LEN));
    let crc = br#","crc":""#.len() + 8 + 2;
    lines.map(|line| line.trim_ascii_end()).map(|line| line[..line.len() - crc].to_vec()).collect()
}

/// A batch of a golden log.
struct Batch {
    header: Header,
    bytes: Vec<u8>,
}

fn batches() -> Vec<Batch> {
    let mut batches = Vec::new();
    for bytes in golden_files("00000000000000000000.log") {
        let disk = SimulatedDisk::new();
        disk.write_file(Path::new("/segment"), &bytes).unwrap();
        let file = disk.open(Path::new("/segment"), Access::Read).unwrap();
        let mut reader = SegmentReader::new(file, ID, Offset::ZERO, Position::ZERO, Offset::ZERO);
        while let Step::Batch(batch) = reader.step().unwrap() {
            if batch.bytes.len() < 4096 {
                batches.push(Batch { header: batch.header, bytes: batch.bytes.to_vec() });
            }
        }
    }
    assert!(batches.len() > 10, "the golden logs are seeds");
    batches
}

/// As the property `body` reads it: layout, records, offsets beyond them, the bytes.
fn body(batch: &Batch) -> Vec<u8> {
    let header = &batch.header;
    let mut raw = Vec::new();
    codec::inflate(header.codec, &batch.bytes[64..], header.raw as usize, &mut raw).unwrap();
    let layout = match header.layout {
        Layout::Lines => 0,
        Layout::Columns => 1,
        Layout::Gap(_) => 2,
    };
    let slack = header.next.since(header.base) - u64::from(header.records);
    let slack = u8::try_from(slack).unwrap_or(u8::MAX);
    let records = (header.records as u16).to_le_bytes();
    [&[layout, records[0], records[1], slack], &raw[..]].concat()
}

/// As the property `inflate` reads it: codec, a zero, the raw length, the stored bytes.
fn packed(batch: &Batch) -> Vec<u8> {
    let codec = match batch.header.codec {
        Codec::None => 0,
        Codec::Lz4 => 1,
        Codec::Zstd => 2,
    };
    let raw = (batch.header.raw as u16).to_le_bytes();
    [&[codec, 0, raw[0], raw[1]], &batch.bytes[64..]].concat()
}

/// The file of this name in each golden log.
fn golden_files(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/format/golden");
    let mut logs: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    logs.sort();
    logs.iter().filter_map(|log| fs::read(log.join(name)).ok()).collect()
}
