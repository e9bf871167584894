//! Every bit of every file, one at a time.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use serde_json::Value;
use tapelog::disk::simulated::SimulatedDisk;
use tapelog::format::batch::Layout;
use tapelog::format::body::Body;
use tapelog::format::slots::{self, SLOT_LEN};
use tapelog::log::{Appender, Error, Log, Reader, Reading, Verification};
use tapelog::model::Offset;

use crate::reading::{Batch, Read, read};
use crate::sample::{DIR, NOW, Sample, group, home, path};

const THREADS: usize = 2;
/// One of so many bits is verified and repaired.
const SAMPLE: usize = 499;

/// A bit of a file.
#[derive(Clone, Debug)]
struct Bit {
    file: String,
    byte: usize,
    bit: u8,
    is_repaired: bool,
}

/// What became of bits, by file and by what was found.
type Report = BTreeMap<(String, String), u64>;

#[test]
fn every_bit_of_a_log_is_flipped_and_no_changed_record_is_taken_for_good() {
    let sample = Sample::new(64 << 10, 12 << 10, 1500);
    flip_each(&sample, |_| true);
}

#[test]
fn every_bit_of_an_index_is_flipped_and_changes_no_answer() {
    let sample = Sample::new(200 << 10, 1 << 20, 9000);
    flip_each(&sample, |name| name.ends_with(".index"));
}

/// Flips each bit of the files that are `wanted`.
fn flip_each(sample: &Sample, wanted: impl Fn(&str) -> bool) {
    let begun = Instant::now();
    let all = std::env::var_os("TAPELOG_LONG").is_some_and(|value| value == "1");
    let mut bits = Vec::new();
    for name in files(sample).into_iter().filter(|name| wanted(name)) {
        let bytes = sample.disk.read_file(&path(&name)).unwrap().len();
        bits.extend((0..bytes * 8).map(|at| Bit {
            file: name.clone(),
            byte: at / 8,
            bit: 1 << (at % 8),
            is_repaired: all || at % SAMPLE == 0,
        }));
    }
    assert!(!bits.is_empty());
    let (report, failures) = in_threads(sample, &bits);
    for ((file, what), count) in &report {
        println!("{file:40} {what:40} {count}");
    }
    for failure in failures.iter().take(10) {
        println!("{failure}");
    }
    let repaired = bits.iter().filter(|bit| bit.is_repaired).count();
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{} bits, {repaired} of them repaired, {} failures, {seconds:.1} s",
        bits.len(),
        failures.len()
    );
    assert!(failures.is_empty(), "{} failures", failures.len());
}

/// The files of a log, by their names below it.
fn files(sample: &Sample) -> Vec<String> {
    let mut files = Vec::new();
    for dir in ["", "groups"] {
        for name in sample.disk.names(&Path::new(DIR).join(dir)).unwrap() {
            let name = Path::new(dir).join(name).to_string_lossy().into_owned();
            if sample.disk.read_file(&path(&name)).is_some() {
                files.push(name);
            }
        }
    }
    files
}

fn in_threads(sample: &Sample, bits: &[Bit]) -> (Report, Vec<String>) {
    let next = AtomicUsize::new(0);
    let work = || {
        let (mut report, mut failures) = (Report::new(), Vec::new());
        while let Some(bit) = bits.get(next.fetch_add(1, Ordering::Relaxed)) {
            match catch_unwind(AssertUnwindSafe(|| flip(sample, bit))) {
                Ok(Ok(what)) => *report.entry((bit.file.clone(), what)).or_default() += 1,
                Ok(Err(what)) => failures.push(format!("{bit:?}: {what}")),
                Err(_) => failures.push(format!("{bit:?}: panicked")),
            }
        }
        (report, failures)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        let (mut report, mut failures) = (Report::new(), Vec::new());
        for thread in threads {
            let (part, failed) = thread.join().unwrap();
            part.into_iter().for_each(|(key, count)| *report.entry(key).or_default() += count);
            failures.extend(failed);
        }
        (report, failures)
    })
}

