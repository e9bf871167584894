//! The golden logs: what each holds, and how it is made. One for each layout and codec,
//! with a fixed id and clock, on the simulated disk, whose machine has always the same name.
//! `TAPELOG_UPDATE=1 cargo test --locked --test format` writes them anew.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tapelog::disk::Disk;
use tapelog::disk::simulated::SimulatedDisk;
use tapelog::format::batch::{GapReason, Layout};
use tapelog::format::body::{self, Body};
use tapelog::format::codec::Compression;
use tapelog::format::record::{Content, Headers, push_header};
use tapelog::format::settings::Settings;
use tapelog::format::{columns, file_name};
use tapelog::log::{Appender, Home, Log};
use tapelog::model::{LogId, Offset, Position, Timestamp};
use tapelog::segment::{NewBatch, SegmentWriter};

pub const ID: LogId = LogId::new(0x0123_4567_89AB_CDEF);
const FIRST_APPEND: i64 = 1_700_000_000_000;
const DIR: &str = "/log";

type Bytes = Vec<u8>;

/// A record as it is given.
#[derive(Clone, Debug, Default)]
pub struct Given {
    pub key: Option<Bytes>,
    pub value: Option<Bytes>,
    pub headers: Vec<(Bytes, Option<Bytes>)>,
    pub own_time: Option<i64>,
}

/// One batch of a golden log.
#[derive(Clone, Debug)]
pub enum Batch {
    /// As a producer appends it.
    Appended(Compression, Vec<Given>),
    /// As compaction leaves it: how many offsets are missing before each record, and after all.
    Sparse(Vec<(u64, Given)>, u64),
    /// A gap of so many offsets.
    Gap(GapReason, u64),
}

/// A golden log.
pub struct Golden {
    pub name: &'static str,
    pub settings: Settings,
    pub batches: Vec<Batch>,
}

/// All of them.
pub fn all() -> Vec<Golden> {
    let golden = |name, batches| Golden { name, settings: Settings::default(), batches };
    let appended = |compression, records: &[Vec<Given>]| {
        records.iter().map(|batch| Batch::Appended(compression, batch.clone())).collect()
    };
    let none = Compression::None;
    let zstd = Compression::Zstd(Compression::DEFAULT_LEVEL);
    let in_two = Settings { segment_size: Some(1000), ..Settings::default() };
    vec![
        golden("lines", appended(none, &[lines(), vec![value(b"the last")]])),
        golden("columns", appended(none, &[whole_records(), sessions(3)])),
        golden("lines-lz4", appended(Compression::Lz4, &[log_lines(40), long_matches()])),
        golden("lines-zstd", appended(zstd, &[log_lines(40), long_matches()])),
        golden("columns-lz4", appended(Compression::Lz4, &[sessions(30)])),
        golden("columns-zstd", appended(zstd, &[sessions(30)])),
        Golden { name: "two-segments", settings: in_two, batches: two_segments(none, zstd) },
        golden("gaps", gaps()),
    ]
}

fn value(value: &[u8]) -> Given {
    Given { value: Some(value.to_vec()), ..Given::default() }
}

fn keyed(key: &[u8], value: Option<&[u8]>) -> Given {
    Given { key: Some(key.to_vec()), value: value.map(<[u8]>::to_vec), ..Given::default() }
}

/// All that the *lines* layout can hold.
fn lines() -> Vec<Given> {
    let all: Bytes = (0..=255).filter(|&byte| byte != b'\n').collect();
    let text: Bytes = (0..0x20).filter(|&byte| byte != b'\n').chain(*b"\x7f\"\\/").collect();
    [
        &b"first"[..],
        b"",
        b"carriage\r",
        b"\0nul",
        "é 日本 \u{2028}".as_bytes(),
        b"\xff",
        &all,
        &text,
    ]
    .map(value)
    .into()
}

/// All that takes *columns*, and what must be told apart.
fn whole_records() -> Vec<Given> {
    let header = |name: &[u8], value: Option<&[u8]>| (name.to_vec(), value.map(<[u8]>::to_vec));
    let headers = |headers| Given { headers, ..value(b"with headers") };
    let at = |own_time| Given { own_time: Some(own_time), ..value(b"") };
    vec![
        value(b"neither key nor headers nor time"),
        value(b""),
        value(b"two\nlines\n"),
        value(b"\n"),
        Given::default(),
        keyed(b"", Some(b"empty key")),
        keyed(b"key", Some(b"")),
        keyed(b"key", None),
        keyed(b"k\n\"\xff\0", Some(b"\xfe\xff")),
        keyed(&[b'k'; 127], Some(&[b'v'; 127])),
        keyed(&[b'k'; 128], Some(&[b'v'; 16384])),
        headers(vec![header(b"a", Some(b"1")), header(b"a", Some(b"2")), header(b"", Some(b""))]),
        headers(vec![header(b"null", None), header("é".as_bytes(), Some(b"\n"))]),
        headers(vec![
            header(b"text", Some(b"x")),
            header(b"bytes", Some(b"\xff")),
            header(b"n", None),
        ]),
        at(0),
        at(1_700_000_000_123),
        at(1_600_000_000_000),
        at(-1),
        at(i64::MAX),
        at(i64::MIN),
        at(0),
    ]
}

