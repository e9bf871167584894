//! KEY: compaction. What it keeps, what it leaves alone, and who goes on meanwhile.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use serde_json::{Value, json};

use crate::sandbox::{
    Background, Expect, Piped, Random, Sandbox, flip, len, numbers, status, tree, wait_until,
};

const SOON: Duration = Duration::from_secs(5);
const LATE: Duration = Duration::from_secs(60);

/// What `gc` says that it does.
fn gc(sandbox: &Sandbox, options: &str) -> Vec<Value> {
    sandbox.tapelog(&format!("gc -J {options}")).json()
}

fn records(sandbox: &Sandbox) -> Vec<Value> {
    sandbox.tapelog("consume -J").json()
}

/// The newest payload of each key.
fn replayed(records: &[Value]) -> BTreeMap<String, Value> {
    let keyed = records.iter().filter(|record| !record["key"].is_null());
    keyed.map(|record| (record["key"].to_string(), record["payload"].clone())).collect()
}

/// So many versions of each of the keys k0, k1, …, five records a batch.
fn versions(sandbox: &Sandbox, keys: u64, versions: u64) {
    let lines = |version| (0..keys).map(move |key| format!("k{key}:{version}\n"));
    let input: String = (0..versions).flat_map(lines).collect();
    sandbox.produce("-K : --batch-records 5", input);
}

/// Three keys, thirty versions of each, then a segment that nobody appends to.
fn sealed_versions() -> Sandbox {
    let sandbox = Sandbox::with_config("segment-size=600");
    versions(&sandbox, 3, 30);
    sandbox.tapelog("gc --roll").outcome().succeeded();
    sandbox
}

#[test]
fn h089_the_newest_of_each_key_stays_and_all_without_one() {
    let sandbox = Sandbox::with_config("segment-size=1K");
    let mut random = Random(89);
    let mut input = String::new();
    for n in 0..1100 {
        match random.between(0, 10) {
            0 => input.push_str(&format!("{{\"payload\":\"no key {n}\"}}\n")),
            key => input.push_str(&format!("{{\"key\":\"{}\",\"payload\":\"{n}\"}}\n", key - 1)),
        }
        if n % 100 == 50 {
            input.push_str(&format!("{{\"key\":\"\",\"payload\":\"empty {n}\"}}\n"));
        }
    }
    sandbox.produce("-J --batch-records 7", input);
    assert!(sandbox.bases().len() >= 20, "{:?}", sandbox.bases());
    let (before, active) = (records(&sandbox), std::fs::read(sandbox.active()).unwrap());
    let plan = gc(&sandbox, "--compact --even-unread");
    assert_eq!(numbers(&plan, "first"), sandbox.bases());
    let after = records(&sandbox);
    assert_eq!(replayed(&after), replayed(&before));
    assert!(replayed(&after).contains_key("\"\""), "the empty key is one");
    // Each record that is left is the same as before, at the same offset.
    assert!(after.iter().all(|record| before.contains(record)));
    let unkeyed = |records: &[Value]| records.iter().filter(|r| r["key"].is_null()).count();
    assert_eq!(unkeyed(&after), unkeyed(&before));
    assert_eq!(std::fs::read(sandbox.active()).unwrap(), active);
    let sealed_end = *sandbox.bases().last().unwrap();
    let sealed = after.iter().filter(|record| record["offset"].as_u64() < Some(sealed_end));
    let keyed: Vec<_> = sealed.filter(|record| !record["key"].is_null()).collect();
    assert!(keyed.len() < 12, "{keyed:?}");
    let (removed, saved) = (numbers(&plan, "removed_records"), numbers(&plan, "saved_bytes"));
    assert_eq!(removed.iter().sum::<u64>() as usize, before.len() - after.len());
    let sizes: u64 = sandbox.segments().iter().map(|file| len(file)).sum();
    assert_eq!(numbers(&plan, "bytes").iter().sum::<u64>() - saved.iter().sum::<u64>(), sizes);
    sandbox.tapelog("verify").outcome().succeeded().printed("");
}

#[test]
fn h090_what_is_written_meanwhile_is_never_replaced_by_what_is_older() {
    let sandbox = Sandbox::with_config("segment-size=4K");
    let produce = |producer: u64| {
        let command = sandbox.command("produce -K : --batch-records 10");
        let mut producing = sandbox.spawn(&format!("producer{producer}"), command);
        // Each has the keys whose number leaves its own.
        let line = |n: u64| format!("k{}:{n}\n", (n * 4 + producer) % 12);
        producing.feed((0..2500).map(line).collect::<String>());
        producing.close_stdin();
        producing
    };
    let mut producers: Vec<Background> = (0..4).map(produce).collect();
    let mut runs = 0;
    while producers.iter_mut().any(Background::runs) || runs < 3 {
        gc(&sandbox, "--compact --even-unread --roll");
        runs += 1;
    }
    for producer in &mut producers {
        assert!(producer.ends_within(LATE).success(), "{}", producer.err());
    }
    gc(&sandbox, "--compact --even-unread --roll");
    let left = records(&sandbox);
    let mut wanted = BTreeMap::new();
    for producer in 0..4 {
        for n in 0..2500 {
            wanted.insert(format!("\"k{}\"", (n * 4 + producer) % 12), json!(n.to_string()));
        }
    }
    assert_eq!((replayed(&left), left.len(), sandbox.end()), (wanted, 12, 10_000));
}