/// Flips one bit and says what was found.
fn flip(sample: &Sample, bit: &Bit) -> Result<String, String> {
    let disk = sample.copy();
    let mut bytes = disk.read_file(&path(&bit.file)).unwrap();
    if slots::decode_file::<Value>(&bytes).is_some() {
        state_is_old_or_none(&bytes, bit)?;
        if !bit.is_repaired {
            return Ok("decoded".to_owned());
        }
    }
    bytes[bit.byte] ^= bit.bit;
    disk.write_file(&path(&bit.file), &bytes).unwrap();
    let log = match Log::open(&home(&disk)) {
        Ok(log) => log,
        Err(Error::Unreadable { .. }) if bit.file == "log.json" => return restore(sample, &disk),
        Err(error) => return Err(format!("open: {error:?}")),
    };
    // Before a reader makes anew what is derived.
    let found = bit.is_repaired.then(|| log.verify(&mut |_| ()));
    let hit = sample.batches.iter().position(|batch| {
        batch.segment == bit.file && (batch.position..batch.end()).contains(&(bit.byte as u64))
    });
    if let (Some(hit), None) = (hit, &found) {
        return reads_around(&sample.batches, hit, &log).map(|()| "read".to_owned());
    }
    let plain = read(&log, &sample.batches, false)?;
    let read_all = match hit {
        None if plain.is_whole() => plain,
        None => return Err(format!("nothing was hit, but {plain:?}")),
        Some(hit) => {
            ends_before(sample, &plain, hit)?;
            skips(sample, &log, hit)?
        }
    };
    the_group_stands(&log, sample.end(), &bit.file)?;
    match found {
        Some(found) => {
            let found = found.map_err(|error| format!("verify: {error:?}"))?;
            tells_of(&found, &read_all)?;
            repair(sample, &disk, &log, &read_all).map(|()| names(&found))
        }
        None => Ok("read".to_owned()),
    }
}

/// Of a two-slot file one line counts, as it was.
fn state_is_old_or_none(good: &[u8], bit: &Bit) -> Result<(), String> {
    let mut bytes = good.to_vec();
    bytes[bit.byte] ^= bit.bit;
    let states = [0, 1].map(|slot| {
        slots::decode::<Value>(&good[slot * SLOT_LEN..(slot + 1) * SLOT_LEN]).map(|slot| slot.state)
    });
    match slots::decode_file::<Value>(&bytes) {
        Some(slots) if states.contains(&Some(slots.newest.state.clone())) => Ok(()),
        other => Err(format!("it says {other:?}")),
    }
}

/// The segment of the batch that was hit is read up to that batch, and on behind it by
/// whoever skips damage.
fn reads_around(batches: &[Batch], hit: usize, log: &Log) -> Result<(), String> {
    let segment = &batches[hit].segment;
    let is_in = |batch: &&Batch| batch.segment == *segment;
    let before = batches[..hit].iter().filter(is_in);
    let behind = batches[hit + 1..].iter().filter(is_in);
    let base = before.clone().next().unwrap_or(&batches[hit]).header.base;
    let told = |error: Error| format!("{error:?}");
    let mut reader = Reader::open(log, base).map_err(told)?;
    for batch in before {
        is_next(&mut reader, batch)?;
    }
    match reader.read() {
        Err(Error::Damage(damage)) if damage.offset == batches[hit].header.base => {}
        other => return Err(format!("batch {hit} was hit, but reading gave {other:?}")),
    }
    reader.skip_damage();
    for batch in behind {
        is_next(&mut reader, batch)?;
    }
    match reader.read().map_err(told)? {
        Reading::Records(piece) if piece.header.base == batches[hit].header.base => {
            Err(format!("{:?} came although it was hit", piece.header))
        }
        _ => Ok(()),
    }
}

fn is_next(reader: &mut Reader, batch: &Batch) -> Result<(), String> {
    match reader.read() {
        Ok(Reading::Records(piece)) if batch.is(&piece) => Ok(()),
        other => Err(format!("not {:?} but {other:?}", batch.header)),
    }
}

