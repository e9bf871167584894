//! KEY, H091, and what commands that go by keys take, with more keys than memory may hold.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Command as StdCommand;
use std::time::Duration;

use assert_cmd::Command;

use crate::sandbox::{
    Expect, Sandbox, binary, foreground, numbers, peak_memory, rounds, wait_until,
};

/// What a command may take at its peak.
const MOST: u64 = 64 << 20;
const LATE: Duration = Duration::from_secs(600);

/// The command with no more address space than that.
fn within_limit(sandbox: &Sandbox, line: &str) -> Command {
    let (verb, options) = line.split_once(' ').unwrap_or((line, ""));
    let script = format!("ulimit -v {}; exec \"$0\" {verb} \"$1\" {options}", MOST >> 10);
    let mut command = StdCommand::new("/bin/bash");
    command.arg("-c").arg(script).arg(binary()).arg(sandbox.log());
    foreground(command)
}

/// Appends a record for each key of 0 to `keys` and leaves the producer no more to do;
/// gives its peak.
fn produce_and_weigh(sandbox: &Sandbox, options: &str, keys: u64) -> u64 {
    let command = sandbox.command(&format!("produce -K : {options}"));
    let mut produce = sandbox.spawn("produce", command);
    let stdin = produce.child().stdin.as_mut().unwrap();
    let mut block = String::new();
    for first in (0..keys).step_by(10_000) {
        block.clear();
        let some = first..keys.min(first + 10_000);
        some.for_each(|key| writeln!(block, "k{key}:v{key}").unwrap());
        stdin.write_all(block.as_bytes()).unwrap();
    }
    wait_until(LATE, "all is appended", || sandbox.end() == keys);
    let peak = peak_memory(produce.id());
    produce.close_stdin();
    assert!(produce.ends_within(LATE).success(), "{}", produce.err());
    peak
}

#[test]
fn keys_take_less_than_64_mib_however_many_there_are() {
    let keys = rounds(800_000, 5_000_000);
    for options in ["--sync none", "--unique"] {
        let sandbox = Sandbox::new();
        let peak = produce_and_weigh(&sandbox, options, keys);
        println!("peak of produce {options}: {peak} bytes");
        assert!(peak < MOST, "{options}: {peak} bytes");
        // After --sync none there is no table, as nothing is promised to be kept.
        assert_eq!(sandbox.log().join("keys").exists(), options == "--unique");
        let last = keys - 1;
        let outcome = within_limit(&sandbox, &format!("get k7 k{last} k700001")).outcome();
        outcome.succeeded().printed(format!("v7\nv{last}\nv700001\n"));
    }
}

#[test]
fn h091_compaction_of_more_keys_than_memory_holds_ends_with_the_newest_of_each() {
    let keys: u64 = rounds(100_000, 2_000_000);
    let sandbox = Sandbox::with_config("segment-size=2M");
    let line = |key: u64, version: u64| format!("k{key}:{version}\n");
    for version in 0..3 {
        // All of them; then every second one; then every third one.
        let some = (0..keys).filter(|key| key.is_multiple_of(version + 1));
        sandbox.produce("-K :", some.map(|key| line(key, version)).collect::<String>());
    }
    sandbox.tapelog("gc --roll").outcome().succeeded();
    // So that all of it is to be done within the limit.
    std::fs::remove_dir_all(sandbox.log().join("keys")).unwrap();
    let mut runs = Vec::new();
    loop {
        let plan = within_limit(&sandbox, "gc -J --compact --even-unread").json();
        let removed: u64 = numbers(&plan, "removed_records").iter().sum();
        if removed == 0 {
            break;
        }
        runs.push(removed);
        assert!(runs.len() < 10, "records that each run removed: {runs:?}");
    }
    println!("records that each run removed: {runs:?}");
    let mut left = vec![None; keys as usize];
    let text = sandbox.tapelog("consume -K :").text();
    for record in text.lines() {
        let (key, version) = record[1..].split_once(':').unwrap();
        let (key, version): (usize, u64) = (key.parse().unwrap(), version.parse().unwrap());
        assert_eq!(left[key].replace(version), None, "one record of k{key}");
    }
    let newest = |key: u64| (0..3).rev().find(|version| key.is_multiple_of(version + 1));
    assert!((0..keys).all(|key| left[key as usize] == newest(key)));
    sandbox.tapelog("verify").outcome().succeeded().printed("");
}