/// Lines that compress.
fn log_lines(count: u64) -> Vec<Given> {
    let line = |n: u64| format!("{:06} 10.0.0.{} GET /orders/{} 200", n, n * 7 % 5, n * 13 % 17);
    (0..count).map(|n| value(line(n).as_bytes())).collect()
}

/// Matches that overlap what they make, and lengths of several bytes.
fn long_matches() -> Vec<Given> {
    let letters: Bytes = (0..600u32).map(|n| (n * n % 251) as u8).filter(|&b| b != b'\n').collect();
    vec![value(&b"a".repeat(2000)), value(&letters), value(&b"abc".repeat(300)), value(&letters)]
}

/// Records with all columns, that compress.
fn sessions(count: u64) -> Vec<Given> {
    let session = |n: u64| Given {
        key: (!n.is_multiple_of(3)).then(|| format!("user-{}", n % 7).into_bytes()),
        value: (!n.is_multiple_of(5))
            .then(|| format!("{{\"page\":{}}}\n{{\"page\":{n}}}", n * n).into_bytes()),
        headers: vec![(b"trace".to_vec(), Some(format!("{:08x}", n * 2_654_435).into_bytes()))],
        own_time: (!n.is_multiple_of(2)).then_some(FIRST_APPEND - 1000 * n as i64),
    };
    (0..count).map(session).collect()
}

/// Layouts and codecs in one log; it begins its second segment after the third batch.
fn two_segments(none: Compression, zstd: Compression) -> Vec<Batch> {
    vec![
        Batch::Appended(none, log_lines(3)),
        Batch::Appended(zstd, sessions(12)),
        Batch::Appended(Compression::Lz4, log_lines(20)),
        Batch::Appended(none, lines()),
        Batch::Appended(none, sessions(2)),
    ]
}

/// What compaction and repair leave.
fn gaps() -> Vec<Batch> {
    let records = |names: &[(u64, &str)]| {
        names.iter().map(|(gap, name)| (*gap, keyed(name.as_bytes(), Some(b"kept")))).collect()
    };
    vec![
        Batch::Gap(GapReason::Compacted, 5),
        Batch::Sparse(vec![(0, value(b"lines"))], 0),
        Batch::Gap(GapReason::Damaged, 1),
        Batch::Sparse(records(&[(0, "at the beginning"), (2, "after 2"), (0, "after none")]), 0),
        Batch::Sparse(records(&[(200, "after 200"), (1, "after 1")]), 3),
        Batch::Gap(GapReason::Compacted, u64::from(u32::MAX)),
        Batch::Sparse(vec![(0, value(b"far"))], 0),
    ]
}

impl Golden {
    /// Where it is committed.
    pub fn dir(&self) -> PathBuf {
        folder().join(self.name)
    }

    /// The records that it must give, as `consume -J` prints them.
    pub fn expected(&self) -> String {
        fs::read_to_string(folder().join(format!("{}.jsonl", self.name))).unwrap()
    }

    /// The records that it was made from, each with its offset and append time.
    pub fn given(&self) -> Vec<(u64, i64, Given)> {
        let mut next = 0;
        let mut given = Vec::new();
        for (batch, time) in self.batches.iter().zip((FIRST_APPEND..).step_by(1000)) {
            let mut add = |gap: u64, record: &Given| {
                given.push((next + gap, time, record.clone()));
                next += gap + 1;
            };
            match batch {
                Batch::Appended(_, records) => records.iter().for_each(|record| add(0, record)),
                Batch::Sparse(records, after) => {
                    records.iter().for_each(|(gap, record)| add(*gap, record));
                    next += after;
                }
                Batch::Gap(_, offsets) => next += offsets,
            }
        }
        given
    }

    /// Its files as they are made today, without what is derived.
    pub fn files(&self) -> BTreeMap<String, Bytes> {
        let disk = Arc::new(SimulatedDisk::new());
        let home = Home::new(disk.clone(), DIR, |_| {});
        let log = Log::open_or_create(&home, ID, &self.settings).unwrap();
        match self.batches.iter().all(|batch| matches!(batch, Batch::Appended(..))) {
            true => self.append(&log),
            false => self.leave(disk.as_ref(), &log),
        }
        files(&disk)
    }

    /// Makes the log as producers do.
    fn append(&self, log: &Log) {
        let mut appender = Appender::open(log).unwrap();
        for (batch, time) in self.batches.iter().zip((FIRST_APPEND..).step_by(1000)) {
            let Batch::Appended(compression, records) = batch else { unreachable!() };
            let blocks: Vec<Bytes> = records.iter().map(Given::block).collect();
            let contents: Vec<_> =
                records.iter().zip(&blocks).map(|(record, block)| record.content(block)).collect();
            let mut bytes = Vec::new();
            let layout = body::encode(&contents, &mut bytes);
            let body = Body::plain(layout, contents.len() as u32, &bytes);
            appender.compress(*compression);
            appender.append(&body, Timestamp::from_millis(time)).unwrap();
            appender.sync().unwrap();
        }
    }

