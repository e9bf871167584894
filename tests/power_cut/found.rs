//! The faults that the random programs found, each told as its shortest story.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use std::path::Path;
use std::sync::Arc;

use tapelog::disk::simulated::{CrashStyle, SimulatedDisk};
use tapelog::format::batch::Layout;
use tapelog::format::body::Body;
use tapelog::log::{Appender, Claim, Consumer, Error, Log, Reader};
use tapelog::model::{GroupName, LogId, Offset, Start, Timestamp};

use crate::program::{home, settings};

const NOW: Timestamp = Timestamp::from_millis(1);

fn group() -> GroupName {
    "g".parse().unwrap()
}

fn open(disk: &Arc<SimulatedDisk>) -> Log {
    Log::open_or_create(&home(disk, |_| ()), LogId::new(1), &settings(512)).unwrap()
}

/// A log of three records in a sealed segment, all safe, by a writer that has ended.
fn sealed() -> (Arc<SimulatedDisk>, Log) {
    let disk = Arc::new(SimulatedDisk::new());
    let log = open(&disk);
    append(&log);
    log.seal_active(true, NOW).unwrap();
    (disk, log)
}

fn append(log: &Log) {
    let body = Body::plain(Layout::Lines, 3, b"a\nb\nc\n");
    let mut writer = Appender::open(log).unwrap();
    writer.append(&body, NOW).unwrap();
    writer.sync().unwrap();
}

fn after_a_cut(disk: &SimulatedDisk, style: CrashStyle) -> (Arc<SimulatedDisk>, Log) {
    let image = Arc::new(disk.crash_image(usize::MAX, 0, style));
    let log = Log::open(&home(&image, |_| ())).unwrap();
    (image, log)
}

/// The disk of a process that was killed right after the last step of this name.
fn killed_after(disk: &SimulatedDisk, step: &str) -> Arc<SimulatedDisk> {
    let mut player = disk.crash_player();
    let is_it = |&index: &usize| disk.describe_step(index).is_some_and(|told| told.contains(step));
    let last = (0..disk.steps()).rev().find(is_it).unwrap();
    player.go_to(last + 1);
    Arc::new(player.killed())
}

fn bounds(log: &Log) -> (u64, u64) {
    let bounds = log.bounds().unwrap();
    (bounds.start.get(), bounds.end.get())
}

#[test]
fn gc_trusts_no_checkpoint_that_a_power_cut_takes_back() {
    let (disk, log) = sealed();
    let claim =
        Claim { start: Start::Earliest, out_of_range: None, commits: true, holder: String::new() };
    let mut consumer = Consumer::claim(&log, &group(), &claim, NOW).unwrap();
    consumer.commit(Offset::new(3), NOW, NOW).unwrap();
    drop(consumer);
    assert_eq!(log.collect().unwrap().deleted().count(), 1);
    let (_, log) = after_a_cut(&disk, CrashStyle::DropAll);
    assert_eq!(log.group_position(&group()).unwrap(), Some(Offset::new(3)));
}

#[test]
fn gc_trusts_no_deletion_that_a_power_cut_takes_back() {
    let (disk, log) = sealed();
    log.commit(&group(), Offset::ZERO, NOW).unwrap();
    log.commit(&"other".parse().unwrap(), Offset::new(3), NOW).unwrap();
    log.delete_group(&group()).unwrap();
    let disk = killed_after(&disk, "remove g.checkpoint");
    open(&disk).collect().unwrap();
    let (_, log) = after_a_cut(&disk, CrashStyle::DropAll);
    assert_eq!((bounds(&log), log.group_position(&group()).unwrap()), ((3, 3), None));
}

#[test]
fn gc_removes_nothing_before_a_log_start_that_a_power_cut_takes_back() {
    let (disk, log) = sealed();
    log.commit(&group(), Offset::new(3), NOW).unwrap();
    let begin = disk.steps();
    log.collect().unwrap();
    // Every moment at which that gc may have been killed, and another one came.
    for steps in begin..=disk.steps() {
        let mut player = disk.crash_player();
        player.go_to(steps);
        let disk = Arc::new(player.killed());
        open(&disk).collect().unwrap();
        let (_, log) = after_a_cut(&disk, CrashStyle::DropAll);
        assert_eq!(bounds(&log), (3, 3), "killed after step {steps}");
        assert!(Reader::open(&log, Offset::new(3)).is_ok());
    }
}

#[test]
fn a_safe_last_batch_that_rotted_stops_the_next_writer() {
    let disk = Arc::new(SimulatedDisk::new());
    append(&open(&disk));
    let path = Path::new("/log/00000000000000000000.log");
    let mut bytes = disk.read_file(path).unwrap();
    bytes[69] ^= 1;
    disk.write_file(path, &bytes).unwrap();
    for disk in [disk.clone(), after_a_cut(&disk, CrashStyle::DropAll).0] {
        assert!(matches!(Appender::open(&open(&disk)), Err(Error::Damage(_))));
    }
}

