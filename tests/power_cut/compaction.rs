//! Power cut at every step of a compaction, and of the one that comes after it. Whatever is
//! left answers as a plain map does: the newest record of each key is there, every record
//! without a key, and each record that is there is the one that was appended there. The
//! next compaction goes on and leaves what one that was not cut would have left.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use tapelog::disk::simulated::{CrashStyle, Seeded, SimulatedDisk};
use tapelog::format::body::{self, Body};
use tapelog::format::record::Content;
use tapelog::log::{Appender, CompactionTerms, Log, Note, Reader, Reading};
use tapelog::model::{LogId, Timestamp};
use tapelog::policy::compaction::Scope;

use crate::cutter::{STYLES, guarded};
use crate::program::{DIR, home, settings};
use crate::reading::words;

const SEED: u64 = 20_261_130;
const PROGRAMS: u64 = 12;
/// Tombstones of the first half of a program are old.
const OLD: i64 = 12;

/// A record: its key and value, and when it was appended.
type Record = (Option<Vec<u8>>, Option<Vec<u8>>, i64);
type Records = BTreeMap<u64, Record>;

/// What has been appended, and how much of that is in sealed segments.
struct Written {
    all: Records,
    sealed: u64,
}

impl Written {
    /// Whether a compacted log has to hold the record at `offset`.
    fn stays(&self, newest: &HashMap<&[u8], u64>, offset: u64, record: &Record) -> bool {
        let (key, value, time) = record;
        let Some(key) = key else { return true };
        let is_old_tombstone = value.is_none() && *time < OLD && offset < self.sealed;
        newest[&key[..]] == offset && !is_old_tombstone
    }

