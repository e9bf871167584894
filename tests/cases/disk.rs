//! H021 to H025: a disk without room, short writes, bytes that can't be read. What was
//! acknowledged stays, what can be read is read, and afterwards everything goes on.

use std::fs;
use std::process::Command;

use crate::sandbox::{
    Call, Expect, Outcome, Sandbox, Strace, calls, cut, foreground, lines, offsets,
    on_a_small_disk, status, want, was_injected,
};

/// Whole lines of the input, in order, from the first.
fn is_a_prefix(all: &[u8], input: &str) -> bool {
    input.as_bytes().starts_with(all) && all.last().is_none_or(|&byte| byte == b'\n')
}

#[test]
fn h021_a_full_disk_stops_produce_and_loses_nothing_that_was_acknowledged() {
    let sandbox = Sandbox::new();
    let input: String = (0..10_000).map(|n| format!("{n:01023}\n")).collect();
    sandbox.file("in", &input);
    let script = r#"
        "$T" produce log --sync each --receipt <"$OUT/in" >"$OUT/receipts" 2>"$OUT/err"; echo $?
        "$T" consume log >"$OUT/all"; echo $?
        disk 32m
        echo x | "$T" produce log --receipt; echo $?
        "$T" consume log -o -1"#;
    let name = "h021_a_full_disk_stops_produce_and_loses_nothing_that_was_acknowledged";
    let Some(said) = on_a_small_disk(&sandbox, name, "1m", script) else { return };
    let receipts = offsets(&fs::read_to_string(sandbox.path("receipts")).unwrap());
    let all = fs::read(sandbox.path("all")).unwrap();
    let error = fs::read_to_string(sandbox.path("err")).unwrap();
    let read = all.len() as u64 / 1024;
    assert_eq!(said, format!("1\n0\n{read}\n0\nx\n"));
    assert!(is_a_prefix(&all, &input));
    assert_eq!(receipts, Vec::from_iter(0..receipts.len() as u64));
    assert!(receipts.len() as u64 <= read && read > 500, "{} {read}", receipts.len());
    let stored = format!("tapelog: {read} records stored, but then: ");
    assert!(error.starts_with(&stored) && error.contains("o space left"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn h023_a_commit_on_a_full_disk_leaves_a_readable_position() {
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
    let name = "h023_a_commit_on_a_full_disk_leaves_a_readable_position";
    let Some(said) = on_a_small_disk(&sandbox, name, "1m", script) else { return };
    let lines: Vec<&str> = said.lines().collect();
    // The slots are there already, so this commit needs no room; a new group does.
    assert_eq!(lines[..3], ["0", "1", "100"], "{said}");
    let group: serde_json::Value = serde_json::from_str(lines[3]).unwrap();
    assert_eq!((&group["group"], &group["position"]), (&"g".into(), &20.into()));
    assert_eq!(lines.len(), 4, "no half-made group: {said}");
}

#[test]
fn h021_a_log_that_cannot_be_made_on_a_full_disk_leaves_nothing_half_made() {
    let sandbox = Sandbox::new();
    let script = r#"
        cat /dev/zero >filler 2>/dev/null
        echo x | "$T" produce log 2>/dev/null; echo $?
        rm filler
        echo x | "$T" produce log; echo $?
        "$T" consume log"#;
    let name = "h021_a_log_that_cannot_be_made_on_a_full_disk_leaves_nothing_half_made";
    let Some(said) = on_a_small_disk(&sandbox, name, "1m", script) else { return };
    assert_eq!(said, "1\n0\nx\n");
}

#[test]
fn h021_gc_makes_room_on_a_full_disk() {
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
    let Some(said) = on_a_small_disk(&sandbox, "h021_gc_makes_room_on_a_full_disk", "1m", script)
    else {
        return;
    };
    assert_eq!(said, "0\n1\n0\nx\n");
}

#[test]
fn h022_a_torn_tail_on_a_full_disk_is_read_past_and_mended_later() {
    let sandbox = Sandbox::new();
    sandbox.mkx(100);
    cut(&sandbox.active(), 3);
    let script = r#"
        cp -r "$OUT/log" .
        cat /dev/zero >filler 2>/dev/null
        "$T" consume log 2>/dev/null >"$OUT/all"; echo $?
        md5sum log/*.log log/end >"$OUT/before"
        echo x | "$T" produce log --receipt 2>"$OUT/err"; echo $?
        md5sum log/*.log log/end >"$OUT/after"
        ls log/quarantine 2>/dev/null | wc -l
        rm filler
        echo x | "$T" produce log --receipt 2>/dev/null; echo $?
        "$T" consume log -o 98"#;
    let name = "h022_a_torn_tail_on_a_full_disk_is_read_past_and_mended_later";
    let Some(said) = on_a_small_disk(&sandbox, name, "1m", script) else { return };
    assert_eq!(said, "0\n1\n0\n99\n0\nm-000099\nx\n");
    let text = |name: &str| fs::read_to_string(sandbox.path(name)).unwrap();
    assert_eq!(text("all"), want(1, 99));
    assert_eq!(text("before"), text("after"), "nothing was changed");
    assert!(text("err").contains("o space left"), "{}", text("err"));
    assert_eq!(text("err").lines().count(), 1, "{}", text("err"));
}

#[test]
fn h023_a_group_reads_on_and_indexes_are_missed_by_nobody_on_a_full_disk() {
    let sandbox = Sandbox::new();
    let script = r#"
        "$T" config log segment-size=512 >/dev/null
        seq 1000 | "$T" produce log --batch-records 20
        "$T" commit log -g g 10 -q
        rm log/*.index
        cat /dev/zero >filler 2>/dev/null
        "$T" consume log -o 990 -n 1; echo $?
        "$T" consume log -g g | tail -1
        "$T" consume log -g new 2>"$OUT/err" | wc -l
        "$T" groups log -g g -J"#;
    let name = "h023_a_group_reads_on_and_indexes_are_missed_by_nobody_on_a_full_disk";
    let Some(said) = on_a_small_disk(&sandbox, name, "1m", script) else { return };
    let lines: Vec<&str> = said.lines().collect();
    // A new group needs room for its checkpoint; it is told, before anything is read.
    assert_eq!(lines[..4], ["991", "0", "1000", "0"], "{said}");
    let group: serde_json::Value = serde_json::from_str(lines[4]).unwrap();
    assert_eq!(group["position"], 1000);
    let error = fs::read_to_string(sandbox.path("err")).unwrap();
    assert!(error.contains("o space left") && error.lines().count() == 1, "{error}");
}

/// Calls that read a segment, in a run without faults.
fn reads(strace: &Strace, sandbox: &Sandbox, line: &str) -> Vec<Call> {
    let command = strace.of(sandbox, &[], &sandbox.command(line));
    foreground(command).outcome().succeeded();
    let of_a_segment = |call: &Call| {
        call.file().is_some_and(|file| file.extension().is_some_and(|kind| kind == "log"))
    };
    calls(sandbox)
        .into_iter()
        .filter(|call| call.name.starts_with("pread") && of_a_segment(call))
        .collect()
}

/// It ends with 1 and names the file; what it printed are whole records from the first,
/// and says how many. With 0 it did without what it could not read: it printed all.
fn told_of_the_read(outcome: Outcome, call: &Call) -> u64 {
    if outcome.status.success() {
        outcome.silent().printed(want(1, 1000));
        return 1000;
    }
    let file = call.file().unwrap();
    let name = file.file_name().unwrap().to_str().unwrap().to_owned();
    let outcome = outcome.ended(status::FAILED).said(&[&name, "nput/output error"]);
    assert!(is_a_prefix(&outcome.stdout, &want(1, 1000)), "{outcome}");
    outcome.text().lines().count() as u64
}

#[test]
fn h024_a_read_error_is_neither_the_end_nor_damage() {
    let Some(strace) = Strace::find("h024") else { return };
    let before = Sandbox::with_config("segment-size=4096");
    before.mk1(1000);
    before.commit("g", 0);
    for line in ["consume", "consume -g g"] {
        let reads = reads(&strace, &before.copy(), line);
        assert!(reads.len() > 30, "{}", reads.len());
        let mut told = 0;
        for call in reads.iter().step_by(reads.len() / 15) {
            let sandbox = before.copy();
            let fault = format!("{}:error=EIO:when={}", call.name, call.nth);
            let command = strace.inject(&sandbox, &fault, &sandbox.command(line));
            let outcome = foreground(command).outcome();
            assert!(was_injected(&sandbox), "{fault}");
            told += u64::from(!outcome.status.success());
            let printed = told_of_the_read(outcome, call);
            let position = if line == "consume" { 0 } else { printed };
            assert_eq!(sandbox.position("g"), position, "{line}, {fault}");
            sandbox.tapelog("consume -g g").prints(want(position + 1, 1000));
        }
        assert!(told > 5, "{told}");
    }
}

/// A file may not grow beyond so many KiB; `signal` is what happens to SIGXFSZ.
fn with_a_limit(kib: u64, signal: &str, command: &Command) -> assert_cmd::Command {
    let mut shell = Command::new("/bin/sh");
    shell.env_clear().current_dir(command.get_current_dir().unwrap());
    // POSIX counts in half a KiB.
    let script = format!(r#"trap {signal} XFSZ; ulimit -f {}; exec "$@""#, kib * 2);
    shell.args(["-c", &script, "sh"]).arg(command.get_program()).args(command.get_args());
    foreground(shell)
}

#[test]
fn h025_nothing_is_appended_behind_a_short_write() {
    for batch in ["--batch-records 1", "--batch-records 7", ""] {
        for signal in ["-", "''"] {
            let sandbox = Sandbox::new();
            let produce = sandbox.command(&format!("produce --receipt --sync each {batch}"));
            let mut produce = with_a_limit(12, signal, &produce);
            let outcome = produce.write_stdin(lines("m", 1, 2000)).outcome();
            assert!(!outcome.status.success(), "{outcome}");
            if signal == "''" {
                assert_eq!(
                    (outcome.status.code(), outcome.errors().len()),
                    (Some(1), 1),
                    "{outcome}"
                );
            }
            let receipts = offsets(&outcome.text()).len() as u64;
            let next = lines("n", 1, 10);
            let produced = sandbox.tapelog("produce").write_stdin(next.as_str()).outcome();
            assert!(produced.errors().is_empty(), "{produced}");
            produced.succeeded();
            sandbox.delete_indexes();
            let stored = sandbox.end() - 10;
            assert!(stored >= receipts, "{stored} {receipts}");
            sandbox.all().prints(want(1, stored) + &next);
        }
    }
}
