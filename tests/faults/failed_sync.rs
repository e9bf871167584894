//! A sync that fails, at each place where one is made, told as its shortest story: the
//! process ends, the next one comes, and then the power goes and takes all that was never
//! really synced. What the next one acknowledged is there.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use std::collections::BTreeMap;
use std::io::IoSlice;
use std::path::Path;
use std::sync::{Arc, Mutex};

use tapelog::disk::simulated::{Class, CrashStyle, Lasts, SimulatedDisk, Trouble};
use tapelog::disk::{Access, Disk};
use tapelog::format::batch::Layout;
use tapelog::format::body::{self, Body};
use tapelog::format::record::Content;
use tapelog::format::settings::Settings;
use tapelog::log::{
    Appender, Compaction, CompactionTerms, Error, Log, Note, Reader, Reading, SeekTarget,
};
use tapelog::model::{GroupName, LogId, Offset, Start, Timestamp};
use tapelog::policy::compaction::Scope;

use crate::program::{DIR, home, settings};
use crate::reading::read_all;

const NOW: Timestamp = Timestamp::from_millis(1);
const SEGMENT: &str = "/log/00000000000000000000.log";

fn group() -> GroupName {
    "g".parse().unwrap()
}

fn new_log() -> (Arc<SimulatedDisk>, Log) {
    let disk = Arc::new(SimulatedDisk::new());
    let log = open(&disk);
    (disk, log)
}

fn open(disk: &Arc<SimulatedDisk>) -> Log {
    Log::open_or_create(&home(disk, |_| ()), LogId::new(1), &settings(512)).unwrap()
}

/// Writes a record, which is not synced.
fn write(writer: &mut Appender, value: &str) {
    let line = format!("{value}\n");
    writer.append(&Body::plain(Layout::Lines, 1, line.as_bytes()), NOW).unwrap();
}

/// What the next process does: a record is written, synced and acknowledged.
fn acknowledge(log: &Log, value: &str) {
    let mut writer = Appender::open(log).unwrap();
    write(&mut writer, value);
    writer.sync().unwrap();
}

fn values(log: &Log) -> Vec<String> {
    let read = read_all(log).unwrap();
    read.values.into_iter().map(|value| String::from_utf8(value).unwrap()).collect()
}

/// What the log holds after a power cut that takes all that was not synced.
fn left(disk: &SimulatedDisk) -> Vec<String> {
    values(&open(&Arc::new(disk.crash_image(usize::MAX, 0, CrashStyle::DropAll))))
}

/// Half a record more at the end of a file, as a killed writer leaves it.
fn tear(disk: &SimulatedDisk) {
    let file = disk.open(Path::new(SEGMENT), Access::ReadWrite).unwrap();
    file.write_at(&[IoSlice::new(&[7; 90])], file.size().unwrap()).unwrap();
}

fn fail_sync(disk: &SimulatedDisk, nth: u64) {
    disk.fail_at(Class::Sync, nth, Trouble::EIO, Lasts::Once);
}

fn is_refused<T: std::fmt::Debug>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::Io { action: "sync" | "write", .. }))
}

/// The disk of a process that was killed after a batch was written, and before `end`
/// spoke of it.
fn killed_before_end() -> Arc<SimulatedDisk> {
    let (disk, log) = new_log();
    acknowledge(&log, "a");
    write(&mut Appender::open(&log).unwrap(), "b");
    let mut player = disk.crash_player();
    player.go_to(disk.steps() - 1);
    Arc::new(player.killed())
}

#[test]
fn while_the_end_is_written_down_anew() {
    let disk = killed_before_end();
    fail_sync(&disk, 1);
    assert!(is_refused(&Appender::open(&open(&disk))));
    acknowledge(&open(&disk), "c");
    assert_eq!(left(&disk), ["a", "b", "c"]);
}

#[test]
fn while_the_end_is_written_down_anew_and_end_is_missing() {
    let disk = killed_before_end();
    disk.remove_file(Path::new("/log/end")).unwrap();
    fail_sync(&disk, 1);
    assert!(is_refused(&Appender::open(&open(&disk))));
    acknowledge(&open(&disk), "c");
    assert_eq!(left(&disk), ["a", "b", "c"]);
}

