//! Opens what a crash left and compares it with what was promised.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tapelog::disk::simulated::SimulatedDisk;
use tapelog::format::batch::Layout;
use tapelog::format::body::Body;
use tapelog::log::{Appender, Claim, Consumer, Error, Home, Log, Note};
use tapelog::model::{LogId, Offset, Start, Timestamp};

use crate::model::Expected;
use crate::program::{DIR, home, settings};
use crate::reading::{Read, check_keys, compare, groups, read_all, words};

/// What is appended to a log that was opened after a crash.
const PROBE: &[u8] = b"appended after the crash";
const LATER: Timestamp = Timestamp::from_millis(9_000_000);

/// What the recovery of one disk did, for cutting its power too.
pub struct Recovery {
    /// The records that were there, and the one that was appended.
    values: Vec<Vec<u8>>,
    /// The offset of the last one.
    probe: u64,
    /// The length of the journal before the append and after its sync.
    begun: usize,
    done: usize,
    torn: Option<Torn>,
}

/// A torn tail that was cut off.
struct Torn {
    segment: PathBuf,
    /// The segment before the cut, and its length after it.
    whole: Vec<u8>,
    length: usize,
    kept: PathBuf,
}

impl Recovery {
    /// Whether the power, cut in the midst of the recovery, left every byte of a torn
    /// tail where it was or in quarantine.
    pub fn check_torn(&self, disk: &SimulatedDisk) -> Result<(), String> {
        let Some(Torn { segment, whole, length, kept }) = &self.torn else { return Ok(()) };
        let bytes = disk.read_file(segment).unwrap_or_default();
        let is_kept = || disk.read_file(kept).is_some_and(|kept| kept == whole[*length..]);
        match bytes.starts_with(whole) || is_kept() {
            true => Ok(()),
            false => Err(format!("{} was cut and is not in quarantine", segment.display())),
        }
    }

    /// What must hold if the power is cut after so many steps of the recovery.
    pub fn expected(&self, steps: usize, before: &Expected) -> Expected {
        let mut expected = before.clone();
        if steps > self.begun {
            expected.values.clone_from(&self.values);
        }
        if steps >= self.done {
            expected.made = true;
            expected.safe = self.probe + 1;
        }
        expected
    }
}

/// A log's notes, kept.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<Note>>>);

impl Notes {
    fn home(&self, disk: &Arc<SimulatedDisk>) -> Home {
        let notes = self.0.clone();
        home(disk, move |note| {
            notes.lock().unwrap_or_else(PoisonError::into_inner).push(note.clone());
        })
    }

    fn take(&self) -> Vec<Note> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Opens the log that a crash left on `disk`, reads it, appends to it, opens it again.
pub fn check(disk: &Arc<SimulatedDisk>, expected: &Expected) -> Result<Recovery, String> {
    let notes = Notes::default();
    let read = as_a_reader(disk, &notes, expected)?;
    let recovery = as_a_writer(disk, &notes, read)?;
    once_more(disk, &notes, &recovery, expected)?;
    Ok(recovery)
}

/// What a reader finds before any writer came.
fn as_a_reader(
    disk: &Arc<SimulatedDisk>,
    notes: &Notes,
    expected: &Expected,
) -> Result<Read, String> {
    let log = match Log::open(&notes.home(disk)) {
        Err(Error::NoLog(_) | Error::NotALog { .. }) if !expected.made => {
            return Ok(Read::default());
        }
        opened => opened.map_err(words("open"))?,
    };
    let before = files(disk);
    let read = read_all(&log)?;
    let bounds = log.bounds().map_err(words("bounds"))?;
    if let Some(damage) = bounds.damage {
        return Err(format!("damage: {damage}"));
    }
    if (bounds.start.get(), bounds.end.get()) != (read.start, read.end()) {
        return Err(format!("{bounds:?}, but read {} to {}", read.start, read.end()));
    }
    compare(&read, &expected.values)?;
    within(&read, expected)?;
    let verified = log.verify(&mut |_| ()).map_err(words("verify"))?;
    if verified.damaged() > 0 {
        return Err(format!("verify: {:?}", verified.findings));
    }
    if disk.names(&Path::new(DIR).join("keys")).is_some_and(|names| !names.is_empty()) {
        check_keys(&log)?;
    }
    check_groups(&log, &read, expected)?;
    let (facts, damage) = log.segments().map_err(words("segments"))?;
    let reach = facts
        .iter()
        .try_fold(read.start, |next, facts| (facts.base.get() == next).then_some(facts.next.get()));
    if damage.is_some() || reach != Some(read.end()) {
        return Err(format!("segments: {facts:?}, damage {damage:?}"));
    }
    match files(disk) == before {
        true => Ok(read),
        false => Err("a reader changed a file that is not derived".to_owned()),
    }
}

fn within(read: &Read, expected: &Expected) -> Result<(), String> {
    if read.end() < expected.safe {
        return Err(format!("the log ends at {}, {} was safe", read.end(), expected.safe));
    }
    if read.start < expected.least_start || read.start > expected.most_start {
        return Err(format!(
            "log start {}, not from {} to {}",
            read.start, expected.least_start, expected.most_start
        ));
    }
    Ok(())
}

fn check_groups(log: &Log, read: &Read, expected: &Expected) -> Result<(), String> {
    let found = groups(log)?;
    for (group, next) in &found {
        if !expected.groups.contains_key(group) {
            return Err(format!("group {group} is invented"));
        }
        if *next < read.start || *next > read.end() {
            let (start, end) = (read.start, read.end());
            return Err(format!("group {group} is at {next}, the log holds {start} to {end}"));
        }
    }
    for (group, places) in &expected.groups {
        let place = found.get(group).copied();
        if !places.contains(&place) {
            return Err(format!("group {group} is at {place:?}, not at one of {places:?}"));
        }
    }
    Ok(())
}

/// A writer: continues exactly where the readers said that the log ends.
fn as_a_writer(disk: &Arc<SimulatedDisk>, notes: &Notes, read: Read) -> Result<Recovery, String> {
    let before = files(disk);
    notes.take();
    let home = notes.home(disk);
    let log = Log::open_or_create(&home, LogId::new(77), &settings(512));
    let log = log.map_err(words("open or create"))?;
    let mut writer = Appender::open(&log).map_err(words("open a writer"))?;
    let torn = nothing_destroyed(disk, &before, &notes.take())?;
    let begun = disk.steps();
    append_probe(&mut writer, read.end())?;
    let done = disk.steps();
    let mut values = vec![Vec::new(); read.start as usize];
    let probe = read.end();
    values.extend(read.values);
    values.push(PROBE.to_vec());
    Ok(Recovery { values, probe, begun, done, torn })
}

fn append_probe(writer: &mut Appender, at: u64) -> Result<(), String> {
    let bytes = [PROBE, b"\n"].concat();
    let body = Body::plain(Layout::Lines, 1, &bytes);
    let appended = writer.append(&body, LATER).map_err(words("append"))?;
    if appended.base.get() != at {
        return Err(format!("appended at {}, but readers saw the end at {at}", appended.base));
    }
    let end = writer.sync().map_err(words("sync"))?;
    if end.get() == at + 1 { Ok(()) } else { Err(format!("synced up to {end}, not {}", at + 1)) }
}

/// Every byte that a segment had is still there or in quarantine.
fn nothing_destroyed(
    disk: &SimulatedDisk,
    before: &BTreeMap<PathBuf, Vec<u8>>,
    notes: &[Note],
) -> Result<Option<Torn>, String> {
    let after = files(disk);
    let mut torn = None;
    for (path, old) in before.iter().filter(|(path, _)| is_segment(path)) {
        let new = after.get(path).ok_or_else(|| format!("{} is gone", path.display()))?;
        if new == old {
            continue;
        }
        let kept = notes.iter().find_map(|note| match note {
            Note::CutTail { kept, .. } => Some(kept),
            _ => None,
        });
        let kept = kept.ok_or_else(|| format!("{} was changed", path.display()))?;
        let cut = old.strip_prefix(&new[..]).ok_or("more than the tail was cut")?;
        if after.get(kept).is_none_or(|aside| aside != cut) {
            return Err(format!("bytes cut from {} are not set aside", path.display()));
        }
        let (segment, whole, length) = (path.clone(), old.clone(), new.len());
        torn = Some(Torn { segment, whole, length, kept: kept.clone() });
    }
    Ok(torn)
}

fn is_segment(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "log")
}

