//! Batches: the header, the body in its layouts, the codecs.

use tapelog::format::batch::{
    Codec, GapReason, HEADER_LEN, Header, HeaderError, Layout, MAGIC, MAX_SINGLE, Place,
};
use tapelog::format::codec::{self, Compression};
use tapelog::format::columns::{self, Columns};
use tapelog::format::record::{Content, Headers, RecordView, push_header};
use tapelog::format::{body as bodies, varint};
use tapelog::model::{LogId, Offset, Position, Timestamp};

use super::draw::Draw;

type NameAndValue<'a> = (&'a [u8], Option<&'a [u8]>);

/// Where all headers stand: where the first ones of the golden logs do.
const PLACE: Place = Place {
    log: LogId::new(0x0123_4567_89AB_CDEF),
    segment: Offset::ZERO,
    position: Position::ZERO,
};

/// A header: as it is, with its checksum made right, and with all that tells a kind
/// made right too.
pub fn batch_header(input: &[u8]) {
    let mut bytes = Draw::new(input).array();
    check_header(&bytes);
    seal(&mut bytes);
    check_header(&bytes);
    bytes[0..4].copy_from_slice(&MAGIC);
    let [layout, codec] = [1 + bytes[5] % 3, bytes[6] % 3];
    bytes[4..8].copy_from_slice(&[1, layout, codec, 0]);
    bytes[40..48].copy_from_slice(&PLACE.log.get().to_le_bytes());
    seal(&mut bytes);
    check_header(&bytes);
}

fn check_header(bytes: &[u8; HEADER_LEN]) {
    let Ok(header) = Header::decode(bytes, &PLACE) else { return };
    assert_eq!(header.encode(&PLACE), Ok(*bytes));
    assert!(header.base < header.next && header.next <= Offset::MAX);
    assert!(header.synced <= header.base);
    assert!(header.stored.max(header.raw) as usize <= MAX_SINGLE);
    let elsewhere = Place { position: Position::new(1), ..PLACE };
    assert_eq!(Header::decode(bytes, &elsewhere), Err(HeaderError::Checksum));
}

fn seal(bytes: &mut [u8; HEADER_LEN]) {
    let place = [PLACE.segment.get(), PLACE.position.get()].map(u64::to_le_bytes).concat();
    let sealed = [&bytes[..60], &place].concat();
    bytes[60..].copy_from_slice(&crc32fast::hash(&sealed).to_le_bytes());
}

/// An inflated body under any header: layout, records, offsets beyond them, the bytes.
pub fn body(input: &[u8]) {
    let mut draw = Draw::new(input);
    let layout = draw.one_of(&[
        Layout::Lines,
        Layout::Columns,
        Layout::Gap(GapReason::Compacted),
        Layout::Gap(GapReason::Damaged),
    ]);
    let drawn = u32::from(draw.u16());
    let records = if matches!(layout, Layout::Gap(_)) { 0 } else { drawn };
    let offsets = u64::from(records) + u64::from(draw.u8());
    let raw = draw.rest();
    let header = header_of(layout, records, offsets, raw);
    let found = match bodies::records(&header, raw) {
        Ok(found) => bounded(found, raw),
        Err(_) => Vec::new(),
    };
    if bodies::check_layout(&header, raw).is_err() {
        return;
    }
    assert_eq!(found.len(), records as usize);
    assert!(found.iter().is_sorted_by(|a, b| a.next <= b.offset));
    assert!(found.last().is_none_or(|last| last.next <= header.next));
    encodes_again(layout, &found, raw);
}

/// The records, which can't be more than the bytes they were made of.
fn bounded<'a>(found: impl Iterator<Item = RecordView<'a>>, raw: &[u8]) -> Vec<RecordView<'a>> {
    let found: Vec<_> = found.take(raw.len() + 1).collect();
    let total: usize = found.iter().map(|record| record.content.size()).sum();
    assert!(found.len() <= raw.len() && total <= raw.len(), "records out of nothing");
    found
}

