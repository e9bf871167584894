//! H055: who needs a lock waits for it with measure, and is told who has it.

use super::timed;
use crate::sandbox::{Expect, SECOND, Sandbox, hold_lock, status, wait_until, want};

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
    let by_itself = ["commits by itself", "--commit manual"];
    sandbox.tapelog("commit -g g 10").fails(status::HELD, &by_itself);
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
