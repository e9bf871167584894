//! H075: no data file takes the place of a closed standard stream.

use std::fs;
use std::process::Command;

use crate::sandbox::{Call, Expect, Sandbox, Strace, calls, foreground, status, want};

/// The command with standard streams closed: `"<&-"`, `">&- 2>&-"`.
fn closed(streams: &str, command: &Command) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.env_clear().current_dir(command.get_current_dir().unwrap());
    shell
        .args(["-c", &format!(r#"exec "$@" {streams}"#), "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    shell
}

/// Runs it.
fn with_closed(streams: &str, command: &Command) -> assert_cmd::Command {
    foreground(closed(streams, command))
}

#[test]
fn h075_a_producer_with_closed_streams_stores_exactly_its_input() {
    for streams in [">&-", "2>&-", ">&- 2>&-"] {
        let sandbox = Sandbox::new();
        with_closed(streams, &sandbox.command("produce --receipt"))
            .write_stdin(want(1, 100))
            .outcome()
            .succeeded();
        sandbox.produce("", want(101, 102));
        sandbox.all().prints(want(1, 102));
    }
}

#[test]
fn h075_a_producer_with_files_and_all_streams_closed_stores_exactly_these() {
    let sandbox = Sandbox::new();
    let mut produce = sandbox.command("produce");
    produce.arg(sandbox.file("in", want(1, 100)));
    with_closed("<&- >&- 2>&-", &produce).outcome().succeeded();
    sandbox.all().prints(want(1, 100));
}

#[test]
fn h075_a_closed_stdin_is_an_empty_one() {
    let sandbox = Sandbox::new();
    sandbox.mk(10);
    with_closed("<&-", &sandbox.command("produce")).prints("");
    with_closed("<&- >&- 2>&-", &sandbox.command("produce")).prints("");
    sandbox.all().prints(want(1, 10));
}

#[test]
fn h075_a_closed_stdout_is_a_null_device_for_a_group() {
    let sandbox = Sandbox::new();
    sandbox.mk(100);
    sandbox.tapelog("commit -g g 0").outcome().succeeded();
    let before = fs::read(sandbox.active()).unwrap();
    with_closed(">&-", &sandbox.command("consume -g g")).prints("");
    with_closed("<&- >&- 2>&-", &sandbox.command("consume")).prints("");
    assert!(before == fs::read(sandbox.active()).unwrap(), "no segment was written into");
    assert_eq!(sandbox.position("g"), 100);
    sandbox.all().prints(want(1, 100));
}

#[test]
fn h075_errors_that_nobody_hears_keep_their_status() {
    let sandbox = Sandbox::new();
    with_closed("2>&-", &sandbox.command("consume")).outcome().ended(status::NOT_THERE).printed("");
    with_closed("<&- >&- 2>&-", &sandbox.command("consume --nonsense"))
        .outcome()
        .ended(status::USAGE)
        .printed("");
}

/// A run of every command, in an order in which each has something to do.
const RUNS: [&str; 11] = [
    "config segment-size=512",
    "produce --receipt --batch-records 10",
    "consume",
    "consume -g g",
    "commit -g new 50",
    "seek -g g --to 90",
    "consume -g g -f --timeout 100ms",
    "groups",
    "segments",
    "gc --roll",
    "groups -g new --delete",
];

/// The calls by which a run opened files in the sandbox.
fn opened(sandbox: &Sandbox) -> impl Iterator<Item = Call> {
    let ours = sandbox.path("");
    let is_ours = move |call: &Call| call.opened().is_some_and(|(_, path)| path.starts_with(&ours));
    calls(sandbox).into_iter().filter(is_ours)
}

#[test]
fn h075_no_file_of_a_log_gets_the_number_of_a_closed_stream() {
    let Some(strace) = Strace::find("h075") else { return };
    let streams = ["<&-", ">&-", "2>&-"];
    for combination in 1..8 {
        let is_closed = |n: &usize| combination & (1 << n) != 0;
        let closing: Vec<&str> = (0..3).filter(is_closed).map(|n| streams[n]).collect();
        let closing = closing.join(" ");
        let sandbox = Sandbox::new();
        let mut opens = 0;
        for line in RUNS {
            let mut command = sandbox.command(line);
            if line.starts_with("produce") {
                command.arg(sandbox.file("in", want(1, 100)));
            }
            let traced =
                strace.of(&sandbox, &["-e", "trace=?open,openat"], &closed(&closing, &command));
            foreground(traced).outcome().succeeded();
            for call in opened(&sandbox) {
                let (number, path) = call.opened().unwrap();
                assert!(number > 2, "{line} {closing}: {path:?} is {number}");
                opens += 1;
            }
        }
        assert!(opens > 50, "{opens}");
        sandbox.tapelog("seek -g g --to earliest -q").outcome().succeeded();
        sandbox.all().prints(want(31, 100));
    }
}

/// What may make a handle, and how it says that it is closed on exec.
const MAKERS: [(&str, &str); 11] = [
    ("open", "O_CLOEXEC"),
    ("openat", "O_CLOEXEC"),
    ("socket", "SOCK_CLOEXEC"),
    ("socketpair", "SOCK_CLOEXEC"),
    ("pipe2", "O_CLOEXEC"),
    ("inotify_init1", "IN_CLOEXEC"),
    ("epoll_create1", "EPOLL_CLOEXEC"),
    ("eventfd2", "EFD_CLOEXEC"),
    ("dup3", "O_CLOEXEC"),
    ("signalfd4", "SFD_CLOEXEC"),
    ("memfd_create", "MFD_CLOEXEC"),
];
/// These can't say so.
const LEAKERS: [&str; 7] =
    ["creat", "pipe", "dup", "dup2", "inotify_init", "epoll_create", "eventfd"];

#[test]
fn every_handle_is_closed_on_exec() {
    let Some(strace) = Strace::find("handles") else { return };
    let sandbox = Sandbox::new();
    let mut made = 0;
    for line in RUNS {
        let traced = strace.of(&sandbox, &[], &sandbox.command(line));
        foreground(traced).write_stdin(want(1, 100)).outcome().succeeded();
        for call in calls(&sandbox).iter().filter(|call| call.succeeded()) {
            let leaks = LEAKERS.contains(&call.name.as_str())
                || (call.name == "fcntl" && call.arguments.contains("F_DUPFD,"));
            assert!(!leaks, "{line}: {call:?}");
            let Some((_, closes)) = MAKERS.iter().find(|(name, _)| *name == call.name) else {
                continue;
            };
            assert!(call.arguments.contains(closes), "{line}: {call:?}");
            made += 1;
        }
    }
    assert!(made > 100, "{made}");
}