    /// Makes the log as compaction and repair leave it.
    fn leave(&self, disk: &dyn Disk, log: &Log) {
        let mut segment = first_segment(disk);
        let mut base = Offset::ZERO;
        for (batch, time) in self.batches.iter().zip((FIRST_APPEND..).step_by(1000)) {
            let mut bytes = Vec::new();
            let (layout, records, offsets) = batch.encode(&mut bytes);
            let body = Body::plain(layout, records, &bytes);
            let next = base.forward(offsets).unwrap();
            let time = Timestamp::from_millis(time);
            segment.append(&NewBatch { base, next, synced: base, time, body }).unwrap();
            base = next;
        }
        // Finds the batches, syncs them and stores the end.
        Appender::open(log).unwrap();
    }
}

impl Batch {
    /// Puts the body into `bytes`; the layout, how many records, how many offsets.
    fn encode(&self, bytes: &mut Bytes) -> (Layout, u32, u64) {
        let (records, after) = match self {
            Batch::Gap(reason, offsets) => return (Layout::Gap(*reason), 0, *offsets),
            Batch::Appended(_, records) => {
                (records.iter().map(|record| (0, record.clone())).collect(), 0)
            }
            Batch::Sparse(records, after) => (records.clone(), *after),
        };
        let blocks: Vec<Bytes> = records.iter().map(|(_, record)| record.block()).collect();
        let contents: Vec<_> = records
            .iter()
            .zip(&blocks)
            .map(|((gap, record), block)| (*gap, record.content(block)))
            .collect();
        let offsets = contents.iter().map(|(gap, _)| gap + 1).sum::<u64>() + after;
        let count = contents.len() as u32;
        if let [(0, content)] = contents[..]
            && content.is_plain()
        {
            return (body::encode(&[content], bytes), count, offsets);
        }
        columns::encode(&contents, bytes);
        (Layout::Columns, count, offsets)
    }
}

impl Given {
    fn block(&self) -> Bytes {
        let mut block = Vec::new();
        for (name, value) in &self.headers {
            push_header(name, value.as_deref(), &mut block);
        }
        block
    }

    fn content<'a>(&'a self, block: &'a [u8]) -> Content<'a> {
        Content {
            key: self.key.as_deref(),
            value: self.value.as_deref(),
            headers: Headers::in_block(block),
            own_time: self.own_time.map(Timestamp::from_millis),
        }
    }
}

/// A new first segment.
pub fn first_segment(disk: &dyn Disk) -> SegmentWriter {
    let path = Path::new(DIR).join(file_name::segment(Offset::ZERO));
    let file = disk.create_new(&path).unwrap();
    SegmentWriter::new(file, ID, Offset::ZERO, Position::ZERO)
}

/// A log of these batches, without gaps, all said to be durable.
pub fn forged(bodies: &[Body<'_>]) -> BTreeMap<String, Bytes> {
    use tapelog::format::slots;
    use tapelog::format::state::{EndState, Mark};
    let disk = Arc::new(SimulatedDisk::new());
    let home = Home::new(disk.clone(), DIR, |_| {});
    Log::open_or_create(&home, ID, &Settings::default()).unwrap();
    let mut segment = first_segment(disk.as_ref());
    let (mut base, time) = (Offset::ZERO, Timestamp::from_millis(FIRST_APPEND));
    let mut last_batch = Position::ZERO;
    for body in bodies {
        let next = base.forward(u64::from(body.records.max(1))).unwrap();
        let batch = NewBatch { base, next, synced: base, time, body: *body };
        last_batch = segment.append(&batch).unwrap();
        base = next;
    }
    let end = Mark { segment: Offset::ZERO, position: segment.position(), offset: base };
    let (log, boot) = (ID, String::new());
    let end = EndState { log, boot, written: end, last_batch, durable: end, time, suspect: false };
    let slots = [1, 2].map(|seq| slots::encode(seq, seq - 1, &end).unwrap());
    let mut files = files(&disk);
    files.insert(file_name::END.to_owned(), slots.concat());
    files
}

/// The log's files but the derived ones.
fn files(disk: &SimulatedDisk) -> BTreeMap<String, Bytes> {
    let names = disk.names(Path::new(DIR)).unwrap();
    let kept = names.into_iter().filter(|name| !name.ends_with(".index"));
    kept.filter_map(|name| Some((name.clone(), disk.read_file(&Path::new(DIR).join(&name))?)))
        .collect()
}

/// Writes a log's files into `dir`, which is made.
pub fn put(files: &BTreeMap<String, Bytes>, dir: &Path) {
    fs::create_dir_all(dir).unwrap();
    for (name, bytes) in files {
        fs::write(dir.join(name), bytes).unwrap();
    }
}

/// Where the golden logs are.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/format/golden")
}

/// Whether any batch of a golden log is stored as a Zstandard frame.
pub fn has_zstd(golden: &Golden) -> bool {
    let zstd = |batch: &Batch| matches!(batch, Batch::Appended(Compression::Zstd(_), _));
    golden.batches.iter().any(zstd)
}
