//! Power cut at every step. Random programs (produce with several writers, commit,
//! seek, delete groups, roll, gc, change settings; the process killed now and then)
//! run on a simulated disk. After every step of its journal, the making of the log
//! included, the power is cut in several ways: unsynced bytes kept, dropped,
//! reordered, torn at 512 or 4096 bytes; unsynced names kept or lost in any order.
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
//! Then the power is cut again in the midst of that recovery, for a sample.
//!
//! `TAPELOG_POWER_CUTS` sets how many cut points there are at least, `TAPELOG_SEED`
//! the seed of the first program. A failure names its program's seed: with that as
//! `TAPELOG_SEED` and `TAPELOG_POWER_CUTS=1` it comes first.

#![allow(clippy::print_stdout, reason = "the figures are what the test is run for")]

mod check;
mod found;
mod model;
mod program;
mod reading;
mod rot;

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use tapelog::disk::simulated::{CrashPlayer, CrashStyle, Seeded, SimulatedDisk};

use check::{Recovery, check, check_use};
use model::{Ending, Expected, Model};
use program::Program;

const SEED: u64 = 20_261_129;
const CUT_POINTS: u64 = 100_000;
const THREADS: u64 = 2;
/// So many programs at a time, so that the same ones run on a fast and a slow machine.
const PROGRAMS: u64 = 8;
/// A program's lives: the first on an empty disk, the later ones on what a power cut left.
const LIVES: u64 = 3;
const CALLS: u64 = 60;

/// The ways in which the power is cut after every step.
const STYLES: [CrashStyle; 5] = [
    CrashStyle::KeepAll,
    CrashStyle::DropAll,
    CrashStyle::Random { sector: 512 },
    CrashStyle::Random { sector: 512 },
    CrashStyle::Random { sector: 4096 },
];

/// What was found.
#[derive(Default)]
struct Report {
    /// Power cuts whose disk differs from those of the other cuts after the same step.
    cuts: u64,
    /// Those of them that were cuts during a recovery.
    second: u64,
    kills: u64,
    rotten: u64,
    disks: HashSet<u64>,
    failures: Vec<String>,
}

impl Report {
    fn add(&mut self, other: Report) {
        self.cuts += other.cuts;
        self.second += other.second;
        self.kills += other.kills;
        self.rotten += other.rotten;
        self.disks.extend(other.disks);
        self.failures.extend(other.failures);
    }
}