#[test]
fn h092_a_group_whose_next_offset_is_gone_goes_on_at_the_next_one() {
    let sandbox = sealed_versions();
    for next in [0, 7, 86, 87] {
        sandbox.commit(&format!("g{next}"), next);
    }
    gc(&sandbox, "--compact --even-unread --roll");
    assert_eq!(numbers(&records(&sandbox), "offset"), [87, 88, 89]);
    for next in [0, 7, 86, 87] {
        let consume = format!("consume -g g{next} -F %o:%k:%v\\n");
        sandbox.tapelog(&consume).prints("87:k0:29\n88:k1:29\n89:k2:29\n");
        assert_eq!(sandbox.group(&format!("g{next}"))["lag"], 0);
    }
}

#[test]
fn h092_a_group_has_no_lag_behind_the_last_record_though_the_log_ends_in_a_gap() {
    for batch in ["1", "2"] {
        let sandbox = Sandbox::new();
        let line = format!("produce -J --batch-records {batch}");
        let input = "{\"key\":\"a\",\"payload\":\"1\"}\n{\"key\":\"b\",\"payload\":null}\n";
        sandbox.at("2026-01-01T00:00:00Z", &line).write_stdin(input).prints("");
        sandbox.commit("g", 0);
        gc(&sandbox, "--compact --even-unread --roll");
        assert_eq!(numbers(&records(&sandbox), "offset"), [0]);
        sandbox.tapelog("consume -g g").prints("1\n");
        assert_eq!((sandbox.position("g"), sandbox.end()), (2, 2));
        assert_eq!(sandbox.group("g")["lag"], 0);
        sandbox.produce("", "next\n");
        sandbox.tapelog("consume -g g -F %o:%v\\n").prints("2:next\n");
    }
}

#[test]
fn every_way_to_begin_counts_the_records_that_are_left() {
    let sandbox = sealed_versions();
    sandbox.produce("", "plain\n");
    gc(&sandbox, "--compact --even-unread");
    for (options, offsets) in [
        ("", vec![87, 88, 89, 90]),
        ("--tail 2", vec![89, 90]),
        ("-o -4", vec![87, 88, 89, 90]),
        ("-o -100", vec![87, 88, 89, 90]),
        ("-o 5", vec![87, 88, 89, 90]),
        ("-o 5:88", vec![87]),
        ("-o 88", vec![88, 89, 90]),
        ("-n 1", vec![87]),
        ("-r", vec![90, 89, 88, 87]),
        ("-r -n 2", vec![90, 89]),
        ("-r -o 3:88", vec![87]),
        ("-r -o 3:9", vec![]),
    ] {
        let found: Vec<Value> = sandbox.tapelog(&format!("consume -J {options}")).json();
        assert_eq!(numbers(&found, "offset"), offsets, "{options}");
    }
    let segments: Vec<Value> = sandbox.tapelog("segments -J").json();
    assert_eq!(numbers(&segments, "records").iter().sum::<u64>(), 4);
    assert_eq!(sandbox.summary()["records"], 4);
}

#[test]
fn a_seek_to_an_offset_that_is_gone_stands_there_and_reads_on_behind_it() {
    let sandbox = sealed_versions();
    sandbox.commit("g", 90);
    gc(&sandbox, "--compact");
    sandbox.seek("g", "5");
    assert_eq!(sandbox.position("g"), 5);
    sandbox.tapelog("consume -g g -n 1 -F %o\\n").prints("87\n");
    assert_eq!(sandbox.position("g"), 88);
}

#[test]
fn groups_hold_what_they_have_not_read() {
    let sandbox = sealed_versions();
    let bases = sandbox.bases();
    sandbox.commit("done", 90);
    sandbox.commit("slow", bases[1]);
    let plan = gc(&sandbox, "--compact");
    assert_eq!((&plan[0]["action"], &plan[1]["action"]), (&json!("compact"), &json!("keep")));
    assert_eq!((&plan[0]["held_by"], &plan[1]["held_by"]), (&json!([]), &json!(["slow"])));
    assert_eq!(numbers(&records(&sandbox), "offset")[0], bases[1]);
    assert_eq!(sandbox.bases(), bases, "nothing is deleted");
    gc(&sandbox, "--compact --even-unread");
    assert_eq!(numbers(&records(&sandbox), "offset"), [87, 88, 89]);
}

