//! GC: what collection removes, what it must not, and readers that it meets.
//! The limits by age and size (`--max-age`, `--max-bytes`, `--even-unread`), and
//! with them the rest of H063 and H064, wait for the issue that brings them.

use std::time::Duration;

use serde_json::Value;

use crate::sandbox::{Expect, Piped, Sandbox, lines, numbers, offsets, status, wait_until, want};

const SOON: Duration = Duration::from_secs(5);

/// The first offsets of the segments with this action in a plan.
fn with_action(plan: &[Value], action: &str) -> Vec<u64> {
    let such: Vec<Value> = plan.iter().filter(|row| row["action"] == action).cloned().collect();
    numbers(&such, "first")
}

/// What `gc` says that it does.
fn gc(sandbox: &Sandbox, options: &str) -> Vec<Value> {
    sandbox.tapelog(&format!("gc -J {options}")).json()
}

/// 10 segments of 100; a is at the end, b in the third.
fn a_at_the_end_and_b_at_250() -> Sandbox {
    let sandbox = Sandbox::hundreds(10);
    sandbox.commit("a", 1000);
    sandbox.commit("b", 250);
    sandbox
}

#[test]
fn h061_gc_keeps_what_one_group_still_needs() {
    let sandbox = a_at_the_end_and_b_at_250();
    assert_eq!(with_action(&gc(&sandbox, ""), "delete"), [0, 100]);
    assert_eq!(sandbox.bases(), [200, 300, 400, 500, 600, 700, 800, 900]);
    assert_eq!(sandbox.segments().len(), 8);
    assert_eq!(sandbox.summary()["start"], 200);
    sandbox.tapelog("consume -g b").prints(want(251, 1000));
}

