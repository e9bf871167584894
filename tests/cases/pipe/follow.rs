//! H071, H073, H074: each line at once, and an end where one was asked for.

use std::thread;
use std::time::{Duration, Instant};

use crate::sandbox::{
    A_SECOND, Background, Expect, SECOND, Sandbox, Strace, rounds, status, wait_until, want,
};

fn follows_line_by_line(sandbox: &Sandbox, follower: &Background) {
    for n in 1..=5 {
        thread::sleep(rounds(Duration::from_millis(100), 2 * SECOND));
        sandbox.produce("", want(n, n));
        follower.prints_within(SECOND, want(1, n));
    }
}

#[test]
fn h071_a_follower_in_a_pipe_shows_each_line_at_once() {
    let sandbox = Sandbox::with_config("segment-size=64M");
    let (follower, _cat) = sandbox.spawn_into_cat("follower", sandbox.command("consume -f"));
    follows_line_by_line(&sandbox, &follower);
}

#[test]
fn h071_a_follower_into_a_file_shows_each_line_at_once_in_every_format() {
    for options in ["", "-J", r"-F %v\n", "-g g"] {
        let sandbox = Sandbox::with_config("segment-size=64M");
        let follower = sandbox.spawn("follower", sandbox.command(&format!("consume -f {options}")));
        for n in 1..=3 {
            sandbox.produce("", want(n, n));
            let shown = || memchr::memchr_iter(b'\n', &follower.out()).count() as u64;
            wait_until(SECOND, "the line is there", || shown() == n);
        }
    }
}

#[test]
fn h071_receipts_come_at_once_through_a_pipe() {
    let sandbox = Sandbox::new();
    let command = sandbox.command("produce --receipt --sync each");
    let (mut producer, _cat) = sandbox.spawn_into_cat("producer", command);
    for n in 0..3 {
        producer.feed("x\n");
        let receipts: String = (0..=n).map(|offset| format!("{offset}\n")).collect();
        producer.prints_within(SECOND, receipts);
    }
}

#[test]
fn h073_a_group_ends_at_the_end_of_the_log() {
    let sandbox = Sandbox::with_config("segment-size=64M");
    sandbox.tapelog("commit -g g 0").outcome().succeeded();
    for (from, to) in [(1, 0), (1, 10), (11, 10), (11, 20)] {
        if from <= to {
            sandbox.produce("", want(from, to));
        }
        let start = Instant::now();
        sandbox.tapelog("consume -g g").prints(want(from, to));
        assert!(start.elapsed() < SECOND);
    }
}

#[test]
fn h073_a_follower_ends_at_its_count_and_at_its_timeout() {
    let sandbox = Sandbox::new();
    sandbox.mk(10);
    sandbox.tapelog("consume -f -n 3").prints(want(1, 3));
    sandbox.tapelog("consume --timeout 200ms").prints(want(1, 10));
    sandbox.tapelog("consume -o latest --timeout 200ms").prints("");
    let empty = sandbox.tapelog("consume -o latest --timeout 200ms --fail-empty").outcome();
    empty.ended(status::NOT_THERE).silent().printed("");
    let mut follower = sandbox.spawn("follower", sandbox.command("consume -f -o latest -n 2"));
    sandbox.produce("", want(11, 11));
    assert!(follower.runs());
    sandbox.produce("", want(12, 13));
    assert!(follower.ends_within(A_SECOND).success());
    assert!([want(11, 12), want(12, 13)].contains(&String::from_utf8(follower.out()).unwrap()));
}

#[test]
fn h074_a_follower_works_without_file_events() {
    let Some(strace) = Strace::find("h074") else { return };
    for error in ["ENOSPC", "EMFILE", "ENOSYS"] {
        let sandbox = Sandbox::with_config("segment-size=512");
        sandbox.mk1(20);
        let fault = format!("inotify_init,inotify_init1,inotify_add_watch:error={error}");
        // Should strace be killed, the follower ends by its timeout.
        let follower = sandbox.command("consume -f --timeout 30s");
        let follower = sandbox.spawn("follower", strace.inject(&sandbox, &fault, &follower));
        follower.prints_within(5 * SECOND, want(1, 20));
        for n in 2..=4 {
            sandbox.produce("--batch-records 1", want(n * 10 + 1, n * 10 + 10));
            follower.prints_within(2 * SECOND, want(1, n * 10 + 10));
        }
    }
}

#[test]
fn h074_a_follower_goes_on_after_segments_were_replaced() {
    let sandbox = Sandbox::with_config("segment-size=600");
    let lines = |from: u64, to: u64| (from..=to).map(|n| format!("k:{n}\n")).collect::<String>();
    let mut printed = lines(1, 30);
    sandbox.produce("-K : --batch-records 5", lines(1, 30));
    let followers = ["", "-g g"].map(|options| {
        let command = sandbox.command(&format!("consume -f -K : {options}"));
        sandbox.spawn(&format!("follower{options}"), command)
    });
    for n in 1..=4 {
        followers.iter().for_each(|it| it.prints_within(5 * SECOND, &printed));
        let gc = sandbox.tapelog("gc --compact --even-unread --roll").outcome().succeeded();
        gc.noted(&["compacted", "saved"]);
        let more = lines(n * 30 + 1, n * 30 + 30);
        sandbox.produce("-K : --batch-records 5", more.as_str());
        printed.push_str(&more);
    }
    followers.iter().for_each(|it| it.prints_within(2 * SECOND, &printed));
}
