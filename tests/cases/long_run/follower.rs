//! A follower is quick when there is something, idle when there is nothing, and
//! gone when nobody reads.

use std::time::{Duration, Instant};

use crate::sandbox::{Background, Piped, Sandbox, rounds, wait_until, want};

const SOON: Duration = Duration::from_secs(5);

/// Feeds a line to a running producer and waits until the follower shows it.
fn shown_after(producer: &mut Background, shown: &mut Piped, n: u64) -> Duration {
    let begun = Instant::now();
    producer.feed(want(n, n));
    assert_eq!(shown.line(), want(n, n));
    begun.elapsed()
}

#[test]
fn a_line_is_shown_within_50_ms_of_its_append_across_rolls() {
    let sandbox = Sandbox::with_config("segment-size=512");
    let mut producer = sandbox.spawn("producer", sandbox.command("produce"));
    let mut shown = Piped::start(&sandbox, "consume -f");
    // The first one is shown after both have started, however long that takes.
    shown_after(&mut producer, &mut shown, 1);
    let count = rounds(60, 1000);
    let mut took: Vec<Duration> =
        (2..2 + count).map(|n| shown_after(&mut producer, &mut shown, n)).collect();
    took.sort();
    let median = took[took.len() / 2];
    assert!(sandbox.segments().len() as u64 > count / 10, "it rolled");
    println!("median {median:?}, longest {:?}", took.last());
    assert!(median < Duration::from_millis(50), "{took:?}");
}

#[test]
fn an_idle_follower_uses_no_cpu_worth_naming() {
    let sandbox = Sandbox::new();
    sandbox.mk(1000);
    let follower = sandbox.spawn("follower", sandbox.command("consume -f -g g"));
    follower.prints_within(SOON, want(1, 1000));
    let before = follower.cpu_time();
    std::thread::sleep(rounds(Duration::from_secs(3), Duration::from_secs(60)));
    let used = follower.cpu_time() - before;
    assert!(used <= rounds(Duration::from_millis(20), Duration::from_millis(100)), "{used:?}");
}

#[test]
fn a_follower_ends_within_a_second_of_its_reader() {
    let sandbox = Sandbox::new();
    sandbox.mk(10);
    let mut follower = Piped::start(&sandbox, "consume -f");
    follower.take(want(1, 10).len());
    follower.close();
    follower.ends_within(Duration::from_secs(1));
    assert_eq!(follower.err(), "");
}

#[test]
fn a_follower_with_a_group_ends_with_its_reader_and_has_saved_its_place() {
    let sandbox = Sandbox::new();
    sandbox.mk(10);
    sandbox.commit("g", 0);
    let mut follower = Piped::start(&sandbox, "consume -f -g g");
    follower.take(want(1, 10).len());
    follower.close();
    follower.ends_within(Duration::from_secs(1));
    wait_until(SOON, "the place is saved", || sandbox.position("g") == 10);
}
