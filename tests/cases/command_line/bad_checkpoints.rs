//! One checkpoint that can't be read, and what the other groups have to suffer from it:
//! nothing, but that gc waits.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::sandbox::{Expect, Outcome, Sandbox, foreground, status, tree};

/// The checkpoint of the group in the middle.
fn bad(sandbox: &Sandbox) -> PathBuf {
    sandbox.log().join("groups/bad.checkpoint")
}

/// Ten segments; all are done with by `a` and `c`, and what `bad` says is nonsense.
fn with_a_damaged_one() -> Sandbox {
    let sandbox = Sandbox::hundreds(10);
    for group in ["a", "bad", "c"] {
        sandbox.commit(group, 950);
    }
    fs::write(bad(&sandbox), "nonsense").unwrap();
    sandbox
}

/// The same, but `bad` is a good checkpoint of another log.
fn with_a_foreign_one() -> Sandbox {
    let sandbox = with_a_damaged_one();
    let other = sandbox.path("other");
    let mut produce = foreground(sandbox.command_on(&other, "produce"));
    produce.write_stdin("x\n").outcome().succeeded();
    foreground(sandbox.command_on(&other, "commit -g bad 1")).outcome().succeeded();
    fs::copy(other.join("groups/bad.checkpoint"), bad(&sandbox)).unwrap();
    sandbox
}

/// Both, with the status that they end with.
fn both() -> [(Sandbox, i32); 2] {
    [(with_a_damaged_one(), status::DAMAGE), (with_a_foreign_one(), status::RANGE)]
}

/// The words of the line that names the checkpoint and both ways out.
const WAYS_OUT: [&str; 3] = ["groups/bad.checkpoint", "-g bad --to PLACE", "-g bad --delete"];

fn rows(outcome: Outcome) -> Vec<Value> {
    outcome.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn groups_shows_the_others_and_ends_with_what_is_wrong() {
    for (sandbox, ends) in both() {
        let outcome = sandbox.tapelog("groups").outcome().ended(ends).said(&WAYS_OUT);
        let table = outcome.text();
        let bad = table.lines().find(|line| line.starts_with("bad")).unwrap();
        let cells: Vec<&str> = bad.split_whitespace().collect();
        assert_eq!(cells, ["bad", "?", "1000", "?", "?", "?", "-"]);
        assert_eq!(table.lines().count(), 4, "{table}");
        let rows = rows(sandbox.tapelog("groups -J").outcome().ended(ends).said(&WAYS_OUT));
        let positions: Vec<&Value> = rows.iter().map(|row| &row["position"]).collect();
        assert_eq!(positions, [&950.into(), &Value::Null, &950.into()]);
    }
}

#[test]
fn a_healthy_group_by_its_name_is_all_right() {
    for (sandbox, ends) in both() {
        sandbox.tapelog("groups -g a").text();
        sandbox.tapelog("groups -g bad").outcome().ended(ends).said(&WAYS_OUT);
    }
}

#[test]
fn segments_shows_all_and_says_whose_needs_are_not_known() {
    for (sandbox, ends) in both() {
        let outcome = sandbox.tapelog("segments -J").outcome().ended(ends).said(&WAYS_OUT);
        assert_eq!(rows(outcome).len(), 10);
        assert_eq!(sandbox.summary()["segments"], 10);
    }
}

#[test]
fn gc_refuses_and_changes_nothing() {
    for (sandbox, ends) in both() {
        let before = tree(sandbox.log());
        for line in ["gc", "gc --roll", "gc --dry-run", "gc -J"] {
            sandbox.tapelog(line).fails(ends, &WAYS_OUT);
        }
        assert!(tree(sandbox.log()) == before);
    }
}

#[test]
fn both_ways_out_lead_out() {
    for (sandbox, _) in both() {
        sandbox.tapelog("groups -g bad --delete").prints("");
        sandbox.tapelog("groups").text();
    }
    for (sandbox, _) in both() {
        sandbox.tapelog("seek -g bad --to 960").outcome().succeeded();
        sandbox.tapelog("gc").outcome().succeeded();
        assert_eq!(sandbox.bases(), [900]);
    }
}

#[test]
fn the_gravest_of_two_counts_and_both_are_told() {
    let sandbox = with_a_foreign_one();
    fs::write(sandbox.log().join("groups/a.checkpoint"), "nonsense").unwrap();
    let outcome = sandbox.tapelog("groups").outcome().ended(status::DAMAGE);
    let outcome = outcome.with_words(&["groups/a.checkpoint", "groups/bad.checkpoint"]);
    assert_eq!(outcome.errors().len(), 2, "{outcome}");
}
