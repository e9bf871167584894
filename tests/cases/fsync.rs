//! H026 to H029: what is acknowledged was synced before, names included; a sync that
//! failed is final.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::sandbox::{
    Call, Expect, Outcome, Sandbox, Strace, calls, cut, foreground, offsets, status, want,
    was_injected,
};

/// Runs it under strace; gives its calls.
fn traced(strace: &Strace, sandbox: &Sandbox, line: &str, input: &str) -> Vec<Call> {
    let command = strace.of(sandbox, &[], &sandbox.command(line));
    foreground(command).write_stdin(input).outcome().succeeded();
    calls(sandbox)
}

/// Something on stdout, a pipe.
fn prints(call: &Call) -> bool {
    call.name == "pwritev2" && call.arguments.starts_with("1<") && call.succeeded()
}

/// Receipts on stdout, or an end with 0.
fn acknowledges(call: &Call) -> bool {
    prints(call) || (call.name == "exit_group" && call.arguments == "0")
}

fn is_segment(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "log")
}

/// The segment that a call syncs.
fn synced_segment(call: &Call) -> Option<PathBuf> {
    let syncs = ["fsync", "fdatasync"].contains(&call.name.as_str()) && call.succeeded();
    call.file().filter(|file| syncs && is_segment(file))
}

/// Runs the command on copies of a log with each of its syncs failing once; says how
/// many there were.
fn with_each_sync_failing(
    strace: &Strace,
    before: &Sandbox,
    (line, input): (&str, &str),
    check: impl Fn(&Sandbox, Outcome),
) -> usize {
    let mut failed = 0;
    for name in ["fsync", "fdatasync"] {
        for nth in 1.. {
            let sandbox = before.copy();
            let fault = format!("inject={name}:error=EIO:when={nth}");
            let command = strace.of(&sandbox, &["-e", &fault], &sandbox.command(line));
            let outcome = foreground(command).write_stdin(input).outcome();
            if !was_injected(&sandbox) {
                break;
            }
            failed += 1;
            let outcome = outcome.ended(status::FAILED);
            assert_eq!(outcome.errors().len(), 1, "{outcome}");
            check(&sandbox, outcome);
        }
    }
    failed
}

#[test]
fn h026_a_sync_that_failed_is_not_tried_again_and_nothing_more_is_acknowledged() {
    let Some(strace) = Strace::find("h026") else { return };
    let before = Sandbox::with_config("segment-size=512");
    let input = want(1, 10);
    let run = ("produce --batch-records 1 --sync each --receipt", input.as_str());
    let failed = with_each_sync_failing(&strace, &before, run, |sandbox, outcome| {
        nothing_follows_the_failed_sync(&calls(sandbox));
        let receipts = offsets(&outcome.text());
        assert!(receipts.iter().copied().eq(0..receipts.len() as u64));
        let stored = sandbox.all().outcome().succeeded().text();
        assert!(want(1, 10).starts_with(&stored));
        assert!(receipts.len() <= stored.lines().count());
        sandbox.tapelog("produce").write_stdin("x\n").outcome().succeeded();
        sandbox.all().prints(stored + "x\n");
    });
    assert!(failed > 10, "{failed}");
}

/// Nothing is acknowledged after it, and the file is not synced a second time.
fn nothing_follows_the_failed_sync(calls: &[Call]) {
    let failed = calls.iter().position(|call| call.result.contains("(INJECTED)")).unwrap();
    let (file, after) = (calls[failed].file(), &calls[failed + 1..]);
    assert!(!after.iter().any(acknowledges), "{file:?}");
    assert!(!after.iter().any(|call| call.name.ends_with("sync") && call.file() == file));
}

/// Names that matter: all but those of derived files and of what is for people.
fn matters(path: &Path) -> bool {
    let derived = [".index", ".holder"];
    !derived.iter().any(|suffix| path.to_string_lossy().ends_with(suffix))
}

/// The names in the sandbox that were given before an acknowledgement, and not synced.
fn unsynced_names(sandbox: &Sandbox, calls: &[Call]) -> BTreeSet<PathBuf> {
    let mut pending = BTreeSet::new();
    let mut exceptions = BTreeSet::new();
    for call in calls.iter().filter(|call| call.succeeded() || acknowledges(call)) {
        let names = call.names();
        match call.kind() {
            "open" if call.creates() => pending.extend(names.last().cloned()),
            "mkdir" | "link" => pending.extend(names.last().cloned()),
            "rename" => {
                pending.remove(&names[0]);
                pending.extend(names.last().cloned());
            }
            "unlink" => drop(pending.remove(&names[0])),
            "fsync" => {
                let dir = call.file().unwrap();
                pending.retain(|path| path.parent() != Some(&dir));
            }
            _ if acknowledges(call) => exceptions.extend(pending.iter().cloned()),
            _ => {}
        }
    }
    exceptions.retain(|path| path.starts_with(sandbox.path("")) && matters(path));
    exceptions
}

