//! Torn tails: the last batches cut at every byte, or other bytes in their place.
//! What must follow is worked out from the rule alone: bad bytes at offset N are damage
//! below the durable mark, or below the mark in a later good header; else torn tail.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tapelog::disk::simulated::{Seeded, SimulatedDisk};
use tapelog::format::batch::HEADER_LEN;
use tapelog::log::{Appender, Error, Note};

use crate::looking::{Opened, quarantine};
use crate::victim::{ENDS, End, Victim, Whole, append, kinds, segment};

/// What must be found in a harmed log.
#[derive(Debug)]
struct Expected {
    /// The offset after the last batch that is whole, with all before it.
    next: u64,
    /// Where that ends in the segment.
    position: usize,
    /// Whether what follows is damage.
    damaged: bool,
    /// Whether a writer meets that: it begins to read at the durable mark, unless bytes
    /// before it are missing or no good batch begins there.
    writer_meets_it: bool,
}

impl Expected {
    fn of(victim: &Victim, bytes: &[u8], end: End) -> Expected {
        let is_there = |begin: usize, end: usize| {
            bytes.get(begin..end).is_some_and(|found| *found == victim.bytes[begin..end])
        };
        let harmed = |batch: &Whole| !is_there(batch.begin, batch.end);
        let batches = victim.batches.iter().position(harmed).unwrap_or(victim.batches.len());
        let last = batches.checked_sub(1).map(|last| victim.batches[last]);
        let (next, position) = last.map_or((0, 0), |last| (last.next, last.end));
        let later = victim.batches[batches..].iter().filter(|batch| batch.begin > position);
        let later = later.filter(|batch| is_there(batch.begin, batch.begin + HEADER_LEN));
        let synced_later = later.map(|batch| batch.synced).max().unwrap_or(0);
        let (durable, written) = victim.marks(end).unwrap_or((0, 0));
        let behind = victim.batches.iter().find(|batch| batch.begin == victim.safe_bytes());
        Expected {
            next,
            position,
            damaged: next < durable.max(synced_later),
            writer_meets_it: bytes.len() < victim.safe_bytes()
                || written == durable
                || behind.is_none_or(harmed),
        }
    }
}

/// Looks at a harmed log as a reader, as a writer, and again.
fn check(victim: &Victim, bytes: &[u8], end: End) {
    let disk = victim.harmed(bytes, end);
    let expected = Expected::of(victim, bytes, end);
    let reader = Opened::new(&disk);
    let (read, damage) = reader.read(victim.kind.layout);
    assert_eq!((read, damage.is_some()), (expected.next, expected.damaged), "{expected:?}");
    assert_eq!(disk.read_file(&segment()).as_deref(), Some(bytes), "a reader changes nothing");
    if let Some(damage) = damage {
        assert_eq!((damage.offset.get(), damage.position.get()), (read, expected.position as u64));
        match expected.writer_meets_it {
            true => is_refused(&disk, bytes),
            false => stays_damaged(&disk, victim, bytes, &expected),
        }
        return;
    }
    is_told(&reader, victim, bytes, end, &expected);
    is_cut(&disk, victim, bytes, &expected);
    is_as_if_nothing_had_been(&disk, victim, expected.next);
}

/// A writer ends with damage and changes nothing.
fn is_refused(disk: &Arc<SimulatedDisk>, bytes: &[u8]) {
    let opened = Opened::new(disk);
    let refused = Appender::open(&opened.log);
    assert!(matches!(refused, Err(Error::Damage(_))), "a writer passed the damage");
    assert_eq!(disk.read_file(&segment()).as_deref(), Some(bytes));
    assert!(quarantine(disk).is_empty());
}

/// A writer that begins behind the damage hides nothing of it.
fn stays_damaged(disk: &Arc<SimulatedDisk>, victim: &Victim, bytes: &[u8], expected: &Expected) {
    let opened = Opened::new(disk);
    drop(Appender::open(&opened.log).unwrap());
    let (safe, torn) = bytes.split_at(victim.safe_bytes());
    assert_eq!(disk.read_file(&segment()).as_deref(), Some(safe));
    assert_eq!(quarantine(disk).concat(), torn);
    let (read, damage) = opened.read(victim.kind.layout);
    assert_eq!((read, damage.is_some()), (expected.next, true));
}

