//! H080 and H081: what a group may be called.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use super::log_with_a_group;
use crate::sandbox::{Expect, status, tree, want};

/// Command lines that take a group's name as `--group=NAME`.
const GROUP_COMMANDS: [&str; 7] = [
    "commit 1",
    "seek --to-earliest",
    "seek --undo",
    "groups",
    "groups --delete",
    "consume",
    "consume -f",
];

/// `--group=NAME`, which may begin with a hyphen or be no text.
fn group(option: &str, name: &OsStr) -> OsString {
    let mut word = OsString::from(option);
    word.push(name);
    word
}

fn bad_names() -> Vec<OsString> {
    let mut names: Vec<OsString> = [
        "../x",
        "/x",
        "",
        ".",
        "..",
        "a/b",
        "a\nb",
        "-rf",
        "é",
        "a b",
        ".hidden",
        "x.lock",
        "x.checkpoint",
        "x.log",
        "x.tmp",
        "a\\b",
        "a:b",
        "*",
        "a\tb",
        "../../etc/passwd",
        "groups/good",
        "good/",
        "good\n",
    ]
    .map(OsString::from)
    .to_vec();
    names.extend(["a".repeat(201), "a".repeat(300), "a".repeat(5000)].map(OsString::from));
    names.push(OsStr::from_bytes(b"a\xffb").to_owned());
    names
}

#[test]
fn h080_a_name_that_is_no_name_is_a_usage_error_and_touches_nothing() {
    let sandbox = log_with_a_group();
    let before = tree(&sandbox.path(""));
    for name in bad_names() {
        for line in GROUP_COMMANDS {
            sandbox.tapelog(line).arg(group("--group=", &name)).fails(status::USAGE, &[]);
        }
    }
    assert!(tree(&sandbox.path("")) == before, "a file in or around the log has changed");
}

#[test]
fn h080_every_way_to_name_a_group_is_checked() {
    let sandbox = log_with_a_group();
    let before = tree(&sandbox.path(""));
    for name in ["../x", "a/b", "", "-rf", ".."] {
        sandbox.tapelog("commit 1").arg(format!("-g={name}")).fails(status::USAGE, &[]);
        sandbox.tapelog("seek -g good").arg(format!("--to-group={name}")).fails(status::USAGE, &[]);
    }
    sandbox.tapelog("commit 1 -g").arg("../x").fails(status::USAGE, &["../x"]);
    assert!(tree(&sandbox.path("")) == before);
}

#[test]
fn h080_the_longest_name_works_everywhere() {
    let sandbox = log_with_a_group();
    let long = "n".repeat(200);
    let with = |line: &str| sandbox.tapelog(&format!("{line} -g {long}"));
    with("consume -n 2").outcome().succeeded().printed(want(1, 2));
    with("commit 4").prints("");
    with("seek --to-offset 3").prints(format!("{long}: 4 -> 3\n"));
    with("seek --undo").prints(format!("{long}: 3 -> 4\n"));
    assert_eq!(sandbox.position(&long), 4);
    with("groups --delete").outcome().succeeded();
    with("groups").fails(status::NOT_THERE, &[&long]);
}

#[test]
fn h080_names_that_trouble_other_systems_are_ordinary_here() {
    let sandbox = log_with_a_group();
    for name in ["CON", "nul", "a.", "_", "0", "a..b", "lock", "log.json.x", "x-lock"] {
        sandbox.tapelog(&format!("commit -g {name} 3")).outcome().succeeded();
        assert_eq!(sandbox.position(name), 3, "{name}");
    }
}

#[test]
fn h081_names_that_are_nearly_the_same_are_kept_apart() {
    let sandbox = log_with_a_group();
    let names = ["a.b", "a_b", "A.b", "a-b", "ab", "a", "a.b.c"];
    for (position, name) in (1..).zip(names) {
        sandbox.tapelog(&format!("commit -g {name} {position}")).outcome().succeeded();
    }
    sandbox.tapelog("groups -g a_b --delete").outcome().succeeded();
    for (position, name) in (1..).zip(names).filter(|(_, name)| *name != "a_b") {
        assert_eq!(sandbox.position(name), position, "{name}");
    }
    let listed = sandbox.tapelog("groups -J").json();
    let mut listed: Vec<_> = listed.iter().map(|group| group["group"].as_str().unwrap()).collect();
    listed.sort_unstable();
    assert_eq!(listed, ["A.b", "a", "a-b", "a.b", "a.b.c", "ab", "good"]);
}
