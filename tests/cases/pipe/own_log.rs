//! A log that is its own input, directories that are swapped beneath a follower, and
//! more inputs than a process may open at first.

use std::fs;
use std::os::unix::fs::symlink;

use crate::sandbox::{A_SECOND, Expect, SECOND, Sandbox, foreground, status, want};

#[test]
fn a_log_can_be_appended_to_itself_once() {
    let sandbox = Sandbox::with_config("segment-size=1G");
    sandbox.mk(200_000);
    // Files of a bounded size, should it chase itself again; a killed shell leaves its
    // children, so that their log is kept small enough to be full soon.
    let script = r#"ulimit -f 20000; "$1" consume log | "$1" produce log"#;
    let mut shell = std::process::Command::new("/bin/sh");
    shell.env_clear().current_dir(sandbox.path("")).args(["-c", script, "sh"]);
    shell.arg(crate::sandbox::binary());
    let mut shell = foreground(shell);
    shell.timeout(20 * SECOND).prints("");
    sandbox.all().prints(want(1, 200_000).repeat(2));
}

#[test]
fn an_end_beyond_the_log_end_is_no_error() {
    let sandbox = Sandbox::new();
    sandbox.mk(100);
    sandbox.tapelog("consume -o 50:200").prints(want(51, 100));
}

#[test]
fn a_log_is_not_made_of_its_own_files() {
    let sandbox = Sandbox::new();
    sandbox.mk(10);
    let active = sandbox.active();
    symlink(&active, sandbox.path("link")).unwrap();
    let lines = [
        format!("produce {}", active.display()),
        format!(
            "produce - {}",
            sandbox.log().join(".").join(active.file_name().unwrap()).display()
        ),
        "produce link".to_owned(),
    ];
    for line in lines {
        let mut produce = sandbox.tapelog(&line);
        produce.timeout(20 * SECOND).write_stdin("new\n");
        produce.fails(status::FAILED, &["can't append", "directory of the log"]);
    }
    let script = r#"ulimit -f 20000; exec "$0" produce log <"$1""#;
    let mut shell = std::process::Command::new("/bin/sh");
    shell.env_clear().current_dir(sandbox.path("")).args(["-c", script]);
    shell.arg(crate::sandbox::binary()).arg(&active);
    let mut shell = foreground(shell);
    shell.timeout(20 * SECOND).fails(status::FAILED, &["can't append", "directory of the log"]);
    sandbox.all().prints(want(1, 10));
    // Another log's file is a file, and so is one beside the log.
    sandbox.file("beside", "new\n");
    sandbox.tapelog("produce beside").prints("");
    let other = Sandbox::new();
    other.tapelog(&format!("produce {}", active.display())).prints("");
}

#[test]
fn there_may_be_more_inputs_than_the_soft_limit_of_open_files() {
    let sandbox = Sandbox::new();
    for n in 1..=300 {
        sandbox.file(&format!("in-{n:03}"), want(n, n));
    }
    let script = r#"ulimit -Sn 200 && "$0" produce log in-*"#;
    let mut shell = std::process::Command::new("/bin/sh");
    shell.env_clear().current_dir(sandbox.path("")).args(["-c", script]);
    shell.arg(crate::sandbox::binary());
    foreground(shell).prints("");
    sandbox.all().prints(want(1, 300));
}

#[test]
fn a_follower_of_a_link_ends_when_its_target_goes_or_changes() {
    for swap in [false, true] {
        let sandbox = Sandbox::new();
        sandbox.mk(3);
        symlink("log", sandbox.path("link")).unwrap();
        let command = sandbox.command_on("link", "consume -f");
        let mut follower = sandbox.spawn("follower", command);
        follower.prints_within(5 * SECOND, want(1, 3));
        // Longer than it looks again: the link is no reason to end.
        assert!(crate::sandbox::stays(SECOND + SECOND / 2, || follower.runs()));
        fs::rename(sandbox.log(), sandbox.path("away")).unwrap();
        if swap {
            sandbox.mk(1);
        }
        let end = follower.ends_within(A_SECOND + SECOND);
        assert_eq!(end.code(), Some(status::FAILED), "{swap}");
        assert!(follower.err().contains("removed or replaced"), "{}", follower.err());
    }
}

#[test]
fn times_that_lie_backwards_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.mk(3);
    for line in [
        "consume --since 2024-02-01 --until 2024-01-01",
        "consume -o @2024-02-01 --until 2024-01-01",
    ] {
        sandbox.tapelog(line).fails(status::USAGE, &["--until", "lies before the start"]);
    }
    sandbox.tapelog("consume --until 9999-12-31T23:59:59Z").prints(want(1, 3));
    sandbox.tapelog("consume -o @9999-12-31T23:59:59Z").prints("");
}