/// A plain reader ends with damage right before the batch that was hit.
fn ends_before(sample: &Sample, read: &Read, hit: usize) -> Result<(), String> {
    let at = &sample.batches[hit];
    let told = match &read.error {
        Some(Error::Damage(damage)) => damage.offset == at.header.base,
        _ => false,
    };
    let missing: Vec<usize> = (hit..sample.batches.len()).collect();
    match told && read.missing == missing {
        true => Ok(()),
        false => Err(format!("batch {hit} was hit, but reading gave {read:?}")),
    }
}

/// One that skips damage misses that batch and no other.
fn skips(sample: &Sample, log: &Log, hit: usize) -> Result<Read, String> {
    let read = read(log, &sample.batches, true)?;
    let is_last = hit + 1 == sample.batches.len();
    let header = &sample.batches[hit].header;
    let lost = if is_last { 0 } else { header.next.since(header.base) };
    let told = (read.skipped.places, read.skipped.offsets) == (1, lost);
    match told && read.error.is_none() && read.missing == [hit] {
        true => Ok(read),
        false => Err(format!("batch {hit} was hit, but skipping gave {read:?}")),
    }
}

/// A checkpoint says what it said, or what it said before.
fn the_group_stands(log: &Log, end: Offset, file: &str) -> Result<(), String> {
    let place = |name| log.group_position(&group(name));
    match (place("early"), place("late")) {
        (Ok(Some(early)), Ok(Some(late))) if late == end && early.get() == end.get() / 3 => Ok(()),
        (Ok(Some(early)), Ok(Some(late)))
            if early < end && late <= end && file.contains("checkpoint") =>
        {
            Ok(())
        }
        other => Err(format!("the groups: {other:?}")),
    }
}

/// A log without its settings is itself again.
fn restore(sample: &Sample, disk: &Arc<SimulatedDisk>) -> Result<String, String> {
    let restored = Log::restore(&home(disk)).map_err(|error| format!("restore: {error:?}"))?;
    let log = Log::open(&home(disk)).map_err(|error| format!("open again: {error:?}"))?;
    let read = read(&log, &sample.batches, false)?;
    match read.is_whole() {
        true => {
            repair(sample, disk, &log, &read).map(|()| restored.unwrap().kind.name().to_owned())
        }
        false => Err(format!("after it was restored: {read:?}")),
    }
}

/// Verify calls it damage if and only if a record can't be read.
fn tells_of(found: &Verification, read: &Read) -> Result<(), String> {
    let lost = !read.missing.is_empty();
    match (found.damaged() > 0) == lost || names(found) == "state" {
        true => Ok(()),
        false => Err(format!("reading gave {read:?}, verify {found:?}")),
    }
}

/// Repairs the log, repairs it again, and uses it.
fn repair(
    sample: &Sample,
    disk: &Arc<SimulatedDisk>,
    log: &Log,
    read_all: &Read,
) -> Result<(), String> {
    let said = |what: &str| {
        let what = what.to_owned();
        move |error: Error| format!("{what}: {error:?}")
    };
    let repair = log.repair(NOW, &mut |_| ()).map_err(said("repair"))?;
    let left = names(&repair.after);
    if !matches!(left.as_str(), "nothing" | "gap") {
        return Err(format!("left after repair: {:?}", repair.after));
    }
    let after = read(log, &sample.batches, false)?;
    if after.error.is_some() || after.missing != read_all.missing || after.next != sample.end() {
        return Err(format!("before repair {read_all:?}, after it {after:?}"));
    }
    let print = disk.fingerprint();
    log.repair(NOW, &mut |_| ()).map_err(said("repair again"))?;
    if disk.fingerprint() != print {
        return Err("a second repair changed something".to_owned());
    }
    let body = Body::plain(Layout::Lines, 1, b"later\n");
    let mut writer = Appender::open(log).map_err(said("open a writer"))?;
    let appended = writer.append(&body, NOW).map_err(said("append"))?;
    writer.sync().map_err(said("sync"))?;
    match appended.base == sample.end() {
        true => Ok(()),
        false => Err(format!("appended at {appended:?}")),
    }
}

/// The kinds of findings, each once.
fn names(found: &Verification) -> String {
    let mut names: Vec<&str> = found.findings.iter().map(|found| found.kind.name()).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}
