//! `-f` and `--timeout`: waiting for what comes, and for how long.

use std::time::{Duration, Instant};

use crate::sandbox::{Expect, Sandbox, want};

const SOON: Duration = Duration::from_secs(5);

#[test]
fn a_timeout_follows_and_ends_with_0_after_so_much_silence() {
    let sandbox = Sandbox::new();
    sandbox.mk(3);
    let begun = Instant::now();
    sandbox.tapelog("consume --timeout 300ms").prints(want(1, 3));
    let took = begun.elapsed();
    assert!((Duration::from_millis(300)..SOON).contains(&took), "{took:?}");
}

#[test]
fn a_timeout_counts_silence_and_begins_again_with_every_record() {
    let sandbox = Sandbox::new();
    sandbox.mk(1);
    let mut follower = sandbox.spawn("follower", sandbox.command("consume --timeout 600ms"));
    let begun = Instant::now();
    for n in 2..=6 {
        follower.prints_within(SOON, want(1, n - 1));
        sandbox.produce("", want(n, n));
        // Half of what it waits for; five of these are more than that.
        std::thread::sleep(Duration::from_millis(200));
    }
    follower.prints_within(SOON, want(1, 6));
    assert!(follower.ends_within(SOON).success());
    assert!(begun.elapsed() > Duration::from_millis(1400), "{:?}", begun.elapsed());
}

#[test]
fn a_timeout_without_any_record_is_empty_and_fails_only_on_request() {
    let sandbox = Sandbox::with_config("segment-size=64M");
    sandbox.tapelog("consume --timeout 50ms").prints("");
    let outcome = sandbox.tapelog("consume --timeout 50ms --fail-empty").outcome();
    outcome.ended(crate::sandbox::status::NOT_THERE).printed("");
}

#[test]
fn a_follower_ends_when_it_has_printed_n() {
    let sandbox = Sandbox::new();
    sandbox.mk(3);
    let mut follower = sandbox.spawn("follower", sandbox.command("consume -f -n 5"));
    follower.prints_within(SOON, want(1, 3));
    sandbox.produce("", want(4, 9));
    assert!(follower.ends_within(SOON).success());
    follower.prints_within(SOON, want(1, 5));
}

#[test]
fn a_follower_waits_for_an_end_that_is_still_to_come() {
    let sandbox = Sandbox::new();
    sandbox.mk(3);
    let mut follower = sandbox.spawn("follower", sandbox.command("consume -f -o 1:5"));
    follower.prints_within(SOON, want(2, 3));
    sandbox.produce("", want(4, 9));
    assert!(follower.ends_within(SOON).success());
    follower.prints_within(SOON, want(2, 5));
}

#[test]
fn a_follower_from_the_end_prints_only_what_is_new() {
    let sandbox = Sandbox::new();
    sandbox.mk(3);
    // It makes its group before it reads, which is how one knows that it has begun.
    let follower = sandbox.spawn("follower", sandbox.command("consume -f -o latest -g g"));
    crate::sandbox::wait_until(SOON, "it has begun", || {
        follower.err().contains("new group g at 3")
    });
    sandbox.produce("", want(4, 5));
    follower.prints_within(SOON, want(4, 5));
}

#[test]
fn tail_with_follow_is_as_tail_does_it() {
    let sandbox = Sandbox::new();
    sandbox.mk(30);
    let follower = sandbox.spawn("follower", sandbox.command("consume --tail 2 -f"));
    follower.prints_within(SOON, want(29, 30));
    sandbox.produce("", want(31, 31));
    follower.prints_within(SOON, want(29, 31));
}
