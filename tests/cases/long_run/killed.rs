//! A consumer that is killed again and again on its way through the log.

use crate::sandbox::{Expect, Piped, Random, Sandbox, rounds};

/// A commit is due after so many records.
const COMMIT_INTERVAL: u64 = 10_000;
/// One record with its newline.
const WIDTH: u64 = 200;
/// What an enlarged pipe holds, in records.
const PIPE: u64 = (1 << 20) / WIDTH;

/// The record's line with this number.
fn lines(from: u64, to: u64) -> String {
    let filler = "x".repeat(WIDTH as usize - 10);
    (from..to).map(|n| format!("{n:09}{filler}\n")).collect()
}

/// Reads so many lines as group g, kills it, and checks that they are those from
/// the group's position on.
fn read_and_kill(sandbox: &Sandbox, from: u64, count: u64) {
    let mut consume = Piped::start(sandbox, "consume -g g");
    let taken = consume.take((count * WIDTH) as usize);
    consume.kill();
    assert!(taken == lines(from, from + count).into_bytes(), "{count} lines from {from}");
}

#[test]
fn each_run_goes_on_at_or_before_the_first_line_not_printed() {
    let total = rounds(150_000, 3_000_000);
    let sandbox = Sandbox::with_config("segment-size=4M");
    sandbox.produce("", lines(0, total));
    sandbox.commit("g", 0);
    let mut random = Random(2);
    let mut from = 0;
    while from + 60_000 < total {
        let count = random.between(1, 60_000);
        read_and_kill(&sandbox, from, count);
        let next = sandbox.position("g");
        let earliest = (from + count).saturating_sub(COMMIT_INTERVAL + PIPE).max(from);
        assert!((earliest..=from + count).contains(&next), "{next} after {from} and {count}");
        from = next;
    }
    sandbox.tapelog("consume -g g").prints(lines(from, total));
}
