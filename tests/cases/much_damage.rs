//! Damage at a great many places: telling of it and passing it stays cheap.

use std::fs;

use crate::sandbox::{Expect, Sandbox, Strace, calls, foreground, len, status};

/// A log of so many one-record batches in one segment.
fn one_segment(records: u64) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.mk1(records);
    sandbox
}

/// Changes a byte of each `nth` record.
fn harm_every(nth: usize, sandbox: &Sandbox) {
    let file = sandbox.active();
    let mut bytes = fs::read(&file).unwrap();
    let batch = bytes.len() / sandbox.end() as usize;
    bytes.chunks_mut(batch).step_by(nth).for_each(|batch| batch[66] ^= 1);
    fs::write(&file, bytes).unwrap();
}

#[test]
fn skipping_damage_does_not_read_the_rest_of_the_segment_at_each_place() {
    let Some(strace) = Strace::find("much damage") else { return };
    let sandbox = one_segment(60_000);
    harm_every(600, &sandbox);
    let consume = sandbox.command("consume --skip-damage -q");
    foreground(strace.of(&sandbox, &["-e", "trace=pread64"], &consume))
        .outcome()
        .ended(status::DAMAGE);
    let read: u64 = calls(&sandbox).iter().filter_map(|call| call.result.parse::<u64>().ok()).sum();
    // At each of 100 places a reader looks around, but by far not through all that follows.
    let bytes = len(&sandbox.active());
    assert!(read < 20 * bytes, "{read} bytes read of {bytes}");
}

#[test]
fn damage_at_many_places_of_a_segment_is_told_in_few_lines() {
    let sandbox = one_segment(5000);
    harm_every(2, &sandbox);
    let verify = sandbox.tapelog("verify -J").outcome().ended(status::DAMAGE);
    let verify = verify.with_words(&["2500 damaged places"]);
    let text = verify.text();
    let told: Vec<_> = text.lines().filter(|line| line.contains("damaged")).collect();
    assert_eq!(told.len(), 101);
    let last = told[100];
    assert!(last.contains(r#""first":200,"next":4999,"kind":"damaged""#), "{last}");
    let repair = sandbox.tapelog("verify --repair").outcome().succeeded();
    repair.with_words(&["mended 2500 damaged places"]);
    let verify = sandbox.tapelog("verify").outcome().succeeded().text();
    assert!(verify.contains("2400 gaps"), "{verify}");
}
