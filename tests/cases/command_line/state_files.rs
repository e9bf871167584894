//! `start` and `end`: missing, they are worked out from the segments with a note; there
//! and no good, they are damage, as nobody knows any more what they said.

use std::fs;

use crate::sandbox::{Expect, Sandbox, append_bytes, cut, status, tree, want};

const FILES: [&str; 2] = ["start", "end"];

/// Every verb that needs to know where the log begins and ends.
const VERBS: [&str; 7] = [
    "consume -o 3",
    "produce",
    "commit -g g 7",
    "seek -g g --to latest",
    "segments",
    "gc",
    "groups",
];

fn log_with_a_group() -> Sandbox {
    let sandbox = Sandbox::hundreds(3);
    // Makes all files of a group, so that nothing is made later.
    sandbox.seek("g", "5");
    sandbox
}

/// Every verb ends with damage that names the file and the remedy, and changes nothing.
#[track_caller]
fn is_damage(sandbox: &Sandbox, name: &str, what: &str) {
    let before = tree(sandbox.log());
    let path = sandbox.log().join(name);
    let remedy = format!("run tapelog verify {} --repair", sandbox.log().display());
    for verb in VERBS {
        let outcome = sandbox.tapelog(verb).write_stdin("x\n").outcome();
        let outcome = outcome.ended(status::DAMAGE).printed("");
        outcome.said(&[path.to_str().unwrap(), what, &remedy]);
    }
    assert!(tree(sandbox.log()) == before, "{name}, {what}");
}

#[test]
fn one_without_a_good_line_is_damage() {
    for name in FILES {
        let sandbox = log_with_a_group();
        let path = sandbox.log().join(name);
        let mut bytes = fs::read(&path).unwrap();
        (bytes[10], bytes[4106]) = (b'x', b'x');
        fs::write(&path, bytes).unwrap();
        is_damage(&sandbox, name, "neither of its two lines is good");
    }
}

#[test]
fn one_of_another_size_is_damage() {
    for name in FILES {
        let sandbox = log_with_a_group();
        let path = sandbox.log().join(name);
        append_bytes(&path, b"\n");
        is_damage(&sandbox, name, "its length is not 8192 bytes");
        cut(&path, 2);
        is_damage(&sandbox, name, "its length is not 8192 bytes");
        fs::write(&path, "").unwrap();
        is_damage(&sandbox, name, "its length is not 8192 bytes");
    }
}

#[test]
fn one_of_another_log_is_damage() {
    let other = log_with_a_group();
    for name in FILES {
        let sandbox = log_with_a_group();
        fs::copy(other.log().join(name), sandbox.log().join(name)).unwrap();
        is_damage(&sandbox, name, "it belongs to another log");
    }
}

#[test]
fn one_that_is_missing_is_worked_out_with_a_note() {
    for name in FILES {
        let sandbox = log_with_a_group();
        let path = sandbox.log().join(name);
        fs::remove_file(&path).unwrap();
        sandbox.tapelog("consume -o 3").notes(want(4, 300), &[name, "was missing"]);
        assert!(!path.exists(), "a reader makes no state");
        let mut produce = sandbox.tapelog("produce --receipt");
        produce.write_stdin("x\n").notes("300\n", &[name, "was missing"]);
        assert!(path.exists());
        sandbox.all().prints(want(1, 300) + "x\n");
    }
}

#[test]
fn one_bad_line_of_two_is_noted_and_the_other_counts() {
    let sandbox = log_with_a_group();
    let path = sandbox.log().join("end");
    // Both lines say the same after a roll, so that it does not matter which is lost.
    sandbox.commit("g", 300);
    sandbox.tapelog("gc --roll").outcome().succeeded();
    let mut bytes = fs::read(&path).unwrap();
    bytes[10] = b'x';
    fs::write(&path, bytes).unwrap();
    sandbox.tapelog("segments").outcome().succeeded().noted(&["end", "one of its two lines"]);
}
