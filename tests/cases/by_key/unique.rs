//! KEY, H085 to H088: `produce --unique` stores each key once, whoever sends it, however
//! often, whatever happens in between.

use std::collections::BTreeMap;
use std::fs::File;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::sandbox::{Expect, Outcome, Random, Sandbox, offsets, rounds, status, tree};

const SOON: Duration = Duration::from_secs(60);

/// What `produce --unique -K :` with these options does with `input`.
fn unique(sandbox: &Sandbox, options: &str, input: impl Into<Vec<u8>>) -> Outcome {
    let mut produce = sandbox.tapelog(&format!("produce --unique -K : {options}"));
    produce.write_stdin(input.into()).outcome()
}

/// `key:value` of each record, a line each.
fn pairs(sandbox: &Sandbox) -> String {
    sandbox.tapelog("consume -K :").text()
}

#[test]
fn h085_ids_are_told_apart_by_every_byte_and_an_empty_one_is_refused() {
    let sandbox = Sandbox::new();
    let input = "1:a\nx1:b\n1 :c\n01:d\n1\0:e\n:f\n2:g\n";
    let words = ["5 records stored", "record 6", "no key", "--unique"];
    unique(&sandbox, "", input).ended(status::USAGE).said(&words).printed("");
    assert_eq!(pairs(&sandbox), "1:a\nx1:b\n1 :c\n01:d\n1\0:e\n");
    let again = unique(&sandbox, "", input).ended(status::USAGE);
    assert_eq!((again.notes().len(), again.errors().len()), (1, 1), "{again}");
    assert_eq!(sandbox.end(), 5);
}

#[test]
fn h085_a_record_without_a_key_is_refused_and_so_is_a_command_line_without_keys() {
    let sandbox = Sandbox::new();
    for options in ["", "-k", "-J -k"] {
        let mut produce = sandbox.tapelog(&format!("produce --unique {options}"));
        if options.ends_with("-k") {
            produce.arg("");
        }
        produce.write_stdin("a\n").fails(status::USAGE, &["--unique", "-k, -K or -J"]);
    }
    assert!(!sandbox.log().exists());
    unique(&sandbox, "--no-key keep", "a:1\nb\nc:2\n").ended(status::USAGE).said(&["record 2"]);
    let input = "{\"key\":\"b\",\"payload\":\"1\"}\n{\"payload\":\"2\"}\n";
    let mut produce = sandbox.tapelog("produce --unique -J");
    produce.write_stdin(input).fails(status::USAGE, &["1 record stored", "record 2"]);
    assert_eq!(pairs(&sandbox), "a:1\nb:1\n");
}

#[test]
fn h086_an_id_is_known_to_the_next_process_and_without_the_index() {
    let sandbox = Sandbox::new();
    let id = |sandbox: &Sandbox| {
        sandbox.tapelog("produce --unique -k A").write_stdin("x\n").outcome().succeeded()
    };
    id(&sandbox).silent();
    for _ in 0..2 {
        id(&sandbox).noted(&["1 record was there already, at offset 0"]).printed("");
        sandbox.delete_indexes();
    }
    sandbox.all().prints("x\n");
}

#[test]
fn h087_the_same_id_with_other_content_is_refused_and_said() {
    let sandbox = Sandbox::new();
    unique(&sandbox, "", "A:x\n").succeeded().silent();
    let words = ["key A exists with other content, at offset 0", "not stored", "0 records stored"];
    unique(&sandbox, "", "A:y\n").ended(status::PARTIAL).said(&words).printed("");
    sandbox.all().prints("x\n");
    // What else there is is stored, and what follows too.
    let outcome = unique(&sandbox, "--receipt", "B:1\nA:y\nC:2\nA:x\nA:\nB:1\n");
    let words =
        ["2 records were there already, the first at offset 0", "key A ", "and so is 1 more"];
    outcome.ended(status::PARTIAL).with_words(&words).printed("1\n2\n0\n1\n");
    assert_eq!(pairs(&sandbox), "A:x\nB:1\nC:2\n");
}

