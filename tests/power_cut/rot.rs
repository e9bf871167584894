//! A flipped bit in a batch that was safe: damage, and nothing else.

use std::path::PathBuf;
use std::sync::Arc;

use tapelog::disk::simulated::{Seeded, SimulatedDisk};
use tapelog::disk::{Access, Disk};
use tapelog::format::file_name;
use tapelog::format::slots::decode_file;
use tapelog::format::state::EndState;
use tapelog::log::{Appender, Error, Log};
use tapelog::model::{Offset, Position};
use tapelog::segment::{SegmentReader, Step};

use crate::program::home;
use crate::reading::{read_all, read_to_error, words};

/// A batch of a log.
struct Victim {
    path: PathBuf,
    position: u64,
    length: u64,
    base: u64,
    /// `end` speaks of it as the last one, and safe.
    last: bool,
}

/// Flips a bit of a safe batch, if there is one, and looks what readers and writers make of it.
pub fn check(disk: &Arc<SimulatedDisk>, seed: u64) -> Result<(), String> {
    let Ok(log) = Log::open(&home(disk, |_| ())) else { return Ok(()) };
    let mut seeded = Seeded::new(seed);
    let whole = read_all(&log)?;
    let victims = safe_batches(disk, &log)?;
    if victims.is_empty() {
        return Ok(());
    }
    let victim = match seeded.one_in(3) {
        true => &victims[victims.len() - 1],
        false => &victims[seeded.below(victims.len() as u64) as usize],
    };
    let mut bytes = disk.read_file(&victim.path).ok_or("no segment")?;
    let at = victim.position + seeded.below(victim.length);
    bytes[at as usize] ^= 1 << seeded.below(8);
    disk.write_file(&victim.path, &bytes).map_err(|error| error.to_string())?;
    let read = read_to_error(&log)?;
    let place = format!("byte {at} of {}", victim.path.display());
    match &read.error {
        Some(error) if error.contains("Damage(") => {}
        other => return Err(format!("{place} is damaged, but reading ended with {other:?}")),
    }
    if read.end() != victim.base || read.values[..] != whole.values[..read.values.len()] {
        return Err(format!("{place}: read up to {}, not {}", read.end(), victim.base));
    }
    match Appender::open(&log) {
        Err(Error::Damage(_)) => Ok(()),
        Ok(_) if !victim.last => Ok(()),
        Ok(_) => Err(format!("{place}: a writer passed the damage")),
        Err(error) => Err(words("open a writer")(error)),
    }
}

/// The batches below the durable mark.
fn safe_batches(disk: &Arc<SimulatedDisk>, log: &Log) -> Result<Vec<Victim>, String> {
    let bounds = log.bounds().map_err(words("bounds"))?;
    let (facts, _) = log.segments().map_err(words("segments"))?;
    let mut victims = Vec::new();
    let end = disk.read_file(&log.home().dir().join(file_name::END)).unwrap_or_default();
    let end = decode_file::<EndState>(&end).map(|slots| slots.newest.state);
    let last = end.filter(|end| end.written == end.durable).map(|end| end.written);
    for segment in facts {
        let path = log.home().dir().join(file_name::segment(segment.base));
        let file = disk.open(&path, Access::Read).map_err(|error| error.to_string())?;
        let zero = Position::ZERO;
        let mut reader = SegmentReader::new(file, log.id(), segment.base, zero, segment.base);
        while let Step::Batch(batch) = reader.step().map_err(|error| error.to_string())? {
            let next: Offset = batch.header.next;
            if next > bounds.durable {
                break;
            }
            let (position, length) = (batch.position.get(), batch.header.batch_len());
            let base = batch.header.base.get();
            let last = last.is_some_and(|last| (last.segment, last.offset) == (segment.base, next));
            victims.push(Victim { path: path.clone(), position, length, base, last });
        }
    }
    Ok(victims)
}
