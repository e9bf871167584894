//! H072 and H073: a signal saves what was done, and ends the process.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use rustix::process::Signal;

use crate::sandbox::{
    A_SECOND, Expect, Piped, SECOND, Sandbox, same_bytes, stays, wait_until, want,
};

#[test]
fn h072_a_signal_does_not_wait_for_a_stuck_reader() {
    for (records, signal) in [(100, Signal::TERM), (1_000_000, Signal::INT)] {
        let sandbox = Sandbox::new();
        sandbox.mk(records);
        sandbox.tapelog("commit -g g 0").outcome().succeeded();
        let mut reader = Piped::start(&sandbox, "consume -g g");
        same_bytes(&reader.take(9), want(1, 1).as_bytes(), "a reader that gets stuck");
        stays(Duration::from_millis(200), || reader.runs());
        reader.signal(signal);
        assert_eq!(reader.ends_within(A_SECOND).signal(), Some(signal.as_raw()));
        assert_eq!(sandbox.position("g"), 1, "one record was taken out of the pipe");
    }
}

fn a_follower_saves_its_group_at(signal: Signal) {
    let sandbox = Sandbox::new();
    sandbox.mk(10);
    sandbox.tapelog("commit -g g 0").outcome().succeeded();
    let mut follower = sandbox.spawn("follower", sandbox.command("consume -f -g g"));
    follower.prints_within(SECOND, want(1, 10));
    follower.signal(signal);
    // It syncs the checkpoint, which takes as long as a busy disk needs.
    assert_eq!(follower.ends_within(5 * SECOND).signal(), Some(signal.as_raw()));
    assert_eq!((sandbox.position("g"), follower.err().as_str()), (10, ""));
}

#[test]
fn h073_a_signal_ends_a_follower_and_saves_its_group() {
    a_follower_saves_its_group_at(Signal::INT);
    a_follower_saves_its_group_at(Signal::TERM);
}

/// Whether this process, and so every one that it starts, ignores SIGHUP.
fn ignores_hangups() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    u64::from_str_radix(ignored, 16).unwrap() & 1 == 1
}

#[test]
fn h073_a_terminal_that_goes_away_ends_a_follower_and_saves_its_group() {
    if ignores_hangups() {
        println!("SKIPPED h073: these tests run under nohup, which our processes inherit");
        return;
    }
    a_follower_saves_its_group_at(Signal::HUP);
}

#[test]
fn h073_a_signal_ends_a_producer_after_what_it_has_read_whole() {
    for signal in [Signal::INT, Signal::TERM] {
        let sandbox = Sandbox::new();
        let mut producer = sandbox.spawn("producer", sandbox.command("produce"));
        producer.feed(want(1, 10) + "half");
        wait_until(5 * SECOND, "the whole lines are in", || {
            sandbox.all().outcome().stdout == want(1, 10).as_bytes()
        });
        producer.signal(signal);
        assert_eq!(producer.ends_within(A_SECOND).signal(), Some(signal.as_raw()));
        let said = producer.err();
        assert!(said.contains("4 bytes"), "the bytes of the half line are told: {said:?}");
        sandbox.all().prints(want(1, 10));
        assert_eq!(sandbox.append("x"), 10);
    }
}