    fn newest(&self) -> HashMap<&[u8], u64> {
        let keyed = |(offset, (key, ..)): (&u64, &'_ Record)| key.is_some().then_some(*offset);
        let offsets: Vec<u64> = self.all.iter().filter_map(keyed).collect();
        let key = |offset: &u64| self.all[offset].0.as_deref().unwrap_or_default();
        offsets.iter().map(|offset| (key(offset), *offset)).collect()
    }

    /// What a compaction leaves.
    fn compacted(&self) -> Records {
        let newest = self.newest();
        let stays = |(offset, record): &(&u64, &Record)| {
            **offset >= self.sealed || self.stays(&newest, **offset, record)
        };
        self.all.iter().filter(stays).map(|(offset, record)| (*offset, record.clone())).collect()
    }

    /// Compares what a cut left.
    fn check(&self, found: &Records) -> Result<(), String> {
        for (offset, record) in found {
            if self.all.get(offset) != Some(record) {
                return Err(format!("offset {offset} is {record:?}: {:?}", self.all.get(offset)));
            }
        }
        let newest = self.newest();
        let missing = |(offset, record): &(&u64, &Record)| {
            self.stays(&newest, **offset, record) && !found.contains_key(*offset)
        };
        match self.all.iter().find(missing) {
            None => Ok(()),
            Some(lost) => Err(format!("{lost:?} is lost")),
        }
    }
}

fn open(disk: &Arc<SimulatedDisk>, tell: impl Fn(&Note) + Send + Sync + 'static) -> Log {
    let log = Log::open_or_create(&home(disk, tell), LogId::new(1), &settings(512));
    log.unwrap_or_else(|error| panic!("open: {error}"))
}

/// Appends some batches of random records, seals some of them, and syncs all.
fn append(disk: &Arc<SimulatedDisk>, random: &mut Seeded, written: &mut Written) {
    let log = open(disk, |_| ());
    let mut writer = Appender::open(&log).unwrap_or_else(|error| panic!("writer: {error}"));
    for _ in 0..random.between(4, 12) {
        let time = written.all.last_key_value().map_or(0, |(_, record)| record.2) + 1;
        let record = |_| {
            let key = match random.below(8) {
                0 => None,
                1 => Some(Vec::new()),
                n => Some(vec![b'a' + n as u8 % 4]),
            };
            let value = vec![b'x'; random.below(60) as usize];
            (key, if random.one_in(5) { None } else { Some(value) }, time)
        };
        let records: Vec<Record> = (0..2).chain(0..2).map(record).collect();
        let contents: Vec<Content<'_>> = records
            .iter()
            .map(|(key, value, _)| Content {
                key: key.as_deref(),
                value: value.as_deref(),
                ..Content::default()
            })
            .collect();
        let mut bytes = Vec::new();
        let layout = body::encode(&contents, &mut bytes);
        let body = Body::plain(layout, records.len() as u32, &bytes);
        let appended = writer.append(&body, Timestamp::from_millis(time));
        let base = appended.unwrap_or_else(|error| panic!("append: {error}")).base.get();
        written.all.extend((base..).zip(records));
    }
    writer.sync().unwrap_or_else(|error| panic!("sync: {error}"));
    let (segments, _) = log.segments().unwrap_or_else(|error| panic!("segments: {error}"));
    written.sealed = segments.last().map_or(0, |facts| facts.base.get());
}

fn compact(log: &Log) -> Result<(), String> {
    let terms = CompactionTerms {
        scope: Scope { even_unread: true, even_without_groups: false },
        tombstones_before: Timestamp::from_millis(OLD),
    };
    log.compact(&terms, &mut |_| ()).map(drop).map_err(words("compact"))
}

fn read(log: &Log) -> Result<Records, String> {
    let start = log.bounds().map_err(words("bounds"))?.start;
    let mut reader = Reader::open(log, start).map_err(words("open a reader"))?;
    let mut found = Records::new();
    while let Reading::Records(piece) = reader.read().map_err(words("read"))? {
        for record in piece.records().map_err(|error| error.to_string())? {
            let (key, value) = (record.content.key, record.content.value);
            let owned = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
            let time = record.append_time.as_millis();
            found.insert(record.offset.get(), (owned(key), owned(value), time));
        }
    }
    Ok(found)
}

/// What a reader finds of what a cut left.
fn check_left(disk: &Arc<SimulatedDisk>, written: &Written) -> Result<(), String> {
    let log = open(disk, |_| ());
    written.check(&read(&log)?)?;
    let end = log.bounds().map_err(words("bounds"))?.end.get();
    if end != written.all.len() as u64 {
        return Err(format!("the log ends at {end}"));
    }
    let verified = log.verify(&mut |_| ()).map_err(words("verify"))?;
    match verified.damaged() {
        0 => check_counts(&log),
        _ => Err(format!("verify: {:?}", verified.findings)),
    }
}

/// Whether the listing has as many records in each segment as can be read there.
fn check_counts(log: &Log) -> Result<(), String> {
    let found = read(log)?;
    let (segments, _) = log.segments().map_err(words("segments"))?;
    for facts in segments {
        let here = found.range(facts.base.get()..facts.next.get()).count() as u64;
        if here != facts.records {
            return Err(format!("{facts:?}, but {here} records are there"));
        }
    }
    Ok(())
}

/// The next compaction: nothing is left to do after it, and nothing half made.
fn check_next(disk: &Arc<SimulatedDisk>, written: &Written) -> Result<(), String> {
    let log = open(disk, |_| ());
    compact(&log)?;
    if read(&log)? != written.compacted() {
        return Err(format!("after the next run {:?} is left", read(&log)?));
    }
    check_left(disk, written)?;
    for dir in [DIR, "/log/keys", "/log/groups"] {
        let names = disk.names(Path::new(dir)).unwrap_or_default();
        if names.iter().any(|name| name.ends_with(".tmp")) {
            return Err(format!("{dir} holds {names:?}"));
        }
    }
    Ok(())
}

/// What the cuts of one program came to.
#[derive(Default)]
struct Cuts {
    seen: HashSet<u64>,
    failures: Vec<String>,
}

impl Cuts {
    /// Cuts the power after every step from `begun` on, in every style; once in a while
    /// again during the run after that.
    fn cut(
        &mut self,
        disk: &SimulatedDisk,
        begun: usize,
        written: &Written,
        random: &mut Seeded,
        again: bool,
    ) {
        let mut player = disk.crash_player();
        for steps in begun..=player.steps() {
            player.go_to(steps);
            let seed = random.next_u64();
            let cut = STYLES.map(|style| (format!("{style:?}"), player.image(seed, style)));
            for (style, image) in cut.into_iter().chain([("killed".to_owned(), player.killed())]) {
                let image = Arc::new(image);
                if !self.seen.insert(image.fingerprint()) {
                    continue;
                }
                let begun = image.steps();
                let checked = guarded(|| {
                    check_left(&image, written)?;
                    check_next(&image, written)
                });
                if let Err(what) = checked {
                    let step = steps.checked_sub(1).and_then(|step| disk.describe_step(step));
                    self.failures.push(format!("after step {steps} ({step:?}), {style}: {what}"));
                } else if again && random.one_in(30) {
                    self.cut(&image, begun, written, random, false);
                }
            }
        }
    }
}

#[test]
fn wherever_the_power_is_cut_a_compacted_log_answers_as_a_plain_map() {
    let mut states = 0;
    for seed in SEED..SEED + PROGRAMS {
        let mut random = Seeded::new(seed);
        let mut disk = Arc::new(SimulatedDisk::new());
        let mut written = Written { all: Records::new(), sealed: 0 };
        let mut cuts = Cuts::default();
        for _ in 0..2 {
            append(&disk, &mut random, &mut written);
            // So that only the steps of the compaction are cut.
            disk = Arc::new(disk.crash_image(usize::MAX, 0, CrashStyle::DropAll));
            let begun = disk.steps();
            let done = guarded(|| check_next(&disk, &written));
            assert_eq!(done, Ok(()), "seed {seed}");
            cuts.cut(&disk, begun, &written, &mut random, true);
        }
        assert!(cuts.failures.is_empty(), "seed {seed}: {:#?}", &cuts.failures);
        states += cuts.seen.len();
    }
    println!("{states} distinct crash states of compactions");
    assert!(states > 1000, "{states}");
}

#[test]
#[allow(clippy::unwrap_used, reason = "a failure here is a failed test")]
fn a_compaction_after_a_roll_that_was_killed_loses_nothing_to_a_cut() {
    let disk = Arc::new(SimulatedDisk::new());
    let log = open(&disk, |_| ());
    let mut writer = Appender::open(&log).unwrap();
    let mut append = |key: &[u8], synced: bool| {
        let content = Content { key: Some(key), ..Content::of_value(b"some value") };
        let mut bytes = Vec::new();
        let layout = body::encode(&[content], &mut bytes);
        writer.append(&Body::plain(layout, 1, &bytes), Timestamp::default()).unwrap();
        if synced {
            writer.sync().unwrap();
        }
    };
    append(b"a", false);
    append(b"a", true);
    append(b"b", false);
    // A repair makes durable what `end` says: synced up to the midst of the segment.
    let end = Path::new("/log/end");
    let mut bytes = disk.read_file(end).unwrap();
    let older = |slot: &[u8]| !String::from_utf8_lossy(slot).contains(r#""offset":3"#);
    let bad = bytes.chunks(4096).position(older).unwrap();
    bytes[bad * 4096] ^= 1;
    disk.write_file(end, &bytes).unwrap();
    open(&disk, |_| ()).repair(Timestamp::default(), &mut |_| ()).unwrap();
    let begun = disk.steps();
    open(&disk, |_| ()).seal_active(true, Timestamp::default()).unwrap();
    // Every moment at which that roll may have been killed, and a compaction came.
    for steps in begun..=disk.steps() {
        let mut player = disk.crash_player();
        player.go_to(steps);
        let killed = Arc::new(player.killed());
        assert_eq!(compact(&open(&killed, |_| ())), Ok(()), "killed after step {steps}");
        for style in STYLES {
            let image = Arc::new(killed.crash_image(usize::MAX, 0, style));
            let found = guarded(|| read(&open(&image, |_| ())));
            let offsets: Result<Vec<u64>, _> = found.map(|found| found.into_keys().collect());
            let whole = [Ok(vec![1, 2]), Ok(vec![0, 1, 2])];
            assert!(whole.contains(&offsets), "killed after step {steps}, {style:?}: {offsets:?}");
        }
    }
}
