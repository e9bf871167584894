//! The whole grammar of `-o`, and its other spellings.

use crate::sandbox::{Expect, Sandbox, status, want};

/// Ten records, one a minute from 10:00 on.
fn one_a_minute() -> Sandbox {
    let sandbox = Sandbox::new();
    for minute in 0..10 {
        let time = format!("2026-01-01T10:0{minute}:00Z");
        sandbox.produce_at(&time, &want(minute + 1, minute + 1));
    }
    sandbox
}

/// A start in words, and the records from the first to the last that it prints.
const STARTS: [(&str, u64, u64); 31] = [
    ("-o earliest", 1, 10),
    ("-o start", 1, 10),
    ("-o beginning", 1, 10),
    ("-o 0", 1, 10),
    ("-o 3", 4, 10),
    ("-o 9", 10, 10),
    ("--offset 3", 4, 10),
    ("--offset=3", 4, 10),
    ("-o -1", 10, 10),
    ("-o -3", 8, 10),
    ("-o=-3", 8, 10),
    ("--tail 3", 8, 10),
    ("--tail 99", 1, 10),
    ("-o +0", 1, 10),
    ("-o +2", 3, 10),
    ("-o 2:5", 3, 5),
    ("-o 2:3", 3, 3),
    ("-o :3", 1, 3),
    ("-o 7:", 8, 10),
    ("-o 8:99", 9, 10),
    ("-o :99", 1, 10),
    ("-o @2026-01-01T10:04:00Z", 5, 10),
    ("-o @2026-01-01T10:04:00", 5, 10),
    ("-o @2026-01-01T12:04:00+02:00", 5, 10),
    ("-o @1767261840", 5, 10),
    ("-o @1767261840000", 5, 10),
    ("-o @-3m", 8, 10),
    ("-o @2026-01-01T10:02:00Z:2026-01-01T10:05:00Z", 3, 5),
    ("-o @1767261720:1767261900", 3, 5),
    ("-o @-8m:-5m", 3, 5),
    ("-o @2026-01-01T10:02:00Z:-5m", 3, 5),
];

#[test]
fn every_start_prints_the_records_it_names() {
    let sandbox = one_a_minute();
    for (words, first, last) in STARTS {
        sandbox.at("2026-01-01T10:10:00Z", &format!("consume {words}")).prints(want(first, last));
    }
}

#[test]
fn a_start_at_the_end_or_an_empty_range_prints_nothing() {
    let sandbox = one_a_minute();
    for words in ["latest", "end", "10", "+10", "10:", "4:4", ":0", "@2030-01-01T00:00:00Z"] {
        sandbox.tapelog(&format!("consume -o {words}")).prints("");
    }
}

#[test]
fn a_start_that_cannot_be_read_is_a_usage_error() {
    let sandbox = one_a_minute();
    let wrong = [
        "five",
        "",
        "3x",
        "1:2:3",
        "-",
        "+",
        "--3",
        "+-3",
        "1.5",
        "@",
        "@noon-ish",
        "@:",
        "5:3",
        "a:b",
        "99999999999999999999",
    ];
    for start in wrong {
        let mut consume = sandbox.tapelog("consume");
        consume.args(["-o", start]).fails(status::USAGE, &[]);
    }
    let twice = sandbox.tapelog("consume -o 3 --tail 2").outcome();
    twice.ended(status::USAGE).printed("");
}

#[test]
fn a_time_range_splits_at_the_one_colon_where_both_sides_are_times() {
    let sandbox = one_a_minute();
    let line = "consume -o @2026-01-01T10:02:00Z:2026-01-01T10:05:00";
    sandbox.tapelog(line).prints(want(3, 5));
    sandbox.tapelog("consume -o @-8m:-7m:-5m").fails(status::USAGE, &["-8m:-7m:-5m"]);
}

#[test]
fn starts_count_from_where_the_log_begins_now() {
    let sandbox = Sandbox::hundreds_from(600, 10);
    for (words, first, last) in [
        ("earliest", 601, 1000),
        ("+0", 601, 1000),
        ("+10", 611, 1000),
        ("-399", 602, 1000),
        (":610", 601, 610),
        ("600:610", 601, 610),
    ] {
        sandbox.tapelog(&format!("consume -o {words}")).prints(want(first, last));
    }
    for below in ["0", "599", "599:610"] {
        let line = format!("consume -o {below}");
        sandbox.tapelog(&line).fails(status::RANGE, &["600"]);
    }
}

#[test]
fn a_new_group_begins_where_o_says_and_otherwise_at_the_start() {
    let sandbox = one_a_minute();
    for (n, (words, first, last)) in STARTS.into_iter().enumerate() {
        let line = format!("consume -g g{n} {words}");
        let note = format!("new group g{n} at {}", first - 1);
        sandbox.at("2026-01-01T10:10:00Z", &line).notes(want(first, last), &[&note]);
        assert_eq!(sandbox.position(&format!("g{n}")), last);
    }
    sandbox.tapelog("consume -g plain").notes(want(1, 10), &["new group plain at 0"]);
}
