//! Where reading ends: `-n`, `--until`, the end of a range, `--fail-empty`.

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

#[test]
fn n_bounds_what_is_printed() {
    let sandbox = Sandbox::new();
    sandbox.mk(10);
    sandbox.tapelog("consume -n 3").prints(want(1, 3));
    sandbox.tapelog("consume -n 99").prints(want(1, 10));
    sandbox.tapelog("consume -o 4 -n 2").prints(want(5, 6));
    sandbox.tapelog("consume -o 4:5 -n 2").prints(want(5, 5));
    sandbox.tapelog("consume --tail 4 -n 2").prints(want(7, 8));
}

#[test]
fn since_takes_the_first_record_appended_at_or_after_a_time() {
    let sandbox = one_a_minute();
    sandbox.tapelog("consume --since 2026-01-01T10:04:00Z").prints(want(5, 10));
    sandbox.tapelog("consume --since 2026-01-01T10:04:00.001Z").prints(want(6, 10));
    sandbox.tapelog("consume --since 2020-01-01T00:00:00Z").prints(want(1, 10));
    sandbox.tapelog("consume --since 2030-01-01T00:00:00Z").prints("");
}

#[test]
fn until_ends_before_the_first_record_appended_at_or_after_a_time() {
    let sandbox = one_a_minute();
    sandbox.tapelog("consume --until 2026-01-01T10:04:00Z").prints(want(1, 4));
    sandbox.tapelog("consume --until 2026-01-01T10:04:00.001Z").prints(want(1, 5));
    sandbox.tapelog("consume --until 2020-01-01T00:00:00Z").prints("");
    sandbox.tapelog("consume --until 2030-01-01T00:00:00Z").prints(want(1, 10));
}

#[test]
fn since_and_until_make_a_window_in_every_spelling_of_time() {
    let sandbox = one_a_minute();
    let windows = [
        ["2026-01-01T10:02:00Z", "2026-01-01T10:04:00Z"],
        ["2026-01-01T10:02:00", "2026-01-01T11:04:00+01:00"],
        ["1767261720", "1767261840"],
        ["1767261720000", "1767261840000"],
        ["-8m", "-6m"],
        ["8 minutes ago", "6 minutes ago"],
    ];
    for [since, until] in windows {
        let mut consume = sandbox.at("2026-01-01T10:10:00Z", "consume --since");
        consume.args([since, "--until", until]).prints(want(3, 4));
    }
}

#[test]
fn yesterday_is_the_whole_day_before_in_utc() {
    let sandbox = Sandbox::new();
    sandbox.produce_at("2026-01-01T23:59:59Z", "two days ago\n");
    sandbox.produce_at("2026-01-02T00:00:00Z", "yesterday\n");
    sandbox.produce_at("2026-01-03T00:00:00Z", "today\n");
    sandbox.at("2026-01-03T12:00:00Z", "consume --since yesterday").prints("yesterday\ntoday\n");
}

#[test]
fn fail_empty_makes_an_empty_read_an_error() {
    let sandbox = Sandbox::new();
    sandbox.mk(10);
    sandbox.tapelog("consume --fail-empty").prints(want(1, 10));
    for empty in ["-o latest", "-o 3:3", "--since 2030-01-01T00:00:00Z"] {
        let line = format!("consume --fail-empty {empty}");
        let outcome = sandbox.tapelog(&line).outcome().ended(status::NOT_THERE);
        assert!(outcome.stdout.is_empty() && outcome.stderr.lines().count() <= 1, "{outcome}");
        sandbox.tapelog(&format!("consume {empty}")).prints("");
    }
}

#[test]
fn fail_empty_of_a_group_looks_at_this_read_alone() {
    let sandbox = Sandbox::new();
    sandbox.mk(3);
    sandbox.commit("g", 0);
    sandbox.tapelog("consume -g g --fail-empty").prints(want(1, 3));
    sandbox.tapelog("consume -g g --fail-empty").outcome().ended(status::NOT_THERE).printed("");
}

#[test]
fn an_end_bounds_a_group_that_was_there_before() {
    let sandbox = Sandbox::new();
    sandbox.mk(10);
    sandbox.commit("g", 2);
    sandbox.tapelog("consume -g g -o :5").prints(want(3, 5));
    assert_eq!(sandbox.position("g"), 5);
    sandbox.tapelog("consume -g g -o :5").prints("");
    sandbox.tapelog("consume -g g").prints(want(6, 10));
}

#[test]
fn until_bounds_a_group_that_was_there_before() {
    let sandbox = one_a_minute();
    sandbox.commit("g", 2);
    sandbox.tapelog("consume -g g --until 2026-01-01T10:05:00Z").prints(want(3, 5));
    assert_eq!(sandbox.position("g"), 5);
}

#[test]
fn a_start_places_a_new_group_only() {
    let sandbox = one_a_minute();
    sandbox.tapelog("consume -g g -o 4 -n 2").notes(want(5, 6), &["new group g at 4"]);
    for start in ["-o 1", "-o -3", "-o earliest", "-o 2:8", "--tail 2", "--since -1h"] {
        let line = format!("consume -g g {start}");
        sandbox.tapelog(&line).fails(status::USAGE, &["g", "seek"]);
    }
    assert_eq!(sandbox.position("g"), 6);
    let since = "consume -g late --since 2026-01-01T10:08:00Z";
    sandbox.tapelog(since).notes(want(9, 10), &["new group late at 8"]);
}