#[test]
fn without_a_group_nothing_is_compacted_unless_told_to() {
    let sandbox = sealed_versions();
    let outcome = sandbox.tapelog("gc --compact").outcome().succeeded();
    outcome.noted(&["no group reads this log", "--even-unread", "cleanup=compact"]);
    assert_eq!(records(&sandbox).len(), 90);
    sandbox.config("cleanup=compact");
    sandbox.tapelog("gc").outcome().succeeded().noted(&["compacted", "87 records removed"]);
    assert_eq!(numbers(&records(&sandbox), "offset"), [87, 88, 89]);
}

#[test]
fn a_plain_gc_of_a_compacted_log_deletes_nothing_that_a_group_is_done_with() {
    let sandbox = sealed_versions();
    sandbox.config("cleanup=compact");
    sandbox.commit("g", 90);
    let (bases, plan) = (sandbox.bases(), gc(&sandbox, "--roll"));
    assert!(plan.iter().all(|row| row["action"] != "delete"), "{plan:?}");
    assert!(sandbox.bases().starts_with(&bases));
    assert_eq!(replayed(&records(&sandbox)).len(), 3);
    sandbox.config("cleanup=delete");
    assert!(gc(&sandbox, "").iter().any(|row| row["action"] == "delete"));
}

#[test]
fn a_dry_run_says_the_same_and_changes_nothing() {
    let sandbox = sealed_versions();
    // The key index, which it may build, and the table, which then looks at the directory.
    let derived = ["keys", "segments.index"].map(|name| sandbox.log().join(name));
    let kept = || {
        let mut tree = tree(sandbox.log());
        tree.retain(|path, _| !derived.iter().any(|derived| path.starts_with(derived)));
        tree
    };
    let before = kept();
    let planned = gc(&sandbox, "--compact --even-unread --dry-run");
    assert!(kept() == before, "nothing was changed");
    sandbox.tapelog("gc --compact --even-unread --dry-run").outcome().succeeded().noted(&["would"]);
    assert_eq!(gc(&sandbox, "--compact --even-unread"), planned);
    // Now there is nothing to do, and it is said so.
    let again = gc(&sandbox, "--compact --even-unread");
    assert!(again.iter().all(|row| row["action"] == "keep"), "{again:?}");
    sandbox.tapelog("gc --compact --even-unread").outcome().succeeded().silent();
}

#[test]
fn tombstones_go_when_they_are_old_enough() {
    let sandbox = Sandbox::new();
    let null = "{\"key\":\"a\",\"payload\":null}\n";
    let input = format!("{{\"key\":\"a\",\"payload\":\"1\"}}\n{null}");
    let mut produce = sandbox.at("2026-01-01T00:00:00Z", "produce -J");
    produce.write_stdin(input).prints("");
    let offsets = |time: &str, options: &str| {
        let line = format!("gc -J --compact --even-unread --roll {options}");
        sandbox.at(time, &line).outcome().succeeded();
        numbers(&records(&sandbox), "offset")
    };
    assert_eq!(offsets("2026-01-02T00:00:00Z", ""), [1], "a day is not more than a day");
    assert_eq!(offsets("2026-01-02T00:00:01Z", "--tombstone-age 25h"), [1]);
    assert_eq!(offsets("2026-01-02T00:00:01Z", ""), [0; 0]);
    assert_eq!(sandbox.end(), 2);
}

#[test]
fn limits_that_mean_nothing_to_a_gc_that_deletes_are_refused() {
    let sandbox = sealed_versions();
    sandbox.tapelog("gc --even-unread").fails(status::USAGE, &["--even-unread", "--compact"]);
    sandbox.tapelog("config cleanup=both").fails(status::USAGE, &["cleanup", "delete", "compact"]);
}

#[test]
fn damage_is_named_and_nothing_behind_it_is_touched() {
    let sandbox = sealed_versions();
    let file = sandbox.sealed(1);
    flip(&file, len(&file) - 3);
    let before = tree(sandbox.log());
    let name = file.file_name().unwrap().to_str().unwrap();
    sandbox.tapelog("gc --compact --even-unread").fails(status::DAMAGE, &[name, "damaged"]);
    for (path, bytes) in tree(sandbox.log()) {
        if path.extension().is_some_and(|extension| extension == "log") {
            assert!(before[&path] == bytes, "{} was changed", path.display());
        }
    }
    sandbox.tapelog("verify --repair").outcome().succeeded();
    sandbox.tapelog("gc --compact --even-unread -q").outcome().succeeded();
    let left: Vec<Value> = sandbox.tapelog("consume -J -q").json();
    assert_eq!(numbers(&left, "offset"), [87, 88, 89]);
}

