//! The log's own state: `start`, `end` and the checkpoints, both lines of each.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::finding::{Finding, Kind};
use crate::disk::Access;
use crate::format::file_name;
use crate::format::state::{CheckpointState, EndState, StartState};
use crate::log::error::{Error, Result};
use crate::log::files::lock::AppendLock;
use crate::log::files::slot_file::SlotFile;
use crate::log::groups::checkpoint;
use crate::log::{Bounds, Log, OutOfRange};
use crate::model::LogId;

const BAD_LINE: &str = "one of its two lines is bad, the other one counts";

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
    let (kind, what) = match SlotFile::<T>::open(&log.home, &path, Access::Read) {
        Ok(file) if id(file.state()) != log.id => {
            (Kind::State, "it belongs to another log".to_owned())
        }
        Ok(file) if file.has_bad_line() => (Kind::Slot, BAD_LINE.to_owned()),
        Ok(_) => return Ok(None),
        Err(Error::Unreadable { what, .. }) => (Kind::State, what),
        Err(error) if error.is_not_found() => {
            (Kind::Slot, "it is missing; the next writer makes it anew".to_owned())
        }
        Err(error) => return Finding::unread(path, Kind::State, error).map(Some),
    };
    Ok(Some(Finding::of_file(path, kind, what)))
}

/// Whether one of the two lines of a checkpoint is bad. One that is gone has none.
fn has_bad_line(log: &Log, path: &Path) -> Result<bool> {
    match SlotFile::<CheckpointState>::open(&log.home, path, Access::Read) {
        Err(error) if error.is_not_found() => Ok(false),
        file => Ok(file?.has_bad_line()),
    }
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
            return Ok(vec![Finding::of_file(file, Kind::Checkpoint, what)]);
        }
        Err(error) => {
            let dir = log.home.groups_dir();
            return Finding::unread(dir, Kind::Checkpoint, error).map(|found| vec![found]);
        }
    };
    for group in groups {
        let file = checkpoint::path(log, &group);
        let mut told =
            |kind, what: String| findings.push(Finding::of_file(file.clone(), kind, what));
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
        if has_bad_line(log, &file)? {
            told(Kind::Slot, BAD_LINE.to_owned());
        }
    }
    Ok(findings)
}
