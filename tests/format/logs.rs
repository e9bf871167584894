//! The golden logs, read and written: by the core, by the binary, by reader.py.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tapelog::disk::Disk;
use tapelog::disk::simulated::SimulatedDisk;
use tapelog::format::codec::inflate;
use tapelog::format::file_name;
use tapelog::log::{Home, Log, Note, Reader, Reading};
use tapelog::model::{Offset, Position};
use tapelog::segment::{SegmentReader, Step};

use crate::golden::{self, Given, Golden, ID};
use crate::python;
use crate::record_text::json_line;
use crate::sandbox::{
    Expect, Sandbox, append_bytes, copy_tree, cut, flip, foreground, len, same_bytes, status,
};

const REFRESH: &str =
    "if the format is to change, TAPELOG_UPDATE=1 cargo test --locked --test format";

/// Writes the golden logs anew if that is asked for, once for all tests.
fn golden_logs() -> Vec<Golden> {
    static UPDATE: std::sync::Once = std::sync::Once::new();
    UPDATE.call_once(|| {
        if std::env::var_os("TAPELOG_UPDATE").is_some_and(|value| value == "1") {
            update();
        }
    });
    golden::all()
}

fn update() {
    fs::remove_dir_all(golden::folder()).unwrap();
    for log in golden::all() {
        golden::put(&log.files(), &log.dir());
        fs::write(log.dir().with_extension("jsonl"), given_text(&log)).unwrap();
    }
}

fn given_text(log: &Golden) -> String {
    log.given().iter().map(|(offset, time, record)| json_line(*offset, *time, record)).collect()
}

/// What the core reads in a directory, as JSON lines.
fn read_by_the_core(dir: &Path) -> String {
    let disk = SimulatedDisk::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let inside = Path::new("/log").join(path.file_name().unwrap());
        disk.write_file(&inside, &fs::read(path).unwrap()).unwrap();
    }
    let told = |note: &Note| assert!(matches!(note, Note::Gap { .. }), "{note}");
    let log = Log::open(&Home::new(Arc::new(disk), "/log", told)).unwrap();
    let mut reader = Reader::open(&log, Offset::ZERO).unwrap();
    let mut text = String::new();
    while let Reading::Records(piece) = reader.read().unwrap() {
        for record in piece.records().unwrap() {
            let bytes = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
            let content = record.content;
            let given = Given {
                key: bytes(content.key),
                value: bytes(content.value),
                headers: content
                    .headers
                    .map(|(name, value)| (name.to_vec(), bytes(value)))
                    .collect(),
                own_time: content.own_time.map(|time| time.as_millis()),
            };
            text += &json_line(record.offset.get(), record.append_time.as_millis(), &given);
        }
    }
    text
}

#[test]
fn every_golden_log_gives_the_records_that_it_was_made_from() {
    for log in golden_logs() {
        same_bytes(given_text(&log).as_bytes(), log.expected().as_bytes(), log.name);
        let read = read_by_the_core(&log.dir());
        same_bytes(read.as_bytes(), log.expected().as_bytes(), log.name);
    }
}

