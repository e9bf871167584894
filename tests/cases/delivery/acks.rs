//! `--ack-from`: whoever reads the output says what is done with.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::Signal;

use crate::sandbox::{
    Expect, Piped, SECOND, Sandbox, foreground, same_bytes, status, wait_until, want,
};

const SOON: Duration = Duration::from_secs(10);

/// A consumer that prints to the test, which acknowledges.
struct Worker {
    sandbox: Sandbox,
    consume: Piped,
    acks: Option<File>,
}

impl Worker {
    /// So many records, and a consumer of group g with these options.
    fn start(records: u64, options: &str) -> Worker {
        let sandbox = Sandbox::new();
        sandbox.mk(records);
        sandbox.commit("g", 0);
        let pipe = sandbox.path("acks");
        mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
        Worker::again(sandbox, options)
    }

    fn again(sandbox: Sandbox, options: &str) -> Worker {
        let consume = Piped::start(&sandbox, &format!("consume -g g --ack-from acks {options}"));
        let acks = OpenOptions::new().write(true).open(sandbox.path("acks")).unwrap();
        Worker { sandbox, consume, acks: Some(acks) }
    }

    fn ack(&mut self, next: impl std::fmt::Display) {
        writeln!(self.acks.as_ref().unwrap(), "{next}").unwrap();
    }

    /// Goes, as a worker that ends does.
    fn close(&mut self) {
        self.acks = None;
        self.consume.close();
    }

    #[track_caller]
    fn ends(&mut self, code: i32, words: &[&str]) {
        let end = self.consume.ends_within(SOON);
        let said = self.consume.err();
        assert_eq!(end.code(), Some(code), "{said}");
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
        assert_eq!(said.lines().count(), usize::from(!words.is_empty()), "{said}");
    }
}

#[test]
fn the_checkpoint_follows_what_is_acknowledged_and_nothing_else() {
    let mut worker = Worker::start(10, "-f");
    same_bytes(&worker.consume.take(90), want(1, 10).as_bytes(), "all is printed");
    worker.ack(4);
    wait_until(SOON, "four are committed", || worker.sandbox.position("g") == 4);
    // An acknowledgement that is not whole counts for nothing.
    write!(worker.acks.as_ref().unwrap(), "9").unwrap();
    std::thread::sleep(Duration::from_millis(50));
    worker.consume.kill();
    assert_eq!(worker.sandbox.position("g"), 4);
    worker.sandbox.tapelog("consume -g g").prints(want(5, 10));
}

#[test]
fn it_ends_once_all_is_acknowledged() {
    let mut worker = Worker::start(10, "");
    assert_eq!(worker.consume.rest(), want(1, 10).into_bytes(), "its reader sees the end first");
    assert!(worker.consume.runs());
    worker.ack(10);
    worker.ends(status::DONE, &[]);
    assert_eq!(worker.sandbox.position("g"), 10);
}

#[test]
fn what_is_not_acknowledged_when_the_worker_ends_is_told() {
    let mut worker = Worker::start(10, "");
    worker.consume.rest();
    worker.ack(3);
    worker.ack(6);
    worker.close();
    worker.ends(status::HANDLER, &["4 records", "not acknowledged", "g goes on at 6"]);
    assert_eq!(worker.sandbox.position("g"), 6);
    let mut worker = Worker::again(worker.sandbox, "-n 1");
    assert_eq!(worker.consume.rest(), want(7, 7).into_bytes());
    worker.close();
    worker.ends(status::HANDLER, &["1 record was"]);
}

#[test]
fn a_worker_that_ends_early_with_all_acknowledged_is_a_quiet_end() {
    let mut worker = Worker::start(10, "-f");
    worker.consume.take(90);
    worker.ack(10);
    worker.close();
    worker.ends(status::DONE, &[]);
    assert_eq!(worker.sandbox.position("g"), 10);
}

#[test]
fn a_worker_that_dies_early_ends_a_follower() {
    let mut worker = Worker::start(10, "-f");
    worker.consume.take(90);
    worker.close();
    let begun = Instant::now();
    worker.ends(status::HANDLER, &["10 records"]);
    assert!(begun.elapsed() < 3 * SECOND, "{:?}", begun.elapsed());
}

