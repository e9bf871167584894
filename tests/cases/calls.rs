//! Each call by which a command changes the disk is refused once, by strace, and each
//! is the last one before `kill -9`. A command that ends with 0 has done what it was
//! asked to; else it ends with 1 and one line, never with damage. Receipts hold, a group
//! is where it was or where it was sent, and the log is read and gone on with as if
//! nothing had been.

#![allow(clippy::print_stdout, reason = "the figures are what the test is run for")]

use std::os::unix::process::ExitStatusExt;

use crate::sandbox::{
    Call, Expect, Outcome, SECOND, Sandbox, Strace, calls, copy_tree, cut, foreground, lines,
    offsets, rounds, status, wait_until, want, was_injected,
};

/// A command, and what there is before it.
struct Scenario {
    command: &'static str,
    input: String,
    /// The log before it: a directory, unless the command makes it.
    before: Sandbox,
    /// What the log holds before it.
    records: String,
    /// Where group g may be afterwards; nowhere before it is made.
    positions: &'static [Option<u64>],
    /// Whether all that was asked for was done.
    done: fn(&Sandbox) -> bool,
}

#[test]
fn a_producer_that_makes_its_log_meets_every_fault() {
    meet_every_fault(&Scenario {
        command: "produce --receipt --sync each --batch-records 4",
        input: lines("n", 1, 12),
        before: Sandbox::new(),
        records: String::new(),
        positions: &[],
        done: |sandbox| ends_with(sandbox, 12),
    });
}

#[test]
fn a_producer_that_rolls_meets_every_fault() {
    let before = Sandbox::with_config("segment-size=512");
    before.produce("", want(1, 8));
    meet_every_fault(&Scenario {
        command: "produce --receipt --sync each --batch-records 8",
        input: lines("n", 1, 40),
        before,
        records: want(1, 8),
        positions: &[],
        done: |sandbox| ends_with(sandbox, 48),
    });
}

#[test]
fn a_producer_at_a_torn_tail_meets_every_fault() {
    let before = Sandbox::new();
    before.mkx(20);
    cut(&before.active(), 3);
    meet_every_fault(&Scenario {
        command: "produce --receipt",
        input: lines("n", 1, 3),
        before,
        records: want(1, 19),
        positions: &[],
        done: |sandbox| ends_with(sandbox, 22),
    });
}

#[test]
fn a_commit_that_makes_a_group_meets_every_fault() {
    let before = Sandbox::new();
    before.mkx(20);
    meet_every_fault(&Scenario {
        command: "commit -g g 15",
        input: String::new(),
        before,
        records: want(1, 20),
        positions: &[None, Some(15)],
        done: |sandbox| sandbox.position("g") == 15,
    });
}

#[test]
fn a_commit_meets_every_fault() {
    let before = Sandbox::new();
    before.mkx(20);
    before.commit("g", 5);
    let mut producer = before.spawn("killed", before.command("produce --batch-records 1"));
    producer.feed(lines("n", 1, 5));
    wait_until(20 * SECOND, "it appends", || before.end() == 25);
    producer.kill();
    meet_every_fault(&Scenario {
        command: "commit -g g 24",
        input: String::new(),
        before,
        records: want(1, 20) + &lines("n", 1, 5),
        positions: &[Some(5), Some(24)],
        done: |sandbox| sandbox.position("g") == 24,
    });
}

#[test]
fn a_seek_meets_every_fault() {
    let before = Sandbox::new();
    before.mk(20);
    before.commit("g", 5);
    meet_every_fault(&Scenario {
        command: "seek -g g --to 12 -q",
        input: String::new(),
        before,
        records: want(1, 20),
        positions: &[Some(5), Some(12)],
        done: |sandbox| sandbox.position("g") == 12,
    });
}

#[test]
fn a_consumer_meets_every_fault() {
    let before = Sandbox::new();
    before.mk(20);
    before.commit("g", 5);
    meet_every_fault(&Scenario {
        command: "consume -g g",
        input: String::new(),
        before,
        records: want(1, 20),
        positions: &[Some(5), Some(20)],
        done: |sandbox| sandbox.position("g") == 20,
    });
}

#[test]
fn the_deletion_of_a_group_meets_every_fault() {
    let before = Sandbox::new();
    before.mk(20);
    before.seek("g", "5");
    before.tapelog("consume -g g").outcome().succeeded();
    meet_every_fault(&Scenario {
        command: "groups -g g --delete",
        input: String::new(),
        before,
        records: want(1, 20),
        positions: &[None, Some(20)],
        done: |sandbox| !sandbox.log().join("groups/g.checkpoint").exists(),
    });
}

#[test]
fn gc_meets_every_fault() {
    let before = Sandbox::hundreds(4);
    before.commit("g", 200);
    meet_every_fault(&Scenario {
        command: "gc",
        input: String::new(),
        before,
        records: want(1, 400),
        positions: &[Some(200)],
        done: |sandbox| sandbox.segments().len() == 2,
    });
}

#[test]
fn a_change_of_settings_meets_every_fault() {
    let before = Sandbox::with_config("segment-size=1M");
    before.mk(20);
    meet_every_fault(&Scenario {
        command: "config max-record-size=1000",
        input: String::new(),
        before,
        records: want(1, 20),
        positions: &[],
        done: |sandbox| {
            let settings = sandbox.tapelog("config -J").text();
            settings.contains(r#""setting":"max-record-size","value":"1000"#)
        },
    });
}

fn ends_with(sandbox: &Sandbox, end: u64) -> bool {
    sandbox.log().join("log.json").exists() && sandbox.end() == end
}

/// What happens to one call.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Fails(&'static str),
    Kills,
}