/// A reader tells of a torn tail, or that all of the last batches is gone, in one note.
fn is_told(reader: &Opened, victim: &Victim, bytes: &[u8], end: End, expected: &Expected) {
    let written = victim.marks(end).map_or(0, |(_, written)| written);
    let left = (bytes.len() - expected.position) as u64;
    match reader.told()[..] {
        [] => assert!(left == 0 && written <= expected.next),
        [Note::TornTail { bytes, end, .. }] => {
            assert_eq!((bytes, end.get()), (left, expected.next));
            assert!(left > 0);
        }
        [Note::LostTail { end, .. }] => {
            assert!(left == 0 && end.get() == expected.next && written > expected.next);
        }
        ref told => panic!("{told:?}"),
    }
}

/// A writer sets every torn byte aside, says so, and goes on behind what is whole.
fn is_cut(disk: &Arc<SimulatedDisk>, victim: &Victim, bytes: &[u8], expected: &Expected) {
    let writer = Opened::new(disk);
    let mut appender = Appender::open(&writer.log).unwrap();
    let torn = &bytes[expected.position..];
    match writer.told()[..] {
        [] => assert!(torn.is_empty() && quarantine(disk).is_empty()),
        [Note::CutTail { bytes, ref kept, .. }] => {
            assert_eq!((bytes, quarantine(disk)), (torn.len() as u64, vec![torn.to_vec()]));
            assert_eq!(disk.read_file(kept).as_deref(), Some(torn));
        }
        [Note::LostTail { end, .. }] => assert!(torn.is_empty() && end.get() == expected.next),
        ref told => panic!("{told:?}"),
    }
    let segment_now = disk.read_file(&segment()).unwrap();
    assert_eq!(segment_now, bytes[..expected.position], "what is whole stays as it is");
    append(&writer.log, &mut appender, victim.kind.layout);
    appender.sync().unwrap();
}

/// After that nobody has anything to tell.
fn is_as_if_nothing_had_been(disk: &Arc<SimulatedDisk>, victim: &Victim, next: u64) {
    let opened = Opened::new(disk);
    let kept = quarantine(disk);
    let (read, damage) = opened.read(victim.kind.layout);
    assert_eq!((read, damage), (next + 3, None));
    drop(Appender::open(&opened.log).unwrap());
    assert_eq!(opened.told(), []);
    assert_eq!(quarantine(disk), kept);
}

/// Tries states and counts them.
#[derive(Default)]
struct Tried {
    states: usize,
}

impl Tried {
    /// Checks one segment with each of `ends`; says which it was if that fails.
    fn states(&mut self, victim: &Victim, ends: &[End], bytes: &[u8], what: impl Fn() -> String) {
        for &end in ends {
            self.states += 1;
            let checked = catch_unwind(AssertUnwindSafe(|| check(victim, bytes, end)));
            assert!(checked.is_ok(), "{:?}, {}, end: {end:?}", victim.kind, what());
        }
    }
}

fn is_long() -> bool {
    std::env::var_os("TAPELOG_LONG").is_some()
}

#[test]
fn a_log_cut_anywhere_is_torn_behind_its_durable_mark_and_damaged_before_it() {
    let mut tried = Tried::default();
    for kind in kinds() {
        let victim = Victim::new(kind, 7);
        let first = if is_long() { 0 } else { victim.batches[3].begin };
        for cut in first..=victim.bytes.len() {
            let bytes = &victim.bytes[..cut];
            tried.states(&victim, &ENDS, bytes, || format!("cut at {cut}"));
        }
    }
    println!("{} logs cut short", tried.states);
}