#[test]
fn what_is_written_today_is_what_was_committed() {
    for log in golden_logs() {
        let files = log.files();
        let mut committed: Vec<std::ffi::OsString> =
            fs::read_dir(log.dir()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        committed.sort();
        assert!(
            committed.iter().eq(files.keys().map(AsRef::<std::ffi::OsStr>::as_ref)),
            "{}: {committed:?}; {REFRESH}",
            log.name
        );
        for (name, bytes) in files {
            let golden = fs::read(log.dir().join(&name)).unwrap();
            let what = format!("{} of {}", name, log.name);
            if bytes == golden {
                continue;
            }
            // Another zstd may compress otherwise: then only what it compressed must be the same.
            assert!(golden::has_zstd(&log), "{what} has changed; {REFRESH}");
            if let Some(base) = file_name::parse_segment(name.as_ref()) {
                eprintln!("{what}: compared after inflation, as this zstd compresses otherwise");
                assert_eq!(inflated(base, &bytes), inflated(base, &golden), "{what}; {REFRESH}");
            }
        }
    }
}

/// Every batch of a segment without what a codec may do otherwise.
fn inflated(base: Offset, segment: &[u8]) -> Vec<(String, Vec<u8>)> {
    let disk = SimulatedDisk::new();
    disk.write_file(Path::new("/segment"), segment).unwrap();
    let file = disk.open(Path::new("/segment"), tapelog::disk::Access::Read).unwrap();
    let mut reader = SegmentReader::new(file, ID, base, Position::ZERO, base);
    let mut batches = Vec::new();
    while let Step::Batch(batch) = reader.step().unwrap() {
        let (mut header, mut body) = (batch.header, Vec::new());
        inflate(header.codec, batch.body, header.raw as usize, &mut body).unwrap();
        (header.stored, header.body_crc) = (0, 0);
        batches.push((format!("{header:?}"), body));
    }
    batches
}

#[test]
fn the_golden_logs_are_small_and_one_has_two_segments() {
    for log in golden_logs() {
        let sandbox = Sandbox::new();
        copy_tree(&log.dir(), sandbox.log());
        let bytes: u64 =
            sandbox.segments().iter().map(|file| fs::metadata(file).unwrap().len()).sum();
        assert!(bytes < 64 << 10, "{} has {bytes} bytes", log.name);
        let segments = if log.name == "two-segments" { 2 } else { 1 };
        assert_eq!(sandbox.segments().len(), segments, "{}", log.name);
    }
}

#[test]
fn the_binary_prints_every_golden_log() {
    for log in golden_logs() {
        let sandbox = Sandbox::new();
        copy_tree(&log.dir(), sandbox.log());
        let outcome = sandbox.tapelog("consume -J").outcome().succeeded().printed(log.expected());
        match log.name == "gaps" {
            true => outcome.noted(&["offsets 6 to 7 are missing"]),
            false => outcome.silent(),
        };
    }
}

#[test]
fn a_reader_written_from_the_manual_page_reads_every_golden_log() {
    let Some(reader) = python::reader("reader.py on the golden logs") else { return };
    for log in golden_logs() {
        let outcome = foreground(reader.on(&log.dir())).outcome();
        if !python::skipped(log.name, &outcome) {
            outcome.succeeded().silent().printed(log.expected());
        }
    }
}

/// A copy of a golden log whose newest segment was harmed.
fn harmed(golden: &Golden, harm: impl FnOnce(&Path)) -> Sandbox {
    let sandbox = Sandbox::new();
    copy_tree(&golden.dir(), sandbox.log());
    harm(&sandbox.active());
    sandbox
}

#[test]
fn a_reader_written_from_the_manual_page_tells_torn_from_damaged() {
    let Some(reader) = python::reader("reader.py on harmed logs") else { return };
    let logs = golden_logs();
    let lines = logs.iter().find(|log| log.name == "lines").unwrap();
    let run = |sandbox: &Sandbox| foreground(reader.on(sandbox.log())).outcome();
    let torn = harmed(lines, |segment| append_bytes(segment, b"\xf5tlb half a batch"));
    run(&torn).succeeded().silent().printed(lines.expected());
    let flipped = harmed(lines, |segment| flip(segment, len(segment) - 2));
    let expected = lines.expected();
    let all_but_one = &expected[..=expected.trim_end().rfind('\n').unwrap()];
    let outcome = run(&flipped).ended(status::DAMAGE).printed(all_but_one);
    assert!(outcome.stderr.contains("offset 8"), "{outcome}");
    let short = harmed(lines, |segment| cut(segment, 1));
    run(&short).ended(status::DAMAGE).printed(all_but_one);
    // The same bytes are a torn tail where nothing says that they were synced.
    fs::remove_file(short.log().join("end")).unwrap();
    run(&short).succeeded().silent().printed(all_but_one);
}