fn meet_every_fault(scenario: &Scenario) {
    let Some(strace) = Strace::find(scenario.command) else { return };
    let sandbox = scenario.copy();
    let traced = strace.of(&sandbox, &[], &sandbox.command(scenario.command));
    foreground(traced).write_stdin(scenario.input.as_str()).outcome().succeeded();
    assert!((scenario.done)(&sandbox), "it is done if nothing fails");
    let calls: Vec<Call> = calls(&sandbox).into_iter().filter(Call::changes).collect();
    let mut met = 0;
    for (n, call) in calls.iter().enumerate() {
        let errors = ["EIO", "ENOSPC"];
        let (first, second) = (errors[n % 2], errors[(n + 1) % 2]);
        let faults = [Fault::Fails(first), Fault::Kills, Fault::Fails(second)];
        for fault in &faults[..rounds(2, 3)] {
            scenario.meet(&strace, call, *fault);
            met += 1;
        }
    }
    println!("{}: {} calls, {met} faults", scenario.command, calls.len());
}

impl Scenario {
    fn copy(&self) -> Sandbox {
        let copy = Sandbox::new();
        if self.before.log().exists() {
            copy_tree(self.before.log(), copy.log());
        }
        copy
    }

    fn meet(&self, strace: &Strace, call: &Call, fault: Fault) {
        let sandbox = self.copy();
        let what = match fault {
            Fault::Fails(error) => format!("error={error}"),
            Fault::Kills => "signal=KILL".to_owned(),
        };
        let fault_at = format!("{}:{what}:when={}", call.name, call.nth);
        let place = format!("{}, {fault_at}: {}", self.command, call.arguments);
        let traced = strace.inject(&sandbox, &fault_at, &sandbox.command(self.command));
        let outcome = foreground(traced).write_stdin(self.input.as_str()).outcome();
        match fault {
            Fault::Fails(_) => {
                assert!(was_injected(&sandbox), "{place}");
                self.told_the_truth(&sandbox, &outcome, &place);
            }
            Fault::Kills => assert_eq!(outcome.status.signal(), Some(9), "{place}: {outcome}"),
        }
        self.goes_on(&sandbox, &outcome, &place);
    }

    /// 0 is for what was done; all else is one line and 1.
    fn told_the_truth(&self, sandbox: &Sandbox, outcome: &Outcome, place: &str) {
        match outcome.status.code() {
            Some(status::DONE) => assert!((self.done)(sandbox), "{place}: it is not done"),
            Some(status::FAILED) => assert_eq!(outcome.errors().len(), 1, "{place}: {outcome}"),
            _ => panic!("{place}: {outcome}"),
        }
    }

    /// The log holds what it held, and of the input what was acknowledged at least; the
    /// next producer goes on there, and the command works again.
    fn goes_on(&self, sandbox: &Sandbox, outcome: &Outcome, place: &str) {
        let receipts = match self.command.contains("--receipt") {
            true => offsets(&String::from_utf8(outcome.stdout.clone()).unwrap()),
            false => Vec::new(),
        };
        let base = self.records.lines().count() as u64;
        let acknowledged = receipts.len() as u64;
        assert!(receipts.into_iter().eq(base..base + acknowledged), "{place}: {outcome}");
        let stored = self.read(sandbox, place);
        let added = stored.strip_prefix(self.records.as_str()).unwrap_or_else(|| {
            panic!("{place}: what was there has changed: {} bytes", stored.len())
        });
        assert!(self.input.starts_with(added), "{place}: {added}");
        assert!(added.lines().count() as u64 >= acknowledged, "{place}: {added:?}");
        self.has_its_group(sandbox, place);

        // After a failed sync a producer comes first: it writes what is in doubt anew.
        let mut producer = sandbox.tapelog("produce --receipt");
        let produced = producer.write_stdin("x\n").outcome().succeeded();
        assert!(produced.errors().is_empty(), "{place}: {produced}");
        produced.printed(format!("{}\n", stored.lines().count()));
        let mut again = sandbox.tapelog(self.command);
        let again = again.write_stdin(self.input.as_str()).outcome();
        let is_gone =
            self.command.contains("--delete") && again.status.code() == Some(status::NOT_THERE);
        assert!(is_gone || again.status.success() && again.errors().is_empty(), "{place}: {again}");
        assert_eq!(self.read(sandbox, place), stored + "x\n" + &self.input, "{place}");
    }

    /// All that can be read. What gc has removed, it was allowed to.
    fn read(&self, sandbox: &Sandbox, place: &str) -> String {
        if self.records.is_empty() && !sandbox.log().join("log.json").exists() {
            return String::new();
        }
        let read = sandbox.all().outcome();
        assert!(read.errors().is_empty() && read.notes().len() <= 1, "{place}: {read}");
        let text = read.succeeded().text();
        if self.command != "gc" {
            return text;
        }
        let collected = self.records.find(text.lines().next().unwrap()).unwrap();
        self.records[..collected].to_owned() + &text
    }

    fn has_its_group(&self, sandbox: &Sandbox, place: &str) {
        if self.positions.is_empty() {
            return;
        }
        let shown = sandbox.tapelog("groups -g g -J").outcome();
        let is_there = shown.status.code() != Some(status::NOT_THERE);
        let position = is_there.then(|| sandbox.position("g"));
        assert!(self.positions.contains(&position), "{place}: g is at {position:?}");
    }
}
