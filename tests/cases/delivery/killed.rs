//! Consumers that are killed by `kill -9` at random moments, in each way of delivery: what
//! comes again, what is lost, and what may not.
//!
//! `TAPELOG_KILLS` sets the number of rounds for each of them.

#![allow(clippy::print_stdout, reason = "the figures are what the test is run for")]

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, mkfifoat};

use crate::sandbox::{
    Background, Expect, Piped, Random, Sandbox, lines, offsets, rounds, wait_until,
};

const SOON: Duration = Duration::from_secs(20);
/// A commit is due after so many records.
const INTERVAL: u64 = 50;

fn kills() -> u64 {
    match std::env::var("TAPELOG_KILLS") {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("TAPELOG_KILLS={text} is no number")),
        Err(_) => rounds(25, 200),
    }
}

/// A log for so many rounds, group g before its records.
fn log(records: u64) -> Sandbox {
    let sandbox = Sandbox::with_config("segment-size=64K");
    sandbox.produce("", lines("m", 0, records));
    sandbox.commit("g", 0);
    sandbox
}

/// A consumer that hands each record to a command, which prints its offset; killed after a
/// random time. Gives the offsets, to the last of a command that outlived it.
fn run_and_kill(sandbox: &Sandbox, options: &str, random: &mut Random) -> Vec<u64> {
    let command = sandbox.exec_command(options, "echo $TAPELOG_OFFSET");
    let mut consume = Piped::of(sandbox, command);
    let mut printed = String::new();
    // Now and then it is killed before the first.
    for _ in 0..random.between(0, 12) {
        printed += &consume.line();
    }
    thread::sleep(Duration::from_micros(random.between(0, 3000)));
    consume.kill();
    // Its children have the pipe, so that this ends after the last of them.
    printed += std::str::from_utf8(&consume.rest()).unwrap();
    offsets(&printed)
}

#[test]
fn at_least_once_never_loses_and_repeats_at_most_an_interval() {
    let mut random = Random(70);
    let sandbox = log(40_000);
    let options = format!("-g g --commit-every {INTERVAL}");
    let (mut done, mut repeats, total) = (0, 0, kills());
    for round in 0..total {
        let from = sandbox.position("g");
        assert!(from <= done, "round {round}: {from} is ahead of what was run, {done}");
        assert!(done - from <= INTERVAL, "round {round}: from {done} back to {from}");
        repeats += done - from;
        let ran = run_and_kill(&sandbox, &options, &mut random);
        let next = from + ran.len() as u64;
        assert!(ran.iter().copied().eq(from..next), "round {round}: {ran:?}");
        done = done.max(next);
    }
    println!("{total} kills: {done} records, {repeats} repeated");
    assert!(done > total, "{done}");
}

#[test]
fn at_most_once_never_repeats() {
    let mut random = Random(71);
    let sandbox = log(40_000);
    let (mut next, mut lost, total) = (0, 0, kills());
    for round in 0..total {
        let from = sandbox.position("g");
        assert!(next <= from, "round {round}: {next} was run, {from} is committed");
        // Of a record that was committed, the command may not have been started.
        assert!(from <= next + 1, "round {round}: {next} was run, {from} is committed");
        lost += from - next;
        let ran = run_and_kill(&sandbox, "-g g --commit before", &mut random);
        next = from + ran.len() as u64;
        assert!(ran.iter().copied().eq(from..next), "round {round}: {ran:?}");
    }
    println!("{total} kills: {next} records, {lost} lost");
    assert!(next > total, "{next}");
}

/// A worker that acknowledges each line it takes, and so many of these are known to be
/// read by the consumer.
struct Worker {
    acks: File,
    /// The reading end of the same pipe, to see what the consumer left in it.
    left: File,
}

impl Worker {
    fn new(sandbox: &Sandbox) -> Worker {
        let open = |write: bool| {
            let mut options = OpenOptions::new();
            options.read(!write).write(write).custom_flags(OFlags::NONBLOCK.bits() as i32);
            options.open(sandbox.path("acks")).unwrap()
        };
        let left = open(false);
        Worker { acks: open(true), left }
    }

    /// Takes what is left in the pipe; gives the last acknowledgement that was taken out.
    fn heard(&mut self, acked: &[u64]) -> u64 {
        let mut left = Vec::new();
        let mut room = [0; 1 << 16];
        while let Ok(count @ 1..) = self.left.read(&mut room) {
            left.extend_from_slice(&room[..count]);
        }
        let mut sent: Vec<u8> = Vec::new();
        acked.iter().for_each(|next| writeln!(sent, "{next}").unwrap());
        let taken = &sent[..sent.len() - left.len()];
        let whole = memchr::memchr_iter(b'\n', taken).count();
        acked[..whole].last().copied().unwrap_or_default()
    }
}

