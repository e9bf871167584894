//! What is no log, no name, no number or not allowed.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::sandbox::{Expect, Sandbox, foreground, status, tree, want};

/// Every verb that needs a log to be there.
const READERS: [&str; 8] = [
    "consume",
    "consume -g g",
    "commit -g g 0",
    "seek -g g --to earliest",
    "groups",
    "segments",
    "gc",
    "config",
];
/// The verbs that make a log.
const MAKERS: [&str; 2] = ["produce", "config segment-size=4096"];

/// All verbs.
fn verbs() -> impl Iterator<Item = &'static str> {
    READERS.into_iter().chain(MAKERS)
}

/// Every one of these verbs, on this LOG, fails with this status and says one line
/// that names it; nothing in the sandbox changes.
fn each_refuses(
    sandbox: &Sandbox,
    verbs: impl Iterator<Item = &'static str>,
    log: impl AsRef<Path>,
    status: i32,
) {
    let (log, before) = (log.as_ref(), tree(&sandbox.path("")));
    // Of an address, the scheme says enough.
    let named = log.to_str().and_then(|log| log.split("://").next());
    for verb in verbs {
        let mut command = foreground(sandbox.command_on(log, verb));
        command.write_stdin("x\n").fails(status, &[named.unwrap()]);
        assert!(tree(&sandbox.path("")) == before, "{verb} changed something");
    }
}

#[test]
fn a_missing_log_is_not_there_for_any_verb_that_needs_one() {
    let sandbox = Sandbox::new();
    each_refuses(&sandbox, READERS.into_iter(), sandbox.log(), status::NOT_THERE);
}

#[test]
fn a_log_directory_that_is_a_file_fails_every_verb() {
    let sandbox = Sandbox::new();
    let file = sandbox.file("a-file", "not a log\n");
    each_refuses(&sandbox, verbs(), file, status::FAILED);
}

#[test]
fn a_directory_that_is_no_log_fails_every_verb() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("photos")).unwrap();
    sandbox.file("photos/cat.jpg", "miaow");
    each_refuses(&sandbox, verbs(), sandbox.path("photos"), status::FAILED);
}

#[test]
fn an_empty_directory_is_no_log_until_something_is_produced() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.log()).unwrap();
    each_refuses(&sandbox, READERS.into_iter(), sandbox.log(), status::FAILED);
    sandbox.mk(3);
    sandbox.all().prints(want(1, 3));
}

#[test]
fn a_log_whose_parent_is_missing_is_not_made() {
    let sandbox = Sandbox::new();
    for verb in MAKERS {
        let mut command = foreground(sandbox.command_on("no/such/log", verb));
        let outcome = command.write_stdin("x\n").outcome().said(&["no/such"]);
        assert!(!outcome.status.success(), "{outcome}");
    }
    assert!(tree(&sandbox.path("")).is_empty());
}

#[test]
fn a_cluster_or_an_unknown_scheme_is_a_usage_error() {
    let sandbox = Sandbox::new();
    for log in ["kafka://127.0.0.1:9092/orders", "word://x", "s3://bucket/log"] {
        each_refuses(&sandbox, verbs(), log, status::USAGE);
    }
}

#[test]
fn a_group_name_with_a_slash_is_a_usage_error_and_touches_nothing() {
    let sandbox = Sandbox::new();
    sandbox.mk(10);
    let verbs = [
        "consume -g a/b",
        "commit -g a/b 3",
        "seek -g a/b --to 3",
        "seek -g a --to-group ../b",
        "groups -g a/b",
        "groups -g ../b --delete",
    ];
    let before = tree(&sandbox.path(""));
    for verb in verbs {
        sandbox.tapelog(verb).fails(status::USAGE, &["/b", "group"]);
    }
    assert!(tree(&sandbox.path("")) == before);
}

#[test]
fn an_offset_beyond_the_end_is_out_of_range_for_every_verb_that_takes_one() {
    let sandbox = Sandbox::new();
    sandbox.mk(10);
    sandbox.commit("g", 5);
    let verbs = [
        "consume -o 11",
        "consume -o 11:12",
        "consume -o +11",
        "consume -g new -o 11",
        "commit -g g 11",
        "commit -g new 11",
        "seek -g g --to 11",
        "seek -g g --to-offset 11",
        "seek -g new --to-offset 11",
    ];
    for verb in verbs {
        sandbox.tapelog(verb).fails(status::RANGE, &["11", "10"]);
    }
    assert_eq!(sandbox.position("g"), 5);
    sandbox.tapelog("groups -g new").fails(status::NOT_THERE, &["new"]);
}

#[test]
fn an_input_file_that_is_missing_stops_before_a_log_is_made() {
    let sandbox = Sandbox::new();
    sandbox.file("there", "x\n");
    sandbox.tapelog("produce there missing").fails(status::FAILED, &["missing"]);
    assert!(!sandbox.log().exists());
}

#[test]
fn an_input_file_that_is_missing_stops_before_anything_is_stored() {
    let sandbox = Sandbox::new();
    sandbox.mk(3);
    sandbox.file("there", "x\n");
    sandbox.tapelog("produce there missing").fails(status::FAILED, &["missing"]);
    sandbox.all().prints(want(1, 3));
}

#[test]
fn words_that_no_verb_knows_are_usage_errors() {
    let sandbox = Sandbox::new();
    sandbox.mk(3);
    let wrong = [
        "consume --no-such-option",
        "consume -n many",
        "consume -n -1",
        "consume --timeout soon",
        "consume --commit sometimes -g g",
        "consume --out-of-range middle -g g",
        "consume --tail x",
        "produce --sync sometimes",
        "commit -g g five",
        "commit 5",
        "seek -g g",
        "seek --to 3",
        "seek -g g --to 1 --to-latest",
        "groups --delete",
    ];
    for line in wrong {
        let outcome = sandbox.tapelog(line).write_stdin("").outcome().ended(status::USAGE);
        assert!(outcome.stdout.is_empty() && !outcome.stderr.is_empty(), "{outcome}");
    }
    let outcome = foreground(sandbox.command_on("x", "no-such-verb")).outcome();
    outcome.ended(status::USAGE).printed("");
}

#[test]
fn a_directory_without_permission_fails_with_its_path() {
    let sandbox = Sandbox::new();
    sandbox.mk(3);
    fs::set_permissions(sandbox.log(), Permissions::from_mode(0o000)).unwrap();
    let path = sandbox.log().to_str().unwrap().to_owned();
    for verb in verbs() {
        let mut command = foreground(sandbox.as_nobody(verb));
        command.write_stdin("x\n").fails(status::FAILED, &[&path, "ermission"]);
    }
    fs::set_permissions(sandbox.log(), Permissions::from_mode(0o755)).unwrap();
    sandbox.all().prints(want(1, 3));
}

#[test]
fn a_log_that_may_only_be_read_is_read_and_refuses_every_change() {
    let sandbox = Sandbox::new();
    sandbox.mk(3);
    sandbox.commit("g", 1);
    crate::sandbox::deny_writing(sandbox.log());
    foreground(sandbox.as_nobody("consume")).prints(want(1, 3));
    foreground(sandbox.as_nobody("groups -g g -J")).outcome().succeeded().silent();
    let before = tree(sandbox.log());
    for verb in
        ["produce", "commit -g g 2", "seek -g g --to 0", "consume -g g", "config segment-size=1K"]
    {
        let mut command = foreground(sandbox.as_nobody(verb));
        command.write_stdin("x\n").fails(status::FAILED, &["ermission"]);
    }
    assert!(tree(sandbox.log()) == before);
    crate::sandbox::allow_writing(sandbox.log());
}
