//! Repair at its worst: every kind of harm, the process killed at every step, the power
//! cut at every step, the disk refusing at every call.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use tapelog::disk::simulated::{Class, CrashStyle, Lasts, SimulatedDisk, Trouble};
use tapelog::format::batch::Layout;
use tapelog::format::body::Body;
use tapelog::log::{Appender, Error, Log};
use tapelog::model::Offset;

use crate::harm::{ALL, Harm};
use crate::reading::read;
use crate::sample::{DIR, NOW, Sample, group, home, path};

const STYLES: [CrashStyle; 4] = [
    CrashStyle::KeepAll,
    CrashStyle::DropAll,
    CrashStyle::Random { sector: 512 },
    CrashStyle::Random { sector: 4096 },
];

/// Files by name, with their bytes.
type Files = BTreeMap<String, Vec<u8>>;

fn sample() -> Sample {
    Sample::new(6 << 10, 1 << 10, 150)
}

/// As `tapelog verify --repair` does it.
fn mend(disk: &Arc<SimulatedDisk>) -> Result<(), Error> {
    let home = home(disk);
    Log::restore(&home)?;
    let repair = Log::open(&home)?.repair(NOW, &mut |_| ())?;
    assert_eq!(repair.after.damaged(), 0, "{:?}", repair.after.findings);
    Ok(())
}

/// What harm did, and what has to be there when it is mended.
struct Case<'a> {
    sample: &'a Sample,
    harm: &'a Harm,
    /// The log as the harm left it.
    disk: Arc<SimulatedDisk>,
    lost: Vec<usize>,
}

impl<'a> Case<'a> {
    fn new(sample: &'a Sample, harm: &'a Harm) -> Case<'a> {
        let disk = sample.copy();
        let lost = (harm.does)(sample, &disk);
        disk.settle();
        Case { sample, harm, disk, lost }
    }

    fn harmed(&self) -> Arc<SimulatedDisk> {
        Arc::new(self.disk.snapshot())
    }

    /// The log is whole: every batch but the lost ones, nothing taken out that is not in
    /// quarantine, and nothing of the mending left about.
    fn is_mended(&self, disk: &Arc<SimulatedDisk>, when: &str) {
        let what = format!("{}, {when}", self.harm.name);
        let log = Log::open(&home(disk)).unwrap_or_else(|error| panic!("{what}: {error:?}"));
        let found = log.verify(&mut |_| ()).unwrap();
        assert_eq!(found.damaged(), 0, "{what}: {:?}", found.findings);
        let read =
            read(&log, &self.sample.batches, false).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert!(read.error.is_none() && read.missing == self.lost, "{what}: {read:?}");
        assert_eq!(read.next, self.sample.end(), "{what}");
        for dir in ["", "quarantine", "groups"] {
            let names = disk.names(&Path::new(DIR).join(dir)).unwrap_or_default();
            assert!(!names.iter().any(|name| name.ends_with(".tmp")), "{what}: {names:?}");
        }
        let (before, after) = (files(&self.disk, ""), files(disk, ""));
        let kept: Vec<Vec<u8>> = files(disk, "quarantine").into_values().collect();
        for (name, bytes) in before.iter().filter(|(name, _)| is_precious(name)) {
            let is_kept = |piece: &[u8]| kept.iter().any(|kept| find(kept, piece));
            let whole = after.get(name) == Some(bytes) || is_kept(bytes);
            assert!(
                whole || all_kept(self.sample, name, bytes, &kept),
                "{what}: {name} lost bytes"
            );
        }
    }

    /// The log goes on.
    fn is_used(&self, disk: &Arc<SimulatedDisk>) {
        let name = self.harm.name;
        let log = Log::open(&home(disk)).unwrap();
        let mut writer = Appender::open(&log).unwrap();
        let appended = writer.append(&Body::plain(Layout::Lines, 1, b"later\n"), NOW).unwrap();
        assert_eq!((appended.base, writer.sync().unwrap()), (self.sample.end(), appended.next));
        assert_eq!(log.group_position(&group("late")).unwrap(), Some(self.sample.end()), "{name}");
        log.commit(&group("late"), appended.next, NOW).unwrap();
        log.commit(&group("early"), Offset::new(self.sample.end().get() / 2), NOW).unwrap();
        assert_eq!(log.verify(&mut |_| ()).unwrap().damaged(), 0, "{name}");
    }
}

/// Whether these bytes may not go without being kept.
fn is_precious(name: &str) -> bool {
    name.ends_with(".log")
}

/// Whether every byte of a harmed segment is that of a good batch, or kept.
fn all_kept(sample: &Sample, name: &str, bytes: &[u8], kept: &[Vec<u8>]) -> bool {
    let good = sample.batches.iter().filter(|batch| batch.segment == *name);
    let original = sample.disk.read_file(&path(name)).unwrap_or_default();
    let mut at = 0;
    let mut bad = Vec::new();
    for batch in good {
        let range = batch.position as usize..batch.end() as usize;
        if bytes.get(range.clone()) == original.get(range.clone()) {
            bad.push(at..range.start);
            at = range.end;
        }
    }
    bad.push(at..bytes.len());
    bad.into_iter()
        .filter(|range| !range.is_empty())
        .all(|range| kept.iter().any(|kept| find(kept, &bytes[range.clone()])))
}

fn find(kept: &[u8], piece: &[u8]) -> bool {
    memchr::memmem::find(kept, piece).is_some()
}

