//! TIME: clocks that stand wrong or step back, zones, impossible dates, durations. What
//! H056 and H057 say of `gc --max-age` waits for that.

use assert_cmd::Command;

use crate::sandbox::{Expect, Sandbox, numbers, status, want};

/// Zones that must make no difference.
const ZONES: [&str; 3] = ["Asia/Kolkata", "UTC", "America/St_Johns"];

/// Three records around the turn of the year 2024, and group g at 0.
fn around_new_year() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.produce_at("2023-12-31T23:59:59.999Z", "before\n");
    sandbox.produce_at("2024-01-01T00:00:00Z", "at\n");
    sandbox.produce_at("2024-01-01T00:00:00.001Z", "after\n");
    sandbox.commit("g", 0);
    sandbox
}

/// `seek --dry-run` to a time, in a zone.
fn seek_in(sandbox: &Sandbox, zone: &str, time: &str) -> Command {
    let mut command = sandbox.tapelog("seek -g g --dry-run --to");
    command.arg(time).env("TZ", zone);
    command
}

/// The first day of 2099, as a time and in ms.
const FAR: (&str, u64) = ("2099-01-01T00:00:00Z", 4_070_908_800_000);

#[test]
fn h056_a_record_of_its_own_time_far_ahead_is_data_and_nothing_more() {
    let sandbox = Sandbox::with_config("segment-size=512");
    let record = |n: u64| match n {
        5 => format!("{{\"payload\":\"m-000005\",\"ts\":{}}}\n", FAR.1),
        n => format!("{{\"payload\":\"m-{n:06}\"}}\n"),
    };
    let input: String = (1..=40).map(record).collect();
    sandbox.produce("-J --now 2026-01-01T12:00:00Z --batch-records 1", input);
    sandbox.produce_at("2026-01-02T12:00:00Z", &want(41, 41));
    sandbox.all().prints(want(1, 41));
    sandbox.tapelog("consume -o @2026-01-02T00:00:00Z").prints(want(41, 41));
    sandbox.tapelog("consume --until 2026-01-02T00:00:00Z").prints(want(1, 40));
    sandbox.tapelog("consume --own-time --since 2098-01-01T00:00:00Z").prints(want(5, 5));
    let seek = sandbox.tapelog("seek -g g --to @2026-01-02T00:00:00Z").outcome().succeeded();
    seek.noted(&["new group g at 40"])
        .printed("g: new -> 40, the first record from 2026-01-02T00:00:00.000Z on\n");
    // A week later the active segment is old too, the others are done with.
    sandbox.commit("g", 41);
    sandbox.at("2026-01-10T00:00:00Z", "gc").outcome().succeeded();
    assert_eq!(sandbox.bases(), [41]);
}

#[test]
fn h056_a_clock_that_once_stood_far_ahead_stops_nothing() {
    let sandbox = Sandbox::new();
    sandbox.produce_at("2026-01-01T12:00:00Z", &want(1, 10));
    sandbox.produce_at(FAR.0, &want(11, 20));
    sandbox.produce_at("2026-01-02T12:00:00Z", &want(21, 30));
    sandbox.all().prints(want(1, 30));
    // Append times never go down, so what came since bears the same one.
    let stored = numbers(&sandbox.tapelog("consume -o 10 -J").json(), "append_ts");
    assert_eq!(stored, [FAR.1; 20]);
    for since in ["@2026-01-01T13:00:00Z", "@2026-01-03T00:00:00Z", "@2099-01-01T00:00:00Z"] {
        sandbox.tapelog(&format!("consume -o {since}")).prints(want(11, 30));
    }
    sandbox.tapelog("consume -o @2099-01-01T00:00:01Z").prints("");
    sandbox.at("2026-01-02T13:00:00Z", "consume --since -1h").prints(want(11, 30));
    let seek = sandbox.at("2026-01-02T13:00:00Z", "seek -g g --to @-1h").outcome().succeeded();
    assert!(seek.stdout.starts_with(b"g: new -> 10"), "{seek}");
    assert_eq!(sandbox.at("2026-01-02T13:00:00Z", "groups -g g -J").json()[0]["lag_ms"], 0);
}

#[test]
fn h056_gc_goes_on_in_a_log_whose_clock_once_stood_far_ahead() {
    let sandbox = Sandbox::new();
    sandbox.produce_at(FAR.0, &want(1, 10));
    sandbox.commit("g", 10);
    // No date says how old that segment is, so gc seals it, and it goes.
    sandbox.at("2026-01-02T12:00:00Z", "gc").outcome().succeeded();
    assert_eq!(sandbox.bases(), [10]);
    sandbox.produce("--now 2026-01-02T12:00:00Z", want(11, 20));
    sandbox.tapelog("consume -g g -q").prints(want(11, 20));
    sandbox.at("2026-01-02T12:00:00Z", "gc").outcome().succeeded();
    assert_eq!((sandbox.bases(), sandbox.end()), (vec![20], 20));
}

#[test]
fn h056_producing_goes_on_in_a_log_whose_clock_once_stood_far_ahead() {
    let sandbox = Sandbox::with_config("segment-age=1h");
    sandbox.produce_at(FAR.0, &want(1, 10));
    for n in 1..=5 {
        sandbox.produce("--now 2026-01-02T12:00:00Z", want(n * 10 + 1, n * 10 + 10));
    }
    assert_eq!(sandbox.bases(), [0], "no segment for every append");
    // When the clock gets there, age counts as ever.
    sandbox.produce_at("2099-01-01T01:00:00Z", &want(61, 70));
    assert_eq!(sandbox.bases(), [0, 60]);
    sandbox.all().prints(want(1, 70));
}