#[test]
fn while_the_end_is_written_down_anew_after_a_roll() {
    let (disk, log) = new_log();
    acknowledge(&log, "a");
    Appender::open(&log).unwrap().seal().unwrap();
    write(&mut Appender::open(&log).unwrap(), "b");
    // `end` is as it was before the roll, after a power cut that took its later lines.
    let (old, other) = new_log();
    acknowledge(&other, "a");
    let end = Path::new("/log/end");
    let file = disk.open(end, Access::ReadWrite).unwrap();
    file.write_at(&[IoSlice::new(&old.read_file(end).unwrap())], 0).unwrap();
    fail_sync(&disk, 1);
    assert!(is_refused(&Appender::open(&open(&disk))));
    acknowledge(&open(&disk), "c");
    assert_eq!(left(&disk), ["a", "b", "c"]);
}

#[test]
fn of_a_segment_whose_torn_tail_was_cut() {
    let (disk, log) = new_log();
    acknowledge(&log, "a");
    write(&mut Appender::open(&log).unwrap(), "b");
    tear(&disk);
    // The first sync is that of the copy in quarantine.
    fail_sync(&disk, 2);
    assert!(is_refused(&Appender::open(&open(&disk))));
    acknowledge(&open(&disk), "c");
    assert_eq!(left(&disk), ["a", "b", "c"]);
}

#[test]
fn of_the_copy_in_quarantine() {
    let (disk, log) = new_log();
    acknowledge(&log, "a");
    tear(&disk);
    let torn = disk.read_file(Path::new(SEGMENT));
    fail_sync(&disk, 1);
    assert!(is_refused(&Appender::open(&open(&disk))));
    assert_eq!(disk.read_file(Path::new(SEGMENT)), torn);
    assert_eq!(disk.names(Path::new("/log/quarantine")), Some(Vec::new()));
    acknowledge(&open(&disk), "b");
    assert_eq!(left(&disk), ["a", "b"]);
}

#[test]
fn of_a_segment_that_is_to_be_sealed() {
    let (disk, log) = new_log();
    let mut writer = Appender::open(&log).unwrap();
    write(&mut writer, "a");
    fail_sync(&disk, 1);
    assert!(is_refused(&writer.seal()));
    assert!(matches!(writer.seal(), Err(Error::Failed)));
    let body = Body::plain(Layout::Lines, 1, b"b\n");
    assert!(matches!(writer.append(&body, NOW), Err(Error::Failed)));
    assert!(matches!(writer.sync(), Err(Error::Failed)), "the next sync proves nothing");
    acknowledge(&open(&disk), "c");
    assert_eq!(left(&disk), ["a", "c"]);
}

#[test]
fn of_the_name_of_a_new_segment() {
    let (disk, log) = new_log();
    acknowledge(&log, "a");
    disk.fail_at(Class::SyncDir, 1, Trouble::EIO, Lasts::Once);
    assert!(is_refused(&Appender::open(&log).unwrap().seal()));
    acknowledge(&open(&disk), "b");
    assert_eq!(left(&disk), ["a", "b"]);
}

#[test]
fn of_end_in_a_roll() {
    let (disk, log) = new_log();
    acknowledge(&log, "a");
    fail_sync(&disk, 2);
    assert!(is_refused(&Appender::open(&log).unwrap().seal()));
    acknowledge(&open(&disk), "b");
    assert_eq!(left(&disk), ["a", "b"]);
}

#[test]
fn of_records_that_another_writer_went_on_from() {
    let (disk, log) = new_log();
    let (mut one, mut two) = (Appender::open(&log).unwrap(), Appender::open(&log).unwrap());
    write(&mut one, "a");
    write(&mut two, "b");
    tear(&disk);
    fail_sync(&disk, 1);
    assert!(is_refused(&one.sync()));
    acknowledge(&open(&disk), "c");
    assert_eq!(left(&disk), ["a", "b", "c"]);
}

