//! `--commit before`: what is handed over is never handed over again.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;

use crate::sandbox::{
    Call, Expect, Piped, SECOND, Sandbox, Strace, calls, foreground, status, wait_until, want,
};

const SOON: Duration = Duration::from_secs(10);

#[test]
fn h047_with_commit_before_no_record_comes_twice() {
    let sandbox = Sandbox::new();
    sandbox.mk(100_000);
    for signal in [Signal::TERM, Signal::KILL] {
        let group = format!("g{}", signal.as_raw());
        sandbox.commit(&group, 0);
        let line = format!("consume -g {group} --commit before");
        let mut consume = Piped::start(&sandbox, &line);
        let mut out = consume.take(20_000);
        consume.signal(signal);
        assert_eq!(consume.ends_within(SOON).signal(), Some(signal.as_raw()));
        out.extend(consume.rest());
        let whole = memchr::memrchr(b'\n', &out).unwrap() + 1;
        let printed = whole as u64 / 9;
        let position = sandbox.position(&group);
        assert!(want(1, 100_000).as_bytes().starts_with(&out));
        assert!(position >= printed, "{position} is not behind the {printed} printed");
        assert!(position < 100_000, "nor is it at the end");
        sandbox.tapelog(&line).prints(want(position + 1, 100_000));
    }
}

#[test]
fn a_slice_has_at_most_as_many_records_as_a_commit() {
    let sandbox = Sandbox::new();
    sandbox.mk(100_000);
    sandbox.commit("g", 0);
    let mut consume = Piped::start(&sandbox, "consume -g g --commit before --commit-every 100");
    let printed = consume.take(9 * 5000).len() as u64 / 9;
    consume.kill();
    let rest = consume.rest().len() as u64 / 9;
    let position = sandbox.position("g");
    let handed_over = printed + rest;
    assert!((handed_over..=handed_over + 100).contains(&position), "{position}, {handed_over}");
}

#[test]
fn a_command_that_fails_has_had_its_only_try() {
    let sandbox = Sandbox::new();
    sandbox.mk(10);
    sandbox.commit("g", 0);
    let line = "echo $TAPELOG_OFFSET; test $TAPELOG_OFFSET != 4";
    sandbox.exec("-g g --commit before", line).ends(
        status::HANDLER,
        "0\n1\n2\n3\n4\n",
        &["offset 4", "g goes on at 5"],
    );
    sandbox.exec("-g g --commit before", line).prints("5\n6\n7\n8\n9\n");
    sandbox
        .exec("-g g --commit before --retry 1", "true")
        .fails(status::USAGE, &["--retry", "--commit before"]);
}

#[test]
fn a_command_that_is_killed_with_consume_is_not_run_again() {
    let sandbox = Sandbox::new();
    sandbox.mk(10);
    sandbox.commit("g", 0);
    let line = "echo $TAPELOG_OFFSET >> run; test $TAPELOG_OFFSET != 4 || kill -9 $PPID";
    let mut consume = sandbox.exec_command("-g g --commit before", line);
    assert_eq!(consume.stdin(Stdio::null()).status().unwrap().signal(), Some(9));
    sandbox.exec("-g g --commit before", "echo $TAPELOG_OFFSET >> run").prints("");
    let run = fs::read_to_string(sandbox.path("run")).unwrap();
    assert_eq!(run, "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n");
}

#[test]
fn the_checkpoint_is_synced_before_a_record_is_handed_over() {
    let Some(strace) = Strace::find("commit before") else { return };
    let sandbox = Sandbox::new();
    sandbox.mk(3);
    sandbox.commit("g", 0);
    let line = "consume -g g --commit before --commit-every 1";
    let traced = strace.of(&sandbox, &[], &sandbox.command(line));
    foreground(traced).outcome().succeeded().printed(want(1, 3));
    let of_checkpoint =
        |call: &&Call| call.file().is_some_and(|file| file.ends_with("groups/g.checkpoint"));
    let calls = calls(&sandbox);
    let mut synced = false;
    let mut printed = 0;
    for call in &calls {
        if of_checkpoint(&call) {
            synced = call.kind() == "fdatasync" || call.kind() == "fsync" || {
                // The older line is written once more, with what is durable already.
                synced && call.kind().starts_with("pwrite")
            };
        } else if call.arguments.contains("m-00000") && call.name.contains("writ") {
            assert!(synced, "before {call:?}");
            (synced, printed) = (false, printed + 1);
        }
    }
    assert_eq!(printed, 3, "{calls:?}");
}

#[test]
fn a_follower_goes_ahead_too() {
    let sandbox = Sandbox::new();
    sandbox.mk(3);
    sandbox.commit("g", 0);
    let mut follower =
        sandbox.spawn("follower", sandbox.command("consume -g g -f --commit before"));
    follower.prints_within(5 * SECOND, want(1, 3));
    assert_eq!(sandbox.position("g"), 3);
    sandbox.append("x");
    wait_until(5 * SECOND, "it is printed", || follower.out().ends_with(b"x\n"));
    assert_eq!(sandbox.position("g"), 4);
    follower.kill();
    sandbox.tapelog("consume -g g").prints("");
}
