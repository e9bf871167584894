//! PATH: names, permissions, links, read-only.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::sandbox::{
    Expect, Sandbox, allow_writing, append_bytes, deny_writing, foreground, is_root, skip, status,
    stays, tree, want,
};

const SECOND: Duration = Duration::from_secs(1);

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

/// A log of ten records with one group.
fn log_with_a_group() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.mk(10);
    sandbox.tapelog("commit -g good 5").outcome().succeeded();
    sandbox
}

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
    other("commit -g theirs 1").notes("", &["new group theirs at 1"]);
    other("gc").outcome().succeeded();
    sandbox.tapelog("consume -g g").prints(want(51, 102));
    sandbox.tapelog("groups -g theirs --delete").outcome().succeeded();

    let mine = log_made_under("022");
    foreground(mine.as_nobody("consume -o 20 -n 1")).prints(want(21, 21));
    foreground(mine.as_nobody("produce")).write_stdin("x\n").fails(status::FAILED, &[]);
}

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
fn h084_relative_paths_and_links_to_a_log_work() {
    all_verbs_work_on(OsStr::new("sub/../log"), |cwd| fs::create_dir(cwd.join("sub")).unwrap());
    all_verbs_work_on(OsStr::new("../log"), |_| {});
    all_verbs_work_on(OsStr::new("."), |_| {});
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

#[test]
fn h084_what_is_no_log_is_an_error_and_stays_as_it_is() {
    let sandbox = Sandbox::new();
    let (file, dir) = (sandbox.file("file", "mine\n"), sandbox.path("dir"));
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("mine"), "mine\n").unwrap();
    let before = tree(&sandbox.path(""));
    for path in [&file, &dir] {
        let name = [path.to_str().unwrap()];
        for line in [
            "consume",
            "consume -f",
            "consume -g g",
            "commit -g g 0",
            "seek -g g --to-latest",
            "groups",
            "segments",
            "gc",
            "config",
            "config segment-size=1M",
        ] {
            foreground(sandbox.command_on(path, line)).fails(status::FAILED, &name);
        }
        foreground(sandbox.command_on(path, "produce"))
            .write_stdin("x\n")
            .fails(status::FAILED, &name);
    }
    assert!(tree(&sandbox.path("")) == before);
}

#[test]
fn h084_a_log_that_is_missing_is_not_there_and_is_not_made() {
    let sandbox = Sandbox::new();
    let name = [sandbox.log().to_str().unwrap()];
    for line in [
        "consume",
        "consume -f",
        "consume -g g",
        "commit -g g 0",
        "seek -g g --to-latest",
        "groups",
        "groups -g g --delete",
        "segments",
        "gc",
        "config",
    ] {
        sandbox.tapelog(line).fails(status::NOT_THERE, &name);
    }
    let orphan = sandbox.path("missing/log");
    let produce = foreground(sandbox.command_on(&orphan, "produce")).write_stdin("x\n").outcome();
    assert!(
        [Some(status::FAILED), Some(status::NOT_THERE)].contains(&produce.status.code()),
        "{produce}"
    );
    produce.said(&["missing"]);
    assert!(tree(&sandbox.path("")).is_empty());
}

#[test]
fn h084_an_empty_directory_becomes_a_log() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.log()).unwrap();
    sandbox.tapelog("consume").fails(status::FAILED, &[sandbox.log().to_str().unwrap()]);
    sandbox.mk(3);
    sandbox.all().prints(want(1, 3));
}

#[test]
fn h084_another_kind_of_address_is_a_usage_error() {
    let sandbox = Sandbox::new();
    for address in ["kafka://localhost:9092/topic", "http://x", "foo://bar", "s3://bucket/key"] {
        for line in ["produce", "consume", "segments"] {
            foreground(sandbox.command_on(address, line)).fails(status::USAGE, &[address]);
        }
    }
    assert!(tree(&sandbox.path("")).is_empty());
}

#[test]
fn h084_a_link_in_place_of_one_of_the_logs_own_files_is_refused() {
    let original = log_with_a_group();
    for name in
        ["log.json", "lock", "start", "end", "00000000000000000000.log", "groups/good.checkpoint"]
    {
        let sandbox = original.copy();
        let (inside, outside) = (sandbox.log().join(name), sandbox.path("outside"));
        if !inside.exists() {
            continue;
        }
        fs::rename(&inside, &outside).unwrap();
        symlink(&outside, &inside).unwrap();
        let before = fs::read(&outside).unwrap();
        let line = if name.starts_with("groups") { "commit -g good 7" } else { "produce" };
        let refused = sandbox.tapelog(line).write_stdin("x\n").outcome().printed("");
        assert!(!refused.status.success(), "{name}: {refused}");
        refused.said(&[name.rsplit('/').next().unwrap()]);
        assert!(fs::read(&outside).unwrap() == before, "{name}: what it points to is unchanged");
    }
}

#[test]
fn h084_files_of_others_in_a_log_are_left_alone() {
    let sandbox = log_with_a_group();
    let names = ["notes.txt", "00000000000000000005.log.bak", "5.log", ".hidden", "groups/readme"];
    names.iter().for_each(|name| fs::write(sandbox.log().join(name), "mine\n").unwrap());
    sandbox.produce("", want(11, 11));
    sandbox.tapelog("gc --roll").outcome().succeeded();
    sandbox.all().prints(want(1, 11));
    assert_eq!(sandbox.tapelog("groups -J").json().len(), 1);
    names
        .iter()
        .for_each(|name| assert_eq!(fs::read(sandbox.log().join(name)).unwrap(), b"mine\n"));
}