fn files(disk: &SimulatedDisk, dir: &str) -> Files {
    let dir = Path::new(DIR).join(dir);
    let names = disk.names(&dir).unwrap_or_default();
    names
        .into_iter()
        .filter_map(|name| Some((name.clone(), disk.read_file(&dir.join(name))?)))
        .collect()
}

/// What a repair leaves that has to be the same however often it was begun.
fn result(disk: &SimulatedDisk) -> (Files, Files) {
    let mut segments = files(disk, "");
    segments.retain(|name, _| is_precious(name));
    (segments, files(disk, "quarantine"))
}

/// Checks all kinds of harm, each alone, and tells of all that fail.
fn each_harm(check: impl Fn(&Case<'_>)) {
    let sample = sample();
    let failed =
        |harm: &&Harm| catch_unwind(AssertUnwindSafe(|| check(&Case::new(&sample, harm)))).is_err();
    let failed: Vec<_> = ALL.iter().filter(failed).map(|harm| harm.name).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn every_harm_is_mended_and_the_log_goes_on() {
    each_harm(|case| {
        let Case { sample, harm, .. } = case;
        let disk = case.harmed();
        let before = Log::open(&home(&disk)).and_then(|log| log.verify(&mut |_| ()));
        if let (Ok(found), false) = (&before, case.lost.is_empty()) {
            assert!(found.damaged() > 0, "{}: verify finds nothing", harm.name);
        }
        if let Ok(log) = Log::open(&home(&disk)) {
            let plain = read(&log, &sample.batches, false).unwrap();
            match plain.error {
                None => assert!(case.lost.is_empty(), "{}: {plain:?}", harm.name),
                // Without `end` nobody knows what had been safe.
                Some(Error::Unreadable { .. }) => {}
                Some(Error::Damage(_) | Error::BatchTooLarge(_)) => {
                    let skips = read(&log, &sample.batches, true).unwrap();
                    let passed = skips.error.is_none() && skips.missing == case.lost;
                    assert!(passed && skips.skipped.places > 0, "{}: {skips:?}", harm.name);
                }
                error => panic!("{}: {error:?}", harm.name),
            }
        }
        mend(&disk).unwrap_or_else(|error| panic!("{}: {error:?}", harm.name));
        case.is_mended(&disk, "mended");
        let print = disk.fingerprint();
        mend(&disk).unwrap();
        assert_eq!(disk.fingerprint(), print, "{}: mended twice", harm.name);
        case.is_used(&disk);
    });
}

#[test]
fn a_repair_killed_or_cut_at_any_step_ends_the_same_when_run_again() {
    let begun = Instant::now();
    let (kills, cuts) = (Cell::new(0), Cell::new(0));
    each_harm(|case| {
        let harm = case.harm;
        let disk = case.harmed();
        mend(&disk).unwrap();
        let whole = result(&disk);
        let mut player = disk.crash_player();
        for step in 0..=player.steps() {
            player.go_to(step);
            let when = format!("after step {step}, {:?}", disk.describe_step(step.wrapping_sub(1)));
            let killed = Arc::new(player.killed());
            mend(&killed).unwrap_or_else(|error| panic!("{}, {when}: {error:?}", harm.name));
            case.is_mended(&killed, &format!("killed {when}"));
            assert!(result(&killed) == whole, "{}, killed {when}: it ends otherwise", harm.name);
            kills.set(kills.get() + 1);
            for style in STYLES {
                let image = Arc::new(player.image(step as u64, style));
                let when = format!("cut {when}, {style:?}");
                mend(&image).unwrap_or_else(|error| panic!("{}, {when}: {error:?}", harm.name));
                case.is_mended(&image, &when);
                cuts.set(cuts.get() + 1);
            }
        }
    });
    let (kills, cuts) = (kills.get(), cuts.get());
    println!("{kills} kills, {cuts} power cuts, {:.1} s", begun.elapsed().as_secs_f64());
}

/// Every call that changes something, and some of those that only look.
fn faults_of(disk: &SimulatedDisk) -> Vec<(Class, u64)> {
    let all = std::env::var_os("TAPELOG_LONG").is_some_and(|value| value == "1");
    let calls = |class| {
        let looks = matches!(class, Class::Read | Class::Look | Class::Open);
        let step = if looks && !all { 11 } else { 1 };
        (1..=disk.calls(class)).step_by(step).map(move |nth| (class, nth))
    };
    Class::ALL.into_iter().filter(|class| *class != Class::Any).flat_map(calls).collect()
}

#[test]
fn a_repair_whose_disk_refuses_loses_nothing_and_can_be_run_again() {
    let begun = Instant::now();
    let faults = Cell::new(0);
    each_harm(|case| {
        let harm = case.harm;
        let counted = case.harmed();
        mend(&counted).unwrap();
        for (class, nth) in faults_of(&counted) {
            let disk = case.harmed();
            let trouble = if nth % 2 == 0 { Trouble::EIO } else { Trouble::ENOSPC };
            disk.fail_at(class, nth, trouble, Lasts::Once);
            let when = format!("{trouble:?} at {class:?} {nth}");
            match mend(&disk) {
                Ok(()) | Err(Error::Io { .. }) => {}
                Err(error) => panic!("{}, {when}: {error:?}", harm.name),
            }
            disk.clear_faults();
            mend(&disk).unwrap_or_else(|error| panic!("{}, {when}: {error:?}", harm.name));
            case.is_mended(&disk, &when);
            faults.set(faults.get() + 1);
        }
    });
    let faults = faults.get();
    println!("{faults} faults, {:.1} s", begun.elapsed().as_secs_f64());
}
