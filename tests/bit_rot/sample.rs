//! The log that is harmed: every kind of batch, several segments, two groups.

use std::path::PathBuf;
use std::sync::Arc;

use tapelog::disk::simulated::{Seeded, SimulatedDisk};
use tapelog::format::body::{self, Body};
use tapelog::format::codec::Compression;
use tapelog::format::record::Content;
use tapelog::format::settings::Settings;
use tapelog::log::{Appender, Home, Log, Note};
use tapelog::model::{GroupName, LogId, Offset, Timestamp};

use crate::reading::{Batch, read_batches};

pub const DIR: &str = "/log";
pub const NOW: Timestamp = Timestamp::from_millis(1_000_000);

const CODECS: [Compression; 3] = [Compression::None, Compression::Lz4, Compression::Zstd(1)];

/// A log that ended in good order, and what is in it.
pub struct Sample {
    pub disk: Arc<SimulatedDisk>,
    pub batches: Vec<Batch>,
}

impl Sample {
    /// A log with so many bytes of segments, each of about `segment` bytes, in batches of
    /// about `batch` bytes.
    pub fn new(bytes: u64, segment: u64, batch: usize) -> Sample {
        let disk = Arc::new(SimulatedDisk::new());
        let settings = Settings { segment_size: Some(segment), ..Settings::default() };
        let log = Log::open_or_create(&home(&disk), LogId::new(7), &settings).unwrap();
        let mut writer = Appender::open(&log).unwrap();
        let mut random = Seeded::new(bytes);
        for number in 0.. {
            let stored: u64 = log.segments().unwrap().0.iter().map(|facts| facts.bytes).sum();
            if stored >= bytes {
                break;
            }
            let next = append(&mut writer, &mut random, number, batch).get();
            writer.sync().unwrap();
            for (group, next) in [("early", next / 3), ("late", next)] {
                log.commit(&self::group(group), Offset::new(next), NOW).unwrap();
            }
        }
        drop(writer);
        disk.settle();
        let batches = read_batches(&disk, &log);
        Sample { disk, batches }
    }

    /// A disk of its own with the same log.
    pub fn copy(&self) -> Arc<SimulatedDisk> {
        Arc::new(self.disk.snapshot())
    }

    /// The log end.
    pub fn end(&self) -> Offset {
        self.batches.last().unwrap().header.next
    }
}

fn append(writer: &mut Appender, random: &mut Seeded, number: usize, size: usize) -> Offset {
    let count = random.between(1, 12) as usize;
    let keyed = random.coin();
    let length = size / count;
    let values: Vec<Vec<u8>> = (0..count)
        .map(|_| random.bytes(length).into_iter().map(|byte| b'a' + byte % 12).collect())
        .collect();
    let key = keyed.then_some(&b"key"[..]);
    let contents: Vec<_> =
        values.iter().map(|value| Content { key, ..Content::of_value(value) }).collect();
    let mut bytes = Vec::new();
    let layout = body::encode(&contents, &mut bytes);
    writer.compress(CODECS[number % CODECS.len()]);
    let body = Body::plain(layout, count as u32, &bytes);
    writer.append(&body, Timestamp::from_millis(number as i64)).unwrap().next
}

/// The log of a disk, told to nobody.
pub fn home(disk: &Arc<SimulatedDisk>) -> Home {
    Home::new(disk.clone(), DIR, |_: &Note| ())
}

pub fn group(name: &str) -> GroupName {
    name.parse().unwrap()
}

/// A file of the log.
pub fn path(name: &str) -> PathBuf {
    PathBuf::from(DIR).join(name)
}
