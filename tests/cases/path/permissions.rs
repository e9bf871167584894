//! H082 and H083: rights that are missing, and rights that are given.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::process::Command;

use super::log_with_a_group;
use crate::sandbox::{
    Expect, Sandbox, allow_writing, append_bytes, deny_writing, flip, foreground, is_root, len,
    skip, status, tree, want,
};

/// Runs this as somebody who may not write below `groups/`.
fn fails_without_groups(sandbox: &Sandbox, line: &str) {
    foreground(sandbox.as_nobody(line)).fails(status::FAILED, &["groups"]);
}

#[test]
fn h082_a_position_that_cannot_be_saved_is_an_error_before_anything_is_printed() {
    let sandbox = log_with_a_group();
    deny_writing(&sandbox.log().join("groups"));
    let before = tree(&sandbox.log().join("groups"));
    for group in ["good", "new"] {
        fails_without_groups(&sandbox, &format!("consume -g {group}"));
        fails_without_groups(&sandbox, &format!("commit -g {group} 7"));
        fails_without_groups(&sandbox, &format!("seek -g {group} --to-earliest"));
    }
    fails_without_groups(&sandbox, "groups -g good --delete");
    assert!(tree(&sandbox.log().join("groups")) == before, "no group has changed");
    allow_writing(sandbox.log());
    assert_eq!(sandbox.position("good"), 5);
}

#[test]
fn h082_a_log_that_cannot_be_written_takes_no_record() {
    let sandbox = log_with_a_group();
    let before = tree(sandbox.log());
    deny_writing(sandbox.log());
    let name = sandbox.log().to_str().unwrap();
    foreground(sandbox.as_nobody("produce")).write_stdin("x\n").fails(status::FAILED, &[name]);
    foreground(sandbox.as_nobody("config segment-size=1M")).fails(status::FAILED, &[name]);
    foreground(sandbox.as_nobody("gc --roll")).fails(status::FAILED, &[name]);
    foreground(sandbox.as_nobody("consume")).prints(want(1, 10));
    assert!(tree(sandbox.log()) == before);
    allow_writing(sandbox.log());
}

#[test]
fn h082_a_log_that_cannot_be_made_or_read_is_an_error_that_names_it() {
    let sandbox = log_with_a_group();
    let closed = sandbox.path("closed");
    fs::create_dir(&closed).unwrap();
    deny_writing(&closed);
    let produce = sandbox.as_nobody_on(&closed.join("log"), "produce");
    foreground(produce).write_stdin("x\n").fails(status::FAILED, &["closed"]);
    allow_writing(&closed);
    assert_eq!(fs::read_dir(&closed).unwrap().count(), 0, "nothing was left there");

    fs::set_permissions(sandbox.log(), Permissions::from_mode(0o000)).unwrap();
    for line in ["consume", "segments", "groups", "consume -g good", "produce", "gc", "config"] {
        foreground(sandbox.as_nobody(line))
            .fails(status::FAILED, &[sandbox.log().to_str().unwrap()]);
    }
    fs::set_permissions(sandbox.log(), Permissions::from_mode(0o700)).unwrap();
}

