//! For tests: a small log on a simulated disk.

use std::sync::{Arc, Mutex};

use super::{Appender, Home, Log, Note, Reader, Reading};
use crate::disk::simulated::SimulatedDisk;
use crate::format::batch::Layout;
use crate::format::body::Body;
use crate::format::settings::Settings;
use crate::model::{LogId, Offset, Timestamp};

/// A log, its disk, and what it told.
pub(crate) struct Fixture {
    pub disk: Arc<SimulatedDisk>,
    pub log: Log,
    told: Arc<Mutex<Vec<Note>>>,
}

/// A log whose segments hold up to `segment_size` bytes.
pub(crate) fn fixture(segment_size: u64) -> Fixture {
    let settings = Settings { segment_size: Some(segment_size), ..Settings::default() };
    let disk = Arc::new(SimulatedDisk::new());
    let told = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&told);
    let home =
        Home::new(disk.clone(), "/log", move |note| listener.lock().unwrap().push(note.clone()));
    let log = Log::open_or_create(&home, LogId::new(7), &settings).unwrap();
    Fixture { disk, log, told }
}

impl Fixture {
    /// Appends `count` records, one a batch and a millisecond, and syncs them.
    pub(crate) fn append(&self, count: u64) {
        let mut appender = Appender::open(&self.log).unwrap();
        for _ in 0..count {
            let next = self.log.bounds().unwrap().end.get();
            let line = format!("record {next:04}\n");
            let body = Body::plain(Layout::Lines, 1, line.as_bytes());
            appender.append(&body, Timestamp::from_millis(next as i64)).unwrap();
        }
        appender.sync().unwrap();
    }

    /// The offsets of all records from `from` on, each checked to hold what was appended there.
    pub(crate) fn read(&self, from: u64) -> super::Result<Vec<u64>> {
        let mut reader = Reader::open(&self.log, Offset::new(from))?;
        let mut offsets = Vec::new();
        while let Reading::Records(piece) = reader.read()? {
            for record in piece.records().unwrap() {
                let offset = record.offset.get();
                if offset >= piece.from.get() {
                    let value = format!("record {offset:04}");
                    assert_eq!(record.content.value, Some(value.as_bytes()));
                    offsets.push(offset);
                }
            }
        }
        Ok(offsets)
    }

    /// What was told since the last call.
    pub(crate) fn told(&self) -> Vec<Note> {
        std::mem::take(&mut self.told.lock().unwrap())
    }
}
