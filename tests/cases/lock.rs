//! LOCK: locks, process ids, several writers.
//!
//! H054 (a handler inherits no handle) waits for `--exec`.

use std::fs;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::sandbox::{
    Background, Expect, Random, Sandbox, allow_writing, deny_writing, foreground, hold_lock,
    is_locked, offsets, rounds, status, stays, wait_until, want,
};

const SECOND: Duration = Duration::from_secs(1);

/// Runs this and says how long it took.
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    (work(), start.elapsed())
}

/// The append lock, and what says who consumes a group.
fn lock_files(sandbox: &Sandbox) -> Vec<PathBuf> {
    vec![sandbox.log().join("lock"), sandbox.log().join("groups/g.holder")]
}

/// A log with a group, whose producer and consumer were killed in mid-run.
fn left_by_a_crash() -> Sandbox {
    let sandbox = Sandbox::new();
    let mut producer = sandbox.spawn("producer", sandbox.command("produce"));
    producer.feed(want(1, 100));
    wait_until(5 * SECOND, "the lines are appended", || {
        sandbox.all().outcome().stdout == want(1, 100).as_bytes()
    });
    let mut consumer = sandbox.spawn("consumer", sandbox.command("consume -g g -f"));
    consumer.prints_within(5 * SECOND, want(1, 100));
    producer.kill();
    consumer.kill();
    sandbox
}

#[test]
fn h051_a_lock_left_by_a_crash_blocks_nobody_whatever_it_says() {
    let sandbox = left_by_a_crash();
    let mut unrelated = Command::new("/bin/sleep").arg("60").spawn().unwrap();
    let ids = [
        unrelated.id().to_string(),
        "1".into(),
        std::process::id().to_string(),
        "\0garbage\u{1}".into(),
        "".into(),
    ];
    for (round, text) in ids.iter().enumerate() {
        lock_files(&sandbox).iter().for_each(|file| fs::write(file, text).unwrap());
        let ((), took) = timed(|| {
            sandbox.produce("", "x\n");
            let consumed = sandbox.tapelog("consume -g g").outcome().succeeded().silent();
            assert!(consumed.stdout.ends_with(b"x\n"), "round {round}");
        });
        assert!(took < 2 * SECOND, "round {round} took {took:?}");
    }
    unrelated.kill().unwrap();
    unrelated.wait().unwrap();
}

#[test]
fn h051_a_killed_consumer_frees_its_group_at_once() {
    let sandbox = left_by_a_crash();
    sandbox.tapelog("seek -g g --to-earliest").outcome().succeeded().silent();
    sandbox.tapelog("consume -g g").prints(want(1, 100));
    sandbox.tapelog("groups -g g --delete").outcome().succeeded();
}

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
    assert_eq!(follower.err(), "");
    each_line_is_there(&follower.out()[..], count);
    assert_eq!(sandbox.position("g"), all as u64);
    sandbox.tapelog("gc --roll").outcome().succeeded();
    assert!(sandbox.segments().len() <= 2, "gc removed what the group had read");
}

/// All who only read, as a user who may only read; each must answer in a second,
/// in silence.
fn readers_answer(sandbox: &Sandbox, acknowledged: u64) {
    deny_writing(sandbox.log());
    for line in [
        "consume",
        "segments",
        "segments --summary -J",
        "groups -g g -J",
        "groups",
        "config",
        "consume -o -1",
    ] {
        let (outcome, took) =
            timed(|| foreground(sandbox.as_nobody(line)).outcome().succeeded().silent());
        assert!(took < SECOND, "{line} took {took:?}");
        if line == "consume" {
            let records = memchr::memchr_iter(b'\n', &outcome.stdout).count() as u64;
            assert!(records >= acknowledged, "{records} records, {acknowledged} acknowledged");
        }
    }
    allow_writing(sandbox.log());
}

#[test]
fn h055_readers_need_no_lock_and_no_right_to_write() {
    let sandbox = Sandbox::new();
    sandbox.mk1(1000);
    sandbox.tapelog("commit -g g 10").outcome().succeeded();
    let _stuck = hold_lock(&sandbox.log().join("lock"));
    readers_answer(&sandbox, 1000);
}

