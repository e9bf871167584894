//! H084: odd but legal places for a log.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use super::log_with_a_group;
use crate::sandbox::{Expect, SECOND, Sandbox, foreground, status, stays, want};

/// One run of every verb on this LOG, as it stands, from a directory of its own.
fn all_verbs_work_on(log: &OsStr, setup: impl FnOnce(&Path)) {
    let sandbox = Sandbox::new();
    let cwd = sandbox.path("cwd");
    fs::create_dir(&cwd).unwrap();
    setup(&cwd);
    let run = |line: &str| {
        let mut words = line.split_whitespace();
        let mut command = sandbox.bare();
        command.current_dir(&cwd).arg(words.next().unwrap()).args(words);
        if log.as_bytes().starts_with(b"-") {
            command.arg("--");
        }
        command.arg(log);
        foreground(command)
    };
    run("produce").write_stdin(want(1, 10)).prints("");
    run("consume").prints(want(1, 10));
    run("consume -g g -n 4").notes(want(1, 4), &["new group g at 0"]);
    run("seek -g g --to-offset 2").prints("g: 4 -> 2\n");
    run("seek -g g --undo").prints("g: 2 -> 4\n");
    run("groups").outcome().succeeded().silent();
    assert_eq!(run("groups -J").json()[0]["lag"], 6);
    assert_eq!(run("segments -J").json()[0]["next"], 10);
    assert_eq!(run("gc --roll -J").json()[0]["action"], "keep");
    assert_eq!(run("gc --compact --even-unread -J").json()[0]["action"], "keep");
    run("config").outcome().succeeded().silent();
    run("groups -g g --delete").outcome().succeeded();
}

#[test]
fn h084_odd_but_legal_names_of_a_log_work_with_every_verb() {
    let names: [&[u8]; 12] = [
        b"with spaces",
        b" ",
        b"new\nline",
        b"./-x",
        b"-x",
        b"--help",
        b"bad\xffutf8",
        "日志".as_bytes(),
        b"kafka:x",
        b"log/",
        b"consume",
        b"1%s$HOME*?'\"",
    ];
    names.into_iter().for_each(|name| all_verbs_work_on(OsStr::from_bytes(name), |_| {}));
}

#[test]
fn h084_relative_paths_work() {
    all_verbs_work_on(OsStr::new("sub/../log"), |cwd| fs::create_dir(cwd.join("sub")).unwrap());
    all_verbs_work_on(OsStr::new("../log"), |_| {});
    all_verbs_work_on(OsStr::new("."), |_| {});
}

#[test]
fn h084_a_link_to_a_log_works() {
    all_verbs_work_on(OsStr::new("link"), |cwd| {
        fs::create_dir(cwd.join("real")).unwrap();
        symlink("real", cwd.join("link")).unwrap();
    });
}

#[test]
fn h084_a_log_two_hundred_directories_deep_works() {
    let parent = "d/".repeat(200);
    all_verbs_work_on(OsStr::new(&format!("{parent}log")), |cwd| {
        fs::create_dir_all(cwd.join(&parent)).unwrap()
    });
}

#[test]
fn h084_commit_takes_its_offset_behind_an_odd_name_too() {
    let sandbox = Sandbox::new();
    let run = |words: &[&str]| {
        let mut command = sandbox.bare();
        command.args(words);
        foreground(command)
    };
    run(&["produce", "--", "-x"]).write_stdin(want(1, 10)).prints("");
    run(&["commit", "-g", "g", "--", "-x", "3"]).notes("", &["new group g at 3"]);
    run(&["commit", "./-x", "-g", "g", "5"]).prints("");
    run(&["consume", "-g", "g", "--", "-x"]).prints(want(6, 10));
}

#[test]
fn h084_a_follower_whose_log_is_removed_ends() {
    for options in ["-f", "-f -g g"] {
        let sandbox = log_with_a_group();
        sandbox.tapelog("commit -g g 0").outcome().succeeded();
        let mut follower =
            sandbox.spawn("follower", sandbox.command(&format!("consume {options}")));
        follower.prints_within(SECOND, want(1, 10));
        fs::remove_dir_all(sandbox.log()).unwrap();
        let end = follower.ends_within(5 * SECOND);
        let said = follower.err();
        assert_eq!(end.code(), Some(status::FAILED), "{said}");
        assert!(
            said.contains(sandbox.log().to_str().unwrap()) && said.lines().count() == 1,
            "{said}"
        );
    }
}

#[test]
fn h084_a_follower_whose_log_stays_uses_no_processor() {
    let sandbox = log_with_a_group();
    let mut follower = sandbox.spawn("follower", sandbox.command("consume -f"));
    follower.prints_within(SECOND, want(1, 10));
    stays(SECOND, || follower.runs());
    assert!(follower.cpu_time() < Duration::from_millis(100), "{:?}", follower.cpu_time());
}