#[test]
fn h087_content_is_all_that_a_producer_gives_and_any_version_kept_counts() {
    let sandbox = Sandbox::new();
    sandbox.produce("-K : -H h=1", "a:old\n");
    sandbox.produce("-K :", "a:new\n");
    sandbox.produce("-K : -Z", "gone:\n");
    let ends = |options: &str, input: &str, end: i32| {
        unique(&sandbox, options, input).ended(end);
    };
    ends("-H h=1", "a:old\n", status::DONE);
    ends("", "a:old\n", status::PARTIAL);
    ends("", "a:new\n", status::DONE);
    ends("-H h=1", "a:new\n", status::PARTIAL);
    ends("-Z", "gone:\n", status::DONE);
    ends("", "gone:\n", status::PARTIAL);
    let timed = |ts: u64| json!({"key": "t", "payload": "v", "ts": ts}).to_string() + "\n";
    for (ts, end) in [(5, status::DONE), (5, status::DONE), (6, status::PARTIAL)] {
        let mut produce = sandbox.tapelog("produce --unique -J");
        produce.write_stdin(timed(ts)).outcome().ended(end);
    }
    assert_eq!(sandbox.end(), 4);
}

#[test]
fn what_a_key_has_is_forgotten_once_gc_deletes_it() {
    let sandbox = Sandbox::with_config("segment-size=512");
    let input: String = (0..100).map(|n| format!("k{n}:value {n}\n")).collect();
    sandbox.produce("-K : --batch-records 5", input);
    sandbox.commit("g", 60);
    sandbox.tapelog("gc").outcome().succeeded();
    unique(&sandbox, "--receipt", "k0:value 0\nk99:value 99\nk1:other\n")
        .succeeded()
        .printed("100\n99\n101\n");
}

#[test]
fn a_batch_tells_what_is_stored_once_whatever_else_is_asked_for() {
    let input = "a:1\nb:2\na:1\nc:3\nb:2\n";
    for options in ["", "-z zstd", "--sync each", "--sync none", "--batch-records 1", "-H n=v"] {
        let sandbox = Sandbox::new();
        let printed = unique(&sandbox, &format!("--receipt {options}"), input).succeeded();
        assert_eq!(offsets(&printed.text()), [0, 1, 0, 2, 1], "{options}");
        let input = format!("{input}d:4\n");
        unique(&sandbox, &format!("-T {options}"), input).succeeded().printed("4\n");
        assert_eq!(pairs(&sandbox), "a:1\nb:2\nc:3\nd:4\n", "{options}");
    }
}

#[test]
fn an_expected_end_is_looked_at_though_all_is_there() {
    let sandbox = Sandbox::new();
    unique(&sandbox, "--expect-end 0", "a:1\nb:2\n").succeeded().silent();
    let before = tree(sandbox.log());
    unique(&sandbox, "--expect-end 1", "a:1\n").ended(status::RANGE).said(&["2", "1"]);
    unique(&sandbox, "--expect-end 1", "c:1\n").ended(status::RANGE).said(&["2", "1"]);
    unique(&sandbox, "--expect-end 2", "a:1\n").succeeded();
    assert!(tree(sandbox.log()) == before, "nothing was written");
    let many: String = (0..50_000).map(|n| format!("k{n}:v\n")).collect();
    unique(&sandbox, "--expect-end 2", many).succeeded();
    assert_eq!(sandbox.end(), 50_002);
}

#[test]
fn a_log_that_is_full_still_knows_what_it_has() {
    let sandbox = Sandbox::with_config("max-log-size=1K");
    unique(&sandbox, "", format!("a:{}\n", "x".repeat(700))).succeeded();
    unique(&sandbox, "", format!("b:{}\n", "x".repeat(700))).ended(status::FAILED).said(&["full"]);
    sandbox.config("max-log-size=512");
    unique(&sandbox, "", format!("a:{}\n", "x".repeat(700))).succeeded().noted(&["offset 0"]);
}

#[test]
fn what_another_producer_left_unsynced_is_safe_once_it_is_said_to_be_there() {
    for options in ["", "--sync each", "--receipt"] {
        let sandbox = Sandbox::new();
        sandbox.produce("--sync none -K :", "a:1\nb:2\n");
        let durable = || {
            let summary = sandbox.tapelog("segments --summary -J").json();
            summary[0]["durable"].as_u64().unwrap()
        };
        assert_eq!(durable(), 0);
        unique(&sandbox, options, "b:2\n").succeeded();
        assert_eq!(durable(), 2, "{options}");
    }
}

/// One id a line, all of them at most once in the log.
fn ids(round: u64) -> String {
    (0..1000).map(|n| format!("{round}-{n}:value {n}\n")).collect()
}

