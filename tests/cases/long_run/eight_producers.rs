//! Eight producers at once: every line once, whole, in each writer's order.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::sandbox::{Expect, Random, Sandbox, len, rounds, wait_until};

const WRITERS: u64 = 8;
/// For what takes longest: a long run on a slow machine.
const LATE: Duration = Duration::from_secs(600);

/// One writer's lines of 10 to 5000 bytes, each with a checksum of itself.
fn input(writer: u64, count: u64) -> String {
    let mut random = Random(writer + 1);
    (0..count).map(|n| line(writer, n, random.between(0, 4970) as usize) + "\n").collect()
}

/// `WRITER NUMBER FILLER CHECKSUM`
fn line(writer: u64, n: u64, length: usize) -> String {
    let text = format!("{writer} {n} {}", "z".repeat(length));
    let checksum = crc32fast::hash(text.as_bytes());
    format!("{text} {checksum:08x}")
}

/// Checks a line's checksum; gives its writer and number.
fn parse(line: &str) -> (usize, u64) {
    let (text, checksum) = line.rsplit_once(' ').expect("a whole line");
    assert_eq!(checksum, format!("{:08x}", crc32fast::hash(text.as_bytes())), "a line is whole");
    let mut words = text.split(' ');
    let mut number = || words.next().unwrap().parse::<u64>().unwrap();
    (number() as usize, number())
}

/// Starts the writers, each with its lines in a file on stdin.
fn start_writers(sandbox: &Sandbox, count: u64) -> Vec<Child> {
    let files =
        (0..WRITERS).map(|writer| sandbox.file(&format!("input{writer}"), input(writer, count)));
    let start = |file: PathBuf| {
        let mut command = sandbox.command("produce");
        command.stdin(File::open(file).unwrap()).stdout(Stdio::null()).spawn().unwrap()
    };
    let files: Vec<_> = files.collect();
    files.into_iter().map(start).collect()
}

fn all_succeed(writers: Vec<Child>) {
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
}

/// Every line of every writer once, whole, in its writer's order.
fn check(out: &[u8], count: u64) {
    let mut expected = [0; WRITERS as usize];
    for line in String::from_utf8(out.to_vec()).unwrap().lines() {
        let (writer, n) = parse(line);
        assert_eq!(n, expected[writer], "the next line of writer {writer}");
        expected[writer] += 1;
    }
    assert_eq!(expected, [count; WRITERS as usize]);
}

#[test]
fn eight_producers_keep_every_line_whole_and_in_order() {
    let count = rounds(500, 50_000);
    let sandbox = Sandbox::new();
    all_succeed(start_writers(&sandbox, count));
    check(&sandbox.all().outcome().succeeded().silent().stdout, count);
    assert_eq!(sandbox.end(), WRITERS * count);
}

#[test]
fn eight_producers_roll_every_few_lines() {
    let count = rounds(250, 5_000);
    let sandbox = Sandbox::with_config("segment-size=16K");
    all_succeed(start_writers(&sandbox, count));
    check(&sandbox.all().outcome().succeeded().silent().stdout, count);
    assert!(sandbox.segments().len() as u64 > WRITERS * count * 2500 / 16384 / 2);
}

/// Collects until so many bytes have been printed; `gc` may remove what g has read.
fn collect_until(sandbox: &Sandbox, printed: &Path, bytes: u64) {
    wait_until(LATE, "all lines are printed", || {
        sandbox.tapelog("gc").outcome().succeeded();
        len(printed) == bytes
    });
}

/// How many bytes all writers have to append.
fn input_bytes(sandbox: &Sandbox) -> u64 {
    (0..WRITERS).map(|writer| len(&sandbox.path(format!("input{writer}")))).sum()
}

#[test]
fn eight_producers_beside_rolls_gc_and_a_consumer_lose_nothing() {
    let count = rounds(250, 5_000);
    let sandbox = Sandbox::with_config("segment-size=16K");
    sandbox.commit("g", 0);
    let consume = sandbox.command("consume -g g -f --commit-every 100");
    let consumer = sandbox.spawn("consumer", consume);
    let writers = start_writers(&sandbox, count);
    collect_until(&sandbox, &sandbox.path("consumer.out"), input_bytes(&sandbox));
    all_succeed(writers);
    check(&consumer.out(), count);
    assert_eq!(sandbox.end(), WRITERS * count);
    wait_until(Duration::from_secs(10), "gc removes what was read", || {
        sandbox.tapelog("gc").outcome().succeeded();
        sandbox.segments().len() == 1
    });
}