#[test]
fn what_was_acknowledged_and_heard_is_not_repeated() {
    let mut random = Random(72);
    let sandbox = log(400_000);
    mkfifoat(CWD, sandbox.path("acks"), Mode::RUSR | Mode::WUSR).unwrap();
    let mut worker = Worker::new(&sandbox);
    let total = kills();
    let mut position = 0;
    for round in 0..total {
        let mut consume = Piped::start(&sandbox, "consume -g g --ack-from acks -F %o\\n");
        let count = random.between(1, 400);
        let mut acked = Vec::new();
        for n in 0..count {
            let offset: u64 = consume.line().trim().parse().unwrap();
            assert_eq!(offset, position + n, "round {round}");
            // Now and then several with one line.
            if n + 1 == count || random.between(0, 3) > 0 {
                acked.push(offset + 1);
                writeln!(worker.acks, "{}", offset + 1).unwrap();
            }
        }
        thread::sleep(Duration::from_micros(random.between(0, 1500)));
        consume.kill();
        let heard = worker.heard(&acked);
        let next = sandbox.position("g");
        assert!(heard <= next, "round {round}: {heard} was heard, and {next} is read again");
        assert!(next <= offset_behind(&acked, position), "round {round}: {next} is ahead");
        position = next;
    }
    println!("{total} kills: {position} records");
    assert!(position > total, "{position}");
}

fn offset_behind(acked: &[u64], position: u64) -> u64 {
    acked.last().copied().unwrap_or(position)
}

#[test]
fn after_kills_in_any_way_of_delivery_the_rest_is_read_to_the_end() {
    let mut random = Random(73);
    let sandbox = log(2000);
    for round in 0..rounds(6, 30) {
        let options = ["-g g", "-g g --batch 10", "-g g --commit before"][round % 3];
        run_and_kill(&sandbox, options, &mut random);
    }
    let from = sandbox.position("g");
    sandbox.tapelog("consume -g g").prints(lines("m", from, 2000));
}

/// Consumers that stand by, and so many of them.
fn stand_by(sandbox: &Sandbox, name: &str) -> Background {
    let line = format!("consume -g g -f -q --wait --commit-every {INTERVAL}");
    let mut command = sandbox.command(&line);
    command.stdin(Stdio::null());
    sandbox.spawn(name, command)
}

/// Ten consumers, the holder killed again and again, while a thousand lines a second come.
#[test]
fn ten_that_stand_by_lose_nothing_and_repeat_an_interval_at_most() {
    let sandbox = Sandbox::with_config("segment-size=64K");
    sandbox.commit("g", 0);
    let seconds = rounds(6, 60);
    let mut producer = sandbox.spawn("producer", sandbox.command("produce"));
    let mut stdin = producer.child().stdin.take().unwrap();
    let feeder = thread::spawn(move || {
        for n in 0..seconds * 100 {
            let lines: String = (n * 10..n * 10 + 10).map(|n| format!("{n}\n")).collect();
            stdin.write_all(lines.as_bytes()).unwrap();
            thread::sleep(Duration::from_millis(10));
        }
    });
    let mut standing: Vec<Background> =
        (0..10).map(|n| stand_by(&sandbox, &format!("consumer{n}"))).collect();
    let mut printed: Vec<Vec<u64>> = Vec::new();
    let mut longest = Duration::ZERO;
    for n in 10..10 + seconds {
        let began = std::time::Instant::now();
        let mut holder = None;
        wait_until(SOON, "one has taken over", || {
            let told = sandbox.group("g")["holder"].to_string();
            holder = standing.iter().position(|one| told.contains(&format!(" {} ", one.id())));
            holder.is_some_and(|holder| !standing[holder].out().is_empty())
        });
        longest = longest.max(began.elapsed());
        thread::sleep(Duration::from_secs(1));
        let mut killed = standing.remove(holder.unwrap());
        killed.kill();
        printed.push(whole_numbers(&killed.out()));
        standing.push(stand_by(&sandbox, &format!("consumer{n}")));
    }
    feeder.join().unwrap();
    assert!(producer.ends_within(SOON).success());
    let end = sandbox.end();
    wait_until(SOON, "all is read", || sandbox.position("g") == end);
    drop(standing.iter_mut().map(Background::kill).collect::<Vec<_>>());
    printed.extend(standing.iter().map(|one| whole_numbers(&one.out())).filter(|p| !p.is_empty()));
    let mut next = 0;
    let mut repeats = 0;
    for run in &printed {
        let first = *run.first().unwrap();
        assert!(first <= next, "{first} comes after {next}: nothing is lost");
        assert!(next - first <= INTERVAL, "back from {next} to {first}");
        assert!(run.iter().copied().eq(first..first + run.len() as u64), "in order, from {first}");
        repeats += next - first;
        next = next.max(first + run.len() as u64);
    }
    assert_eq!(next, end);
    println!(
        "{end} records, {seconds} kills, {repeats} repeated, taken over in {longest:?} at most"
    );
}

/// The numbers on whole lines.
fn whole_numbers(bytes: &[u8]) -> Vec<u64> {
    let whole = memchr::memrchr(b'\n', bytes).map_or(0, |at| at + 1);
    let text = std::str::from_utf8(&bytes[..whole]).unwrap();
    text.lines().map(|line| line.parse().unwrap()).collect()
}