fn encodes_again(layout: Layout, found: &[RecordView<'_>], raw: &[u8]) {
    let mut next = Offset::ZERO;
    let mut with_gaps = Vec::new();
    for record in found {
        with_gaps.push((record.offset.since(next), record.content));
        next = record.next;
    }
    match layout {
        Layout::Gap(_) => assert!(raw.is_empty()),
        Layout::Lines => {
            let contents: Vec<_> = found.iter().map(|record| record.content).collect();
            let mut out = Vec::new();
            assert_eq!((bodies::encode(&contents, &mut out), &out[..]), (Layout::Lines, raw));
        }
        Layout::Columns => {
            assert!(raw.ends_with(&bytes_of(found)), "bytes lost or invented");
            columns_come_back(&with_gaps);
        }
    }
}

/// What columns hold behind their numbers.
fn bytes_of(found: &[RecordView<'_>]) -> Vec<u8> {
    let contents = || found.iter().map(|record| record.content);
    let keys = contents().filter_map(|content| content.key).map(<[u8]>::to_vec);
    let values =
        contents().filter_map(|content| content.value).map(|value| [value, b"\n"].concat());
    let headers = contents().map(|content| content.headers.block().to_vec());
    keys.chain(values).chain(headers).flatten().collect()
}

fn columns_come_back(records: &[(u64, Content<'_>)]) {
    let mut out = Vec::new();
    columns::encode(records, &mut out);
    let mut columns = Columns::open(&out, records.len()).expect("columns as they were encoded");
    for record in records {
        assert_eq!(columns.next_record().as_ref(), Some(record));
    }
    assert_eq!(columns.next_record(), None);
}

fn header_of(layout: Layout, records: u32, offsets: u64, raw: &[u8]) -> Header {
    let length = u32::try_from(raw.len()).expect("a short input");
    Header {
        layout,
        codec: Codec::None,
        base: Offset::ZERO,
        next: Offset::new(offsets),
        records,
        synced: Offset::ZERO,
        append_time: Timestamp::default(),
        stored: length,
        raw: length,
        body_crc: crc32fast::hash(raw),
    }
}

/// Records drawn from the input, put into a body and taken out again.
pub fn records(input: &[u8]) {
    let blocks = input.chunks(64).map(|part| block(&mut Draw::new(part))).collect::<Vec<_>>();
    let mut records = Vec::new();
    for (part, block) in input.chunks(64).zip(&blocks) {
        let mut draw = Draw::new(part);
        let has = draw.u8();
        let gap = if has & 1 == 0 { 0 } else { u64::from(draw.u16()) };
        let content = Content {
            key: (has & 2 != 0).then(|| draw.bytes()),
            headers: Headers::in_block(if has & 4 == 0 { &[] } else { block }),
            own_time: (has & 8 != 0).then(|| Timestamp::from_millis(draw.i64())),
            value: (has & 16 == 0).then(|| draw.rest()),
        };
        records.push((gap, content));
    }
    if records.is_empty() {
        return;
    }
    columns_come_back(&records);
    let contents: Vec<_> = records.iter().map(|(_, content)| *content).collect();
    let mut raw = Vec::new();
    let layout = bodies::encode(&contents, &mut raw);
    let header = header_of(layout, contents.len() as u32, contents.len() as u64, &raw);
    assert_eq!(bodies::check_layout(&header, &raw), Ok(()));
    let found = bodies::records(&header, &raw).expect("a body as it was encoded");
    assert_eq!(found.map(|record| record.content).collect::<Vec<_>>(), contents);
}

fn block(draw: &mut Draw<'_>) -> Vec<u8> {
    let mut block = Vec::new();
    for _ in 0..draw.u8() % 4 {
        let name = draw.bytes();
        let value = draw.maybe(Draw::bytes);
        push_header(name, value, &mut block);
    }
    block
}

/// A record's block of headers, and the numbers that it is made of.
pub fn headers(input: &[u8]) {
    let found: Vec<NameAndValue<'_>> = Headers::in_block(input).take(input.len() + 1).collect();
    assert!(found.len() <= input.len(), "headers out of nothing");
    let mut block = Vec::new();
    found.iter().for_each(|(name, value)| push_header(name, *value, &mut block));
    assert!(Headers::in_block(&block).is_sound());
    assert_eq!(Headers::in_block(&block).collect::<Vec<_>>(), found);
    numbers(input);
}

fn numbers(input: &[u8]) {
    let mut rest = input;
    let mut before = rest;
    while let Some(number) = varint::take(&mut rest) {
        let taken = &before[..before.len() - rest.len()];
        let sum = taken.iter().rev().fold(0u128, |sum, byte| sum << 7 | u128::from(byte & 0x7F));
        assert_eq!(sum, u128::from(number));
        before = rest;
        let mut out = Vec::new();
        varint::put(number, &mut out);
        assert_eq!((varint::take(&mut &out[..]), out.len() <= 10), (Some(number), true));
    }
    let number = Draw::new(input).i64();
    let mut out = Vec::new();
    varint::put_signed(number, &mut out);
    assert_eq!(varint::take_signed(&mut &out[..]), Some(number));
}

/// A stored body under any codec and any length that a header may claim; then the same
/// bytes compressed and inflated.
pub fn inflate(input: &[u8]) {
    let mut draw = Draw::new(input);
    let codec = draw.one_of(&[Codec::None, Codec::Lz4, Codec::Zstd]);
    let raw = match draw.u8() {
        u8::MAX => draw.u32() as usize % (MAX_SINGLE + 1),
        _ => usize::from(draw.u16()),
    };
    let stored = draw.rest();
    let mut out = Vec::new();
    if codec::inflate(codec, stored, raw, &mut out).is_ok() {
        assert_eq!(out.len(), raw);
    }
    assert!(out.capacity() <= raw.max(stored.len()).max(8), "more memory than was claimed");
    for compression in [Compression::Lz4, Compression::Zstd(1)] {
        let (mut packed, mut back) = (Vec::new(), Vec::new());
        let codec = codec::compress(compression, stored, &mut packed);
        if codec != Codec::None {
            codec::inflate(codec, &packed, stored.len(), &mut back).expect("what was compressed");
            assert_eq!(back, stored);
        }
    }
}
