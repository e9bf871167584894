//! SEG: rolling from one segment to the next, boundaries, and numbers that are
//! counted from offsets and not from what is left.

use std::fs::File;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::sandbox::{
    Background, Expect, Random, Sandbox, lines, long, numbers, rounds, wait_until, want,
};

const SOON: Duration = Duration::from_secs(20);

/// A process that appends ten lines while others do the same.
fn append_ten(sandbox: &Sandbox) -> Child {
    let input = File::open(sandbox.path("ten")).unwrap();
    sandbox.command("produce").stdin(input).stdout(Stdio::null()).spawn().unwrap()
}

#[test]
fn h067_a_consumer_that_starts_amid_a_hundred_appends_skips_and_repeats_nothing() {
    for _ in 0..rounds(1, 50) {
        let sandbox = Sandbox::new();
        sandbox.file("ten", lines("n", 1, 10));
        sandbox.mk1(1000);
        let consume = sandbox.command(r"consume -g g -f -F %o\n");
        let consumer = sandbox.spawn("consumer", consume);
        let producers: Vec<Child> = (0..100).map(|_| append_ten(&sandbox)).collect();
        for mut producer in producers {
            assert!(producer.wait().unwrap().success());
        }
        let all: String = (0..2000).map(|offset| format!("{offset}\n")).collect();
        consumer.prints_within(SOON, all);
    }
}

/// Segment sizes around those that one-record batches of 73 bytes fill exactly
/// (14 and 15 of them); in a long run all from 1000 to 1100.
fn sizes() -> Vec<u64> {
    if long() { (1000..=1100).collect() } else { vec![1000, 1021, 1022, 1023, 1094, 1095, 1096] }
}

#[test]
fn h068_no_record_is_lost_where_one_fills_its_segment_exactly() {
    let count = rounds(150, 1000);
    for size in sizes() {
        let sandbox = Sandbox::with_config(&format!("segment-size={size}"));
        sandbox.mk1(count);
        sandbox.all().prints(want(1, count));
        let segments = sandbox.tapelog("segments -J").json();
        assert!(numbers(&segments, "records").iter().all(|&records| records > 0), "{segments:?}");
        for first in numbers(&segments, "first") {
            let one = format!("consume -o {first} -n 1");
            sandbox.tapelog(&one).prints(want(first + 1, first + 1));
        }
    }
}

/// Appends until the log rolls; after every append the follower must have it at once.
fn produce_until_it_rolls(sandbox: &Sandbox, follower: &Background, printed: &mut String) {
    let before = sandbox.segments().len();
    while sandbox.segments().len() <= before {
        let batch = lines("m", 1, 30);
        sandbox.produce("", batch.as_str());
        printed.push_str(&batch);
        follower.prints_within(Duration::from_secs(1), printed.as_str());
    }
}

#[test]
fn h069_a_follower_goes_along_when_the_log_rolls() {
    let sandbox = Sandbox::with_config("segment-size=1000");
    let follower = sandbox.spawn("follower", sandbox.command("consume -f"));
    let mut printed = String::new();
    let mut random = Random(69);
    for _ in 0..10 {
        produce_until_it_rolls(&sandbox, &follower, &mut printed);
        // The pauses are the case's; in a short run they are short.
        std::thread::sleep(Duration::from_millis(random.between(0, rounds(20, 2000))));
    }
}

#[test]
fn h069_a_follower_goes_along_when_every_append_begins_a_segment() {
    let sandbox = Sandbox::with_config("segment-size=512");
    let follower = sandbox.spawn("follower", sandbox.command("consume -f"));
    let line = "x".repeat(600) + "\n";
    sandbox.produce("--batch-records 1", line.repeat(50));
    wait_until(SOON, "all is printed", || follower.out() == line.repeat(50).into_bytes());
    assert_eq!(sandbox.segments().len(), 50);
}

#[test]
fn h070_end_and_lag_come_from_offsets_not_from_how_many_records_are_left() {
    let sandbox = Sandbox::hundreds(10);
    sandbox.commit("g", 250);
    sandbox.tapelog("gc").outcome().succeeded();
    let summary = sandbox.summary();
    let shown = ["start", "end", "records"].map(|name| summary[name].as_u64().unwrap());
    assert_eq!((shown, sandbox.group("g")["lag"].as_u64()), ([200, 1000, 800], Some(750)));
}
