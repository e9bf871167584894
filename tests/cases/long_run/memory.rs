//! Memory stays flat: `produce` and `consume` on much more than they may hold.

use std::io::Write;
use std::time::Duration;

use crate::sandbox::{Piped, Sandbox, peak_memory, rounds, wait_until};

/// What `produce` and `consume` may take at their peak.
const MOST: u64 = 32 << 20;
const LATE: Duration = Duration::from_secs(600);

/// A mebibyte of lines, most of them around a hundred bytes long.
fn mebibyte() -> Vec<u8> {
    let lines = (0..).flat_map(|n: u64| format!("{n:0100}\n").into_bytes());
    let mut block: Vec<u8> = lines.take((1 << 20) - 1).collect();
    block.push(b'\n');
    block
}

/// Produces so much and leaves it in the log; gives the peak.
fn produce_and_weigh(sandbox: &Sandbox, mebibytes: u64) -> u64 {
    let block = mebibyte();
    let records = memchr::memchr_iter(b'\n', &block).count() as u64 * mebibytes;
    let mut produce = sandbox.spawn("produce", sandbox.command("produce"));
    let stdin = produce.child().stdin.as_mut().unwrap();
    (0..mebibytes).for_each(|_| stdin.write_all(&block).unwrap());
    wait_until(LATE, "all is appended", || sandbox.end() == records);
    let peak = peak_memory(produce.id());
    produce.close_stdin();
    assert!(produce.ends_within(LATE).success());
    peak
}

/// Reads all of it and follows on, so that it can be weighed after its work.
fn consume_and_weigh(sandbox: &Sandbox, options: &str, bytes: u64) -> u64 {
    let mut consume = Piped::start(sandbox, options);
    let mut taken = 0;
    while taken < bytes {
        taken += consume.take_some(1 << 20).len() as u64;
    }
    assert_eq!((taken, consume.err()), (bytes, String::new()));
    peak_memory(consume.id())
}

#[test]
fn peak_memory_is_under_32_mib_whatever_the_size_of_the_log() {
    let mebibytes = rounds(64, 4096);
    let sandbox = Sandbox::new();
    let peaks = [
        produce_and_weigh(&sandbox, mebibytes),
        consume_and_weigh(&sandbox, "consume -f", mebibytes << 20),
        consume_and_weigh(&sandbox, "consume -f -g g -q", mebibytes << 20),
    ];
    println!("peaks in bytes: {peaks:?}");
    assert!(peaks.iter().all(|&peak| peak < MOST), "{peaks:?}");
}
