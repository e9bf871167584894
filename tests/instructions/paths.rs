//! The hot paths: each once, on a log of its own. Inputs are as large as makes the
//! beginning of a process small beside the work.

use std::collections::BTreeMap;
use std::fs::File;
use std::process::Stdio;

use super::callgrind::Callgrind;
use crate::sandbox::Sandbox;

/// Counts all of them.
pub fn count(callgrind: &Callgrind) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let mut add = |path: &str, count: u64| {
        assert_eq!(counts.insert(path.to_owned(), count), None, "{path} twice");
    };
    let version = Sandbox::new();
    let mut command = version.bare();
    command.arg("--version");
    add("--version", callgrind.count(&version, &command, Stdio::null(), Stdio::null()));
    for (input, options, bytes) in [
        ("lines, 16 MiB", "", lines(150_000)),
        ("short lines, 2 MiB", "", short_lines(300_000)),
        ("keyed lines, 4 MiB", "-K :", keyed_lines(33_000)),
        ("lines as lz4, 4 MiB", "-z lz4", lines(37_000)),
    ] {
        let sandbox = Sandbox::new();
        let file = sandbox.file("input", bytes);
        let produce = sandbox.command(&format!("produce {options}"));
        let stdin = File::open(file).unwrap().into();
        add(
            &format!("produce: {input}"),
            callgrind.count(&sandbox, &produce, stdin, Stdio::null()),
        );
        let keys = if options == "-K :" { options } else { "" };
        let consume = sandbox.command(&format!("consume {keys}"));
        let file = File::create(sandbox.path("output")).unwrap().into();
        let to_file = callgrind.count(&sandbox, &consume, Stdio::null(), file);
        add(&format!("consume to a file: {input}"), to_file);
        let to_pipe = callgrind.count(&sandbox, &consume, Stdio::null(), Stdio::piped());
        add(&format!("consume to a pipe: {input}"), to_pipe);
    }
    add("produce: one line", one_line(callgrind));
    add("consume: 5,000 records, a commit after each", commits(callgrind));
    counts
}

/// One line by one process, into a log that has records.
fn one_line(callgrind: &Callgrind) -> u64 {
    let sandbox = Sandbox::new();
    sandbox.mk(1000);
    let stdin = File::open(sandbox.file("input", "x\n")).unwrap().into();
    let produce = sandbox.command("produce --sync none");
    callgrind.count(&sandbox, &produce, stdin, Stdio::null())
}

fn commits(callgrind: &Callgrind) -> u64 {
    let sandbox = Sandbox::new();
    sandbox.mk(5000);
    let consume = sandbox.command("consume -g g -q --commit-every 1");
    callgrind.count(&sandbox, &consume, Stdio::null(), Stdio::null())
}

/// As in a web server's log, some 110 bytes each.
fn lines(count: u64) -> String {
    let line = |n: u64| {
        let (host, size) = (n * 7919 % 251, n * 104_729 % 99_991);
        format!(
            "10.0.{host}.17 - - [01/Jan/2026:00:00:00 +0000] \"GET /orders/{n:08} HTTP/1.1\" 200 {size:05} \"-\" \"curl/8.5.0 (x86_64)\"\n"
        )
    };
    (0..count).map(line).collect()
}

fn short_lines(count: u64) -> String {
    (0..count).map(|n| format!("{n:06}\n")).collect()
}

fn keyed_lines(count: u64) -> String {
    lines(count).lines().enumerate().map(|(n, line)| format!("key-{n:08}:{line}\n")).collect()
}