#[test]
fn h061_the_plan_says_for_every_segment_why_and_who_holds_it() {
    let sandbox = a_at_the_end_and_b_at_250();
    let mut plan = gc(&sandbox, "--dry-run");
    // The active one stays whoever needs it.
    assert_eq!(plan.pop().unwrap()["action"], "keep");
    for row in plan {
        let (deleted, held_by) = (row["action"] == "delete", row["held_by"].as_array().unwrap());
        assert_eq!(held_by.contains(&"b".into()), !deleted, "{row}");
        assert!(!held_by.contains(&"a".into()), "{row}");
        assert!(row["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{row}");
    }
}

#[test]
fn h061_a_dry_run_shows_the_same_plan_and_deletes_nothing() {
    let sandbox = a_at_the_end_and_b_at_250();
    let planned = gc(&sandbox, "--dry-run");
    assert_eq!(sandbox.bases().len(), 10);
    assert_eq!(gc(&sandbox, ""), planned);
}

#[test]
fn h061_people_are_told_what_went_and_that_it_did() {
    let sandbox = a_at_the_end_and_b_at_250();
    let planned = sandbox.tapelog("gc --dry-run").text();
    assert!(planned.contains("delete ") && !planned.contains("deleted"), "{planned}");
    assert!(planned.ends_with("keep    active: --roll seals it\n"), "{planned}");
    let outcome = sandbox.tapelog("gc").outcome().succeeded();
    let outcome = outcome.noted(&["deleted 2 segments, 1.9 KiB"]);
    assert_eq!(outcome.text().matches("deleted").count(), 2);
    let nothing = sandbox.tapelog("gc").text();
    assert!(!nothing.contains("delete"), "{nothing}");
}

#[test]
fn h061_without_a_group_nothing_goes_and_a_line_says_why() {
    let sandbox = Sandbox::hundreds(10);
    let outcome = sandbox.tapelog("gc").outcome().succeeded();
    let said = format!("{}{}", outcome.stderr, String::from_utf8_lossy(&outcome.stdout));
    assert!(said.contains("no group reads this log, so nothing is deleted: "), "{said}");
    assert_eq!(sandbox.bases().len(), 10);
}

#[test]
fn h061_the_active_segment_goes_only_when_it_is_rolled_first() {
    let sandbox = Sandbox::hundreds(1);
    sandbox.commit("a", 100);
    assert!(with_action(&gc(&sandbox, ""), "delete").is_empty());
    assert_eq!(with_action(&gc(&sandbox, "--roll"), "delete"), [0]);
    sandbox.all().prints("");
    assert_eq!(sandbox.append("x"), 100);
    sandbox.tapelog("consume -g a").prints("x\n");
}

#[test]
fn h062_a_log_that_is_full_refuses_and_deletes_nothing() {
    let sandbox = Sandbox::with_config("max-log-size=1M segment-size=64K");
    let line = "x".repeat(1023) + "\n";
    let input = sandbox.file("input", line.repeat(2048));
    let mut produce = sandbox.tapelog("produce --sync each --receipt");
    let outcome = produce.arg(input).outcome().ended(status::FAILED).said(&["max-log-size"]);
    let receipts = offsets(&outcome.text());
    assert_eq!(receipts, Vec::from_iter(0..receipts.len() as u64));
    assert!(receipts.len() > 512, "{} records fit", receipts.len());
    assert_eq!((sandbox.summary()["start"].as_u64(), sandbox.bases()[0]), (Some(0), 0));
    assert!(sandbox.summary()["bytes"].as_u64() <= Some(1 << 20));
    sandbox.all().prints(line.repeat(sandbox.end() as usize));
    assert!(sandbox.end() >= receipts.len() as u64);
}

#[test]
fn h062_a_full_log_takes_more_once_gc_has_made_room() {
    let sandbox = Sandbox::with_config("max-log-size=4096 segment-size=1500");
    sandbox.produce("--batch-records 100", want(1, 400));
    sandbox.tapelog("produce").write_stdin(want(401, 500)).fails(status::FAILED, &["max-log-size"]);
    sandbox.commit("g", 400);
    sandbox.tapelog("gc").outcome().succeeded();
    sandbox.produce("", want(401, 500));
    sandbox.tapelog("consume -g g").prints(want(401, 500));
}

#[test]
fn h063_old_records_go_although_their_segment_was_never_full() {
    let sandbox = Sandbox::new();
    sandbox.produce_at("2026-01-01T00:00:00Z", &want(1, 100));
    sandbox.commit("g", 100);
    // A week and a day later the next record begins a segment of its own.
    sandbox.produce_at("2026-01-09T00:00:00Z", "x\n");
    assert_eq!(with_action(&gc(&sandbox, ""), "delete"), [0]);
    sandbox.tapelog("consume -g g -F %o:%v\\n").prints("100:x\n");
}

#[test]
fn h063_gc_itself_seals_a_segment_that_is_past_its_age() {
    let sandbox = Sandbox::new();
    sandbox.produce_at("2026-01-01T00:00:00Z", &want(1, 100));
    sandbox.commit("g", 100);
    sandbox.at("2026-01-07T00:00:00Z", "gc").outcome().succeeded();
    assert_eq!(sandbox.bases(), [0], "not yet a week");
    sandbox.at("2026-01-09T00:00:00Z", "gc").outcome().succeeded();
    assert_eq!((sandbox.bases(), sandbox.end()), (vec![100], 100));
    assert_eq!(sandbox.append("x"), 100);
}

#[test]
fn h063_numbering_goes_on_when_everything_was_removed_again_and_again() {
    let sandbox = Sandbox::new();
    for round in 0..4 {
        sandbox.produce("", want(1, 100));
        sandbox.tapelog("consume -g g -q").prints(want(1, 100));
        gc(&sandbox, "--roll");
        let end = (round + 1) * 100;
        let summary = sandbox.summary();
        assert_eq!((&summary["start"], &summary["end"]), (&end.into(), &end.into()));
        assert_eq!(summary["records"], 0);
    }
    assert_eq!(sandbox.append("x"), 400);
}

/// 40 segments of 100 KiB, ten times what a pipe holds, and group g at the end.
fn forty_wide_segments() -> (Sandbox, Vec<u8>) {
    let sandbox = Sandbox::with_config("segment-size=100K");
    let filler = "x".repeat(1014);
    let input: String = (0..4000).map(|n| format!("{n:09}{filler}\n")).collect();
    sandbox.produce("--batch-records 20", input.as_str());
    sandbox.commit("g", 4000);
    (sandbox, input.into_bytes())
}

#[test]
fn h064_a_slow_reader_whose_segments_are_removed_gets_no_hole_in_silence() {
    let (sandbox, all) = forty_wide_segments();
    let mut reader = Piped::start(&sandbox, "consume");
    let mut out = reader.take(50_000);
    gc(&sandbox, "");
    assert_eq!(sandbox.bases().len(), 1, "all sealed segments are gone");
    out.extend(reader.rest());
    let ended = reader.ends_within(SOON).code();
    assert!(all.starts_with(&out), "what it printed is a prefix");
    match ended {
        Some(status::DONE) => assert_eq!((out.len(), reader.err().as_str()), (all.len(), "")),
        Some(status::RANGE) => assert_eq!(reader.err().lines().count(), 1, "{}", reader.err()),
        other => panic!("{other:?}, {}", reader.err()),
    }
}

#[test]
fn h064_a_follower_whose_next_segment_is_gone_ends_with_the_gap_named() {
    let (sandbox, all) = forty_wide_segments();
    let mut reader = Piped::start(&sandbox, "consume -f");
    let mut out = reader.take(1000);
    gc(&sandbox, "");
    let start = sandbox.bases()[0].to_string();
    out.extend(reader.rest());
    assert_eq!(reader.ends_within(SOON).code(), Some(status::RANGE), "{}", reader.err());
    assert!(reader.err().contains(&start) && all.starts_with(&out), "{}", reader.err());
}

#[test]
fn h065_a_second_gc_finds_nothing_more_to_do() {
    let sandbox = a_at_the_end_and_b_at_250();
    gc(&sandbox, "");
    assert!(with_action(&gc(&sandbox, ""), "delete").is_empty());
    assert_eq!(sandbox.bases()[0], 200);
}

#[test]
fn h066_a_reader_does_not_keep_removed_files_open() {
    let sandbox = Sandbox::hundreds(100);
    sandbox.commit("g", 10_000);
    let follower = sandbox.spawn("follower", sandbox.command("consume -f"));
    follower.prints_within(SOON, lines("m", 1, 10_000));
    gc(&sandbox, "");
    let removed = || {
        let handles = follower.handles();
        handles.iter().filter(|path| path.to_string_lossy().ends_with("(deleted)")).count()
    };
    wait_until(SOON, "it lets go of removed files", || removed() == 0);
    assert!(follower.handles().len() <= 8, "{:?}", follower.handles());
}
