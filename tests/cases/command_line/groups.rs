//! `groups`: positions, lag, holders, and the end of a group.

use std::time::Duration;

use crate::sandbox::{Expect, Sandbox, status, wait_until, want};

const SOON: Duration = Duration::from_secs(5);

/// 10 segments of 100 records; a at 1000 and b at 250.
fn with_a_and_b() -> Sandbox {
    let sandbox = Sandbox::hundreds(10);
    sandbox.commit("a", 1000);
    sandbox.commit("b", 250);
    sandbox
}

#[test]
fn every_group_is_shown_with_its_position_and_lag() {
    let rows = with_a_and_b().tapelog("groups -J").json();
    let shown: Vec<String> = rows
        .iter()
        .map(|row| ["group", "position", "end", "lag"].map(|name| row[name].to_string()).join(" "))
        .collect();
    assert_eq!(shown, [r#""a" 1000 1000 0"#, r#""b" 250 1000 750"#]);
}

#[test]
fn the_names_in_json_are_these() {
    let row = with_a_and_b().group("b");
    let mut names: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["end", "group", "held_bytes", "holder", "lag", "lag_ms", "position"]);
    assert!(row["holder"].is_null() && row["held_bytes"].as_u64() > Some(0), "{row}");
}

#[test]
fn the_table_shows_the_same_for_people() {
    let sandbox = with_a_and_b();
    let table = sandbox.tapelog("groups").text();
    for word in ["GROUP", "POSITION", "END", "LAG", "HOLDER", "250", "750", "1000"] {
        assert!(table.contains(word), "{word} in\n{table}");
    }
    let one = sandbox.tapelog("groups -g b").text();
    assert!(one.contains("250") && one.lines().count() < table.lines().count(), "{one}");
}

#[test]
fn a_log_without_groups_shows_none() {
    let sandbox = Sandbox::new();
    sandbox.mk(3);
    assert!(sandbox.tapelog("groups -J").json().is_empty());
    sandbox.tapelog("groups").outcome().succeeded();
}

#[test]
fn the_lag_in_time_is_the_age_of_the_oldest_record_not_yet_read() {
    let sandbox = Sandbox::new();
    sandbox.produce_at("2026-01-01T10:00:00Z", "a\n");
    sandbox.produce_at("2026-01-01T10:05:00Z", "b\n");
    sandbox.commit("g", 1);
    let rows = sandbox.at("2026-01-01T10:06:00Z", "groups -g g -J").json();
    assert_eq!(rows[0]["lag_ms"], 60_000);
    sandbox.commit("g", 2);
    assert_eq!(sandbox.group("g")["lag_ms"], 0);
}

#[test]
fn a_group_that_is_not_there_is_not_there() {
    let sandbox = with_a_and_b();
    for line in ["groups -g c", "groups -g c -J", "groups -g c --delete", "seek -g a --to-group c"]
    {
        sandbox.tapelog(line).fails(status::NOT_THERE, &["c"]);
    }
}

#[test]
fn a_deleted_group_is_gone_and_begins_anew() {
    let sandbox = with_a_and_b();
    sandbox.tapelog("groups -g b --delete").outcome().succeeded();
    sandbox.tapelog("groups -g b").fails(status::NOT_THERE, &["b"]);
    assert_eq!(sandbox.tapelog("groups -J").json().len(), 1);
    sandbox.tapelog("consume -g b -n 1").notes(want(1, 1), &["new group b at 0"]);
    sandbox.tapelog("seek -g b --undo").outcome().ended(status::FAILED).printed("");
}

#[test]
fn a_deleted_group_holds_nothing_back_any_more() {
    let sandbox = with_a_and_b();
    sandbox.tapelog("groups -g b --delete").outcome().succeeded();
    sandbox.tapelog("gc").outcome().succeeded();
    assert_eq!(sandbox.bases(), [900]);
}

#[test]
fn the_holder_is_named_while_it_reads() {
    let sandbox = with_a_and_b();
    let mut holder = sandbox.spawn("holder", sandbox.command("consume -g b -f"));
    let process = holder.id().to_string();
    wait_until(SOON, "the holder is shown", || {
        sandbox.group("b")["holder"].to_string().contains(&process)
    });
    assert!(sandbox.tapelog("groups -g b").text().contains(&process));
    holder.kill();
    assert!(sandbox.group("b")["holder"].is_null());
}

#[test]
fn names_that_differ_a_little_are_different_groups() {
    let sandbox = Sandbox::new();
    sandbox.mk(10);
    for (n, group) in ["a.b", "a_b", "A.b"].into_iter().enumerate() {
        sandbox.commit(group, n as u64 + 1);
    }
    assert_eq!(["a.b", "a_b", "A.b"].map(|group| sandbox.position(group)), [1, 2, 3]);
}
