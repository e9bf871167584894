//! H004: producers and a group's consumer are killed in mid-run, again and again, and
//! each time the log goes on without help.
//!
//! In a round one to three producers append to one log, perhaps beside a consumer.
//! At a random moment some of them get `kill -9`; the others end in order. Then every
//! receipt's record is at its offset, each producer's records are there in their order
//! from the first on, what older rounds left is as it was, and nothing else is.
//!
//! `TAPELOG_KILLS` sets the number of rounds.

#![allow(clippy::print_stdout, reason = "the figures are what the test is run for")]

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::RangeInclusive;
use std::os::unix::process::ExitStatusExt;
use std::process::ChildStdin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::Signal;

use crate::sandbox::{
    Background, Call, Expect, Random, Sandbox, Strace, calls, foreground, lines, offsets, rounds,
    was_injected,
};

/// A kill loses nothing that was appended, under `none` either.
const SYNCS: [&str; 4] = ["each", "5ms", "1s", "none"];
/// From a roll every few batches to none.
const SEGMENT_SIZES: [&str; 3] = ["512", "8K", "64M"];
/// After so many rounds a new log begins.
const ROUNDS_A_LOG: u64 = 15;
const COMMIT_INTERVAL: u64 = 50;
/// What one producer gets in one round, so that a slow machine ends too.
const MOST_LINES: u64 = 600;
/// For what ends in order.
const SOON: Duration = Duration::from_secs(20);

/// The rounds of one of the three tests.
fn kills() -> u64 {
    let all: u64 = match std::env::var("TAPELOG_KILLS") {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("TAPELOG_KILLS={text} is no number")),
        Err(_) => rounds(200, 500),
    };
    all.div_ceil(3)
}

#[test]
fn h004_what_a_killed_producer_acknowledged_is_there() {
    run(4, 1..=1, false);
}

#[test]
fn h004_producers_that_are_killed_beside_others_harm_nobody() {
    run(44, 2..=3, false);
}

#[test]
fn h004_a_killed_consumer_repeats_at_most_one_commit_interval() {
    run(444, 1..=2, true);
}

fn run(seed: u64, producers: RangeInclusive<u64>, consumes: bool) {
    let mut random = Random(seed);
    let (mut records, mut receipts) = (0, 0);
    let total = kills();
    for begin in (0..total).step_by(ROUNDS_A_LOG as usize) {
        let size = any(&mut random, &SEGMENT_SIZES);
        let mut log = Killed::new(size, consumes);
        for round in begin..total.min(begin + ROUNDS_A_LOG) {
            let count = random.between(*producers.start(), *producers.end());
            receipts += log.round(round, count, &mut random);
        }
        log.ends_well();
        records += log.records.len();
    }
    println!("{total} rounds: {records} records, {receipts} receipts of killed producers");
    assert!(receipts > 0, "the kills came in mid-run");
}

#[test]
fn h004_a_producer_stopped_at_any_call_leaves_those_beside_it_in_order() {
    let Some(strace) = Strace::find("h004") else { return };
    let alone = Sandbox::with_config("segment-size=512");
    let traced = strace.of(&alone, &[], &alone.command(DOOMED));
    foreground(traced).write_stdin(lines("a", 1, 9)).outcome().succeeded();
    assert_eq!(alone.segments().len(), 2, "it rolls");
    let (mut faults, mut met) = (0, 0);
    for call in calls(&alone).iter().filter(|call| call.changes()) {
        // After a sync that fails nobody may commit before the next append.
        let stops = if call.kind().ends_with("sync") { &STOPS[..1] } else { &STOPS };
        for stop in stops {
            faults += 1;
            met += u64::from(is_stopped_beside_others(&strace, call, stop));
        }
    }
    println!("{met} of {faults} faults");
    assert!(met > faults / 2, "{met} of {faults}");
}

const DOOMED: &str = "produce --batch-records 1 --sync each";
const STOPS: [&str; 2] = ["signal=KILL", "error=ENOSPC"];

/// A producer is killed at this call, or refused it, beside another one, that knows the
/// log's end, and a follower. Says whether it came so far.
fn is_stopped_beside_others(strace: &Strace, call: &Call, stop: &str) -> bool {
    let sandbox = Sandbox::with_config("segment-size=512");
    let beside = sandbox.command("produce --batch-records 1 --sync none");
    let mut beside = sandbox.spawn("beside", beside);
    let follower = sandbox.spawn("follower", sandbox.command("consume -g g -f -q"));
    beside.feed("b 1\n");
    follower.prints_within(SOON, "b 1\n");

    let fault = format!("{}:{stop}:when={}", call.name, call.nth);
    let doomed = strace.inject(&sandbox, &fault, &sandbox.command(DOOMED));
    let outcome = foreground(doomed).write_stdin(lines("a", 1, 9)).outcome();
    beside.feed("b 2\n");
    beside.close_stdin();
    assert!(beside.ends_within(SOON).success(), "{fault}: {}", beside.err());

    let all = sandbox.all().text();
    let left = all.strip_prefix("b 1\n").and_then(|rest| rest.strip_suffix("b 2\n"));
    assert!(lines("a", 1, 9).starts_with(left.unwrap()), "{fault}: {all}");
    follower.prints_within(SOON, all);
    outcome.status.signal() == Some(9) || was_injected(&sandbox)
}

