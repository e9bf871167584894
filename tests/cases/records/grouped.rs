//! Groups that read whole records through filters: what was dropped counts as handed
//! over, what is counted is what was printed.

use crate::sandbox::{Expect, Sandbox, status};

/// Offsets 0 to 99 with keys a, b, a, b, … and the offset as value.
fn alternating() -> Sandbox {
    let sandbox = Sandbox::with_config("segment-size=1K");
    let input: String =
        (0..100).map(|n| format!("{}:{n}\n", if n % 2 == 0 { 'a' } else { 'b' })).collect();
    sandbox.produce("-K : --batch-records 7", input);
    sandbox.commit("g", 0);
    sandbox
}

fn every_second(from: u64, to: u64) -> String {
    (from..=to).step_by(2).map(|n| format!("{n}\n")).collect()
}

#[test]
fn dropped_records_count_as_handed_over() {
    let sandbox = alternating();
    sandbox.tapelog("consume -g g --key a").prints(every_second(0, 98));
    assert_eq!(sandbox.position("g"), 100, "the last record was dropped, and is done with");
    sandbox.tapelog("consume -g g").prints("");
}

#[test]
fn a_filter_that_meets_nothing_passes_over_everything() {
    let sandbox = alternating();
    sandbox
        .tapelog("consume -g g --key none --fail-empty")
        .outcome()
        .ended(status::NOT_THERE)
        .printed("");
    assert_eq!(sandbox.position("g"), 100);
}

#[test]
fn n_counts_what_is_printed_and_the_next_run_goes_on_behind_it() {
    for options in ["--key b", "--grep [13579]$"] {
        let sandbox = alternating();
        for round in 0..4 {
            let first = 1 + 20 * round;
            let line = format!("consume -g g -n 10 {options}");
            sandbox.tapelog(&line).prints(every_second(first, first + 18));
            assert_eq!(sandbox.position("g"), first + 19, "behind the tenth that was printed");
        }
        sandbox.tapelog(&format!("consume -g g -n 1000 {options}")).prints(every_second(81, 99));
        assert_eq!(sandbox.position("g"), 100);
    }
}

#[test]
fn an_end_bounds_what_is_dropped_too() {
    let sandbox = alternating();
    sandbox.tapelog("consume -g g --key a -o :50").prints(every_second(0, 48));
    assert_eq!(sandbox.position("g"), 50);
    sandbox.tapelog("consume -g g --key none -o :71").prints("");
    assert_eq!(sandbox.position("g"), 71);
}

#[test]
fn a_commit_by_hand_leaves_the_checkpoint_where_it_was() {
    let sandbox = alternating();
    sandbox.tapelog("consume -g g --key b --commit manual -n 3").prints("1\n3\n5\n");
    assert_eq!(sandbox.position("g"), 0);
}

#[test]
fn commits_are_due_by_records_dropped_or_not() {
    let sandbox = alternating();
    sandbox.tapelog("consume -g g --key b --commit-every 1 -n 2").prints("1\n3\n");
    assert_eq!(sandbox.position("g"), 4);
    sandbox.tapelog("consume -g g --key none --commit-every 3").prints("");
    assert_eq!(sandbox.position("g"), 100);
}

#[test]
fn a_follower_commits_past_what_it_drops() {
    let sandbox = alternating();
    let follower = sandbox.spawn("f", sandbox.command("consume -g g -f --key a --commit-every 1"));
    follower.prints_within(crate::sandbox::SECOND * 2, every_second(0, 98));
    sandbox.produce("-K :", "b:100\nb:101\n");
    crate::sandbox::wait_until(crate::sandbox::SECOND * 3, "dropped records are committed", || {
        sandbox.position("g") == 102
    });
    follower.prints_within(crate::sandbox::SECOND, every_second(0, 98));
}

#[test]
fn every_form_of_output_is_handed_over_whole() {
    for form in ["-J", "-F %k=%v;", "-K :", "-0", "--json-payload"] {
        let sandbox = alternating();
        let all = sandbox.tapelog(&format!("consume {form}")).text();
        let first = sandbox.tapelog(&format!("consume -g g -n 33 {form}")).text();
        assert_eq!(sandbox.position("g"), 33);
        let rest = sandbox.tapelog(&format!("consume -g g {form}")).text();
        assert_eq!(first + &rest, all);
        assert_eq!(sandbox.position("g"), 100);
    }
}

#[test]
fn a_reader_that_goes_away_has_got_only_what_it_took() {
    let sandbox = Sandbox::new();
    let input: String = (0..40_000).map(|n| format!("{}:{n:08}\n", n % 2)).collect();
    sandbox.produce("-K :", input);
    let mut reader = crate::sandbox::Piped::start(&sandbox, "consume -g h --key 1");
    let taken = reader.take(9 * 500 + 4);
    assert!(taken.starts_with(b"00000001\n00000003\n"));
    reader.close();
    reader.ends_within(crate::sandbox::A_SECOND);
    let position = sandbox.position("h");
    // 500 whole records were taken, the last one at offset 999; the next is at 1001.
    assert!((1000..=1001).contains(&position), "{position}");
}
