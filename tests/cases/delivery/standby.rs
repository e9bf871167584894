//! Consumers that stand by, and scripts that wait until everything is read.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use std::os::unix::process::ExitStatusExt;

use super::ten;
use crate::sandbox::{Expect, SECOND, status, stays, wait_until, want};

#[test]
fn one_who_waits_takes_over_within_a_second_however_the_holder_died() {
    for signal in [Signal::KILL, Signal::TERM, Signal::ABORT] {
        let sandbox = ten();
        let mut first = sandbox.spawn("first", sandbox.command("consume -g g -f"));
        first.prints_within(5 * SECOND, want(1, 10));
        wait_until(5 * SECOND, "all is committed", || sandbox.position("g") == 10);
        let mut second = sandbox.spawn("second", sandbox.command("consume -g g -f --wait"));
        wait_until(5 * SECOND, "it says so", || !second.err().is_empty());
        let told = second.err();
        assert!(told.contains("note: group g is held by process"), "{told}");
        assert!(told.contains(&first.id().to_string()), "{told}");
        assert!(stays(Duration::from_millis(300), || second.runs()));
        first.signal(signal);
        first.ends_within(5 * SECOND);
        let begun = Instant::now();
        sandbox.append("x");
        second.prints_within(5 * SECOND, "x\n");
        assert!(begun.elapsed() < SECOND, "{:?}", begun.elapsed());
        assert_eq!(second.err(), told, "said once");
    }
}

#[test]
fn one_who_waits_for_nobody_says_nothing() {
    ten().tapelog("consume -g g --wait").prints(want(1, 10));
}

#[test]
fn a_signal_ends_the_waiting() {
    let sandbox = ten();
    let first = sandbox.spawn("first", sandbox.command("consume -g g -f"));
    first.prints_within(5 * SECOND, want(1, 10));
    let mut second = sandbox.spawn("second", sandbox.command("consume -g g --wait"));
    wait_until(5 * SECOND, "it waits", || !second.err().is_empty());
    second.signal(Signal::INT);
    assert_eq!(second.ends_within(SECOND).signal(), Some(Signal::INT.as_raw()));
    assert_eq!(second.out(), b"");
    sandbox.tapelog("consume -g g -q").outcome().ended(status::HELD);
}

#[test]
fn drained_is_a_group_that_has_read_everything() {
    let sandbox = ten();
    sandbox.commit("g", 9);
    sandbox
        .tapelog("groups -g g --wait-drained --timeout 50ms")
        .fails(status::DEADLINE, &["g is 1 record behind after 50ms"]);
    sandbox.commit("g", 10);
    sandbox.tapelog("groups -g g --wait-drained").prints("");
    sandbox.tapelog("groups -g none --wait-drained").fails(status::NOT_THERE, &["none"]);
    sandbox.tapelog("groups --wait-drained").fails(status::USAGE, &["--group"]);
}

#[test]
fn a_commit_wakes_who_waits_for_a_group_to_be_drained() {
    let sandbox = ten();
    let mut waiting = sandbox.spawn("waiting", sandbox.command("groups -g g --wait-drained"));
    assert!(stays(Duration::from_millis(300), || waiting.runs()));
    let begun = Instant::now();
    sandbox.commit("g", 10);
    assert!(waiting.ends_within(5 * SECOND).success());
    assert!(begun.elapsed() < SECOND, "{:?}", begun.elapsed());
}