#[test]
fn h084_a_link_in_place_of_the_directory_of_keys_is_refused() {
    let sandbox = sealed_versions();
    let (inside, outside) = (sandbox.log().join("keys"), sandbox.path("outside"));
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, &inside).unwrap();
    let refused = sandbox.tapelog("gc --compact --even-unread").outcome().ended(status::DAMAGE);
    refused.printed("").with_words(&["keys", "verify", "--repair"]);
    assert_eq!((records(&sandbox).len(), tree(&outside).len()), (90, 0));
    // What deletes makes no files there.
    sandbox.tapelog("gc").outcome().succeeded();
}

#[test]
fn h064_a_reader_of_a_segment_that_is_replaced_reads_on() {
    let sandbox = Sandbox::with_config("segment-size=64K");
    let input: String = (0..20_000).map(|n| format!("{}:{n:080}\n", n % 7)).collect();
    sandbox.produce("-K :", input.as_str());
    sandbox.tapelog("gc --roll").outcome().succeeded();
    let mut reader = Piped::start(&sandbox, "consume -K :");
    let first = reader.take(1000);
    gc(&sandbox, "--compact --even-unread --roll");
    let all = [first, reader.rest()].concat();
    assert_eq!((reader.ends_within(SOON).code(), reader.err().as_str()), (Some(status::DONE), ""));
    let text = String::from_utf8(all).unwrap();
    let numbers: Vec<u64> = text.lines().map(|line| line[2..].parse().unwrap()).collect();
    assert!(numbers.is_sorted(), "nothing twice, nothing out of turn");
    let newest: BTreeMap<u64, u64> = numbers.iter().map(|n| (n % 7, *n)).collect();
    assert!(newest.into_values().all(|n| n >= 19_993));
}

#[test]
fn what_was_in_a_pipe_when_its_batch_was_replaced_was_not_handed_over() {
    let sandbox = Sandbox::new();
    let input: String = (0..1000).map(|n| format!("k:{n:099}\n")).collect();
    sandbox.produce("-K : --batch-records 1000", input.as_str());
    sandbox.tapelog("gc --roll").outcome().succeeded();
    sandbox.commit("g", 0);
    let mut reader = Piped::start(&sandbox, "consume -g g");
    reader.take(1000);
    gc(&sandbox, "--compact --even-unread");
    assert_eq!(numbers(&records(&sandbox), "offset"), [999]);
    reader.close();
    reader.ends_quietly();
    assert!(sandbox.position("g") <= 10, "{}", sandbox.position("g"));
    sandbox.tapelog("consume -g g").prints(format!("{:099}\n", 999));
}

#[test]
fn killed_anywhere_it_loses_nothing_and_the_next_run_goes_on() {
    let sandbox = Sandbox::with_config("segment-size=16K");
    versions(&sandbox, 50, 400);
    let before = replayed(&records(&sandbox));
    let mut delay = Duration::from_micros(500);
    loop {
        let command = sandbox.command("gc --compact --even-unread");
        let mut run = sandbox.spawn("gc", command);
        std::thread::sleep(delay);
        let was_running = run.runs();
        run.kill();
        assert_eq!(replayed(&records(&sandbox)), before);
        sandbox.tapelog("verify").outcome().succeeded();
        if !was_running {
            break;
        }
        delay = delay * 5 / 4;
    }
    gc(&sandbox, "--compact --even-unread");
    assert_eq!(replayed(&records(&sandbox)), before);
    let left = tree(sandbox.log());
    assert!(!left.keys().any(|path| path.extension().is_some_and(|extension| extension == "tmp")));
}

#[test]
fn two_at_once_do_the_same_as_one() {
    let sandbox = Sandbox::with_config("segment-size=4K");
    versions(&sandbox, 20, 500);
    let before = replayed(&records(&sandbox));
    let run = |name| sandbox.spawn(name, sandbox.command("gc --compact --even-unread"));
    for mut run in [run("one"), run("two")] {
        assert!(run.ends_within(LATE).success(), "{}", run.err());
    }
    assert_eq!(replayed(&records(&sandbox)), before);
    let again = gc(&sandbox, "--compact --even-unread");
    assert!(again.iter().all(|row| row["action"] == "keep"), "{again:?}");
}

#[test]
fn a_log_that_is_not_synced_yet_is_appended_to_meanwhile() {
    let sandbox = sealed_versions();
    let command = sandbox.command("produce -K : --sync none");
    let mut producer = sandbox.spawn("producer", command);
    producer.child().stdin.as_mut().unwrap().write_all(b"k0:new\n").unwrap();
    wait_until(SOON, "it is appended", || sandbox.end() == 91);
    gc(&sandbox, "--compact --even-unread");
    producer.close_stdin();
    assert!(producer.ends_within(SOON).success());
    assert_eq!(replayed(&records(&sandbox))["\"k0\""], "new");
}
