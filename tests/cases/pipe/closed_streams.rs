//! H075: no data file takes the place of a closed standard stream.

use std::fs;
use std::process::Command;

use crate::sandbox::{Expect, Sandbox, foreground, status, want};

/// Runs the command with standard streams closed: `"<&-"`, `">&- 2>&-"`.
fn with_closed(streams: &str, command: &Command) -> assert_cmd::Command {
    let mut shell = Command::new("/bin/sh");
    shell.env_clear().current_dir(command.get_current_dir().unwrap());
    shell
        .args(["-c", &format!(r#"exec "$@" {streams}"#), "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    foreground(shell)
}

#[test]
fn h075_a_producer_with_closed_streams_stores_exactly_its_input() {
    for streams in [">&-", "2>&-", ">&- 2>&-"] {
        let sandbox = Sandbox::new();
        with_closed(streams, &sandbox.command("produce --receipt"))
            .write_stdin(want(1, 100))
            .outcome()
            .succeeded();
        sandbox.produce("", want(101, 102));
        sandbox.all().prints(want(1, 102));
    }
}

#[test]
fn h075_a_producer_with_files_and_all_streams_closed_stores_exactly_these() {
    let sandbox = Sandbox::new();
    let mut produce = sandbox.command("produce");
    produce.arg(sandbox.file("in", want(1, 100)));
    with_closed("<&- >&- 2>&-", &produce).outcome().succeeded();
    sandbox.all().prints(want(1, 100));
}

#[test]
fn h075_a_closed_stdin_is_an_empty_one() {
    let sandbox = Sandbox::new();
    sandbox.mk(10);
    with_closed("<&-", &sandbox.command("produce")).prints("");
    with_closed("<&- >&- 2>&-", &sandbox.command("produce")).prints("");
    sandbox.all().prints(want(1, 10));
}

#[test]
fn h075_a_closed_stdout_is_a_null_device_for_a_group() {
    let sandbox = Sandbox::new();
    sandbox.mk(100);
    sandbox.tapelog("commit -g g 0").outcome().succeeded();
    let before = fs::read(sandbox.active()).unwrap();
    with_closed(">&-", &sandbox.command("consume -g g")).prints("");
    with_closed("<&- >&- 2>&-", &sandbox.command("consume")).prints("");
    assert!(before == fs::read(sandbox.active()).unwrap(), "no segment was written into");
    assert_eq!(sandbox.position("g"), 100);
    sandbox.all().prints(want(1, 100));
}

#[test]
fn h075_errors_that_nobody_hears_keep_their_status() {
    let sandbox = Sandbox::new();
    with_closed("2>&-", &sandbox.command("consume")).outcome().ended(status::NOT_THERE).printed("");
    with_closed("<&- >&- 2>&-", &sandbox.command("consume --nonsense"))
        .outcome()
        .ended(status::USAGE)
        .printed("");
}
