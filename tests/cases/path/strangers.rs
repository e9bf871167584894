//! H084: what is no log, and what in a log is not its own.

use std::fs;
use std::os::unix::fs::symlink;

use super::log_with_a_group;
use crate::sandbox::{Expect, Sandbox, flip, foreground, status, tree, want};

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
    for address in ["http://x", "foo://bar", "s3://bucket/key"] {
        for line in ["produce", "consume", "segments"] {
            foreground(sandbox.command_on(address, line))
                .fails(status::USAGE, &[address.split_inclusive("//").next().unwrap()]);
        }
    }
    // Without the feature this one is none either.
    let consume = sandbox.command_on("kafka://localhost:9092/topic", "consume");
    foreground(consume).fails(status::USAGE, &["kafka", "feature"]);
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
fn h084_a_link_in_place_of_one_of_the_logs_own_directories_is_refused() {
    for (name, lines) in [
        ("groups", ["commit -g good 7", "consume -g good", "groups", "gc"].as_slice()),
        ("quarantine", ["verify --repair"].as_slice()),
    ] {
        let sandbox = log_with_a_group();
        let (inside, outside) = (sandbox.log().join(name), sandbox.path("outside"));
        fs::rename(&inside, &outside).or_else(|_| fs::create_dir(&outside)).unwrap();
        symlink(&outside, &inside).unwrap();
        flip(&sandbox.active(), 100);
        let before = tree(&outside);
        for line in lines {
            let refused = sandbox.tapelog(line).outcome().ended(status::DAMAGE).printed("");
            refused.with_words(&[name, "put the directory itself"]);
        }
        assert!(tree(&outside) == before, "{name}: what it points to is unchanged");
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