/// Every id of the rounds so far is there once.
fn each_once(sandbox: &Sandbox, count: u64) {
    let mut seen = BTreeMap::new();
    for key in sandbox.tapelog("consume -F %k\\n").outcome().succeeded().text().lines() {
        *seen.entry(key.to_owned()).or_insert(0) += 1;
    }
    let twice: Vec<_> = seen.iter().filter(|(_, count)| **count > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    assert_eq!(seen.len() as u64, count * 1000);
}

#[test]
fn h088_a_killed_producer_sends_all_of_it_again_and_each_id_is_there_once() {
    let sandbox = Sandbox::with_config("segment-size=64K");
    let mut random = Random(88);
    let mut cut_off = 0;
    for round in 0..rounds(30, 100) {
        let input = sandbox.file("input", ids(round));
        let line = "produce --unique -K : --batch-records 7 -q --receipt";
        let mut doomed = sandbox.command(line);
        doomed.stdin(File::open(&input).unwrap()).stdout(Stdio::piped());
        let mut doomed = doomed.spawn().unwrap();
        thread::sleep(Duration::from_micros(random.between(500, 20_000)));
        doomed.kill().unwrap();
        doomed.wait().unwrap();
        if random.between(0, 3) == 0 {
            sandbox.delete_indexes();
        }
        let there = sandbox.tapelog("consume -F %k\\n").outcome().text();
        let here = there.lines().filter(|key| key.starts_with(&format!("{round}-"))).count();
        cut_off += u64::from((1..1000).contains(&here));
        let printed = unique(&sandbox, "-q --receipt", ids(round)).succeeded().text();
        assert_eq!(printed.lines().count(), 1000);
        each_once(&sandbox, round + 1);
    }
    assert!(cut_off > 0, "none was cut off in the midst");
}

#[test]
fn h088_two_producers_with_the_same_ids_at_once_store_each_once() {
    let sandbox = Sandbox::with_config("segment-size=64K");
    for round in 0..rounds(20, 100) {
        let input = sandbox.file("input", ids(round));
        let start = |number: u64| {
            let batch = 3 + 20 * number;
            let line = format!("produce --unique -K : --batch-records {batch} --receipt -q");
            let mut command = sandbox.command(&line);
            command.stdin(File::open(&input).unwrap()).stdout(Stdio::piped());
            command.spawn().unwrap()
        };
        let producers: Vec<_> = (0..2 + round % 3).map(start).collect();
        let ends = producers.into_iter().map(|producer| producer.wait_with_output().unwrap());
        let receipts: Vec<_> = ends
            .map(|end| {
                assert!(end.status.success(), "{end:?}");
                offsets(std::str::from_utf8(&end.stdout).unwrap())
            })
            .collect();
        assert!(receipts.iter().all(|printed| *printed == receipts[0]), "they agree on where");
        each_once(&sandbox, round + 1);
    }
}

#[test]
fn h088_a_producer_that_waits_for_input_sees_what_others_stored_meanwhile() {
    let sandbox = Sandbox::new();
    let line = "produce --unique -K : --receipt --sync each";
    let mut waiting = sandbox.spawn("waiting", sandbox.command(line));
    waiting.feed("a:1\n");
    waiting.prints_within(SOON, "0\n");
    unique(&sandbox, "", "b:2\nc:3\n").succeeded().silent();
    waiting.feed("c:3\nd:4\n");
    waiting.prints_within(SOON, "0\n2\n3\n");
    waiting.feed("b:other\n");
    waiting.close_stdin();
    assert_eq!(waiting.ends_within(SOON).code(), Some(status::PARTIAL));
    assert_eq!(pairs(&sandbox), "a:1\nb:2\nc:3\nd:4\n");
}

#[test]
fn what_it_stores_gets_key_tables() {
    for compression in ["none", "lz4"] {
        let sandbox = Sandbox::new();
        let value = |n: u128| n.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        let line = |n| format!("k{n}:{:032x}\n", value(n));
        let input = (0..100_000).map(line).collect::<String>();
        unique(&sandbox, &format!("-z {compression}"), input).succeeded().silent();
        let files = tree(sandbox.log()).into_keys();
        let tables = files.filter(|path| path.extension().is_some_and(|end| end == "table"));
        assert!(tables.count() > 0, "{compression}");
    }
}
