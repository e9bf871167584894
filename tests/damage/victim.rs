//! The log that is harmed: four batches that are safe, then three that are not, all in
//! one segment. Its records tell their offsets, so that none can pass for another.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tapelog::disk::simulated::SimulatedDisk;
use tapelog::disk::{Access, Disk};
use tapelog::format::batch::Layout;
use tapelog::format::body::{self, Body};
use tapelog::format::codec::Compression;
use tapelog::format::record::Content;
use tapelog::format::settings::Settings;
use tapelog::format::state::EndState;
use tapelog::format::{file_name, slots};
use tapelog::log::{Appender, Home, Log};
use tapelog::model::{LogId, Offset, Position, Timestamp};
use tapelog::segment::{SegmentReader, Step};

pub const DIR: &str = "/log";
const SAFE: usize = 4;
const UNSAFE: usize = 3;
const RECORDS: u64 = 3;

/// How the batches of a log are stored.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub layout: Layout,
    pub compression: Compression,
}

/// Every layout that holds records, with every codec.
pub fn kinds() -> Vec<Kind> {
    let codecs = [Compression::None, Compression::Lz4, Compression::Zstd(3)];
    let kind = |layout| codecs.map(|compression| Kind { layout, compression });
    [Layout::Lines, Layout::Columns].into_iter().flat_map(kind).collect()
}

/// What `end` says of the batches that are not safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All of them, and it was written since this machine started.
    ThisBoot,
    /// All of them, but the machine was started anew since.
    AnotherBoot,
    /// Nothing: only its older line is left.
    Older,
    /// The file is gone.
    Missing,
}

pub const ENDS: [End; 4] = [End::ThisBoot, End::AnotherBoot, End::Older, End::Missing];

/// A batch, as it was before the harm.
#[derive(Clone, Copy, Debug)]
pub struct Whole {
    pub begin: usize,
    pub end: usize,
    /// The durable mark in its header.
    pub synced: u64,
    /// The offset after its last record.
    pub next: u64,
}

/// A log to be harmed.
pub struct Victim {
    pub kind: Kind,
    disk: SimulatedDisk,
    /// The bytes of its segment.
    pub bytes: Vec<u8>,
    pub batches: Vec<Whole>,
    older: EndState,
    newest: EndState,
}

impl Victim {
    pub fn new(kind: Kind, id: u64) -> Victim {
        let disk = Arc::new(SimulatedDisk::new());
        let home = Home::new(disk.clone(), DIR, |_| {});
        let log = Log::open_or_create(&home, LogId::new(id), &Settings::default()).unwrap();
        let mut appender = Appender::open(&log).unwrap();
        appender.compress(kind.compression);
        (0..SAFE).for_each(|_| append(&log, &mut appender, kind.layout));
        appender.sync().unwrap();
        let older = end(&disk);
        (0..UNSAFE).for_each(|_| append(&log, &mut appender, kind.layout));
        let newest = end(&disk);
        let bytes = disk.read_file(&segment()).unwrap();
        let batches = batches(&disk, log.id());
        assert_eq!(batches.len(), SAFE + UNSAFE);
        disk.settle();
        Victim { kind, disk: disk.snapshot(), bytes, batches, older, newest }
    }

    /// Where the batches that are not safe begin.
    pub fn safe_bytes(&self) -> usize {
        self.batches[SAFE].begin
    }

    /// What `end` says: the durable mark, and how far the log was written.
    pub fn marks(&self, end: End) -> Option<(u64, u64)> {
        let state = self.state(end)?;
        Some((state.durable.offset.get(), state.written.offset.get()))
    }

    fn state(&self, end: End) -> Option<EndState> {
        match end {
            End::ThisBoot => Some(self.newest.clone()),
            End::AnotherBoot => {
                Some(EndState { boot: "another".to_owned(), ..self.newest.clone() })
            }
            End::Older => Some(self.older.clone()),
            End::Missing => None,
        }
    }

    /// The disk with other bytes in the segment, and `end` as it is said.
    pub fn harmed(&self, bytes: &[u8], end: End) -> Arc<SimulatedDisk> {
        let disk = self.disk.snapshot();
        disk.write_file(&segment(), bytes).unwrap();
        let path = Path::new(DIR).join(file_name::END);
        match self.state(end) {
            Some(state) => {
                let lines = [8, 9].map(|seq| slots::encode(seq, seq - 1, &state).unwrap());
                disk.write_file(&path, &lines.concat()).unwrap();
            }
            None => disk.remove_file(&path).unwrap(),
        }
        Arc::new(disk)
    }
}

/// The path of the only segment.
pub fn segment() -> PathBuf {
    Path::new(DIR).join(file_name::segment(Offset::ZERO))
}

/// The key and value of the record at `offset`.
pub fn record(layout: Layout, offset: u64) -> (Option<Vec<u8>>, Vec<u8>) {
    let value = format!("record {offset} of this log, this log, this log, this log");
    let key = (layout == Layout::Columns).then(|| format!("key {offset}").into_bytes());
    (key, value.into_bytes())
}

/// Appends a batch of the records that come next.
pub fn append(log: &Log, appender: &mut Appender, layout: Layout) {
    let next = log.bounds().unwrap().end.get();
    let records: Vec<_> = (next..next + RECORDS).map(|offset| record(layout, offset)).collect();
    let contents: Vec<_> = records
        .iter()
        .map(|(key, value)| Content { key: key.as_deref(), ..Content::of_value(value) })
        .collect();
    let mut bytes = Vec::new();
    assert_eq!(body::encode(&contents, &mut bytes), layout);
    let body = Body::plain(layout, contents.len() as u32, &bytes);
    let appended = appender.append(&body, Timestamp::from_millis(next as i64)).unwrap();
    assert_eq!(appended.base.get(), next, "it goes to the log end");
}

fn end(disk: &SimulatedDisk) -> EndState {
    let bytes = disk.read_file(&Path::new(DIR).join(file_name::END)).unwrap();
    slots::decode_file(&bytes).unwrap().newest.state
}

fn batches(disk: &SimulatedDisk, id: LogId) -> Vec<Whole> {
    let file = disk.open(&segment(), Access::Read).unwrap();
    let mut reader = SegmentReader::new(file, id, Offset::ZERO, Position::ZERO, Offset::ZERO);
    let mut batches = Vec::new();
    while let Step::Batch(batch) = reader.step().unwrap() {
        let begin = batch.position.get() as usize;
        let (end, header) = (begin + batch.bytes.len(), batch.header);
        batches.push(Whole { begin, end, synced: header.synced.get(), next: header.next.get() });
    }
    batches
}
