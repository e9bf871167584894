//! A disk without room: what was acknowledged stays, what can be read is read, and
//! with room again everything goes on.

use std::fs;

use crate::sandbox::{Sandbox, offsets, on_a_small_disk};

/// Whole lines of the input, in order, from the first.
fn is_a_prefix(all: &[u8], input: &str) -> bool {
    input.as_bytes().starts_with(all) && all.last().is_none_or(|&byte| byte == b'\n')
}

#[test]
fn a_full_disk_stops_produce_and_loses_nothing_that_was_acknowledged() {
    let sandbox = Sandbox::new();
    let input: String = (0..10_000).map(|n| format!("{n:01023}\n")).collect();
    sandbox.file("in", &input);
    let script = r#"
        "$T" produce log --sync each --receipt <"$OUT/in" >"$OUT/receipts" 2>"$OUT/err"; echo $?
        "$T" consume log >"$OUT/all"; echo $?
        disk 32m
        echo x | "$T" produce log --receipt; echo $?
        "$T" consume log -o -1"#;
    let name = "a_full_disk_stops_produce_and_loses_nothing_that_was_acknowledged";
    let Some(said) = on_a_small_disk(&sandbox, name, "1m", script) else { return };
    let receipts = offsets(&fs::read_to_string(sandbox.path("receipts")).unwrap());
    let all = fs::read(sandbox.path("all")).unwrap();
    let error = fs::read_to_string(sandbox.path("err")).unwrap();
    let read = all.len() as u64 / 1024;
    assert_eq!(said, format!("1\n0\n{read}\n0\nx\n"));
    assert!(is_a_prefix(&all, &input));
    assert_eq!(receipts, Vec::from_iter(0..receipts.len() as u64));
    assert!(receipts.len() as u64 <= read && read > 500, "{} {read}", receipts.len());
    assert!(error.starts_with("tapelog: ") && error.contains("o space left"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn a_commit_on_a_full_disk_leaves_a_readable_position() {
    let sandbox = Sandbox::new();
    let script = r#"
        seq 100 | "$T" produce log
        "$T" commit log -g g 10 -q
        cat /dev/zero >filler 2>/dev/null
        "$T" commit log -g g 20; echo $?
        "$T" commit log -g new 20 2>/dev/null; echo $?
        "$T" consume log | wc -l
        rm filler
        "$T" groups log -J"#;
    let name = "a_commit_on_a_full_disk_leaves_a_readable_position";
    let Some(said) = on_a_small_disk(&sandbox, name, "1m", script) else { return };
    let lines: Vec<&str> = said.lines().collect();
    // The slots are there already, so this commit needs no room; a new group does.
    assert_eq!(lines[..3], ["0", "1", "100"], "{said}");
    let group: serde_json::Value = serde_json::from_str(lines[3]).unwrap();
    assert_eq!((&group["group"], &group["position"]), (&"g".into(), &20.into()));
    assert_eq!(lines.len(), 4, "no half-made group: {said}");
}

#[test]
fn a_log_that_cannot_be_made_on_a_full_disk_leaves_nothing_half_made() {
    let sandbox = Sandbox::new();
    let script = r#"
        cat /dev/zero >filler 2>/dev/null
        echo x | "$T" produce log 2>/dev/null; echo $?
        rm filler
        echo x | "$T" produce log; echo $?
        "$T" consume log"#;
    let name = "a_log_that_cannot_be_made_on_a_full_disk_leaves_nothing_half_made";
    let Some(said) = on_a_small_disk(&sandbox, name, "1m", script) else { return };
    assert_eq!(said, "1\n0\nx\n");
}

#[test]
fn gc_makes_room_on_a_full_disk() {
    let sandbox = Sandbox::new();
    let script = r#"
        "$T" config log segment-size=10K >/dev/null
        seq 20000 | "$T" produce log --batch-records 100
        "$T" commit log -g g 20000 -q
        cat /dev/zero >filler 2>/dev/null
        "$T" gc log >/dev/null; echo $?
        "$T" segments log -J | wc -l
        echo x | "$T" produce log; echo $?
        "$T" consume log -g g"#;
    let Some(said) = on_a_small_disk(&sandbox, "gc_makes_room_on_a_full_disk", "1m", script) else {
        return;
    };
    assert_eq!(said, "0\n1\n0\nx\n");
}