#[test]
fn h026_after_a_sync_that_failed_nothing_is_acknowledged() {
    for nth in 1..=10 {
        let (disk, log) = new_log();
        let mut writer = Appender::open(&log).unwrap();
        fail_sync(&disk, nth);
        let mut acknowledged = Vec::new();
        for number in 0..10 {
            let line = format!("{number}\n");
            let body = Body::plain(Layout::Lines, 1, line.as_bytes());
            let appended = writer.append(&body, NOW);
            if appended.and_then(|_| writer.sync()).is_ok() {
                acknowledged.push(number.to_string());
            }
        }
        assert!(acknowledged.len() < 10, "the sync {nth} failed");
        let kept = left(&disk);
        assert_eq!(kept[..acknowledged.len()], acknowledged, "the sync {nth} failed");
        // A new run starts cleanly, and what it acknowledges is there.
        acknowledge(&open(&disk), "new");
        let now = values(&open(&disk));
        assert_eq!((left(&disk), now.last().map(String::as_str)), (now.clone(), Some("new")));
    }
}

#[test]
fn a_commit_beyond_what_is_suspect_is_refused_until_a_writer_came() {
    let disk = killed_before_end();
    fail_sync(&disk, 1);
    let log = open(&disk);
    let refused = log.commit(&group(), Offset::new(2), NOW);
    assert!(is_refused(&refused), "{refused:?}");
    let refused = log.commit(&group(), Offset::new(2), NOW);
    assert!(matches!(refused, Err(Error::Suspect(_))), "{refused:?}");
    log.commit(&group(), Offset::new(1), NOW).unwrap();
    Appender::open(&log).unwrap();
    log.commit(&group(), Offset::new(2), NOW).unwrap();
    assert_eq!(left(&disk), ["a", "b"]);
}

#[test]
fn of_a_checkpoint() {
    let (disk, log) = new_log();
    ["a", "b", "c", "d"].iter().for_each(|value| acknowledge(&log, value));
    let commit = |next| log.commit(&group(), Offset::new(next), NOW);
    commit(1).unwrap();
    commit(2).unwrap();
    // The first sync is that of taking it, the second that of what was stored.
    for nth in [1, 2] {
        fail_sync(&disk, nth);
        assert!(is_refused(&commit(3)));
    }
    let begun = disk.steps();
    commit(4).unwrap();
    // The power goes in the midst of that write: of the line that it goes over nothing is left.
    let told = (begun..disk.steps()).map(|step| (step, disk.describe_step(step).unwrap()));
    let (step, told) = told.rev().find(|(_, told)| told.starts_with("write")).unwrap();
    let image = Arc::new(disk.crash_image(step, 0, CrashStyle::DropAll));
    let path = Path::new("/log/groups/g.checkpoint");
    let mut bytes = image.read_file(path).unwrap();
    let begin = if told.contains(" at 0 of ") { 0 } else { 4096 };
    bytes[begin..begin + 4096].fill(0);
    image.write_file(path, &bytes).unwrap();
    let position = open(&image).group_position(&group()).unwrap();
    assert_eq!(position, Some(Offset::new(3)), "{told}");
}

#[test]
fn of_the_log_start() {
    let (disk, log) = new_log();
    acknowledge(&log, "a");
    Appender::open(&log).unwrap().seal().unwrap();
    log.commit(&group(), Offset::new(1), NOW).unwrap();
    // A gc syncs the checkpoint, then the line of the log start that is to stay, then its own.
    fail_sync(&disk, 3);
    assert!(is_refused(&log.collect()));
    assert!(disk.read_file(Path::new(SEGMENT)).is_some());
    open(&disk).collect().unwrap();
    assert!(disk.read_file(Path::new(SEGMENT)).is_none());
    assert_eq!(left(&disk), [""; 0]);
    let image = Arc::new(disk.crash_image(usize::MAX, 0, CrashStyle::DropAll));
    assert_eq!(open(&image).start().unwrap(), Offset::new(1));
}

