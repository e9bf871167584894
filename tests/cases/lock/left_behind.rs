//! H051: what a crash leaves behind holds nobody up.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::timed;
use crate::sandbox::{Expect, SECOND, Sandbox, wait_until, want};

/// The append lock, and what says who consumes a group.
fn lock_files(sandbox: &Sandbox) -> Vec<PathBuf> {
    vec![sandbox.log().join("lock"), sandbox.log().join("groups/g.holder")]
}

/// A log with a group, whose producer and consumer were killed in mid-run.
fn left_by_a_crash() -> Sandbox {
    let sandbox = Sandbox::new();
    let mut producer = sandbox.spawn("producer", sandbox.command("produce"));
    producer.feed(want(1, 100));
    wait_until(5 * SECOND, "the lines are appended", || {
        sandbox.all().outcome().stdout == want(1, 100).as_bytes()
    });
    let mut consumer = sandbox.spawn("consumer", sandbox.command("consume -g g -f"));
    consumer.prints_within(5 * SECOND, want(1, 100));
    producer.kill();
    consumer.kill();
    sandbox
}

#[test]
fn h051_a_lock_left_by_a_crash_blocks_nobody_whatever_it_says() {
    let sandbox = left_by_a_crash();
    let mut unrelated = Command::new("/bin/sleep").arg("60").spawn().unwrap();
    let ids = [
        unrelated.id().to_string(),
        "1".into(),
        std::process::id().to_string(),
        "\0garbage\u{1}".into(),
        "".into(),
    ];
    for (round, text) in ids.iter().enumerate() {
        lock_files(&sandbox).iter().for_each(|file| fs::write(file, text).unwrap());
        let ((), took) = timed(|| {
            sandbox.produce("", "x\n");
            let consumed = sandbox.tapelog("consume -g g").outcome().succeeded().silent();
            assert!(consumed.stdout.ends_with(b"x\n"), "round {round}");
        });
        assert!(took < 2 * SECOND, "round {round} took {took:?}");
    }
    unrelated.kill().unwrap();
    unrelated.wait().unwrap();
}

#[test]
fn h051_a_killed_consumer_frees_its_group_at_once() {
    let sandbox = left_by_a_crash();
    sandbox.tapelog("seek -g g --to-earliest").outcome().succeeded().silent();
    sandbox.tapelog("consume -g g").prints(want(1, 100));
    sandbox.tapelog("groups -g g --delete").outcome().succeeded();
}