fn any<'a>(random: &mut Random, choices: &[&'a str]) -> &'a str {
    choices[random.between(0, choices.len() as u64 - 1) as usize]
}

/// A log whose users are killed, and what is known of it.
struct Killed {
    sandbox: Sandbox,
    /// The value of each record, by offset.
    records: Vec<String>,
    /// Where the group goes on, if there is one.
    position: Option<u64>,
}

impl Killed {
    fn new(segment_size: &str, consumes: bool) -> Killed {
        let sandbox = Sandbox::with_config(&format!("segment-size={segment_size}"));
        let position = consumes.then(|| sandbox.commit("g", 0)).map(|()| 0);
        Killed { sandbox, records: Vec::new(), position }
    }

    /// One round; says how many receipts the killed producers had printed.
    fn round(&mut self, round: u64, producers: u64, random: &mut Random) -> u64 {
        let consumer = self.position.map(|_| Consumer::start(&self.sandbox, random));
        let mut producers: Vec<_> =
            (0..producers).map(|n| Producer::start(&self.sandbox, round, n, random)).collect();
        thread::sleep(Duration::from_micros(random.between(0, 20_000)));
        let spared = random.next() as usize % producers.len();
        let doomed = producers.split_off(spared);
        let mut ends: Vec<Ended> = doomed.into_iter().map(Producer::kill).collect();
        ends.extend(producers.into_iter().map(Producer::finish));
        let printed = consumer.map(|consumer| (consumer.is_killed, consumer.end()));

        self.read(round);
        let receipts = ends.iter().map(|end| self.check(round, end)).sum();
        if let Some((is_killed, printed)) = printed {
            self.check_group(is_killed, &printed);
        }
        let next = format!("{round} goes on");
        let mut produce = self.sandbox.tapelog("produce --receipt");
        let appended = produce.write_stdin(format!("{next}\n")).outcome().succeeded();
        // A kill may end a write half way, which the next writer tells of.
        let is_well = appended.errors().is_empty() && appended.notes().len() <= 1;
        assert!(is_well, "round {round}: {appended}");
        assert_eq!(appended.text(), format!("{}\n", self.records.len()), "round {round}");
        self.records.push(next);
        receipts
    }

    /// Reads the whole log: what was there is, and all that is new comes from this round.
    fn read(&mut self, round: u64) {
        let all = self.sandbox.tapelog(r"consume -F %o|%v\n").outcome().succeeded();
        assert!(all.errors().is_empty() && all.notes().len() <= 1, "round {round}: {all}");
        let found: Vec<String> = (0..)
            .zip(all.text().lines())
            .map(|(offset, line)| {
                let (number, value) = line.split_once('|').unwrap();
                assert_eq!(number, u64::to_string(&offset), "round {round}: no gap");
                value.to_owned()
            })
            .collect();
        assert!(found.starts_with(&self.records), "round {round}: what was there has changed");
        // Each producer's records once, in order, from the first on.
        let mut next: BTreeMap<u64, u64> = BTreeMap::new();
        for value in &found[self.records.len()..] {
            let numbers: Vec<u64> = value.split(' ').map(|word| word.parse().unwrap()).collect();
            let [of, producer, n] = numbers[..] else { panic!("round {round}: {value:?}") };
            let expected = next.entry(producer).or_default();
            assert_eq!((of, n), (round, *expected), "round {round}: {value:?}");
            *expected += 1;
        }
        self.records = found;
    }

    /// Every receipt's record is where it says; who ended in order has stored all.
    fn check(&self, round: u64, end: &Ended) -> u64 {
        for (n, &offset) in end.receipts.iter().enumerate() {
            let stored = self.records.get(offset as usize).map(String::as_str);
            let want = format!("{round} {} {n}", end.producer);
            assert_eq!(stored, Some(want.as_str()), "the receipt {offset} of {}", end.sync);
        }
        let receipts = end.receipts.len() as u64;
        match end.fed {
            Some(fed) => assert_eq!(receipts, fed, "who was spared has stored all"),
            None => return receipts,
        }
        0
    }

