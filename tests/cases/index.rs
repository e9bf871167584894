//! INDEX: side files that are missing, garbage, old, unreadable or lying. They hold
//! nothing that the segments do not, so that every answer stays the same. What is found
//! by key is compared with a plain list in `src/log/keys/tests.rs`.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tapelog::format::index_entry::{ENTRY_LEN, IndexEntry, IndexOf};
use tapelog::model::Offset;

use crate::sandbox::{Expect, Outcome, Random, Sandbox, foreground, status, tree, want};

const BEFORE: &str = "2026-01-01T12:00:00Z";
const AFTER: &str = "2026-01-01T12:00:01Z";

/// Three segments of some 1400 records, one a batch; offset 2500 is the first of the
/// second moment. Each segment is long enough for an index.
fn three_segments() -> Sandbox {
    let sandbox = Sandbox::with_config("segment-size=100K");
    sandbox.produce(&format!("--now {BEFORE} --batch-records 1"), want(1, 2500));
    sandbox.produce(&format!("--now {AFTER} --batch-records 1"), want(2501, 4000));
    assert_eq!(sandbox.bases(), [0, 1402, 2804]);
    sandbox
}

/// The side files: of all segments, of a sealed one, of the active one.
const SIDES: [&str; 3] =
    ["segments.index", "00000000000000001402.index", "00000000000000002804.index"];

/// What is asked for, in the sealed segment, by time, and in the active one.
const QUESTIONS: [(&str, u64); 3] = [
    ("consume -o 2500 -n 1", 2501),
    ("consume -o @2026-01-01T12:00:01Z -n 1", 2501),
    ("consume -o 3900 -n 1", 3901),
];

/// The log in its own copy; its table is good there too.
fn settled_copy(of: &Sandbox) -> Sandbox {
    let copy = of.copy();
    copy.tapelog("segments").outcome().succeeded();
    copy
}

/// Every answer is right, whatever is noted the first time; the second time is silent.
fn answers_as_ever(sandbox: &Sandbox, what: &str) {
    for (question, number) in QUESTIONS {
        let outcome = sandbox.tapelog(question).outcome().succeeded();
        assert!(outcome.errors().is_empty(), "{what}: {outcome}");
        assert!(outcome.notes().iter().all(|note| note.contains(".index")), "{what}: {outcome}");
        outcome.printed(want(number, number));
    }
    for (question, number) in QUESTIONS {
        sandbox.tapelog(question).prints(want(number, number));
    }
}

/// What may have become of a side file: its bytes, or `None` if it is gone.
fn harms(good: &[u8], foreign: &[u8]) -> Vec<(&'static str, Option<Vec<u8>>)> {
    vec![
        ("deleted", None),
        ("empty", Some(Vec::new())),
        ("one byte", Some(good[..1].to_vec())),
        ("one byte short", Some(good[..good.len() - 1].to_vec())),
        ("random", Some(Random(16).bytes(4096))),
        ("all 0xFF", Some(vec![0xFF; good.len()])),
        ("all zeros", Some(vec![0; good.len()])),
        ("another log's", Some(foreign.to_vec())),
    ]
}

#[test]
fn h016_side_files_may_be_anything_and_every_answer_stays_the_same() {
    let (original, other) = (three_segments(), three_segments());
    for side in SIDES {
        let read = |sandbox: &Sandbox| fs::read(sandbox.log().join(side)).unwrap();
        for (harm, bytes) in harms(&read(&original), &read(&other)) {
            let sandbox = settled_copy(&original);
            let file = sandbox.log().join(side);
            match &bytes {
                Some(bytes) => fs::write(&file, bytes).unwrap(),
                None => fs::remove_file(&file).unwrap(),
            }
            answers_as_ever(&sandbox, &format!("{side} {harm}"));
            if side != SIDES[0] {
                assert!(read(&sandbox) == read(&original), "{side} {harm}: made anew as it was");
            }
            assert_eq!(sandbox.append("x"), 4000, "{side} {harm}");
        }
    }
}

#[test]
fn h016_all_side_files_may_be_gone_at_once() {
    let sandbox = three_segments();
    sandbox.delete_indexes();
    answers_as_ever(&sandbox, "all deleted");
    sandbox.delete_indexes();
    assert_eq!(sandbox.append("x"), 4000);
    sandbox.all().prints(want(1, 4000) + "x\n");
}

#[test]
fn h017_old_side_files_put_back_are_not_trusted_over_the_data() {
    let sandbox = Sandbox::with_config("segment-size=100K");
    sandbox.mk1(1600);
    let old = tree(sandbox.log());
    sandbox.produce("--batch-records 1", want(1601, 4000));
    let is_side = |path: &&std::path::PathBuf| path.extension().is_some_and(|end| end == "index");
    let sides: Vec<_> = old.keys().filter(is_side).collect();
    assert_eq!(sides.len(), 3, "the table, and an index for each segment");
    for path in sides {
        fs::write(path, old[path].as_ref().unwrap()).unwrap();
    }
    for number in [1500, 2901, 3901] {
        let line = format!("consume -o {} -n 1", number - 1);
        sandbox.tapelog(&line).outcome().succeeded().printed(want(number, number));
    }
    assert_eq!((sandbox.bases(), sandbox.end()), (vec![0, 1402, 2804], 4000));
    assert_eq!(sandbox.append("x"), 4000);
    sandbox.all().prints(want(1, 4000) + "x\n");
}

