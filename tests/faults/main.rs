//! Every call to the disk fails once. Random programs, as in the power-cut test,
//! run on a simulated disk on which one call of a class goes wrong: with EIO,
//! ENOSPC or EINTR, or short. There is no panic; what fails says so and is an error
//! of the disk, never damage; what says that it went well is there afterwards, in
//! the next process and after a power cut. Interrupted and short reads and writes
//! are gone on with: nothing fails for their sake. A failed sync leaves the unsynced
//! bytes in doubt for good, as on Linux.
//!
//! Not among them: the calls that take and release locks, which fail only for
//! handles that are none.
//!
//! `TAPELOG_FAULTS` sets the number of programs, `TAPELOG_SEED` the first one's seed.

#![allow(clippy::print_stdout, reason = "the figures are what the test is run for")]

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

use tapelog::disk::simulated::{Class, CrashStyle, Lasts, SimulatedDisk, Trouble};

use check::check;
use model::{Ending, Model};
use program::Program;

const SEED: u64 = 20_261_130;
const PROGRAMS: u64 = 4;
const THREADS: usize = 2;
const CALLS: usize = 30;
/// What the next process does before the power goes.
const CALLS_AFTER: usize = 6;

const CLASSES: [Class; 11] = [
    Class::Open,
    Class::Read,
    Class::Write,
    Class::SetLen,
    Class::Sync,
    Class::Create,
    Class::Link,
    Class::Rename,
    Class::Remove,
    Class::SyncDir,
    Class::Look,
];

const STYLES: [CrashStyle; 4] = [
    CrashStyle::KeepAll,
    CrashStyle::DropAll,
    CrashStyle::Random { sector: 512 },
    CrashStyle::Random { sector: 4096 },
];

/// One fault in one program.
#[derive(Clone, Copy, Debug)]
struct Fault {
    seed: u64,
    class: Class,
    nth: u64,
    trouble: Trouble,
}

impl Fault {
    /// Whether nobody should notice.
    fn is_harmless(&self) -> bool {
        let moves = matches!(self.class, Class::Read | Class::Write);
        moves && (self.trouble == Trouble::EINTR || matches!(self.trouble, Trouble::Short(_)))
    }
}

#[test]
fn a_call_that_fails_once_loses_nothing_and_is_told() {
    let begun = Instant::now();
    let seed = number("TAPELOG_SEED", SEED);
    let faults: Vec<Fault> =
        (0..number("TAPELOG_FAULTS", PROGRAMS)).flat_map(|n| faults_of(seed + n)).collect();
    let failures = each_in_threads(&faults);
    for failure in failures.iter().take(10) {
        println!("{failure}\n");
    }
    println!("seed {seed}: {:.1} s", begun.elapsed().as_secs_f64());
    println!("{} faults, {} failures", faults.len(), failures.len());
    assert!(failures.is_empty(), "{} failures", failures.len());
}

fn number(variable: &str, otherwise: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")),
        Err(_) => otherwise,
    }
}

/// Every fault that one program can meet.
fn faults_of(seed: u64) -> Vec<Fault> {
    let mut program = new_program(seed);
    let went_well = (0..CALLS).try_for_each(|_| program.call());
    assert_eq!(went_well, Ok(()), "without a fault nothing fails");
    let mut faults = Vec::new();
    for class in CLASSES {
        let mut troubles = vec![Trouble::EIO, Trouble::ENOSPC, Trouble::EINTR];
        if matches!(class, Class::Read | Class::Write) {
            troubles.extend([Trouble::Short(1), Trouble::Short(100)]);
        }
        for nth in 1..=program.disk.calls(class) {
            // All troubles on the calls that change something, one on each of the rest.
            match class {
                Class::Read | Class::Look | Class::Open => {
                    let trouble = troubles[(nth as usize) % troubles.len()];
                    faults.push(Fault { seed, class, nth, trouble });
                }
                _ => faults.extend(troubles.iter().map(|&trouble| Fault {
                    seed,
                    class,
                    nth,
                    trouble,
                })),
            }
        }
    }
    faults
}

fn new_program(seed: u64) -> Program {
    Program::new(seed, Arc::new(SimulatedDisk::new()), Model::default())
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
    program.disk.fail_at(fault.class, fault.nth, fault.trouble, Lasts::Once);
    for _ in 0..CALLS {
        let Err(what) = program.call() else { continue };
        let told = format!("{}: {what}", program.doing);
        if fault.is_harmless() {
            return Err(format!("a harmless fault made it fail: {told}"));
        }
        if !what.contains("[Io {") && !what.contains("[Suspect(") {
            return Err(format!("not told as what it is: {told}"));
        }
        break;
    }
    let steps = program.disk.steps();
    program.kill(steps).map_err(|what| format!("the next process: {what}"))?;
    for _ in 0..CALLS_AFTER {
        let called = program.call();
        called.map_err(|what| format!("the next process, {}: {what}", program.doing))?;
    }
    check_endings(&program, fault.nth)
}

fn check_endings(program: &Program, seed: u64) -> Result<(), String> {
    let mut player = program.disk.crash_player();
    player.go_to(usize::MAX);
    let killed = Arc::new(player.killed());
    let expected = program.model.at(player.at(), Ending::Killed);
    check(&killed, &expected).map_err(|what| format!("killed: {what}"))?;
    let expected = program.model.at(player.at(), Ending::PowerCut);
    for style in STYLES {
        let image = Arc::new(player.image(seed, style));
        check(&image, &expected).map_err(|what| format!("{style:?}: {what}"))?;
    }
    Ok(())
}
