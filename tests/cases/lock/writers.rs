//! H052 and H053: several writers at once.

use std::io::{BufRead, BufReader, BufWriter, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::Signal;

use crate::sandbox::{
    Background, Expect, Random, SECOND, Sandbox, offsets, rounds, wait_until, want,
};

/// Asserts that the lines with this prefix carry 0, 1, 2, … up to `count`.
fn in_order(text: &str, prefix: &str, count: u64) {
    let numbers = text
        .lines()
        .filter_map(|line| line.strip_prefix(prefix))
        .map(|n| n.parse::<u64>().unwrap());
    assert!(numbers.eq(0..count), "{prefix}: each line once, in order");
}

#[test]
fn h052_every_writer_goes_on_from_the_end_that_is_there() {
    let sandbox = Sandbox::new();
    let mut slow = sandbox.spawn("slow", sandbox.command("produce"));
    let (pause, short_runs) = (Duration::from_millis(rounds(10, 50)), rounds(40, 100));
    let mut slow_lines = 0;
    thread::scope(|scope| {
        let short = scope
            .spawn(|| (0..short_runs).for_each(|n| sandbox.produce("", format!("short {n}\n"))));
        while !short.is_finished() {
            slow.feed(format!("slow {slow_lines}\n"));
            slow_lines += 1;
            thread::sleep(pause);
        }
    });
    slow.close_stdin();
    assert!(slow.ends_within(5 * SECOND).success());
    let numbers = offsets(&sandbox.tapelog(r"consume -F %o\n").text());
    assert!(numbers.into_iter().eq(0..slow_lines + short_runs), "each offset once, ascending");
    let text = sandbox.all().text();
    in_order(&text, "slow ", slow_lines);
    in_order(&text, "short ", short_runs);
}

#[test]
fn h052_a_writer_sees_the_roll_of_another() {
    let sandbox = Sandbox::with_config("segment-size=512");
    let mut slow = sandbox.spawn("slow", sandbox.command("produce --receipt"));
    for n in 0..20 {
        let taken = n * 21;
        slow.feed(format!("slow {n}\n"));
        wait_until(5 * SECOND, "the slow line is in", || sandbox.end() == taken + 1);
        sandbox.produce("--batch-records 1", want(1, 20));
    }
    slow.close_stdin();
    assert!(slow.ends_within(5 * SECOND).success());
    let receipts = offsets(&String::from_utf8(slow.out()).unwrap());
    assert!(receipts.into_iter().eq((0..20).map(|n| n * 21)));
    in_order(&sandbox.all().text(), "slow ", 20);
}

/// The letters that payloads are made of.
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ ,.";

/// Lines of 10 to 5000 bytes: writer, number, payload, checksum of all that.
struct Writer {
    id: u32,
    random: Random,
    text: Vec<u8>,
}

impl Writer {
    fn new(id: u32) -> Writer {
        let mut random = Random(53 + u64::from(id));
        let text = random
            .bytes(8192)
            .iter()
            .map(|&byte| LETTERS[usize::from(byte) % LETTERS.len()])
            .collect();
        Writer { id, random, text }
    }

    fn line(&mut self, number: u32) -> Vec<u8> {
        let start = self.random.between(0, 3000) as usize;
        let length = self.random.between(0, 4990) as usize;
        let mut line = format!("{}{number:05}", self.id).into_bytes();
        line.extend_from_slice(&self.text[start..start + length]);
        line.extend_from_slice(format!("{:04x}\n", checksum(&line)).as_bytes());
        line
    }

    /// Feeds a producer from a thread of its own, and ends its stdin.
    fn feeds(mut self, stdin: ChildStdin, count: u32) -> JoinHandle<()> {
        thread::spawn(move || {
            let mut stdin = BufWriter::new(stdin);
            (0..count).for_each(|number| stdin.write_all(&self.line(number)).unwrap());
        })
    }
}

fn checksum(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes) & 0xffff
}

/// Asserts that a line is whole; gives its writer and its number.
fn read_line(line: &[u8]) -> (usize, u32) {
    let text = std::str::from_utf8(line).unwrap();
    let (body, sum) = text.split_at_checked(text.len() - 4).expect("a line has ten bytes at least");
    assert_eq!(format!("{:04x}", checksum(body.as_bytes())), sum, "mixed or cut: {text}");
    (body[..1].parse().unwrap(), body[1..6].parse().unwrap())
}

/// Eight producers at once.
fn eight_writers(sandbox: &Sandbox, count: u32) -> Vec<(Background, JoinHandle<()>)> {
    (0..8)
        .map(|id| {
            let mut producer = sandbox.spawn(&format!("producer-{id}"), sandbox.command("produce"));
            let stdin = producer.child().stdin.take().unwrap();
            (producer, Writer::new(id).feeds(stdin, count))
        })
        .collect()
}

fn all_end_well(writers: Vec<(Background, JoinHandle<()>)>) {
    for (mut producer, feeder) in writers {
        feeder.join().unwrap();
        let end = producer.ends_within(120 * SECOND);
        assert!(end.success(), "{end}: {}", producer.err());
    }
}

/// Asserts that every line of every writer is there once, whole and in order.
fn each_line_is_there(lines: impl BufRead, count: u32) {
    let mut next = [0; 8];
    for line in lines.split(b'\n') {
        let (writer, number) = read_line(&line.unwrap());
        assert_eq!(number, next[writer], "the next line of writer {writer}");
        next[writer] += 1;
    }
    assert_eq!(next, [count; 8]);
}

fn reading(mut consume: Command) -> (Child, impl BufRead) {
    let mut child = consume.stdout(Stdio::piped()).spawn().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    (child, out)
}

#[test]
fn h053_eight_writers_at_once_keep_their_lines_whole_and_in_order() {
    let sandbox = Sandbox::new();
    let count = rounds(5_000, 50_000);
    all_end_well(eight_writers(&sandbox, count));
    let (mut child, out) = reading(sandbox.command("consume"));
    each_line_is_there(out, count);
    assert!(child.wait().unwrap().success());
    assert_eq!(sandbox.end(), 8 * u64::from(count));
}

#[test]
fn h053_eight_writers_a_group_and_gc_share_a_log_that_rolls_all_the_time() {
    let sandbox = Sandbox::with_config("segment-size=16K");
    sandbox.tapelog("commit -g g 0").outcome().succeeded();
    let count = rounds(250, 2_500);
    let mut follower =
        sandbox.spawn("follower", sandbox.command("consume -g g -f --commit-every 100"));
    let writers = eight_writers(&sandbox, count);
    thread::scope(|scope| {
        let writing = scope.spawn(|| all_end_well(writers));
        while !writing.is_finished() {
            sandbox.tapelog("gc").outcome().succeeded();
            thread::sleep(Duration::from_millis(20));
        }
    });
    let all = 8 * count as usize;
    wait_until(30 * SECOND, "the follower has every line", || {
        memchr::memchr_iter(b'\n', &follower.out()).count() >= all
    });
    follower.signal(Signal::TERM);
    follower.ends_within(5 * SECOND);
    // Its commits sync the log, so that it may have to wait for the writers.
    assert!(follower.err().lines().all(|line| line.contains("waiting")), "{}", follower.err());
    each_line_is_there(&follower.out()[..], count);
    assert_eq!(sandbox.position("g"), all as u64);
    sandbox.tapelog("gc --roll").outcome().succeeded();
    assert!(sandbox.segments().len() <= 2, "gc removed what the group had read");
}