#[test]
fn h018_an_index_that_may_not_be_read_is_no_bad_one_and_stays() {
    let sandbox = three_segments();
    for (side, (question, number)) in SIDES.into_iter().zip(QUESTIONS) {
        let file = sandbox.log().join(side);
        let mode = |mode| fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        let before = fs::read(&file).unwrap();
        mode(0o000);
        let mut read = foreground(sandbox.as_nobody(question));
        read.notes(want(number, number), &[side, "ermission"]);
        mode(0o644);
        assert!(fs::read(&file).unwrap() == before, "{side}");
        foreground(sandbox.as_nobody(question)).prints(want(number, number));
    }
}

/// The id of a log.
fn id(log: &Path) -> tapelog::model::LogId {
    let file: serde_json::Value =
        serde_json::from_slice(&fs::read(log.join("log.json")).unwrap()).unwrap();
    file["id"].as_str().unwrap().parse().unwrap()
}

#[test]
fn h019_an_index_that_points_at_another_good_batch_is_not_believed() {
    let sandbox = three_segments();
    let of = IndexOf { log: id(sandbox.log()), segment: Offset::new(1402) };
    let file = sandbox.log().join(SIDES[1]);
    let bytes: [u8; ENTRY_LEN] = fs::read(&file).unwrap()[..ENTRY_LEN].try_into().unwrap();
    let good = IndexEntry::decode(&bytes, of, 0).unwrap();
    let batches_further = |count: u64| good.position.get() + count * 73;
    for lie in [
        // At the place of another one, and the other way round.
        IndexEntry { position: tapelog::model::Position::new(batches_further(200)), ..good },
        IndexEntry { offset: Offset::new(good.offset.get() + 200), ..good },
        // Earlier than it is.
        IndexEntry { offset: Offset::new(good.offset.get() - 200), ..good },
    ] {
        fs::write(&file, lie.encode(of, 0)).unwrap();
        for number in [good.offset.get() - 100, good.offset.get() + 10, good.offset.get() + 300] {
            let line = format!("consume -o {} -n 1", number - 1);
            sandbox.tapelog(&line).outcome().succeeded().printed(want(number, number));
        }
    }
    sandbox.all().prints(want(1, 4000));
}

#[test]
fn h020_an_index_written_in_many_runs_is_the_one_made_from_scratch() {
    let sandbox = Sandbox::new();
    for run in 0..10 {
        sandbox.produce("--batch-records 1", want(run * 400 + 1, run * 400 + 400));
    }
    let file = sandbox.log().join("00000000000000000000.index");
    let grown = fs::read(&file).unwrap();
    assert_eq!(grown.len() / ENTRY_LEN, 4, "an entry each 64 KiB of 292000 bytes");
    fs::remove_file(&file).unwrap();
    let outcome: Outcome = sandbox.tapelog("consume -o 3900 -n 1").outcome();
    outcome.ended(status::DONE).printed(want(3901, 3901));
    assert!(fs::read(&file).unwrap() == grown);
}

/// Some 2 MiB of keyed records: more than may go without a key table.
fn keyed() -> Sandbox {
    let sandbox = Sandbox::new();
    let line = |number: u64| format!("k{number}:{number:090}\n");
    sandbox.produce("-K :", (1..=20_000).map(line).collect::<String>());
    sandbox
}

/// The key tables of a log.
fn key_tables(sandbox: &Sandbox) -> Vec<PathBuf> {
    let files = tree(sandbox.log()).into_keys();
    files.filter(|path| path.extension().is_some_and(|end| end == "table")).collect()
}

#[test]
fn h016_key_tables_may_be_anything_and_the_log_goes_on() {
    let (original, other) = (keyed(), keyed());
    let [table, foreign] = [&original, &other].map(|sandbox| key_tables(sandbox)[0].clone());
    let name = table.file_name().unwrap().to_str().unwrap();
    let good = fs::read(&table).unwrap();
    for (harm, bytes) in harms(&good, &fs::read(&foreign).unwrap()) {
        let sandbox = original.copy();
        let file = sandbox.log().join("keys").join(name);
        match &bytes {
            Some(bytes) => fs::write(&file, bytes).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
        let found = sandbox.tapelog("verify").outcome().succeeded().text();
        assert_eq!(found.contains(name), bytes.is_some(), "{harm}: {found}");
        sandbox.tapelog("consume -o 19999 -n 1").prints(format!("{:090}\n", 20_000));
        sandbox.tapelog("produce -k another --receipt").write_stdin("x\n").prints("20000\n");
        sandbox.tapelog("verify --repair").outcome().succeeded();
        let after = sandbox.tapelog("verify").outcome().succeeded().text();
        assert!(!after.contains(".table"), "{harm}: {after}");
    }
}

#[test]
fn key_tables_are_made_for_keys_alone() {
    let sandbox = keyed();
    assert_eq!(key_tables(&sandbox).len(), 1);
    let bytes = fs::metadata(&key_tables(&sandbox)[0]).unwrap().len();
    assert!(bytes <= 20_000 * 24 + 4096, "{bytes} bytes for 20000 keys");
    let plain = Sandbox::new();
    plain.produce("", want(1, 200_000));
    assert!(!plain.log().join("keys").exists());
}
