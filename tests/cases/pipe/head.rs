//! H072: a reader of the output that goes away, or gets stuck.

use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::sandbox::{A_SECOND, Expect, Piped, Sandbox, is_quiet, same_bytes, stays, want};

#[test]
fn h072_head_ends_a_reader_quietly() {
    let sandbox = Sandbox::new();
    sandbox.mk(1_000_000);
    for options in ["", "-J", r"-F %v\n", "-0", "-f"] {
        let mut reader = Piped::start(&sandbox, &format!("consume {options} -o earliest"));
        assert!(reader.take(8).starts_with(if options == "-J" { b"{" } else { b"m-000001" }));
        reader.close();
        reader.ends_quietly();
    }
}

#[test]
fn h072_a_pipe_closed_from_the_start_ends_every_command_quietly() {
    let sandbox = Sandbox::with_config("segment-size=512");
    sandbox.produce("--batch-records 1", want(1, 1000));
    sandbox.tapelog("commit -g g 500").outcome().succeeded();
    let lines = [
        "consume",
        "consume -J",
        "consume -0",
        "consume -f",
        "segments",
        "segments -J",
        "segments --summary",
        "groups",
        "groups -J",
        "groups -g g",
        "gc --dry-run",
        "gc --dry-run -J",
        "config",
        "config -J",
        "seek -g g --to-earliest --dry-run",
        "consume --help",
        "segments -h",
    ];
    for line in lines {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = sandbox.command(line);
        let mut child = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        drop(command);
        let start = Instant::now();
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        let end = child.wait().unwrap();
        assert!(is_quiet(end) && said.is_empty(), "{line}: {end}, {said}");
        assert!(start.elapsed() < A_SECOND, "{line}");
    }
}

#[test]
fn h072_an_idle_follower_ends_within_a_second_of_its_reader() {
    for options in ["-f", "-f -g g", "-f -J", "--timeout 1h"] {
        let sandbox = Sandbox::new();
        sandbox.mk(1);
        sandbox.tapelog("commit -g g 0").outcome().succeeded();
        let mut follower = Piped::start(&sandbox, &format!("consume {options}"));
        follower.line();
        follower.close();
        follower.ends_quietly();
    }
}

#[test]
fn h072_a_group_keeps_what_head_did_not_read() {
    for (bytes, position) in [(0, 0), (8, 0), (9, 1), (90, 10), (95, 10)] {
        let sandbox = Sandbox::new();
        sandbox.mk(1000);
        sandbox.tapelog("commit -g g 0").outcome().succeeded();
        let mut reader = Piped::start(&sandbox, "consume -g g");
        same_bytes(&reader.take(bytes), &want(1, 1000).as_bytes()[..bytes], "head");
        reader.close();
        reader.ends_quietly();
        assert_eq!(sandbox.position("g"), position, "{bytes} bytes were read");
        sandbox.tapelog("consume -g g").prints(want(position + 1, 1000));
    }
}

#[test]
fn h072_a_group_waits_for_its_reader_before_its_last_commit() {
    let sandbox = Sandbox::new();
    sandbox.mk(100);
    sandbox.tapelog("commit -g g 0").outcome().succeeded();
    let mut reader = Piped::start(&sandbox, "consume -g g");
    let untaken =
        stays(Duration::from_millis(1500), || sandbox.position("g") == 0 && reader.runs());
    assert!(untaken, "nothing was taken out of the pipe");
    same_bytes(&reader.rest(), want(1, 100).as_bytes(), "the reader");
    assert!(reader.ends_within(A_SECOND).success());
    assert_eq!((sandbox.position("g"), reader.err().as_str()), (100, ""));
}