/// The command under this umask.
fn under_umask(umask: &str, command: &Command) -> assert_cmd::Command {
    let mut shell = Command::new("/bin/sh");
    shell.env_clear().args(["-c", &format!(r#"umask {umask}; exec "$@""#), "sh"]);
    shell.arg(command.get_program()).args(command.get_args());
    foreground(shell)
}

/// Makes files of every kind under this umask.
fn log_made_under(umask: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let run = |line: &str| under_umask(umask, &sandbox.command(line));
    run("config segment-size=512").outcome().succeeded();
    run("produce --batch-records 1").write_stdin(want(1, 100)).prints("");
    append_bytes(&sandbox.active(), b"torn");
    run("produce").write_stdin(want(101, 101)).notes("", &["quarantine"]);
    run("consume -g g -n 50").outcome().succeeded().printed(want(1, 50));
    run("seek -g g --to-offset 20").outcome().succeeded();
    run("gc --roll").outcome().succeeded();
    run("segments").outcome().succeeded();
    run("config segment-age=1d").outcome().succeeded();
    sandbox
}

#[test]
fn h083_every_file_has_the_mode_that_the_umask_leaves() {
    for (text, umask) in [("077", 0o077), ("022", 0o022), ("027", 0o027), ("000", 0)] {
        let sandbox = log_made_under(text);
        let mut paths: Vec<_> = tree(sandbox.log()).into_keys().collect();
        paths.push(sandbox.log().to_owned());
        for path in paths {
            let metadata = fs::metadata(&path).unwrap();
            let all = if metadata.is_dir() { 0o777 } else { 0o666 };
            let mode = metadata.permissions().mode() & 0o7777;
            assert_eq!(
                format!("{mode:o}"),
                format!("{:o}", all & !umask),
                "{} under {text}",
                path.display()
            );
        }
    }
}

#[test]
fn h083_users_share_a_log_if_the_umask_lets_them() {
    if !is_root() {
        return skip("h083", "a second user needs root");
    }
    let sandbox = log_made_under("000");
    let other = |line: &str| foreground(sandbox.as_nobody(line));
    other("produce").write_stdin(want(102, 102)).prints("");
    other("consume -g g").prints(want(21, 102));
    other("seek -g g --to-offset 50").prints("g: 102 -> 50\n");
    other("commit -g theirs 30").notes("", &["new group theirs at 30"]);
    other("gc").outcome().succeeded();
    sandbox.tapelog("consume -g g").prints(want(51, 102));
    sandbox.tapelog("groups -g theirs --delete").outcome().succeeded();

    let mine = log_made_under("022");
    foreground(mine.as_nobody("consume -o 20 -n 1")).prints(want(21, 21));
    foreground(mine.as_nobody("produce")).write_stdin("x\n").fails(status::FAILED, &[]);
}

/// Versions of three keys in sealed segments, made under this umask.
fn versions_made_under(umask: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let run = |line: &str| under_umask(umask, &sandbox.command(line));
    run("config segment-size=600").outcome().succeeded();
    let input: String = (0..90).map(|n| format!("k{}:{n}\n", n % 3)).collect();
    run("produce -K : --batch-records 5").write_stdin(input).prints("");
    run("gc --roll").outcome().succeeded();
    sandbox
}

/// The mode in octal digits, the user and the group of each segment.
fn rights(sandbox: &Sandbox) -> Vec<(String, u32, u32)> {
    let of = |path| {
        let found = fs::metadata(path).unwrap();
        (format!("{:o}", found.mode() & 0o7777), found.uid(), found.gid())
    };
    sandbox.segments().into_iter().map(of).collect()
}

#[test]
fn h083_a_segment_that_is_written_anew_keeps_its_mode_and_its_owner() {
    const NOBODY: u32 = 65534;
    if !is_root() {
        skip("h083", "to give a file away needs root: the owners stay unchecked");
    }
    for line in ["gc --compact --even-unread", "verify --repair"] {
        let sandbox = versions_made_under("022");
        for segment in sandbox.segments() {
            fs::set_permissions(&segment, Permissions::from_mode(0o640)).unwrap();
            if is_root() {
                chown(&segment, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        let segment = sandbox.sealed(1);
        if line.starts_with("verify") {
            flip(&segment, len(&segment) - 3);
        }
        let (before, bytes) = (rights(&sandbox), fs::read(&segment).unwrap());
        under_umask("077", &sandbox.command(line)).outcome().succeeded();
        assert!(fs::read(&segment).unwrap() != bytes, "{line} wrote it anew");
        assert_eq!(rights(&sandbox), before, "{line}");
    }
}

#[test]
fn h083_a_segment_of_another_user_is_not_written_anew() {
    if !is_root() {
        return skip("h083", "a second user needs root");
    }
    let sandbox = versions_made_under("000");
    let files = || {
        let mut files = tree(sandbox.log());
        files.retain(|path, _| path.extension().is_some_and(|end| end == "log" || end == "tmp"));
        files
    };
    let before = (files(), rights(&sandbox));
    let mut refused = foreground(sandbox.as_nobody("gc --compact --even-unread"));
    refused.fails(status::FAILED, &["owner", "ermi", ".log"]);
    assert!((files(), rights(&sandbox)) == before, "nothing has changed");
    sandbox.tapelog("gc --compact --even-unread").outcome().succeeded();
}