/// Stops and wakes a busy producer until it is caught with the append lock held.
fn stop_holding_the_lock(sandbox: &Sandbox, producer: &Background) {
    let lock = sandbox.log().join("lock");
    wait_until(20 * SECOND, "the producer is caught with the lock", || {
        producer.signal(Signal::STOP);
        let caught = stays(Duration::from_millis(5), || is_locked(&lock));
        if !caught {
            producer.signal(Signal::CONT);
        }
        caught
    });
}

#[test]
fn h055_a_stopped_writer_blocks_no_reader() {
    let sandbox = Sandbox::new();
    sandbox.mk1(1000);
    sandbox.tapelog("commit -g g 10").outcome().succeeded();
    let command = sandbox.command("produce --receipt --sync each --batch-records 1");
    let mut producer = sandbox.spawn("producer", command);
    let mut stdin = producer.child().stdin.take().unwrap();
    let feeder = thread::spawn(move || while stdin.write_all(b"more\n").is_ok() {});
    wait_until(5 * SECOND, "it is in mid-run", || !producer.out().is_empty());
    stop_holding_the_lock(&sandbox, &producer);
    let receipts = String::from_utf8(producer.out()).unwrap();
    let acknowledged = receipts.lines().last().unwrap().parse::<u64>().unwrap() + 1;
    readers_answer(&sandbox, acknowledged);
    producer.kill();
    feeder.join().unwrap();
    let next = sandbox.end();
    assert_eq!(sandbox.append("x"), next, "and the lock went with it");
}

#[test]
fn h055_a_producer_waits_for_the_lock_and_says_so() {
    let sandbox = Sandbox::new();
    sandbox.mk(1);
    let stuck = hold_lock(&sandbox.log().join("lock"));
    let mut producer = sandbox.spawn("producer", sandbox.command("produce"));
    producer.feed(want(2, 2));
    producer.close_stdin();
    wait_until(5 * SECOND, "it says that it waits", || !producer.err().is_empty());
    assert!(producer.runs(), "it waits on");
    drop(stuck);
    assert!(producer.ends_within(5 * SECOND).success());
    let said = producer.err();
    assert!(said.starts_with("tapelog: ") && said.lines().count() == 1, "{said}");
    sandbox.all().prints(want(1, 2));
}

#[test]
fn h055_a_commit_waits_five_seconds_for_a_checkpoint_and_then_gives_up() {
    let sandbox = Sandbox::new();
    sandbox.mk(10);
    sandbox.tapelog("commit -g g 1").outcome().succeeded();
    let stuck = hold_lock(&sandbox.log().join("groups/g.checkpoint"));
    let (_, took) = timed(|| sandbox.tapelog("commit -g g 5").fails(status::HELD, &["g"]));
    assert!((4 * SECOND..8 * SECOND).contains(&took), "{took:?}");
    drop(stuck);
    assert_eq!(sandbox.position("g"), 1);
    sandbox.tapelog("commit -g g 5").prints("");
}

#[test]
fn h055_who_consumes_a_group_is_named_to_those_who_want_to_move_it() {
    let sandbox = Sandbox::new();
    sandbox.mk(10);
    let consumer = sandbox.spawn("consumer", sandbox.command("consume -g g -f"));
    consumer.prints_within(5 * SECOND, want(1, 10));
    let holder = consumer.id().to_string();
    for line in
        ["consume -g g", "seek -g g --to-earliest", "groups -g g --delete", "commit -g g 10"]
    {
        sandbox.tapelog(line).fails(status::HELD, &["g", &holder]);
    }
    sandbox.produce("", want(11, 12));
    consumer.prints_within(5 * SECOND, want(1, 12));
    drop(consumer);
    sandbox.tapelog("groups -g g --delete").outcome().succeeded();
}

#[test]
fn h055_a_manual_consumer_leaves_the_checkpoint_to_commit() {
    let sandbox = Sandbox::new();
    sandbox.mk(10);
    let consumer = sandbox.spawn("consumer", sandbox.command("consume -g g -f --commit manual"));
    consumer.prints_within(5 * SECOND, want(1, 10));
    assert_eq!(sandbox.position("g"), 0);
    sandbox.tapelog("commit -g g 4").prints("");
    assert_eq!(sandbox.position("g"), 4);
    sandbox.tapelog("seek -g g --to-earliest").fails(status::HELD, &["g"]);
    sandbox.tapelog("consume -g g").fails(status::HELD, &["g"]);
    drop(consumer);
    sandbox.tapelog("consume -g g").prints(want(5, 10));
}
