//! Power cut at every step. Random programs (every verb that changes a log: see
//! `VERBS` in [`program`]; the process killed now and then) run on a simulated disk.
//! After every step of its journal, the making of the log included, the power is cut
//! in several ways: unsynced bytes kept, dropped, reordered, torn at 512 or 4096
//! bytes; lengths kept without their bytes, which read as zeros or as another file's;
//! unsynced names kept or lost in any order, with their bytes or without.
//! What is left is opened and compared with what had been promised by then:
//!
//! - promise 2: every record that was acknowledged is read back unchanged at its
//!   offset, none is invented, there is no hole, and the log takes a new append;
//! - promise 3: readers change nothing but derived files; what a writer cuts is in
//!   quarantine; a recovery is told once;
//! - promise 4: a power cut alone is never damage (and, in [`rot`], a flipped bit in
//!   a safe batch always is);
//! - promise 5: each checkpoint is the last acknowledged one or one asked for since,
//!   within the log; and promise 7: nothing that a group needs is gone.
//!
//! Then the power is cut again, after every step of that recovery, in the same ways:
//! for the first recovery of each kind in a program, which is told by what it does
//! in which order.
//!
//! A crash state is what is on the disk together with what had been promised; only
//! different ones are counted. `TAPELOG_POWER_CUTS` sets how many there are at least,
//! `TAPELOG_SEED` the seed of the first program. A failure names its program's seed:
//! with that as `TAPELOG_SEED` and `TAPELOG_POWER_CUTS=1` it comes first.

#![allow(clippy::print_stdout, reason = "the figures are what the test is run for")]

mod check;
mod compaction;
mod cutter;
mod found;
mod model;
mod program;
mod reading;
mod report;
mod rot;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use tapelog::disk::simulated::{Seeded, SimulatedDisk};

use cutter::{Cutter, guarded};
use model::Model;
use program::Program;
use report::Report;

const SEED: u64 = 20_261_129;
const STATES: u64 = 100_000;
const THREADS: u64 = 2;
/// So many programs at a time, so that the same ones run on a fast and a slow machine.
const PROGRAMS: u64 = 4;
/// A program's lives: the first on an empty disk, the later ones on what a power cut left.
const LIVES: u64 = 3;
const CALLS: u64 = 60;

#[test]
fn nothing_promised_is_lost_wherever_the_power_is_cut() {
    let wanted = number("TAPELOG_POWER_CUTS", STATES);
    let seed = number("TAPELOG_SEED", SEED);
    let begun = Instant::now();
    let mut report = Report::default();
    let mut first = seed;
    while (report.states.len() as u64) < wanted {
        report.add(run_programs(first));
        first = first.wrapping_add(PROGRAMS);
    }
    for failure in report.failures.iter().take(10) {
        println!("{failure}\n");
    }
    println!(
        "seed {seed}: {} programs, {} of the states from cuts during recovery, {} kinds of \
         recovery, {} kills, {} rotten batches, {:.1} s",
        first.wrapping_sub(seed),
        report.second,
        report.recoveries.len(),
        report.kills,
        report.rotten,
        begun.elapsed().as_secs_f64(),
    );
    println!("{} distinct crash states, {} failures", report.states.len(), report.failures.len());
    assert!(report.failures.is_empty(), "{} failures", report.failures.len());
}

fn number(variable: &str, otherwise: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")),
        Err(_) => otherwise,
    }
}

fn run_programs(first: u64) -> Report {
    let next = AtomicU64::new(0);
    let work = || {
        let mut report = Report::default();
        loop {
            let program = next.fetch_add(1, Ordering::Relaxed);
            if program >= PROGRAMS {
                return report;
            }
            report.add(run_program(first.wrapping_add(program)));
        }
    };
    let mut report = Report::default();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            match thread.join() {
                Ok(part) => report.add(part),
                Err(_) => report.failures.push("a thread of the test panicked".to_owned()),
            }
        }
    });
    report
}

/// All lives of one program, each with all its cuts.
fn run_program(seed: u64) -> Report {
    let mut report = Report::default();
    let (mut disk, mut model) = (Arc::new(SimulatedDisk::new()), Model::default());
    for life in 0..LIVES {
        let mut program = Program::new(Seeded::derived(seed, life).next_u64(), disk, model);
        if let Err(what) = guarded(|| program.run(CALLS as usize)) {
            report.failures.push(format!("seed {seed}, life {life}: {what}"));
            break;
        }
        let mut cutter = Cutter::new(seed, life, program.disk, program.model);
        cutter.cut_everywhere(&mut report);
        (disk, model) = cutter.next_life();
    }
    report
}