#[test]
fn h057_append_times_never_go_down_when_the_clock_does() {
    let sandbox = Sandbox::new();
    sandbox.produce_at("2026-01-01T12:00:00Z", "a\n");
    sandbox.produce_at("2026-01-01T11:00:00Z", "b\n");
    sandbox.produce_at("2026-01-01T12:01:00Z", "c\n");
    sandbox.all().prints("a\nb\nc\n");
    sandbox.tapelog("consume -o @2026-01-01T12:00:30Z").prints("c\n");
    let noon = 1_767_268_800_000;
    let stored = numbers(&sandbox.tapelog("consume -J").json(), "append_ts");
    assert_eq!(stored, [noon, noon, noon + 60_000]);
}

#[test]
fn h057_a_clock_that_steps_back_while_one_producer_runs_moves_nothing_back() {
    let sandbox = Sandbox::with_config("segment-size=512");
    sandbox.produce_at("2026-01-01T12:00:00Z", &"x\n".repeat(1000));
    sandbox.produce("--now 2026-01-01T11:00:00Z --batch-records 1", "y\n".repeat(50));
    let stored = numbers(&sandbox.tapelog("consume -J").json(), "append_ts");
    assert!(stored.is_sorted() && stored.len() == 1050);
}

#[test]
fn h058_one_moment_in_four_spellings_and_three_zones_is_one_offset() {
    let sandbox = around_new_year();
    let spellings = [
        "@2024-01-01T05:30:00+05:30",
        "@2024-01-01T00:00:00Z",
        "@1704067200000",
        "@2023-12-31T20:30:00-03:30",
    ];
    for zone in ZONES {
        for time in spellings {
            let outcome = seek_in(&sandbox, zone, time).outcome().succeeded();
            assert!(outcome.stdout.starts_with(b"g: 0 -> 1"), "{zone} {time}: {outcome}");
        }
    }
}

#[test]
fn h058_the_same_holds_for_reading_by_time() {
    let sandbox = around_new_year();
    for zone in ZONES {
        let mut consume = sandbox.tapelog("consume -o @2024-01-01T05:30:00+05:30");
        consume.env("TZ", zone).prints("at\nafter\n");
        let mut consume = sandbox.tapelog("consume --since 1704067200 --until 1704067200001");
        consume.env("TZ", zone).prints("at\n");
    }
}

#[test]
fn h059_a_time_without_a_zone_is_utc_everywhere() {
    let sandbox = around_new_year();
    for zone in ZONES {
        let outcome = seek_in(&sandbox, zone, "@2024-01-01T00:00:00").outcome().succeeded();
        assert!(outcome.stdout.starts_with(b"g: 0 -> 1"), "{zone}: {outcome}");
    }
}

#[test]
fn h059_a_time_that_was_sought_is_shown_in_utc() {
    let sandbox = around_new_year();
    for time in ["@2024-01-01T00:00:00", "@2024-01-01T05:30:00+05:30"] {
        let outcome = seek_in(&sandbox, "Asia/Kolkata", time).outcome().succeeded();
        outcome.silent().printed("g: 0 -> 1, the first record from 2024-01-01T00:00:00.000Z on\n");
    }
}

#[test]
fn h059_times_that_cannot_be_are_usage_errors_and_move_nothing() {
    let sandbox = around_new_year();
    sandbox.commit("g", 2);
    let impossible = [
        "@2024-02-30T00:00:00Z",
        "@2024-01-01T24:30:00",
        "@1e400",
        "@-1",
        "@",
        "@tomorrowish",
        "@16:48",
    ];
    for time in impossible {
        let mut seek = sandbox.tapelog("seek -g g --to");
        seek.arg(time)
            .fails(status::USAGE, &[time.trim_start_matches('@').trim_end_matches(":48")]);
    }
    assert_eq!(sandbox.position("g"), 2);
}

/// Records at ten, half past ten and noon; g at the end.
fn of_a_morning() -> Sandbox {
    let sandbox = Sandbox::new();
    for (hour, line) in [("10:00", "ten\n"), ("10:30", "half past\n"), ("12:00", "noon\n")] {
        sandbox.produce_at(&format!("2026-01-01T{hour}:00Z"), line);
    }
    sandbox.commit("g", 3);
    sandbox
}

#[test]
fn h060_one_duration_in_three_forms_is_one_offset() {
    let sandbox = of_a_morning();
    for duration in ["90m", "1h30m", "PT1H30M"] {
        let seek = format!("seek -g g --dry-run --by-duration {duration}");
        let outcome = sandbox.at("2026-01-01T12:00:00Z", &seek).outcome().succeeded();
        assert!(outcome.stdout.starts_with(b"g: 3 -> 1"), "{outcome}");
    }
}

#[test]
fn h060_no_duration_at_all_is_the_end() {
    let sandbox = of_a_morning();
    sandbox.seek("g", "0");
    let seek = "seek -g g --by-duration 0s";
    let outcome = sandbox.at("2026-01-01T12:00:00Z", seek).outcome().succeeded();
    assert!(outcome.stdout.starts_with(b"g: 0 -> 3"), "{outcome}");
}

#[test]
fn h060_other_durations_are_usage_errors_and_move_nothing() {
    let sandbox = of_a_morning();
    for duration in ["-5m", "99999999999999d", "1", "", "h", "1h-5m"] {
        let mut seek = sandbox.tapelog("seek -g g --by-duration");
        seek.arg(duration).fails(status::USAGE, &["duration"]);
    }
    assert_eq!(sandbox.position("g"), 3);
}
