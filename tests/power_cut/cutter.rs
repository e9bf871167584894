//! Goes along the journal of one life of a log and cuts the power after every step;
//! then again after every step of each kind of recovery that follows.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tapelog::disk::simulated::{CrashPlayer, CrashStyle, Seeded, SimulatedDisk};

use crate::check::{Recovery, check, check_use};
use crate::model::{Ending, Expected, Model};
use crate::report::Report;
use crate::rot;

/// The ways in which the power is cut after every step. Sectors of 64 bytes, which no
/// device has, tear the lines of a two-slot file, which fit into one of 512.
pub const STYLES: [CrashStyle; 8] = [
    CrashStyle::KeepAll,
    CrashStyle::DropAll,
    CrashStyle::NamesOnly,
    CrashStyle::BytesOnly,
    CrashStyle::Random { sector: 64 },
    CrashStyle::Random { sector: 512 },
    CrashStyle::Random { sector: 4096 },
    CrashStyle::Stale { sector: 512 },
];

/// One life whose power is cut.
pub struct Cutter {
    place: String,
    seeded: Seeded,
    disk: Arc<SimulatedDisk>,
    model: Model,
    player: CrashPlayer,
}

impl Cutter {
    /// A cutter of the life that `disk` and `model` tell of.
    pub fn new(seed: u64, life: u64, disk: Arc<SimulatedDisk>, model: Model) -> Cutter {
        let (place, seeded) = (format!("seed {seed}, life {life}"), Seeded::derived(!seed, life));
        Cutter { place, seeded, player: disk.crash_player(), disk, model }
    }

    /// Cuts the power after every step.
    pub fn cut_everywhere(&mut self, report: &mut Report) {
        for steps in 0..=self.player.steps() {
            self.player.go_to(steps);
            self.cut(report);
            self.kill(report);
        }
    }

    /// Cuts the power in every style at the player's place.
    fn cut(&mut self, report: &mut Report) {
        let expected = self.model.at(self.player.at(), Ending::PowerCut);
        for style in STYLES {
            let seed = self.seeded.next_u64();
            let image = Arc::new(self.player.image(seed, style));
            if !report.is_new(&image, &expected) {
                continue;
            }
            let what = format!("{style:?}, image seed {seed}");
            if self.seeded.one_in(8) {
                report.rotten += 1;
                let rotten = Arc::new(image.snapshot());
                let result = guarded(|| rot::check(&rotten, seed));
                self.note(report, &format!("{what}, rot"), result);
            }
            let result = guarded(|| check(&image, &expected));
            let Some(recovery) = self.note(report, &what, result) else { continue };
            if report.is_new_recovery(&image) {
                self.cut_again(report, &image, &expected, &recovery);
            }
            if self.seeded.one_in(4) {
                let result = guarded(|| check_use(&image, &recovery));
                self.note(report, &format!("{what}, used again"), result);
            }
        }
    }

    /// Cuts the power again, after every step of the recovery of an image.
    fn cut_again(
        &mut self,
        report: &mut Report,
        image: &SimulatedDisk,
        expected: &Expected,
        recovery: &Recovery,
    ) {
        let mut player = image.crash_player();
        for steps in 0..=player.steps() {
            player.go_to(steps);
            let expected = recovery.expected(steps, expected);
            for style in STYLES {
                let seed = self.seeded.next_u64();
                let again = Arc::new(player.image(seed, style));
                if !report.is_new(&again, &expected) {
                    continue;
                }
                report.second += 1;
                let result = guarded(|| {
                    recovery.check_torn(&again)?;
                    check(&again, &expected)
                });
                let what = || {
                    let step = told(image, steps);
                    format!("again after step {steps} ({step}), {style:?}, image seed {seed}")
                };
                if result.is_err() {
                    self.note(report, &what(), result);
                }
            }
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
    pub fn next_life(mut self) -> (Arc<SimulatedDisk>, Model) {
        let steps = self.player.steps() as u64;
        let steps = self.seeded.between(steps / 2, steps) as usize;
        self.player.go_to(steps);
        let style = CrashStyle::Random { sector: 512 };
        let image = self.player.image(self.seeded.next_u64(), style);
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
pub fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
        Err(format!("panicked: {}", text.unwrap_or_default()))
    })
}