    /// What was printed are the records from the group's position on. It has moved
    /// behind all of them, or after a kill at most one interval less.
    fn check_group(&mut self, is_killed: bool, printed: &str) {
        let from = self.position.unwrap();
        let rest = &self.records[from as usize..];
        let count = printed.lines().count() as u64;
        assert!(printed.lines().eq(rest.iter().take(count as usize)), "from {from}: {printed}");
        let position = self.sandbox.position("g");
        let earliest = (from + count).saturating_sub(if is_killed { COMMIT_INTERVAL } else { 0 });
        assert!(
            (earliest.max(from)..=from + count).contains(&position),
            "{position} after {count} from {from}, killed: {is_killed}"
        );
        self.position = Some(position);
    }

    /// Whoever is not killed reads the rest.
    fn ends_well(&self) {
        let Some(from) = self.position else { return };
        let rest = self.records[from as usize..].iter().map(|value| value.clone() + "\n");
        self.sandbox.tapelog("consume -g g").prints(rest.collect::<String>());
    }
}

/// A producer that is fed until it ends.
struct Producer {
    number: u64,
    sync: &'static str,
    process: Background,
    feeder: JoinHandle<u64>,
    stop: Arc<AtomicBool>,
}

/// What became of a producer.
struct Ended {
    producer: u64,
    sync: &'static str,
    receipts: Vec<u64>,
    /// How many lines it was given, if it was not killed.
    fed: Option<u64>,
}

impl Producer {
    fn start(sandbox: &Sandbox, round: u64, number: u64, random: &mut Random) -> Producer {
        let sync = any(random, &SYNCS);
        let batch = random.between(1, 8);
        let line = format!("produce --receipt --sync {sync} --batch-records {batch}");
        let name = format!("producer{number}");
        let mut process = sandbox.spawn(&name, sandbox.command(&line));
        let stdin = process.child().stdin.take().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let feeder = thread::spawn({
            let (stop, seed) = (stop.clone(), random.next());
            move || feed(stdin, &format!("{round} {number}"), Random(seed), &stop)
        });
        Producer { number, sync, process, feeder, stop }
    }

    fn kill(mut self) -> Ended {
        self.process.kill();
        self.stop.store(true, Ordering::Relaxed);
        let receipts = self.receipts();
        self.feeder.join().unwrap();
        Ended { producer: self.number, sync: self.sync, receipts, fed: None }
    }

    fn finish(mut self) -> Ended {
        self.stop.store(true, Ordering::Relaxed);
        let status = self.process.ends_within(SOON);
        assert!(status.success(), "{status}: {}", self.process.err());
        let receipts = self.receipts();
        let fed = Some(self.feeder.join().unwrap());
        Ended { producer: self.number, sync: self.sync, receipts, fed }
    }

    fn receipts(&self) -> Vec<u64> {
        offsets(&whole_lines(self.process.out()))
    }
}

/// Writes numbered lines, some at a time, and then none, until told to stop; says how
/// many.
fn feed(mut stdin: ChildStdin, name: &str, mut random: Random, stop: &AtomicBool) -> u64 {
    let mut fed = 0;
    while !stop.load(Ordering::Relaxed) {
        let next = (fed + random.between(1, 30)).min(MOST_LINES);
        let lines: String = (fed..next).map(|n| format!("{name} {n}\n")).collect();
        if stdin.write_all(lines.as_bytes()).is_err() {
            break;
        }
        fed = next;
        thread::sleep(Duration::from_micros(random.between(0, 300)));
    }
    fed
}

/// The group's consumer.
struct Consumer {
    process: Background,
    is_killed: bool,
}

impl Consumer {
    fn start(sandbox: &Sandbox, random: &mut Random) -> Consumer {
        let line = format!("consume -g g -f --commit-every {COMMIT_INTERVAL}");
        let process = sandbox.spawn("consumer", sandbox.command(&line));
        Consumer { process, is_killed: random.next().is_multiple_of(2) }
    }

    /// Ends it in its way; gives what it has printed, to the last whole line.
    fn end(mut self) -> String {
        if self.is_killed {
            self.process.kill();
        } else {
            self.process.signal(Signal::TERM);
            self.process.ends_within(SOON);
        }
        // It may have met what a killed producer left unfinished.
        let said = self.process.err();
        assert!(said.lines().all(|line| line.starts_with("tapelog: note: ")), "{said}");
        whole_lines(self.process.out())
    }
}

/// What was written up to the last newline: a kill may come in the middle of a line.
fn whole_lines(mut bytes: Vec<u8>) -> String {
    bytes.truncate(memchr::memrchr(b'\n', &bytes).map_or(0, |at| at + 1));
    String::from_utf8(bytes).unwrap()
}