#[test]
fn nothing_promised_is_lost_wherever_the_power_is_cut() {
    let wanted = number("TAPELOG_POWER_CUTS", CUT_POINTS);
    let seed = number("TAPELOG_SEED", SEED);
    let begun = Instant::now();
    let mut report = Report::default();
    let mut first = seed;
    while report.cuts < wanted {
        report.add(run_programs(first));
        first = first.wrapping_add(PROGRAMS);
    }
    for failure in report.failures.iter().take(10) {
        println!("{failure}\n");
    }
    println!(
        "seed {seed}: {} programs, {} distinct disks, {} cuts during recovery, {} kills, \
         {} rotten batches, {:.1} s",
        first.wrapping_sub(seed),
        report.disks.len(),
        report.second,
        report.kills,
        report.rotten,
        begun.elapsed().as_secs_f64(),
    );
    println!("{} cut points, {} failures", report.cuts, report.failures.len());
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
            run_program(first.wrapping_add(program), &mut report);
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
fn run_program(seed: u64, report: &mut Report) {
    let (mut disk, mut model) = (Arc::new(SimulatedDisk::new()), Model::default());
    for life in 0..LIVES {
        let mut program = Program::new(Seeded::derived(seed, life).next_u64(), disk, model);
        let ran = guarded(|| program.run(CALLS as usize));
        let mut cutter = Cutter {
            place: format!("seed {seed}, life {life}"),
            seeded: Seeded::derived(!seed, life),
            player: program.disk.crash_player(),
            disk: program.disk,
            model: program.model,
        };
        if let Err(what) = ran {
            report.failures.push(format!("{}: {what}", cutter.place));
            return;
        }
        for steps in 0..=cutter.player.steps() {
            cutter.player.go_to(steps);
            cutter.cut(report);
            cutter.kill(report);
        }
        (disk, model) = cutter.next_life();
    }
}

/// Goes along the journal of one life and cuts the power.
struct Cutter {
    place: String,
    seeded: Seeded,
    disk: Arc<SimulatedDisk>,
    model: Model,
    player: CrashPlayer,
}

impl Cutter {
    /// Cuts the power in every style at the player's place.
    fn cut(&mut self, report: &mut Report) {
        let expected = self.model.at(self.player.at(), Ending::PowerCut);
        let mut seen = HashSet::new();
        for style in STYLES {
            let seed = self.seeded.next_u64();
            let image = Arc::new(self.player.image(seed, style));
            let print = image.fingerprint();
            if !seen.insert(print) {
                continue;
            }
            report.disks.insert(print);
            report.cuts += 1;
            if self.seeded.one_in(8) {
                report.rotten += 1;
                let rotten = Arc::new(image.snapshot());
                let result = guarded(|| rot::check(&rotten, seed));
                self.note(report, &format!("{style:?}, image seed {seed}, rot"), result);
            }
            let result = guarded(|| check(&image, &expected));
            let what = format!("{style:?}, image seed {seed}");
            if let Some(recovery) = self.note(report, &what, result) {
                self.cut_again(report, &image, &expected, &recovery);
                if self.seeded.one_in(4) {
                    let result = guarded(|| check_use(&image, &recovery));
                    self.note(report, &format!("{what}, used again"), result);
                }
            }
        }
    }

    /// Cuts the power again, within the recovery of an image.
    fn cut_again(
        &mut self,
        report: &mut Report,
        image: &Arc<SimulatedDisk>,
        expected: &Expected,
        recovery: &Recovery,
    ) {
        if !self.seeded.one_in(6) {
            return;
        }
        let mut seen = HashSet::new();
        for _ in 0..3 {
            let steps = self.seeded.between(0, image.steps() as u64) as usize;
            let style = STYLES[self.seeded.below(STYLES.len() as u64) as usize];
            let seed = self.seeded.next_u64();
            let again = Arc::new(image.crash_image(steps, seed, style));
            let print = again.fingerprint();
            report.disks.insert(print);
            if !seen.insert((steps, print)) {
                continue;
            }
            report.cuts += 1;
            report.second += 1;
            let result = guarded(|| {
                recovery.check_torn(&again)?;
                check(&again, &recovery.expected(steps, expected))
            });
            let what = format!(
                "cut again after step {steps} of the recovery ({}), {style:?}, image seed {seed}",
                told(image, steps)
            );
            self.note(report, &what, result);
        }
    }

    /// Kills the process at the player's place: nothing at all is lost.
    fn kill(&mut self, report: &mut Report) {
        if !self.seeded.one_in(3) {
            return;
        }
        let killed = Arc::new(self.player.killed());
        let expected = self.model.at(self.player.at(), Ending::Killed);
        report.kills += 1;
        let result = guarded(|| check(&killed, &expected));
        self.note(report, "killed", result);
    }

    fn note<T>(&self, report: &mut Report, what: &str, result: Result<T, String>) -> Option<T> {
        let steps = self.player.at();
        let failure = |error| {
            let step = told(&self.disk, steps);
            format!("{}, after step {steps} ({step}), {what}:\n  {error}", self.place)
        };
        result.map_err(|error| report.failures.push(failure(error))).ok()
    }

    /// A disk that a power cut somewhere left, and what is promised of it.
    fn next_life(mut self) -> (Arc<SimulatedDisk>, Model) {
        let steps = self.player.steps() as u64;
        let steps = self.seeded.between(steps / 2, steps) as usize;
        self.player.go_to(steps);
        let image = self.player.image(self.seeded.next_u64(), STYLES[2]);
        self.model.cut_at(steps);
        (Arc::new(image), self.model)
    }
}

/// The last of so many steps, in words.
fn told(disk: &SimulatedDisk, steps: usize) -> String {
    let step = steps.checked_sub(1).and_then(|step| disk.describe_step(step));
    step.unwrap_or_else(|| "the beginning".to_owned())
}

/// A panic is a failure like any other.
fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
        Err(format!("panicked: {}", text.unwrap_or_default()))
    })
}