/// Opened again: nothing more to mend, everything there, and every group goes on.
fn once_more(
    disk: &Arc<SimulatedDisk>,
    notes: &Notes,
    recovery: &Recovery,
    expected: &Expected,
) -> Result<(), String> {
    notes.take();
    let log = Log::open(&notes.home(disk)).map_err(words("open again"))?;
    let _writer = Appender::open(&log).map_err(words("open a writer again"))?;
    let read = read_all(&log)?;
    let told = notes.take();
    if let Some(note) = told.iter().find(|note| !matches!(note, Note::BadSlot(_))) {
        return Err(format!("told again: {note}"));
    }
    if read.end() != recovery.probe + 1 {
        return Err(format!("after a new append the log ends at {}", read.end()));
    }
    compare(&read, &recovery.values)?;
    check_groups(&log, &read, expected)
}

/// What the groups and gc do with a log that was recovered: nothing that a group
/// needs goes, and every group can go on.
pub fn check_use(disk: &Arc<SimulatedDisk>, recovery: &Recovery) -> Result<(), String> {
    let log = Log::open(&home(disk, |_| ())).map_err(words("open"))?;
    let claim = Claim {
        start: Start::Earliest,
        out_of_range: None,
        commits: true,
        holder: "check".to_owned(),
    };
    let positions = groups(&log)?;
    for (group, next) in &positions {
        let consumer = Consumer::claim(&log, group, &claim, LATER).map_err(words("claim again"))?;
        if consumer.position().get() != *next {
            return Err(format!("{group} goes on at {}, not {next}", consumer.position()));
        }
    }
    log.seal_active(true, LATER).map_err(words("seal"))?;
    log.cover_keys().map_err(words("cover_keys"))?;
    check_keys(&log)?;
    log.collect().map_err(words("collect"))?;
    let read = read_all(&log)?;
    compare(&read, &recovery.values)?;
    check_keys(&log)?;
    match positions.values().min() {
        Some(least) if *least < read.start => Err(format!("gc went beyond {least}")),
        None if log.start().map_err(words("start"))? != Offset::new(read.start) => {
            Err("gc without groups".to_owned())
        }
        _ => Ok(()),
    }
}

/// Every file that is not derived.
pub fn files(disk: &SimulatedDisk) -> BTreeMap<PathBuf, Vec<u8>> {
    let log = Path::new(DIR);
    let dirs: BTreeSet<PathBuf> =
        [log.to_owned(), log.join("groups"), log.join("quarantine")].into();
    let mut files = BTreeMap::new();
    for dir in dirs {
        for name in disk.names(&dir).unwrap_or_default() {
            let path = dir.join(&name);
            if let Some(bytes) = disk.read_file(&path).filter(|_| !name.ends_with(".index")) {
                files.insert(path, bytes);
            }
        }
    }
    files
}
