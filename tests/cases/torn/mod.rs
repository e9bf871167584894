//! TORN: torn writes, cut or zero-filled tails, recovery after a crash.

mod killed;
mod recovery;
mod tail;

use std::fs;
use std::path::Path;

use crate::sandbox::{Expect, Sandbox, status, want};

/// An unclosed log of 100 one-record batches.
fn unclosed_100() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.mkx(100);
    sandbox
}

/// A closed, and so durable, log of 100 one-record batches.
fn closed_100() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.mk1(100);
    sandbox
}

fn name_of(file: &Path) -> &str {
    file.file_name().unwrap().to_str().unwrap()
}

/// The reader stops before the torn tail; the writer sets it aside and goes on
/// at `n`; after that nothing is said any more.
fn the_tail_is_torn_after(sandbox: &Sandbox, n: u64) {
    let active = sandbox.active();
    sandbox.all().notes(want(1, n), &[name_of(&active)]);
    let mut produce = sandbox.tapelog("produce --receipt");
    produce.write_stdin("x\n").notes(format!("{n}\n"), &[name_of(&active), "quarantine"]);
    sandbox.all().prints(want(1, n) + "x\n");
}

/// Readers print the first `n` records and end with damage; a writer refuses and
/// changes nothing.
fn the_log_is_damaged_after(sandbox: &Sandbox, n: u64) {
    let active = sandbox.active();
    let before = fs::read(&active).unwrap();
    let place = format!("{n}");
    sandbox.all().ends(status::DAMAGE, want(1, n), &[name_of(&active), &place]);
    sandbox.tapelog("produce").write_stdin("x\n").fails(status::DAMAGE, &[name_of(&active)]);
    assert!(before == fs::read(&active).unwrap(), "a writer changed a damaged segment");
    assert!(sandbox.quarantine().is_empty());
}
