//! Files of a log that can't be read, or that are no files: verify lists them and goes on.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::sandbox::{Expect, Sandbox, flip, foreground, status};

/// A log of several segments and a group, with damage in the first segment.
fn damaged() -> Sandbox {
    let sandbox = Sandbox::with_config("segment-size=4096");
    sandbox.mk1(200);
    sandbox.tapelog("commit -g g 20").outcome().succeeded();
    flip(&sandbox.sealed(1), 100);
    sandbox
}

fn lines_of(found: &str, name: &str, kind: &str) -> usize {
    let kind = format!(r#""kind":"{kind}""#);
    found.lines().filter(|line| line.contains(name) && line.contains(&kind)).count()
}

#[test]
fn what_is_no_file_is_listed_with_all_other_damage() {
    for (name, kind) in [
        ("start", "state"),
        ("end", "state"),
        ("lock", "state"),
        ("groups/g.checkpoint", "checkpoint"),
        ("00000000000000000056.log", "stranger"),
    ] {
        for is_link in [false, true] {
            let sandbox = damaged();
            let path = match kind {
                "stranger" => sandbox.sealed(2),
                _ => sandbox.log().join(name),
            };
            let name = path.file_name().unwrap().to_str().unwrap();
            fs::rename(&path, sandbox.path("moved")).unwrap();
            match is_link {
                true => symlink(sandbox.path("moved"), &path).unwrap(),
                false => fs::create_dir(&path).unwrap(),
            }
            let found = sandbox.tapelog("verify -J").outcome().ended(status::DAMAGE).text();
            assert_eq!(lines_of(&found, name, kind), 1, "{name}: {found}");
            assert_eq!(lines_of(&found, "00000000000000000000.log", "damaged"), 1, "{found}");
        }
    }
}

#[test]
fn a_file_that_may_not_be_read_hides_nothing() {
    let sandbox = damaged();
    let checkpoint = sandbox.log().join("groups/g.checkpoint");
    for path in [&checkpoint, &sandbox.sealed(2)] {
        fs::set_permissions(path, Permissions::from_mode(0o000)).unwrap();
        let found = foreground(sandbox.as_nobody("verify -J")).outcome();
        let found = found.ended(status::DAMAGE).text();
        let name = path.file_name().unwrap().to_str().unwrap();
        assert_eq!(lines_of(&found, name, "unread"), 1, "{found}");
        assert_eq!(lines_of(&found, "00000000000000000000.log", "damaged"), 1, "{found}");
        assert_eq!(lines_of(&found, "", "missing"), 0, "{found}");
        fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
    }
    flip(&sandbox.sealed(1), 100);
    fs::set_permissions(&checkpoint, Permissions::from_mode(0o000)).unwrap();
    let verify = foreground(sandbox.as_nobody("verify")).outcome().ended(status::FAILED);
    verify.said(&["1 file can't be read"]);
    fs::set_permissions(&checkpoint, Permissions::from_mode(0o644)).unwrap();
}

#[test]
fn a_log_json_that_is_no_good_has_a_line_of_its_own() {
    let sandbox = damaged();
    fs::write(sandbox.log().join("log.json"), "{").unwrap();
    for _ in 0..2 {
        let found = sandbox.tapelog("verify -J").outcome().ended(status::DAMAGE);
        let found = found.said(&["log.json"]).text();
        assert_eq!(lines_of(&found, "log.json", "state"), 1, "{found}");
        let _ = fs::remove_file(sandbox.log().join("log.json"));
    }
}

#[test]
fn a_directory_is_no_lock_and_repair_makes_a_new_one() {
    let sandbox = Sandbox::new();
    sandbox.mk(3);
    let lock = sandbox.log().join("lock");
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    sandbox.tapelog("produce").write_stdin("x\n").fails(status::FAILED, &["lock", "--repair"]);
    sandbox.tapelog("verify --repair").outcome().succeeded();
    sandbox.tapelog("produce").write_stdin("x\n").outcome().succeeded();
    assert!(lock.is_file() && sandbox.log().join("quarantine").exists());
}