/// Bytes that stand in place of the tail, and what they are.
fn fillings(victim: &Victim, other: &Victim, seeded: &mut Seeded) -> Vec<(String, Vec<u8>)> {
    let mut fillings = Vec::new();
    let lengths: &[usize] = match is_long() {
        true => &[1, 2, 7, 8, 63, 64, 65, 127, 128, 511, 512, 513, 4095, 4096, 4097, 300_000],
        false => &[1, 63, 64, 65, 512, 4096],
    };
    for &length in lengths {
        fillings.push((format!("{length} zeros"), vec![0; length]));
        fillings.push((format!("{length} times FF"), vec![0xFF; length]));
        fillings.push((format!("{length} random bytes"), seeded.bytes(length)));
    }
    // What stood there before: earlier bytes of the same log, at the place of a batch or not.
    for begin in [0, 1, victim.batches[1].begin, victim.batches[3].begin + 5] {
        fillings.push((format!("its bytes from {begin} on"), victim.bytes[begin..].to_vec()));
    }
    fillings.push(("another log's segment".to_owned(), other.bytes.clone()));
    fillings.push(("two segments".to_owned(), [&victim.bytes[..], &other.bytes].concat()));
    fillings
}

/// Where the tail is replaced: around every batch's bounds, and at steps inside.
fn places(victim: &Victim) -> Vec<usize> {
    let batches = &victim.batches[3..];
    let around = |batch: &Whole| {
        let (begin, end) = (batch.begin, batch.end);
        [begin, begin + 1, begin + HEADER_LEN, end - 1, end]
    };
    let step = if is_long() { 1 } else { 37 };
    let inside = (batches[0].begin..victim.bytes.len()).step_by(step);
    let mut places: Vec<usize> = inside.chain(batches.iter().flat_map(around)).collect();
    places.sort_unstable();
    places.dedup();
    places
}

#[test]
fn other_bytes_in_place_of_the_tail_are_torn_behind_the_durable_mark_and_damage_before_it() {
    let mut tried = Tried::default();
    let mut seeded = Seeded::new(7);
    for kind in kinds() {
        let (victim, other) = (Victim::new(kind, 7), Victim::new(kind, 8));
        for (filling, bytes) in fillings(&victim, &other, &mut seeded) {
            for place in places(&victim) {
                let bytes = [&victim.bytes[..place], &bytes].concat();
                tried.states(&victim, &ENDS, &bytes, || format!("{filling} from {place} on"));
            }
        }
    }
    println!("{} logs with other bytes at their end", tried.states);
}

/// Other bytes in the midst of good ones, at many of `places`.
fn with_holes(victim: &Victim, places: Range<usize>, ends: &[End], tried: &mut Tried) {
    let mut seeded = Seeded::new(8);
    for place in places.step_by(if is_long() { 1 } else { 11 }) {
        for length in [1, 16, 100] {
            let length = length.min(victim.bytes.len() - place);
            for hole in [vec![0; length], vec![0xFF; length], seeded.bytes(length)] {
                let mut bytes = victim.bytes.clone();
                bytes[place..place + length].copy_from_slice(&hole);
                let what = || format!("a hole of {length} bytes at {place}");
                tried.states(victim, ends, &bytes, what);
            }
        }
    }
}

#[test]
fn good_batches_behind_torn_bytes_are_torn_too() {
    // Within one boot a writer trusts a good last batch: no crash leaves a hole before it.
    const AFTER_A_CRASH: [End; 3] = [End::AnotherBoot, End::Older, End::Missing];
    let mut tried = Tried::default();
    for kind in kinds() {
        let victim = Victim::new(kind, 7);
        let places = victim.safe_bytes()..victim.bytes.len();
        with_holes(&victim, places, &AFTER_A_CRASH, &mut tried);
    }
    println!("{} logs with a hole in their tail", tried.states);
}

#[test]
fn bad_bytes_before_a_header_that_calls_them_synced_are_damage_without_end() {
    let mut tried = Tried::default();
    for kind in kinds() {
        let victim = Victim::new(kind, 7);
        with_holes(&victim, 0..victim.safe_bytes(), &[End::Missing], &mut tried);
    }
    println!("{} logs without end and with a hole in what was safe", tried.states);
}