#[test]
fn h027_every_name_is_synced_before_what_depends_on_it_is_acknowledged() {
    let Some(strace) = Strace::find("h027") else { return };
    let sandbox = Sandbox::new();
    let each = "produce --receipt --sync each --batch-records 4";
    let check = |line: &str, input: &str| {
        let calls = traced(&strace, &sandbox, line, input);
        assert_eq!(unsynced_names(&sandbox, &calls), BTreeSet::new(), "{line}");
        calls.iter().filter(|call| acknowledges(call)).count()
    };
    assert!(check(each, &want(1, 8)) > 2, "receipts were seen");
    check("config segment-size=512", "");
    assert!(check(each, &want(9, 100)) > 10);
    assert!(sandbox.segments().len() > 3, "it rolled");
    check("produce", &want(101, 200));
    check("commit -g g 150", "");
    check("seek -g g --to earliest -q", "");
    check("seek -g new --to 150 -q", "");
    check("consume -g late -q", "");
    check("gc", "");
}

#[test]
fn h027_the_name_of_what_was_set_aside_is_synced() {
    let Some(strace) = Strace::find("h027") else { return };
    let sandbox = Sandbox::new();
    sandbox.mkx(10);
    cut(&sandbox.active(), 3);
    let calls = traced(&strace, &sandbox, "produce --receipt", "x\n");
    assert_eq!(unsynced_names(&sandbox, &calls), BTreeSet::new());
    assert_eq!(sandbox.quarantine().len(), 1);
}

#[test]
fn h027_a_new_log_has_its_own_name_synced() {
    let Some(strace) = Strace::find("h027") else { return };
    for line in ["produce --receipt", "config segment-size=1M"] {
        let sandbox = Sandbox::new();
        let calls = traced(&strace, &sandbox, line, "x\n");
        assert_eq!(unsynced_names(&sandbox, &calls), BTreeSet::new(), "{line}");
    }
}

/// How many batches a `pwritev` wrote: a header and a body each.
fn batches_in(call: &Call) -> u64 {
    let parts = call.arguments.rsplit(", ").nth(1).unwrap();
    parts.parse::<u64>().unwrap() / 2
}

/// Checks that each printed receipt comes after a sync that began after its batch was
/// written; says how many there were.
fn receipts_follow_their_sync(calls: &[Call]) -> u64 {
    let (mut written, mut safe, mut receipts) = (0, 0, 0);
    for call in calls {
        let file = call.file();
        if call.name == "pwritev" && file.is_some_and(|file| is_segment(&file)) {
            written += batches_in(call);
        } else if synced_segment(call).is_some() {
            safe = written;
        } else if prints(call) {
            receipts += call.arguments.matches("\\n").count() as u64;
            assert!(receipts <= safe, "{receipts} receipts when {safe} records were synced");
        }
    }
    receipts
}

#[test]
fn h028_no_receipt_comes_before_the_sync_that_covers_it() {
    let Some(strace) = Strace::find("h028") else { return };
    for sync in ["each", "1ms", "1s"] {
        let sandbox = Sandbox::with_config("segment-size=4096");
        let line = format!("produce --batch-records 1 --receipt --sync {sync}");
        let whole_writes = ["-s", "65536"];
        let command = strace.of(&sandbox, &whole_writes, &sandbox.command(&line));
        foreground(command).write_stdin(want(1, 1000)).outcome().succeeded();
        assert_eq!(receipts_follow_their_sync(&calls(&sandbox)), 1000, "{sync}");
    }
}

#[test]
fn h028_help_says_what_each_sync_can_lose() {
    let help = Sandbox::new().bare().args(["produce", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let promises = ["What a power cut can lose:", "--sync 1s ", "--sync each ", "--sync none "];
    for words in promises {
        assert!(help.contains(words), "{words:?}: {help}");
    }
}

#[test]
fn h029_gc_removes_nothing_before_the_new_log_start_is_synced() {
    let Some(strace) = Strace::find("h029") else { return };
    let before = Sandbox::hundreds(4);
    before.commit("g", 300);
    let kept = Cell::new(0);
    let failed = with_each_sync_failing(&strace, &before, ("gc", ""), |sandbox, _| {
        // Only the last sync, of what is gone already, comes after a removal.
        if sandbox.segments().len() == 4 {
            let bytes = |sandbox: &Sandbox| sandbox.segments().iter().map(read).collect::<Vec<_>>();
            assert!(bytes(sandbox) == bytes(&before), "the segments are as they were");
            kept.set(kept.get() + 1);
        } else {
            assert_eq!(sandbox.segments().len(), 1);
        }
        sandbox.tapelog("gc").outcome().succeeded();
        sandbox.all().prints(want(301, 400));
        assert_eq!(sandbox.append("x"), 400);
    });
    assert_eq!(failed - kept.get(), 1);
    assert!(kept.get() > 1, "{}", kept.get());
}

fn read(path: &PathBuf) -> Vec<u8> {
    fs::read(path).unwrap()
}

#[test]
fn h029_settings_are_the_old_ones_or_the_new_ones_whichever_sync_fails() {
    let Some(strace) = Strace::find("h029") else { return };
    let before = Sandbox::with_config("max-record-size=1000");
    before.produce("", want(1, 5));
    let old = before.tapelog("config -J").text();
    let run = ("config max-record-size=2000", "");
    let failed = with_each_sync_failing(&strace, &before, run, |sandbox, _| {
        let now = sandbox.tapelog("config -J").text();
        assert!(now == old || now.contains("2000"), "{now}");
        sandbox.config("max-record-size=2000");
        sandbox.all().prints(want(1, 5));
    });
    assert_eq!(failed, 2, "the new file and its name");
}
