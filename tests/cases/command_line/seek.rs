//! `seek`: every target, dry runs, history and its undoing.

use crate::sandbox::{Expect, Sandbox, status, want};

/// Ten records, one a minute from 10:00 on; g at 6, h at 8.
fn g_at_6() -> Sandbox {
    let sandbox = Sandbox::new();
    for minute in 0..10 {
        let time = format!("2026-01-01T10:0{minute}:00Z");
        sandbox.produce_at(&time, &want(minute + 1, minute + 1));
    }
    sandbox.commit("h", 8);
    sandbox.commit("g", 6);
    sandbox
}

/// A seek of g in words, and where it lands.
const TARGETS: [(&str, u64); 26] = [
    ("--to earliest", 0),
    ("--to start", 0),
    ("--to beginning", 0),
    ("--to latest", 10),
    ("--to end", 10),
    ("--to 4", 4),
    ("--to 10", 10),
    ("--to -3", 7),
    ("--to -99", 0),
    ("--to +3", 3),
    ("--to @2026-01-01T10:04:00Z", 4),
    ("--to @2026-01-01T10:04:00.001Z", 5),
    ("--to @-2m", 8),
    ("--to-earliest", 0),
    ("--to-latest", 10),
    ("--to-offset 4", 4),
    ("--shift-by -2", 4),
    ("--shift-by +2", 8),
    ("--shift-by 2", 8),
    ("--to-datetime 2026-01-01T10:04:00.000Z", 4),
    ("--to-datetime 2026-01-01T10:04:00", 4),
    ("--by-duration 3m", 7),
    ("--by-duration PT3M", 7),
    ("--to-current", 6),
    ("--to-group h", 8),
    ("--to-offset 4 --execute", 4),
];

#[test]
fn every_target_lands_where_it_says() {
    let sandbox = g_at_6();
    for (words, lands) in TARGETS {
        sandbox.seek("g", "6");
        let seek = sandbox.at("2026-01-01T10:10:00Z", &format!("seek -g g {words}")).outcome();
        let outcome = seek.succeeded();
        let printed = String::from_utf8_lossy(&outcome.stdout);
        // Behind it stands the moment, where one was sought.
        let line = printed.split(", the").next().unwrap().trim_end();
        assert_eq!(line, format!("g: 6 -> {lands}"), "{words}: {outcome}");
        assert_eq!(sandbox.position("g"), lands, "{words}");
    }
}

#[test]
fn a_dry_run_says_the_same_and_moves_nothing() {
    let sandbox = g_at_6();
    for (words, lands) in TARGETS.iter().filter(|(words, _)| !words.contains("--execute")) {
        let line = format!("seek -g g --dry-run {words}");
        let outcome = sandbox.at("2026-01-01T10:10:00Z", &line).outcome().succeeded();
        assert!(outcome.text().starts_with(&format!("g: 6 -> {lands}")), "{words}");
    }
    assert_eq!(sandbox.position("g"), 6);
    sandbox.tapelog("seek -g g --undo").outcome().ended(status::FAILED).printed("");
}

#[test]
fn a_dry_run_makes_no_group() {
    let sandbox = g_at_6();
    sandbox.tapelog("seek -g new --to 3 --dry-run").outcome().succeeded();
    sandbox.tapelog("groups -g new").fails(status::NOT_THERE, &["new"]);
}

#[test]
fn seek_makes_a_group_and_says_so() {
    let sandbox = g_at_6();
    let outcome = sandbox.tapelog("seek -g new --to 3").outcome().succeeded();
    outcome.with_words(&["new group new at 3"]);
    sandbox.tapelog("consume -g new").prints(want(4, 10));
}

#[test]
fn json_names_the_group_and_both_positions() {
    let sandbox = g_at_6();
    let seek = |line: &str| sandbox.tapelog(line).json().remove(0);
    let want = serde_json::json!({"group": "g", "from": 6, "to": 2});
    assert_eq!(seek("seek -g g --to 2 -J --dry-run"), want);
    assert_eq!(seek("seek -g g --to 2 -J"), want);
    let want = serde_json::json!({"group": "new", "from": null, "to": 2});
    assert_eq!(seek("seek -g new --to 2 -J -q"), want);
}

#[test]
fn undo_takes_back_one_seek_after_the_other() {
    let sandbox = g_at_6();
    for to in ["2", "9", "4"] {
        sandbox.seek("g", to);
    }
    sandbox.tapelog("seek -g g --undo").prints("g: 4 -> 9\n");
    sandbox.tapelog("seek -g g --undo").prints("g: 9 -> 2\n");
    sandbox.tapelog("seek -g g --undo").prints("g: 2 -> 6\n");
    sandbox.tapelog("seek -g g --undo").fails(status::FAILED, &["g", "take back"]);
    assert_eq!(sandbox.position("g"), 6);
}

