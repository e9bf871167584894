//! H055: reading needs no lock.

use std::io::Write;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::timed;
use crate::sandbox::{
    Background, Expect, SECOND, Sandbox, allow_writing, deny_writing, foreground, hold_lock,
    is_locked, stays, wait_until,
};

/// All who only read, as a user who may only read; each must answer in a second,
/// in silence.
fn readers_answer(sandbox: &Sandbox, acknowledged: u64) {
    deny_writing(sandbox.log());
    for line in [
        "consume",
        "segments",
        "segments --summary -J",
        "groups -g g -J",
        "groups",
        "config",
        "consume -o -1",
    ] {
        let (outcome, took) =
            timed(|| foreground(sandbox.as_nobody(line)).outcome().succeeded().silent());
        assert!(took < SECOND, "{line} took {took:?}");
        if line == "consume" {
            let records = memchr::memchr_iter(b'\n', &outcome.stdout).count() as u64;
            assert!(records >= acknowledged, "{records} records, {acknowledged} acknowledged");
        }
    }
    allow_writing(sandbox.log());
}

/// Stops and wakes a busy producer until it is caught with the append lock held.
fn stop_holding_the_lock(sandbox: &Sandbox, producer: &Background) {
    let lock = sandbox.log().join("lock");
    wait_until(20 * SECOND, "the producer is caught with the lock", || {
        producer.signal(Signal::STOP);
        let caught = stays(Duration::from_millis(5), || is_locked(&lock));
        if !caught {
            producer.signal(Signal::CONT);
        }
        caught
    });
}

#[test]
fn h055_readers_need_no_lock_and_no_right_to_write() {
    let sandbox = Sandbox::new();
    sandbox.mk1(1000);
    sandbox.tapelog("commit -g g 10").outcome().succeeded();
    let _stuck = hold_lock(&sandbox.log().join("lock"));
    readers_answer(&sandbox, 1000);
}

#[test]
fn h055_a_stopped_writer_blocks_no_reader() {
    let sandbox = Sandbox::new();
    sandbox.mk1(1000);
    sandbox.tapelog("commit -g g 10").outcome().succeeded();
    let command = sandbox.command("produce --receipt --sync each --batch-records 1");
    let mut producer = sandbox.spawn("producer", command);
    let mut stdin = producer.child().stdin.take().unwrap();
    let feeder = thread::spawn(move || while stdin.write_all(b"more\n").is_ok() {});
    wait_until(5 * SECOND, "it is in mid-run", || !producer.out().is_empty());
    stop_holding_the_lock(&sandbox, &producer);
    let receipts = String::from_utf8(producer.out()).unwrap();
    let acknowledged = receipts.lines().last().unwrap().parse::<u64>().unwrap() + 1;
    readers_answer(&sandbox, acknowledged);
    producer.kill();
    feeder.join().unwrap();
    let next = sandbox.end();
    assert_eq!(sandbox.append("x"), next, "and the lock went with it");
}