#[test]
fn of_a_groups_history() {
    let (disk, log) = new_log();
    ["a", "b", "c", "d"].iter().for_each(|value| acknowledge(&log, value));
    let seek =
        |log: &Log, next| log.seek(&group(), &SeekTarget::To(Start::At(Offset::new(next))), NOW);
    seek(&log, 1).unwrap();
    // The checkpoint is synced when it is taken, then the history.
    fail_sync(&disk, 2);
    assert!(is_refused(&seek(&log, 2)));
    seek(&open(&disk), 3).unwrap();
    let image = Arc::new(disk.crash_image(usize::MAX, 0, CrashStyle::DropAll));
    let undone = open(&image).seek(&group(), &SeekTarget::Undo, NOW).unwrap();
    assert_eq!((undone.from, undone.to), (Some(Offset::new(3)), Offset::new(1)));
}

/// The segments of a log, by name.
fn segments(disk: &SimulatedDisk) -> Vec<(String, Vec<u8>)> {
    let names = disk.names(Path::new(DIR)).unwrap();
    let segments = names.into_iter().filter(|name| name.ends_with(".log"));
    let bytes = |name: &String| disk.read_file(&Path::new(DIR).join(name)).unwrap();
    segments.map(|name| (name.clone(), bytes(&name))).collect()
}

#[test]
fn h029_the_old_is_never_gone_though_a_sync_of_the_new_failed() {
    let (disk, log) = new_log();
    for value in ["a", "b", "c"] {
        acknowledge(&log, value);
        Appender::open(&log).unwrap().seal().unwrap();
    }
    log.commit(&group(), Offset::new(2), NOW).unwrap();
    let change = |settings: &mut Settings| -> Result<(), Error> {
        settings.segment_size = Some(4096);
        Ok(())
    };
    let gc = |log: &mut Log| log.collect().map(drop);
    let config = |log: &mut Log| log.change_settings(change);
    for class in [Class::Sync, Class::SyncDir] {
        // The last sync of a gc is that of its deletions.
        each_sync_fails(&disk, class, gc, class == Class::SyncDir);
        each_sync_fails(&disk, class, config, false);
    }
}

fn each_sync_fails(
    disk: &SimulatedDisk,
    class: Class,
    work: impl Fn(&mut Log) -> Result<(), Error>,
    may_delete: bool,
) {
    for nth in 1.. {
        let disk = Arc::new(disk.snapshot());
        let before = segments(&disk);
        disk.fail_at(class, nth, Trouble::EIO, Lasts::Once);
        let done = work(&mut open(&disk));
        if disk.faults_met() == 0 {
            assert!(nth > 1 && done.is_ok(), "{done:?}");
            return;
        }
        assert!(is_refused(&done), "{class:?} {nth}: {done:?}");
        assert!(may_delete || segments(&disk) == before, "{class:?} {nth}");
        for style in [CrashStyle::DropAll, CrashStyle::KeepAll] {
            let log = open(&Arc::new(disk.crash_image(usize::MAX, 0, style)));
            let kept = values(&log);
            assert_eq!(kept, ["a", "b", "c"][3 - kept.len()..], "{class:?} {nth}");
            assert!([Some(512), Some(4096)].contains(&log.settings().segment_size));
            acknowledge(&log, "d");
        }
    }
}

/// Appends a record with a key to a segment of its own.
fn append_keyed(log: &Log, key: &[u8], value: &[u8]) {
    let mut bytes = Vec::new();
    let content = Content { key: Some(key), ..Content::of_value(value) };
    let layout = body::encode(&[content], &mut bytes);
    let mut writer = Appender::open(log).unwrap();
    writer.append(&Body::plain(layout, 1, &bytes), NOW).unwrap();
    writer.seal().unwrap();
}

/// The newest value of each key.
fn newest(log: &Log) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut reader = Reader::open(log, Offset::ZERO).unwrap();
    let mut newest = BTreeMap::new();
    while let Reading::Records(piece) = reader.read().unwrap() {
        for record in piece.records().unwrap() {
            let bytes = |bytes: Option<&[u8]>| bytes.unwrap_or_default().to_vec();
            newest.insert(bytes(record.content.key), bytes(record.content.value));
        }
    }
    newest
}

