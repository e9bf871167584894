//! Random sequences of everything that can be asked of a log, played on a simulated
//! disk and held, call by call, against a plain list of records and a map of groups:
//! appends by several writers of records of every form, reads from every kind of
//! place and backwards, groups that are claimed, moved, undone and deleted, gc,
//! rolls, settings, listings; derived files deleted; the process killed and the power
//! cut, in the midst of a call too. After a crash the model takes what the promises
//! allow, and goes on.
//!
//! A failure prints the shortest sequence that shows it, and its seed. `TAPELOG_MODEL`
//! sets the number of sequences, `TAPELOG_SEED` the seed of the first half of them.

#![allow(clippy::print_stdout, reason = "the figures are what the test is run for")]

mod call;
mod crash;
mod groups;
mod plain;
mod play;
mod reading;
mod unique;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Instant;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use call::{Call, calls};
use play::Play;

const SEED: u64 = 20_261_129;
const SEQUENCES: u64 = 6_000;
const LONGEST: usize = 60;

#[test]
fn a_log_is_a_list_of_records_and_a_map_of_groups_whatever_is_done_to_it() {
    let (seed, count) = (number("TAPELOG_SEED", SEED), number("TAPELOG_MODEL", SEQUENCES));
    let begun = Instant::now();
    let halves = [seed, seed.wrapping_add(1)];
    let found: Vec<_> = thread::scope(|scope| {
        let run = |seed| scope.spawn(move || run(seed, count.div_ceil(2)));
        halves.map(run).into_iter().map(|half| half.join()).collect()
    });
    println!("seed {seed}: {count} sequences, {:.1} s", begun.elapsed().as_secs_f64());
    for half in found {
        match half {
            Ok(None) => {}
            Ok(Some(failure)) => panic!("{failure}"),
            Err(_) => panic!("a thread of the test panicked"),
        }
    }
}

fn number(variable: &str, otherwise: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")),
        Err(_) => otherwise,
    }
}

/// Plays so many sequences; gives the shortest one that fails, in words.
fn run(seed: u64, count: u64) -> Option<String> {
    let config = Config {
        cases: u32::try_from(count).unwrap_or(u32::MAX),
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut runner =
        TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let played = runner.run(&calls(1..LONGEST), |calls| play(&calls).map_err(TestCaseError::fail));
    match played {
        Ok(()) => None,
        Err(TestError::Fail(why, calls)) => {
            let calls = shortest(calls);
            let why = play(&calls).err().unwrap_or_else(|| why.to_string());
            Some(format!("seed {seed}: {why}\nafter\n{}", told(&calls)))
        }
        Err(TestError::Abort(why)) => Some(why.to_string()),
    }
}

/// Leaves out every call that a failure does not need; the shrinking by proptest ends
/// with the first pass over them.
fn shortest(mut calls: Vec<Call>) -> Vec<Call> {
    let mut number = calls.len();
    while let Some(last) = number.checked_sub(1) {
        let mut fewer = calls.clone();
        fewer.remove(last);
        number = last;
        if play(&fewer).is_err() {
            calls = fewer;
            number = calls.len();
        }
    }
    calls
}

fn play(calls: &[Call]) -> Result<(), String> {
    let played = catch_unwind(AssertUnwindSafe(|| {
        let mut play = Play::new();
        for (number, call) in (1..).zip(calls) {
            play.call(call).map_err(|what| format!("call {number}: {what}"))?;
        }
        play.compare_all().map_err(|what| format!("in the end: {what}"))
    }));
    played.unwrap_or_else(|_| Err("panicked".to_owned()))
}

fn told(calls: &[Call]) -> String {
    let line = |(number, call): (usize, &Call)| format!("{number:4} {call:?}");
    (1..).zip(calls).map(line).collect::<Vec<_>>().join("\n")
}
