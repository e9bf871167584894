//! Reading bit by bit: what a group has seen, it does not see again, and what it
//! has not seen comes again.

use std::time::Duration;

use crate::sandbox::{Expect, Piped, Sandbox, find_program, skip, want};

const SOON: Duration = Duration::from_secs(1);

/// A hundred thousand records and group g at 0.
fn many_records_and_g() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.mk(100_000);
    sandbox.commit("g", 0);
    sandbox
}

#[test]
fn two_reads_of_ten_are_followed_by_a_rewind_and_its_undo() {
    let sandbox = Sandbox::new();
    sandbox.mk(100);
    sandbox.tapelog("consume -g g -n 10").notes(want(1, 10), &["new group g at 0"]);
    sandbox.tapelog("consume -g g -n 10").prints(want(11, 20));
    sandbox.tapelog("seek -g g --to earliest").prints("g: 20 -> 0\n");
    sandbox.tapelog("consume -g g -n 10").prints(want(1, 10));
    sandbox.tapelog("seek -g g --undo").prints("g: 10 -> 20\n");
    sandbox.tapelog("consume -g g -n 10").prints(want(21, 30));
}

#[test]
fn a_reader_that_goes_away_after_ten_lines_gets_the_eleventh_next_time() {
    let sandbox = many_records_and_g();
    let mut reader = Piped::start(&sandbox, "consume -g g");
    let taken = reader.take(want(1, 10).len());
    assert_eq!(taken, want(1, 10).into_bytes());
    reader.close();
    reader.ends_within(SOON);
    assert_eq!((sandbox.position("g"), reader.err().as_str()), (10, ""));
    sandbox.tapelog("consume -g g").prints(want(11, 100_000));
}

#[test]
fn a_line_that_was_taken_in_part_comes_again_whole() {
    let sandbox = many_records_and_g();
    let mut reader = Piped::start(&sandbox, "consume -g g");
    reader.take(want(1, 10).len() + 4);
    reader.close();
    reader.ends_within(SOON);
    sandbox.tapelog("consume -g g -n 1").prints(want(11, 11));
}

#[test]
fn head_commits_no_more_than_head_has_read() {
    let Some(shell) = find_program("sh").filter(|_| find_program("head").is_some()) else {
        return skip("head_commits_no_more_than_head_has_read", "there is no sh or head");
    };
    let sandbox = many_records_and_g();
    let mut pipeline = std::process::Command::new(shell);
    pipeline.args(["-c", r#""$T" consume "$LOG" -g g | head -10"#]);
    pipeline.env("T", crate::sandbox::binary()).env("LOG", sandbox.log());
    crate::sandbox::foreground(pipeline).prints(want(1, 10));
    // Head reads a block of at most 64 KiB at once; what it did not take comes again.
    let position = sandbox.position("g");
    assert!((10..=65_536 / 9).contains(&position), "{position}");
    sandbox.tapelog("consume -g g").prints(want(position + 1, 100_000));
}

#[test]
fn commit_manual_stores_nothing_by_itself() {
    let sandbox = Sandbox::new();
    sandbox.mk(10);
    sandbox.commit("g", 2);
    sandbox.tapelog("consume -g g --commit manual").prints(want(3, 10));
    sandbox.tapelog("consume -g g --commit manual -n 1").prints(want(3, 3));
    sandbox.tapelog("commit -g g 3").prints("");
    sandbox.tapelog("consume -g g").prints(want(4, 10));
}

#[test]
fn a_commit_makes_a_group_and_says_so_once() {
    let sandbox = Sandbox::new();
    sandbox.mk(10);
    sandbox.tapelog("commit -g g 4").notes("", &["new group g at 4"]);
    sandbox.tapelog("commit -g g 4").prints("");
    sandbox.tapelog("commit -g quiet 4 -q").prints("");
    sandbox.tapelog("consume -g g").prints(want(5, 10));
}

#[test]
fn groups_read_side_by_side_and_do_not_know_each_other() {
    let sandbox = Sandbox::new();
    sandbox.mk(10);
    sandbox.tapelog("consume -g a -n 7 -q").prints(want(1, 7));
    sandbox.tapelog("consume -g b -n 2 -q").prints(want(1, 2));
    sandbox.tapelog("consume -g a").prints(want(8, 10));
    sandbox.tapelog("consume -g b").prints(want(3, 10));
}

#[test]
fn with_a_at_the_end_and_b_in_the_middle_gc_removes_exactly_what_is_below_b() {
    let sandbox = Sandbox::hundreds(10);
    sandbox.commit("a", 1000);
    sandbox.commit("b", 550);
    sandbox.tapelog("gc").outcome().succeeded();
    assert_eq!(sandbox.bases(), [500, 600, 700, 800, 900]);
    for segment in sandbox.tapelog("segments -J").json() {
        assert_eq!(segment["needed_by"], serde_json::json!(["b"]), "{segment}");
    }
}