fn compact(log: &Log) -> Result<Compaction, Error> {
    let scope = Scope { even_unread: true, even_without_groups: false };
    log.compact(&CompactionTerms { scope, tombstones_before: NOW }, &mut |_| ())
}

#[test]
fn h029_the_old_segment_stays_though_a_sync_of_the_compacted_one_failed() {
    let (disk, log) = new_log();
    for (key, value) in [(b"a", b"1"), (b"a", b"2"), (b"b", b"3")] {
        append_keyed(&log, key, value);
    }
    let (before, wanted) = (segments(&disk), newest(&log));
    for class in [Class::Sync, Class::SyncDir] {
        for nth in 1.. {
            let disk = Arc::new(disk.snapshot());
            disk.fail_at(class, nth, Trouble::EIO, Lasts::Once);
            let done = compact(&open(&disk));
            if disk.faults_met() == 0 {
                assert!(nth > 1 && done.is_ok(), "{done:?}");
                break;
            }
            assert!(is_refused(&done), "{class:?} {nth}: {done:?}");
            assert!(segments(&disk) == before, "{class:?} {nth}");
            let cut = |style| Arc::new(disk.crash_image(usize::MAX, 0, style));
            for disk in [cut(CrashStyle::DropAll), cut(CrashStyle::KeepAll), disk] {
                assert_eq!(newest(&open(&disk)), wanted, "{class:?} {nth}");
                let removed = compact(&open(&disk)).unwrap().fates[0].removed();
                assert_eq!((removed, newest(&open(&disk))), (1, wanted.clone()));
            }
        }
    }
}

#[test]
fn h029_the_old_segment_stays_though_a_sync_of_the_mended_one_failed() {
    let (disk, log) = new_log();
    for value in ["a", "b", "c"] {
        acknowledge(&log, value);
        Appender::open(&log).unwrap().seal().unwrap();
    }
    let path = Path::new(SEGMENT);
    let mut bytes = disk.read_file(path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    disk.write_file(path, &bytes).unwrap();
    let before = segments(&disk);
    for class in [Class::Sync, Class::SyncDir] {
        for nth in 1.. {
            let disk = Arc::new(disk.snapshot());
            disk.fail_at(class, nth, Trouble::EIO, Lasts::Once);
            let done = open(&disk).repair(NOW, &mut |_| ());
            if disk.faults_met() == 0 {
                assert!(nth > 1 && done.is_ok(), "{done:?}");
                break;
            }
            assert!(done.is_err(), "{class:?} {nth}");
            let kept = segments(&disk);
            let is_mended = kept[0].1.len() == 64;
            assert!(is_mended || kept == before, "{class:?} {nth}");
            open(&disk).repair(NOW, &mut |_| ()).unwrap();
            let names = disk.names(Path::new("/log/quarantine")).unwrap();
            assert!(names.iter().any(|name| name.ends_with(".damaged")), "{names:?}");
        }
    }
}

#[test]
fn a_writer_tells_once_of_records_that_a_power_cut_took() {
    let (disk, log) = new_log();
    acknowledge(&log, "a");
    write(&mut Appender::open(&log).unwrap(), "b");
    // `end` was kept, the record was not.
    let kept = disk.read_file(Path::new("/log/end")).unwrap();
    let image = Arc::new(disk.crash_image(usize::MAX, 0, CrashStyle::DropAll));
    image.write_file(Path::new("/log/end"), &kept).unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    for times in [1, 1] {
        let notes = Arc::clone(&told);
        let home = home(&image, move |note| notes.lock().unwrap().push(note.clone()));
        Appender::open(&Log::open(&home).unwrap()).unwrap();
        let lost =
            |note: &&Note| matches!(note, Note::LostTail { written, .. } if written.get() == 2);
        assert_eq!(told.lock().unwrap().iter().filter(lost).count(), times);
    }
}
