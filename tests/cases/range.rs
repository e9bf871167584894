//! RANGE: offsets out of range, seeking beyond the ends, "the last N".

use std::fs;
use std::time::Duration;

use crate::sandbox::{Expect, Sandbox, status, want};

const SOON: Duration = Duration::from_secs(5);

/// Group g at 100 in a log that begins at 600 and ends at 1000. While g is there
/// nothing removes what it still needs, so its checkpoint is laid aside meanwhile.
fn overtaken() -> Sandbox {
    let sandbox = Sandbox::hundreds(10);
    sandbox.commit("g", 100);
    let checkpoint = sandbox.log().join("groups/g.checkpoint");
    let laid_aside = fs::read(&checkpoint).unwrap();
    sandbox.tapelog("groups -g g --delete").outcome().succeeded();
    sandbox.commit("collector", 600);
    sandbox.tapelog("gc").outcome().succeeded();
    fs::write(checkpoint, laid_aside).unwrap();
    sandbox
}

#[test]
fn h039_a_group_whose_records_are_gone_is_told_so_and_stays() {
    let sandbox = overtaken();
    sandbox.tapelog("consume -g g").fails(status::RANGE, &["g", "100", "600", "500"]);
    assert_eq!(sandbox.position("g"), 100);
}

#[test]
fn h039_on_request_it_goes_on_at_the_log_start_with_one_warning() {
    let sandbox = overtaken();
    sandbox.tapelog("consume -g g --out-of-range earliest").notes(want(601, 1000), &["100", "600"]);
    assert_eq!(sandbox.position("g"), 1000);
}

#[test]
fn h039_on_request_it_goes_on_at_the_log_end_with_one_warning() {
    let sandbox = overtaken();
    sandbox.tapelog("consume -g g --out-of-range latest").notes("", &["100", "1000"]);
    assert_eq!(sandbox.position("g"), 1000);
}

#[test]
fn h039_without_a_group_a_start_below_the_log_start_is_an_error_too() {
    let sandbox = Sandbox::hundreds_from(600, 10);
    sandbox.tapelog("consume -o 100").fails(status::RANGE, &["100", "600"]);
}

#[test]
fn h040_the_last_n_are_all_when_there_are_fewer() {
    let sandbox = Sandbox::new();
    sandbox.mk(150);
    for (last, first) in [(2000, 1), (100, 51), (150, 1), (1, 150)] {
        sandbox.tapelog(&format!("consume -o -{last}")).prints(want(first, 150));
    }
}

#[test]
fn h040_the_last_n_count_records_that_are_still_kept() {
    let sandbox = Sandbox::hundreds_from(600, 10);
    sandbox.tapelog("consume -o -2000").prints(want(601, 1000));
    sandbox.tapelog("consume -o -401").prints(want(601, 1000));
    sandbox.tapelog("consume -o -399").prints(want(602, 1000));
}

#[test]
fn h041_shifting_stops_at_either_end_with_a_note() {
    let sandbox = Sandbox::new();
    sandbox.mk(1000);
    sandbox.commit("g", 100);
    sandbox.tapelog("seek -g g --shift-by -1000").notes("g: 100 -> 0\n", &["0"]);
    sandbox.tapelog("seek -g g --shift-by +5000").notes("g: 0 -> 1000\n", &["1000"]);
}

#[test]
fn h041_shifting_stops_at_the_log_start_not_at_zero() {
    let sandbox = Sandbox::hundreds_from(600, 10);
    sandbox.commit("g", 700);
    sandbox.tapelog("seek -g g --shift-by -650").notes("g: 700 -> 600\n", &["600"]);
}

#[test]
fn h041_a_seek_outside_the_log_is_refused_and_moves_nothing() {
    let sandbox = Sandbox::hundreds_from(600, 10);
    sandbox.commit("g", 700);
    for outside in [10, 599, 1001] {
        let number = outside.to_string();
        let seek = format!("seek -g g --to-offset {number}");
        sandbox.tapelog(&seek).fails(status::RANGE, &[&number]);
    }
    assert_eq!(sandbox.position("g"), 700);
}

#[test]
fn h042_reading_at_the_end_is_fine_and_beyond_it_is_not() {
    let sandbox = Sandbox::new();
    sandbox.mk(1000);
    sandbox.tapelog("consume -o 1000").prints("");
    sandbox.tapelog("consume -o 1001").fails(status::RANGE, &["1001", "1000"]);
    sandbox.tapelog("consume -o 1001 -f").fails(status::RANGE, &["1001", "1000"]);
}

#[test]
fn h042_a_follower_at_the_end_prints_the_next_record() {
    let sandbox = Sandbox::new();
    sandbox.mk(1000);
    let follower = sandbox.spawn("follower", sandbox.command("consume -o 1000 -f"));
    sandbox.append("new");
    follower.prints_within(SOON, "new\n");
}

#[test]
fn h043_lag_counts_from_the_position_and_never_goes_below_zero() {
    let sandbox = Sandbox::hundreds(10);
    sandbox.commit("g", 250);
    sandbox.tapelog("gc").outcome().succeeded();
    assert_eq!((sandbox.summary()["start"].as_u64(), sandbox.end()), (Some(200), 1000));
    assert_eq!(sandbox.group("g")["lag"], 750);
    sandbox.commit("g", 1000);
    assert_eq!(sandbox.group("g")["lag"], 0);
}
