//! The log's own state: `start`, `end` and the checkpoints, both lines of each.

use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::finding::{Finding, Kind};
use crate::disk::{Access, read_full};
use crate::format::file_name;
use crate::format::slots::{self, FILE_LEN, OtherSlot};
use crate::format::state::{CheckpointState, EndState, StartState};
use crate::log::error::{Error, Result};
use crate::log::files::lock::AppendLock;
use crate::log::groups::checkpoint;
use crate::log::{Bounds, Log, OutOfRange};
use crate::model::LogId;

/// How often a bad line is looked at again: somebody may be writing it.
const LOOKS: usize = 100;

/// What is to be told of `start` and `end`.
pub(crate) fn of_the_log(log: &Log) -> Result<Vec<Finding>> {
    let start = check::<StartState>(log, log.home.path(file_name::START), |state| state.log)?;
    let end = check::<EndState>(log, log.home.path(file_name::END), |state| state.log)?;
    Ok([start, end, check_lock(log)?].into_iter().flatten().collect())
}

/// What is to be told of `lock`, which holds nothing: only that it has to be a file.
fn check_lock(log: &Log) -> Result<Option<Finding>> {
    match AppendLock::if_there(&log.home) {
        Ok(_) => Ok(None),
        Err(error) => Finding::unread(log.home.path(file_name::LOCK), Kind::State, error).map(Some),
    }
}

/// What is to be told of one of them; a missing one too, which the next writer makes anew.
fn check<T: Serialize + DeserializeOwned + Clone>(
    log: &Log,
    path: PathBuf,
    id: impl Fn(&T) -> LogId,
) -> Result<Option<Finding>> {
    let told = |kind, what: &str| {
        let (file, what) = (path.clone(), what.to_owned());
        Ok(Some(Finding { file, position: None, offsets: None, kind, what }))
    };
    let slots = match read::<T>(log, &path) {
        Ok(Some(slots)) => slots,
        Ok(None) => return told(Kind::Slot, "it is missing; the next writer makes it anew"),
        Err(error) => return Finding::unread(path, Kind::State, error).map(Some),
    };
    match slots {
        None => told(Kind::State, "neither of its two lines is good"),
        Some(slots) if id(&slots.newest.state) != log.id => {
            told(Kind::State, "it belongs to another log")
        }
        Some(slots) if slots.other == OtherSlot::Bad => {
            told(Kind::Slot, "one of its two lines is bad, the other one counts")
        }
        Some(_) => Ok(None),
    }
}

/// The two lines of a file: outer `None` if there is no file, inner if no line is good.
fn read<T: DeserializeOwned>(log: &Log, path: &PathBuf) -> Result<Option<Option<slots::Slots<T>>>> {
    let file = match log.home.open(path, Access::Read) {
        Err(error) if error.is_not_found() => return Ok(None),
        file => file?,
    };
    let mut found = None;
    for _ in 0..LOOKS {
        let mut bytes = vec![0; FILE_LEN + 1];
        let length = read_full(file.as_ref(), &mut bytes, 0).map_err(Error::io("read", path))?;
        found = slots::decode_file::<T>(&bytes[..length]);
        if found.as_ref().is_some_and(|slots| slots.other != OtherSlot::Bad) {
            break;
        }
        std::thread::yield_now();
    }
    Ok(Some(found))
}

/// Compares a checkpoint with the log, and once more with the log as it is then: both
/// may have gone on, and gc too.
fn check_twice(log: &Log, state: &CheckpointState, bounds: &Bounds) -> Result<()> {
    match checkpoint::check(log, state, bounds) {
        Err(Error::OutOfRange(_)) => {
            let now = log.bounds()?;
            checkpoint::check(log, state, &Bounds { end: now.end.max(bounds.end), ..now })
        }
        checked => checked,
    }
}

/// What is to be told of the groups' checkpoints. One before the log start is no
/// fault: its segments were deleted by gc.
pub(crate) fn of_the_groups(log: &Log, bounds: &Bounds) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let groups = match log.group_names() {
        Ok(groups) => groups,
        Err(Error::Unreadable { path: file, what }) => {
            let kind = Kind::Checkpoint;
            return Ok(vec![Finding { file, position: None, offsets: None, kind, what }]);
        }
        Err(error) => {
            let dir = log.home.groups_dir();
            return Finding::unread(dir, Kind::Checkpoint, error).map(|found| vec![found]);
        }
    };
    for group in groups {
        let file = checkpoint::path(log, &group);
        let mut told = |kind, what| {
            let file = file.clone();
            findings.push(Finding { file, position: None, offsets: None, kind, what });
        };
        match checkpoint::read(log, &group) {
            Ok(None) => continue,
            Err(error @ (Error::Unreadable { .. } | Error::OutOfRange(_))) => {
                told(Kind::Checkpoint, error.to_string());
                continue;
            }
            Err(error) => {
                findings.push(Finding::unread(file, Kind::Checkpoint, error)?);
                continue;
            }
            Ok(Some(state)) => match check_twice(log, &state, bounds) {
                Err(Error::OutOfRange(OutOfRange::Checkpoint { next, start, .. }))
                    if next < start => {}
                Err(error @ Error::OutOfRange(_)) => told(Kind::Checkpoint, error.to_string()),
                // What can't be compared because of other damage is no fault of its own.
                Err(Error::Damage(_) | Error::Unreadable { .. } | Error::Io { .. }) | Ok(()) => {}
                Err(error) => return Err(error),
            },
        }
        let slots = read::<CheckpointState>(log, &file)?.flatten();
        if slots.is_some_and(|slots| slots.other == OtherSlot::Bad) {
            told(Kind::Slot, "one of its two lines is bad, the other one counts".to_owned());
        }
    }
    Ok(findings)
}