#[test]
fn acknowledgements_that_cant_be_are_refused_and_name_their_line() {
    for (lines, code, words) in [
        ("5\n3\n", status::RANGE, ["line 2 of acks", "3 goes back"]),
        ("5\n11\n", status::RANGE, ["line 2 of acks", "11 was not handed over"]),
        ("5\n5\nfive\n", status::FAILED, ["line 3 of acks", "five"]),
        ("5\n\n", status::FAILED, ["line 2 of acks", "no offset"]),
        ("5\n-6\n", status::FAILED, ["line 2 of acks", "no offset"]),
    ] {
        let mut worker = Worker::start(10, "");
        worker.consume.rest();
        worker.acks.as_ref().unwrap().write_all(lines.as_bytes()).unwrap();
        worker.ends(code, &words);
        assert_eq!(worker.sandbox.position("g"), 5, "what was good before {lines:?} is kept");
    }
}

#[test]
fn two_full_pipes_are_no_deadlock() {
    let mut worker = Worker::start(200_000, "");
    worker.consume.take(9);
    // More than any pipe holds, while the output is full: it is read all the same.
    for _ in 0..5 {
        worker.acks.as_ref().unwrap().write_all("1\n".repeat(100_000).as_bytes()).unwrap();
    }
    wait_until(SOON, "they are read", || worker.sandbox.position("g") == 1);
    let rest = worker.consume.rest();
    assert_eq!(rest.len(), 9 * 199_999);
    worker.ack(200_000);
    worker.ends(status::DONE, &[]);
}

#[test]
fn what_a_filter_drops_needs_no_acknowledgement() {
    let mut worker = Worker::start(100, "--grep 7$");
    assert_eq!(worker.consume.rest().len(), 10 * 9);
    worker.ack(97);
    worker.ends(status::DONE, &[]);
    assert_eq!(worker.sandbox.position("g"), 100);
    let mut worker = Worker::start(100, "--grep nothing");
    worker.ends(status::DONE, &[]);
    assert_eq!(worker.sandbox.position("g"), 100);
}

#[test]
fn a_follower_hears_at_any_time_and_syncs_soon() {
    let mut worker = Worker::start(1, "-f");
    worker.consume.take(9);
    for next in 1..=20 {
        let begun = Instant::now();
        worker.ack(next);
        wait_until(SOON, "it is heard", || worker.sandbox.position("g") == next);
        assert!(begun.elapsed() < SECOND, "{:?}", begun.elapsed());
        worker.sandbox.append("12345678");
        worker.consume.take(9);
    }
    worker.consume.signal(Signal::TERM);
    assert_eq!(worker.consume.ends_within(SOON).signal(), Some(15));
    assert_eq!(worker.sandbox.position("g"), 20);
}

#[test]
fn a_signal_does_not_wait_for_acknowledgements() {
    let mut worker = Worker::start(100_000, "");
    worker.consume.take(90);
    worker.ack(5);
    wait_until(SOON, "it is heard", || worker.sandbox.position("g") == 5);
    worker.consume.signal(Signal::INT);
    assert_eq!(worker.consume.ends_within(SECOND).signal(), Some(2));
    assert_eq!(worker.consume.err(), "");
}

#[test]
fn a_shell_loop_is_a_worker_and_a_number_is_a_handle() {
    let sandbox = Sandbox::new();
    sandbox.mk(50);
    sandbox.commit("g", 0);
    let tapelog = crate::sandbox::binary().display();
    let script = |from: &str, open: &str| {
        format!(
            "mkfifo acks; {tapelog} consume log -g g --ack-from {from} -F '%o %v\\n' {open} |
             while read -r offset value; do echo $value >> worked; echo $((offset + 1)); done > acks
             rm acks"
        )
    };
    for (from, open) in [("acks", ""), ("3", "3< acks")] {
        let mut sh = Command::new("/bin/sh");
        sh.args(["-c", &script(from, open)]).current_dir(sandbox.path(""));
        foreground(sh).prints("");
        assert_eq!(std::fs::read_to_string(sandbox.path("worked")).unwrap(), want(1, 50));
        assert_eq!(sandbox.position("g"), 50);
        std::fs::remove_file(sandbox.path("worked")).unwrap();
        sandbox.seek("g", "earliest");
    }
    sandbox.tapelog("consume -g g --ack-from 99").fails(status::FAILED, &["handle 99"]);
    sandbox
        .tapelog("consume -g g --ack-from acks --commit manual")
        .fails(status::USAGE, &["--ack-from", "--commit"]);
}
