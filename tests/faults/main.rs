//! Every call to the disk fails, once, on and off, until the process ends, or until the
//! one after it has ended. Random programs, as in the power-cut test, run on a
//! simulated disk on which calls of a class go wrong from some call on: with EIO, ENOSPC
//! or EINTR, or short. Programs meet the fault at their work, or while they recover what
//! a killed one left. Then there is no panic; what fails says so and is an error of the
//! disk, never damage and never the end of the log; what says that it went well is there
//! afterwards, in the next process and after a power cut. Interrupted and short reads
//! and writes are gone on with: nothing fails for their sake. A failed sync leaves the
//! unsynced bytes in doubt for good, as on Linux, unless they are written again.
//!
//! A disk that fails at every call can't be told that a sync failed. There a process
//! that comes later, on the same disk and in the same boot, promises less: after a power
//! cut, what it acknowledged may be missing, but not what was acknowledged before.
//!
//! There are far more faults than fit into a minute: of each kind some are taken, spread
//! over the calls. `TAPELOG_FAULTS` sets the number of programs, `TAPELOG_SEED` the first
//! one's seed, and `TAPELOG_LONG=1` takes every fault of each.

#![allow(clippy::print_stdout, reason = "the figures are what the test is run for")]

mod failed_sync;
mod fault;
mod looking;

#[path = "../power_cut/check.rs"]
#[allow(dead_code, reason = "the power cuts use more of it")]
mod check;
#[path = "../power_cut/model.rs"]
#[allow(dead_code, reason = "the power cuts use more of it")]
mod model;
#[path = "../power_cut/program.rs"]
#[allow(dead_code, reason = "the power cuts use more of it")]
mod program;
#[path = "../power_cut/reading.rs"]
#[allow(dead_code, reason = "the power cuts use more of it")]
mod reading;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use tapelog::disk::simulated::{CrashStyle, Lasts, Seeded};

use check::check;
use fault::{Fault, Faults, Meets, Until, new_program};
use looking::look;
use model::Ending;
use program::Program;

const SEED: u64 = 20_261_130;
const PROGRAMS: u64 = 4;
/// How many faults of a kind one program meets.
const OF_A_KIND: u64 = 2;
const THREADS: usize = 2;
const CALLS: usize = 30;
/// What a process does that comes after a crash.
const CALLS_AFTER: usize = 6;

const STYLES: [CrashStyle; 3] =
    [CrashStyle::DropAll, CrashStyle::Random { sector: 512 }, CrashStyle::Random { sector: 4096 }];

#[test]
fn a_call_that_fails_loses_nothing_and_is_told() {
    let begun = Instant::now();
    let seed = number("TAPELOG_SEED", SEED);
    let long = std::env::var_os("TAPELOG_LONG").is_some();
    let mut faults = Faults::default();
    for program in 0..number("TAPELOG_FAULTS", PROGRAMS) {
        faults.add_program(seed + program, if long { u64::MAX } else { OF_A_KIND });
    }
    let failures = each_in_threads(&faults.taken);
    for failure in failures.iter().take(10) {
        println!("{failure}\n");
    }
    println!("seed {seed}: {:.1} s", begun.elapsed().as_secs_f64());
    println!("{} of {} faults, {} failures", faults.taken.len(), faults.all, failures.len());
    assert!(failures.is_empty(), "{} failures", failures.len());
}

fn number(variable: &str, otherwise: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")),
        Err(_) => otherwise,
    }
}

fn each_in_threads(faults: &[Fault]) -> Vec<String> {
    let next = AtomicU64::new(0);
    let work = || {
        let mut failures = Vec::new();
        while let Some(fault) = faults.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
            let met = catch_unwind(AssertUnwindSafe(|| meet(fault)));
            match met {
                Ok(Ok(())) => {}
                Ok(Err(what)) => failures.push(format!("{fault:?}: {what}")),
                Err(_) => failures.push(format!("{fault:?}: panicked")),
            }
        }
        failures
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    })
}

/// Runs a program into a fault, and what comes after.
fn meet(fault: &Fault) -> Result<(), String> {
    let mut program = new_program(fault.seed);
    if fault.meets == Meets::Recovery {
        recovery(&mut program);
    }
    fault.begin(&program.disk);
    told(fault, life(&mut program, fault.meets), &program)?;
    if program.disk.faults_met() == 0 {
        return Err("it was not met".to_owned());
    }
    check_endings(&program, fault.nth).map_err(|what| format!("then {what}"))?;
    if fault.until == Until::NextProcessEnds {
        program.die(program.disk.steps());
        program.disk.fail_at(fault.class, 1, fault.trouble, Lasts::ForEver);
        told(fault, life(&mut program, Meets::Recovery), &program)?;
    }
    program.die(program.disk.steps());
    let lived = life(&mut program, Meets::Recovery);
    lived.map_err(|what| format!("the disk is well, {}: {what}", program.doing))?;
    if fault.is_of_the_whole_disk() {
        return check_killed(&program);
    }
    check_endings(&program, fault.nth)
}

/// What a process does: it finds a log, or makes one, works with it, and looks at it.
fn life(program: &mut Program, meets: Meets) -> Result<(), String> {
    program.doing = "open".to_owned();
    let calls = match meets {
        Meets::Program => CALLS,
        Meets::Recovery => CALLS_AFTER,
    };
    program.open(Ending::Killed)?;
    for _ in 0..calls {
        program.call()?;
    }
    look(program)
}

/// Brings a program to where it was killed in the midst of something.
fn recovery(program: &mut Program) {
    const STEPS: u64 = 40;
    let went_well = (0..CALLS).try_for_each(|_| program.call());
    assert_eq!(went_well, Ok(()), "without a fault nothing fails");
    let steps = program.disk.steps();
    let back = Seeded::new(steps as u64).below(STEPS) as usize;
    program.die(steps.saturating_sub(back));
}

/// Whether a process that met the fault told it as what it is, if it had to.
fn told(fault: &Fault, lived: Result<(), String>, program: &Program) -> Result<(), String> {
    let Err(what) = lived else { return Ok(()) };
    let doing = &program.doing;
    if fault.is_harmless() {
        return Err(format!("a harmless fault made it fail, {doing}: {what}"));
    }
    match what.contains("[Io {") || what.contains("[Suspect(") {
        true => Ok(()),
        false => Err(format!("not told as what it is, {doing}: {what}")),
    }
}

fn check_endings(program: &Program, seed: u64) -> Result<(), String> {
    check_killed(program)?;
    let mut player = program.disk.crash_player();
    player.go_to(usize::MAX);
    let expected = program.model.at(player.at(), Ending::PowerCut);
    for style in STYLES {
        let image = Arc::new(player.image(seed, style));
        check(&image, &expected).map_err(|what| format!("{style:?}: {what}"))?;
    }
    Ok(())
}

fn check_killed(program: &Program) -> Result<(), String> {
    let mut player = program.disk.crash_player();
    player.go_to(usize::MAX);
    let killed = Arc::new(player.killed());
    let expected = program.model.at(player.at(), Ending::Killed);
    check(&killed, &expected).map(drop).map_err(|what| format!("killed: {what}"))
}