#[test]
fn an_old_line_of_end_hides_no_newer_segment() {
    let (disk, log) = sealed();
    log.commit(&group(), Offset::new(3), NOW).unwrap();
    log.collect().unwrap();
    append(&log);
    // Of both lines only one from before the roll and gc is left.
    let end = disk.read_file(Path::new("/log/end")).unwrap();
    let before = end_before_the_roll();
    let old = &before[..4096];
    disk.write_file(Path::new("/log/end"), &[old, &[0; 4096]].concat()).unwrap();
    assert_ne!(disk.read_file(Path::new("/log/end")).unwrap(), end);
    let (_, log) = after_a_cut(&disk, CrashStyle::DropAll);
    assert_eq!(bounds(&log), (3, 6));
    append(&log);
    assert_eq!(bounds(&log), (3, 9));
    Reader::open(&log, Offset::new(3)).unwrap();
}

fn end_before_the_roll() -> Vec<u8> {
    let disk = Arc::new(SimulatedDisk::new());
    append(&open(&disk));
    disk.read_file(Path::new("/log/end")).unwrap()
}

#[test]
fn a_roll_leaves_no_old_line_in_end() {
    let (disk, _) = sealed();
    let end = disk.read_file(Path::new("/log/end")).unwrap();
    let (first, second) = end.split_at(4096);
    for line in [first, second] {
        assert!(String::from_utf8_lossy(line).contains(r#""durable":{"segment":3"#));
    }
}

#[test]
fn a_commit_keeps_a_group_whose_maker_was_killed() {
    let (disk, log) = sealed();
    log.commit(&group(), Offset::new(1), NOW).unwrap();
    let disk = killed_after(&disk, "g.checkpoint");
    open(&disk).commit(&group(), Offset::new(2), NOW).unwrap();
    let (_, log) = after_a_cut(&disk, CrashStyle::DropAll);
    assert_eq!(log.group_position(&group()).unwrap(), Some(Offset::new(2)));
}

#[test]
fn an_append_keeps_the_names_of_a_log_whose_maker_was_killed() {
    for step in ["link log.json", "create 00000000000000000000.log"] {
        let disk = Arc::new(SimulatedDisk::new());
        append(&open(&disk));
        let disk = killed_after(&disk, step);
        append(&open(&disk));
        let (_, log) = after_a_cut(&disk, CrashStyle::DropAll);
        assert_eq!(bounds(&log), (0, 3), "{step}");
    }
}

#[test]
fn a_log_that_a_power_cut_unmade_is_made_anew() {
    let disk = Arc::new(SimulatedDisk::new());
    open(&disk);
    let disk = killed_after(&disk, "link log.json");
    // A reader saw it, and left its table of segments.
    assert_eq!(bounds(&open(&disk)), (0, 0));
    Reader::open(&open(&disk), Offset::ZERO).unwrap();
    let image = disk.snapshot();
    tapelog::disk::Disk::remove_file(&image, Path::new("/log/log.json")).unwrap();
    append(&open(&Arc::new(image)));
}

#[test]
fn a_torn_tail_gives_an_empty_segment_no_time() {
    let disk = Arc::new(SimulatedDisk::new());
    let log = open(&disk);
    let body = Body::plain(Layout::Lines, 3, b"a\nb\nc\n");
    Appender::open(&log).unwrap().append(&body, NOW).unwrap();
    let path = Path::new("/log/00000000000000000000.log");
    let bytes = disk.read_file(path).unwrap();
    disk.write_file(path, &bytes[..bytes.len() - 1]).unwrap();
    let (segments, _) = log.segments().unwrap();
    assert_eq!((segments[0].records, segments[0].first_time), (0, None));
}

#[test]
fn a_restart_that_lost_nothing_leaves_end_with_its_last_batch() {
    let disk = Arc::new(SimulatedDisk::new());
    append(&open(&disk));
    let last = |disk: &SimulatedDisk| {
        let end = disk.read_file(Path::new("/log/end")).unwrap();
        let end = tapelog::format::slots::decode_file::<tapelog::format::state::EndState>(&end);
        end.unwrap().newest.state.last_batch
    };
    let before = last(&disk);
    let (disk, log) = after_a_cut(&disk, CrashStyle::KeepAll);
    Appender::open(&log).unwrap();
    assert_eq!(last(&disk), before);
}

#[test]
fn gc_trusts_no_line_that_a_consumer_may_write_over() {
    let (disk, log) = sealed();
    let claim =
        Claim { start: Start::Earliest, out_of_range: None, commits: true, holder: String::new() };
    let mut consumer = Consumer::claim(&log, &group(), &claim, NOW).unwrap();
    consumer.commit(Offset::new(3), NOW, NOW).unwrap();
    log.collect().unwrap();
    append(&log);
    // Over the line that gc has synced, as the consumer doesn't know of that.
    consumer.commit(Offset::new(6), NOW, NOW).unwrap();
    for seed in 0..50 {
        let image = disk.crash_image(usize::MAX, seed, CrashStyle::Random { sector: 64 });
        let log = Log::open(&home(&Arc::new(image), |_| ())).unwrap();
        let next = log.group_position(&group()).unwrap().unwrap();
        assert!(next >= log.start().unwrap(), "seed {seed}: {next}");
    }
}
