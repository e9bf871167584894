//! A command that fails: attempts, pauses, records that are passed; and signals that
//! come while it runs.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::ten;
use crate::sandbox::{Expect, SECOND, status, wait_until, want};

#[test]
fn a_record_is_tried_again_until_it_succeeds() {
    let sandbox = ten();
    let line = "test $TAPELOG_OFFSET != 4 -o $TAPELOG_ATTEMPT = 3 && cat && echo";
    sandbox.exec("-g g --retry 2 --backoff 1ms", line).prints(want(1, 10));
    assert_eq!(sandbox.position("g"), 10);
}

#[test]
fn pauses_grow_up_to_their_limit() {
    let sandbox = ten();
    let begun = Instant::now();
    let options = "-g g -n 1 --retry 3 --backoff 50ms..100ms";
    sandbox.exec(options, "exit 7").fails(status::HANDLER, &["status 7", "4 attempts"]);
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(250), "50 + 100 + 100 ms: {took:?}");
}

#[test]
fn records_that_fail_are_passed_each_told_and_counted_at_the_end() {
    let sandbox = ten();
    let line = "case $TAPELOG_OFFSET in 2 | 5) exit 3;; esac; cat; echo";
    let outcome = sandbox.exec("-g g --on-failure skip", line).outcome();
    let outcome = outcome.ended(status::PARTIAL).with_words(&["offset 2", "offset 5", "2 records"]);
    assert_eq!(outcome.errors().len(), 3, "{outcome}");
    outcome.printed(want(1, 2) + &want(4, 5) + &want(7, 10));
    assert_eq!(sandbox.position("g"), 10);
}

#[test]
fn a_batch_fails_whole() {
    let sandbox = ten();
    let line = "echo $TAPELOG_OFFSET $TAPELOG_ATTEMPT; ! grep -q m-000005";
    sandbox.exec("-g g --batch 4 --retry 1 --backoff 1ms", line).ends(
        status::HANDLER,
        "0 1\n4 1\n4 2\n",
        &["offsets 4 to 7", "4 records", "g goes on at 4"],
    );
    assert_eq!(sandbox.position("g"), 4);
    let outcome = sandbox.exec("-g g --batch 4 --on-failure skip", line).outcome();
    outcome.ended(status::PARTIAL).with_words(&["skipped 4 records"]).printed("4 1\n8 1\n");
    assert_eq!(sandbox.position("g"), 10);
}

#[test]
fn a_signal_lets_the_command_end_and_saves_what_it_did() {
    let sandbox = ten();
    let line = "echo begun >> begun; until test -e go; do sleep 0.01; done; cat; echo";
    let mut consume = sandbox.spawn("consume", sandbox.exec_command("-g g", line));
    wait_until(5 * SECOND, "it has begun", || sandbox.path("begun").exists());
    consume.signal(Signal::TERM);
    sandbox.file("go", "");
    assert_eq!(consume.ends_within(5 * SECOND).signal(), Some(Signal::TERM.as_raw()));
    assert_eq!((consume.out(), consume.err().as_str()), (want(1, 1).into_bytes(), ""));
    assert_eq!(fs::read_to_string(sandbox.path("begun")).unwrap(), "begun\n");
    assert_eq!(sandbox.position("g"), 1);
}

#[test]
fn a_second_signal_does_not_wait_for_the_command() {
    let sandbox = ten();
    let line = "echo $$ > begun; exec sleep 60";
    let mut consume = sandbox.spawn("consume", sandbox.exec_command("-g g", line));
    let begun = || fs::read_to_string(sandbox.path("begun")).is_ok_and(|text| text.ends_with('\n'));
    wait_until(5 * SECOND, "it has begun", begun);
    consume.signal(Signal::TERM);
    assert!(crate::sandbox::stays(Duration::from_millis(200), || consume.runs()));
    consume.signal(Signal::TERM);
    assert_eq!(consume.ends_within(SECOND).signal(), Some(Signal::TERM.as_raw()));
    assert_eq!(sandbox.position("g"), 0);
    let sleep = fs::read_to_string(sandbox.path("begun")).unwrap();
    let kill = format!("kill {}", sleep.trim());
    std::process::Command::new("/bin/sh").args(["-c", &kill]).status().unwrap();
}

#[test]
fn a_command_that_dies_of_our_signal_has_not_failed() {
    let sandbox = ten();
    let line = "test $TAPELOG_OFFSET -lt 3 && exit; kill -INT $PPID; sleep 0.2; kill -INT $$";
    let outcome = sandbox.exec("-g g --on-failure skip --retry 9", line).outcome();
    outcome.ended_by_signal(Signal::INT.as_raw()).silent();
    assert_eq!(sandbox.position("g"), 3);
}

#[test]
fn a_signal_ends_a_pause() {
    let sandbox = ten();
    let line = "echo > failed; exit 1";
    let options = "-g g --retry 1 --backoff 1h";
    let mut consume = sandbox.spawn("consume", sandbox.exec_command(options, line));
    wait_until(5 * SECOND, "it has failed once", || sandbox.path("failed").exists());
    consume.signal(Signal::INT);
    assert_eq!(consume.ends_within(5 * SECOND).signal(), Some(Signal::INT.as_raw()));
    assert_eq!(sandbox.position("g"), 0);
}

#[test]
fn while_a_command_or_a_pause_takes_long_what_was_done_before_is_committed() {
    for (options, line) in [
        ("-g g", "test $TAPELOG_OFFSET -lt 3 || exec sleep 20"),
        ("-g g --retry 1 --backoff 1h", "test $TAPELOG_OFFSET -lt 3"),
    ] {
        let sandbox = ten();
        let mut consume = sandbox.spawn("consume", sandbox.exec_command(options, line));
        wait_until(5 * SECOND, "the first three are committed", || sandbox.position("g") == 3);
        consume.kill();
    }
}
