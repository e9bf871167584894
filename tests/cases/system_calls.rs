//! The system's calls under strace: a signal that comes between, and a file system that
//! is a server's.

use std::fs;
use std::process::Command;

use crate::sandbox::{Expect, Sandbox, binary, find_program, foreground, skip, status, tree, want};

/// `tapelog LINE` under strace with these options, or `None`, said, where that can't be.
fn traced(sandbox: &Sandbox, case: &str, options: &[&str], line: &str) -> Option<Command> {
    let works = |strace: &std::path::PathBuf| {
        let probe = Command::new(strace).args(["-o", "/dev/null", "/bin/true"]).output();
        probe.unwrap().status.success()
    };
    let Some(strace) = find_program("strace").filter(works) else {
        skip(case, "strace is not installed, or may not trace");
        return None;
    };
    let mut words = line.split_whitespace();
    let mut command = Command::new(strace);
    command.env_clear().args(["-f", "-qq", "-o"]).arg(sandbox.path("strace")).args(options);
    command.arg(binary()).args(words.next()).arg(sandbox.log()).args(words);
    Some(command)
}

/// The calls that a signal may interrupt: every second one on a file of the log is.
const INTERRUPTED: [&str; 9] = [
    "?open,openat",
    "fsync",
    "fdatasync",
    "ftruncate",
    "flock",
    "pwritev",
    "pwrite64",
    "pread64",
    "statfs",
];

/// What a commit costs is its calls, of which instruction counts know nothing.
#[test]
fn a_commit_after_each_record_takes_one_call_more_for_each() {
    let sandbox = Sandbox::new();
    sandbox.mk(1000);
    let calls = [100, 1000].map(|records| {
        let line = format!("consume -g g{records} -q --commit-every 1 -n {records}");
        let mut command = traced(&sandbox, "the calls of a commit", &[], &line)?;
        let output = fs::File::create(sandbox.path("output")).unwrap();
        assert!(command.stdout(output).status().unwrap().success());
        Some(fs::read_to_string(sandbox.path("strace")).unwrap().lines().count())
    });
    let [Some(few), Some(many)] = calls else { return };
    // The record's own write and the checkpoint's, and a sync each second.
    let more = many.saturating_sub(few);
    assert!((1800..1900).contains(&more), "{more} calls more for 900 records");
}

#[test]
fn calls_that_a_signal_interrupts_are_made_again() {
    for call in INTERRUPTED {
        let sandbox = Sandbox::with_config("segment-size=512");
        sandbox.produce("--batch-records 1", want(1, 20));
        let groups = sandbox.log().join("groups");
        let inject = format!("inject={call}:error=EINTR:when=1+2");
        let mut options = vec!["-e", &inject];
        // Not those of the program's start: the log's own files and directories.
        let names = ["", "lock", "start", "end", "log.json", "segments.index", "groups/g.holder"];
        let paths: Vec<String> = names
            .iter()
            .map(|name| sandbox.log().join(name).to_str().unwrap().trim_end_matches('/').to_owned())
            .chain([groups.to_str().unwrap().to_owned()])
            .chain(sandbox.segments().iter().map(|path| path.to_str().unwrap().to_owned()))
            .collect();
        paths.iter().for_each(|path| options.extend(["-P", path]));
        let mut injected = 0;
        for (line, stdin, printed) in [
            ("produce --receipt", "x\n", "20\n"),
            ("consume -g g -q", "", &(want(1, 20) + "x\n")),
            ("config segment-age=1h", "", ""),
            ("gc --roll", "", ""),
        ] {
            let Some(command) = traced(&sandbox, "interrupted calls", &options, line) else {
                return;
            };
            let outcome = foreground(command).write_stdin(stdin).outcome().succeeded();
            assert!(outcome.errors().is_empty(), "{call}, {outcome}");
            let trace = fs::read_to_string(sandbox.path("strace")).unwrap();
            injected += trace.matches("INJECTED").count();
            if !printed.is_empty() {
                outcome.printed(printed);
            }
        }
        assert!(injected > 0, "{call} was interrupted");
        println!("{call}: {injected}");
        assert_eq!((sandbox.position("g"), sandbox.end()), (21, 21), "{call}");
    }
}

/// What `statfs` finds where NFS is mounted: the first field of its answer.
const NFS: [&str; 2] = ["-e", "inject=statfs:poke_exit=@arg2=6969000000000000"];

#[test]
fn on_a_network_file_system_a_log_can_be_read_and_nothing_is_written() {
    let sandbox = Sandbox::new();
    sandbox.mk(10);
    sandbox.commit("g", 5);
    let before = tree(sandbox.log());
    let on_nfs = |line: &str| traced(&sandbox, "a network file system", &NFS, line);
    for line in [
        "produce",
        "commit -g g 6",
        "commit -g new 6",
        "seek -g g --to latest",
        "consume -g g",
        "consume -g new",
        "gc",
        "config segment-size=1M",
        "groups -g g --delete",
    ] {
        let Some(command) = on_nfs(line) else { return };
        let path = sandbox.log().to_str().unwrap();
        let words = [path, "file system nfs", "locks and syncs can't be relied on", "local"];
        foreground(command).write_stdin("x\n").fails(status::FAILED, &words);
    }
    for line in ["groups", "segments", "config", "gc --dry-run", "seek -g g --to 3 --dry-run"] {
        let Some(command) = on_nfs(line) else { return };
        foreground(command).text();
    }
    let Some(command) = on_nfs("consume") else { return };
    foreground(command).prints(want(1, 10));
    assert!(tree(sandbox.log()) == before);
}

#[test]
fn a_new_log_on_a_network_file_system_is_not_made() {
    for empty_directory in [false, true] {
        let sandbox = Sandbox::new();
        if empty_directory {
            fs::create_dir(sandbox.log()).unwrap();
        }
        let before = tree(&sandbox.path(""));
        let Some(command) = traced(&sandbox, "a network file system", &NFS, "produce") else {
            return;
        };
        foreground(command).write_stdin("x\n").fails(status::FAILED, &["nfs"]);
        fs::remove_file(sandbox.path("strace")).unwrap();
        assert!(tree(&sandbox.path("")) == before);
    }
}

#[test]
fn asking_for_the_file_system_costs_one_call() {
    let sandbox = Sandbox::new();
    sandbox.mk(10);
    for (line, calls) in [("produce", 1), ("consume", 0), ("commit -g g 5", 1)] {
        let options = ["-e", "trace=statfs,fstatfs"];
        let Some(command) = traced(&sandbox, "one call", &options, line) else { return };
        foreground(command).write_stdin("x\n").outcome().succeeded();
        let trace = fs::read_to_string(sandbox.path("strace")).unwrap();
        assert_eq!(trace.matches("statfs(").count(), calls, "{line}: {trace}");
    }
}