#[test]
fn undo_begins_again_with_a_new_seek() {
    let sandbox = g_at_6();
    sandbox.seek("g", "2");
    sandbox.tapelog("seek -g g --undo").prints("g: 2 -> 6\n");
    sandbox.seek("g", "3");
    sandbox.tapelog("seek -g g --undo").prints("g: 3 -> 6\n");
}

#[test]
fn undo_can_be_looked_at_first() {
    let sandbox = g_at_6();
    sandbox.seek("g", "2");
    sandbox.tapelog("seek -g g --undo --dry-run").prints("g: 2 -> 6\n");
    assert_eq!(sandbox.position("g"), 2);
    sandbox.tapelog("seek -g g --undo").prints("g: 2 -> 6\n");
}

#[test]
fn undo_goes_back_to_before_the_seek_whatever_was_read_since() {
    let sandbox = g_at_6();
    sandbox.seek("g", "0");
    sandbox.tapelog("consume -g g -n 3").prints(want(1, 3));
    sandbox.tapelog("seek -g g --undo").prints("g: 3 -> 6\n");
}

#[test]
fn undo_to_where_nothing_is_left_is_out_of_range_and_moves_nothing() {
    let sandbox = Sandbox::hundreds(10);
    sandbox.commit("g", 100);
    sandbox.seek("g", "900");
    sandbox.tapelog("gc").outcome().succeeded();
    sandbox.tapelog("seek -g g --undo").fails(status::RANGE, &["100", "900"]);
    assert_eq!(sandbox.position("g"), 900);
}

#[test]
fn undo_of_a_group_that_is_not_there_makes_none() {
    let sandbox = g_at_6();
    sandbox.tapelog("seek -g new --undo").fails(status::NOT_THERE, &["new"]);
    sandbox.tapelog("groups -g new").fails(status::NOT_THERE, &["new"]);
}

#[test]
fn the_history_holds_every_seek_a_line_each() {
    let sandbox = g_at_6();
    sandbox.seek("g", "2");
    sandbox.seek("g", "9");
    let history = std::fs::read_to_string(sandbox.log().join("groups/g.history")).unwrap();
    let lines: Vec<serde_json::Value> =
        history.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{history}");
    assert_eq!((&lines[1]["from"], &lines[1]["to"]), (&2.into(), &9.into()), "{history}");
}

#[test]
fn a_seek_that_moves_nothing_is_no_step_for_an_undo() {
    let sandbox = g_at_6();
    sandbox.seek("g", "2");
    sandbox.tapelog("seek -g g --to-current").prints("g: 2 -> 2\n");
    sandbox.tapelog("seek -g g --to 2").prints("g: 2 -> 2\n");
    sandbox.tapelog("seek -g g --undo").prints("g: 2 -> 6\n");
    sandbox.tapelog("seek -g g --undo").fails(status::FAILED, &["take back"]);
}

#[test]
fn an_undo_that_moves_nothing_is_done_all_the_same() {
    let sandbox = g_at_6();
    sandbox.seek("g", "2");
    sandbox.seek("g", "5");
    sandbox.seek("g", "8");
    sandbox.seek("g", "0");
    sandbox.tapelog("consume -g g -n 8").prints(want(1, 8));
    sandbox.tapelog("seek -g g --undo").prints("g: 8 -> 8\n");
    sandbox.tapelog("seek -g g --undo").prints("g: 8 -> 5\n");
}

#[test]
fn one_target_at_a_time() {
    let sandbox = g_at_6();
    for words in
        ["--to 1 --to-offset 2", "--undo --to-latest", "--shift-by 1 --to-earliest", "--to 2:4"]
    {
        let outcome = sandbox.tapelog(&format!("seek -g g {words}")).outcome();
        outcome.ended(status::USAGE).printed("");
    }
    assert_eq!(sandbox.position("g"), 6);
}

#[test]
fn a_file_of_positions_moves_its_groups() {
    let sandbox = g_at_6();
    sandbox.seek("g", "2");
    let kept = sandbox.tapelog("groups -g g -J").text();
    sandbox.file("kept", kept);
    sandbox.seek("g", "9");
    sandbox.tapelog("seek -g g --from-file kept").prints("g: 9 -> 2\n");
    sandbox.file("kafkas", "orders,0,5\n");
    sandbox.tapelog("seek -g g --from-file kafkas").prints("g: 2 -> 5\n");
    sandbox.file("other", "orders,1,7\n");
    sandbox.tapelog("seek -g g --from-file other").fails(status::FAILED, &["partition 1"]);
    sandbox.file("two", "orders,0,7\norders,1,7\n");
    sandbox.tapelog("seek -g g --from-file two").fails(status::FAILED, &["more than one line"]);
    assert_eq!(sandbox.position("g"), 5);
}
