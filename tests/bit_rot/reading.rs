//! Reading a harmed log, and whether what came is what was appended.

use std::sync::Arc;

use tapelog::disk::simulated::SimulatedDisk;
use tapelog::disk::{Access, Disk};
use tapelog::format::batch::Header;
use tapelog::format::file_name;
use tapelog::log::{Error, Log, Piece, Reader, Reading, Skipped};
use tapelog::model::{Offset, Position, Start};
use tapelog::segment::{SegmentReader, Step};

use crate::sample::path;

/// A batch as it was appended.
#[derive(Clone, Debug)]
pub struct Batch {
    pub header: Header,
    /// Its body, inflated.
    pub body: Vec<u8>,
    /// The name of its segment, and where it lies there.
    pub segment: String,
    pub position: u64,
}

impl Batch {
    /// Where it ends.
    pub fn end(&self) -> u64 {
        self.position + self.header.batch_len()
    }

    /// Whether these are its records, unchanged.
    pub fn is(&self, piece: &Piece<'_>) -> bool {
        let (a, b) = (&self.header, &piece.header);
        let same = (a.base, a.next, a.records, a.layout, a.append_time)
            == (b.base, b.next, b.records, b.layout, b.append_time);
        same && self.body == piece.body
    }
}

/// Every batch of a healthy log.
pub fn read_batches(disk: &Arc<SimulatedDisk>, log: &Log) -> Vec<Batch> {
    let mut batches = Vec::new();
    let mut reader = Reader::open_at(log, Start::Earliest).unwrap();
    while let Reading::Records(piece) = reader.read().unwrap() {
        let (header, body) = (piece.header.clone(), piece.body.to_vec());
        batches.push(Batch { header, body, segment: String::new(), position: 0 });
    }
    let mut placed = batches.iter_mut();
    for facts in log.segments().unwrap().0 {
        let name = file_name::segment(facts.base);
        let file = disk.open(&path(&name), Access::Read).unwrap();
        let mut reader = SegmentReader::new(file, log.id(), facts.base, Position::ZERO, facts.base);
        while let Step::Batch(batch) = reader.step().unwrap() {
            let placed = placed.next().unwrap();
            placed.segment.clone_from(&name);
            placed.position = batch.position.get();
        }
    }
    batches
}

/// What a reader was given.
#[derive(Debug)]
pub struct Read {
    /// The batches that did not come, by their number.
    pub missing: Vec<usize>,
    /// Where it ended.
    pub next: Offset,
    /// Why it stopped before the log end, or could not begin.
    pub error: Option<Error>,
    pub skipped: Skipped,
}

impl Read {
    /// All of it, and no complaint.
    pub fn is_whole(&self) -> bool {
        self.missing.is_empty() && self.error.is_none() && self.skipped == Skipped::default()
    }
}

/// Reads `log` from its start on. Says what is wrong if anything comes that was not
/// appended so, or that came before.
pub fn read(log: &Log, batches: &[Batch], skips: bool) -> Result<Read, String> {
    let opened = log.start().and_then(|start| match skips {
        true => Reader::open_skipping(log, start),
        false => Reader::open(log, start),
    });
    let mut reader = match opened {
        Ok(reader) => reader,
        Err(error) => {
            let (missing, next) = ((0..batches.len()).collect(), Offset::ZERO);
            return Ok(Read { missing, next, error: Some(error), skipped: Skipped::default() });
        }
    };
    let mut missing = Vec::new();
    let mut next = 0;
    let error = loop {
        match reader.read() {
            Ok(Reading::End) => break None,
            Err(error) => break Some(error),
            Ok(Reading::Records(piece)) => {
                let found = batches[next..].iter().position(|batch| batch.is(&piece));
                let found = found.ok_or_else(|| format!("invented: {:?}", piece.header))?;
                missing.extend(next..next + found);
                next += found + 1;
            }
        }
    };
    missing.extend(next..batches.len());
    Ok(Read { missing, next: reader.next_offset(), error, skipped: reader.skipped() })
}
