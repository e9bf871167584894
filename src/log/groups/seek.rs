//! Moving a checkpoint by hand, and the history that lets a move be taken back.
//! Every seek that moves adds one line of JSON to the group's history before the
//! checkpoint moves; a line that a crash left without its move takes back nothing.

use serde::{Deserialize, Serialize};

use super::checkpoint::{self, Checkpoint, Progress};
use super::consumer::make_group;
use super::holder::{Holder, SHORT_PATIENCE};
use super::status::GroupsLock;
use crate::disk::{Access, LockMode, read_full, write_all};
use crate::format::file_name;
use crate::log::error::{Error, Result};
use crate::log::{Bounds, Log, Note};
use crate::model::{GroupName, Offset, Start, Timestamp};

/// Where a seek goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeekTarget {
    /// To a place in the log.
    To(Start),
    /// Forward, or back if negative; not beyond the ends of the log.
    By(i64),
    /// Where it is already: makes a group, or checks one.
    Current,
    /// To where another group is.
    Group(GroupName),
    /// To where it was before the last seek that was not taken back yet.
    Undo,
}

/// A seek that was done, or would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The group.
    pub group: GroupName,
    /// Where it was; `None` if it is new or its checkpoint can't be read.
    pub from: Option<Offset>,
    /// Where it goes on.
    pub to: Offset,
}

/// A line of the history.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    at: Timestamp,
    from: Option<Offset>,
    to: Offset,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    undo: bool,
}

impl Log {
    /// What a seek would do.
    ///
    /// # Errors
    /// [`crate::log::OutOfRange`]; [`Error::NoGroup`] for another group's position;
    /// [`Error::NothingToUndo`]; what the disk says.
    pub fn plan_seek(&self, group: &GroupName, target: &SeekTarget) -> Result<Move> {
        let from = match checkpoint::read(self, group) {
            Ok(state) => state.map(|state| state.next),
            Err(Error::Unreadable { .. } | Error::OutOfRange(_)) => None,
            Err(error) => return Err(error),
        };
        let to = self.target(group, from, target)?;
        Ok(Move { group: group.clone(), from, to })
    }

    /// Moves a group's checkpoint, durably, and writes that down. Makes a new group.
    ///
    /// # Errors
    /// As [`Log::plan_seek`]; [`Error::Busy`] while the group is consumed.
    pub fn seek(&self, group: &GroupName, target: &SeekTarget, now: Timestamp) -> Result<Move> {
        let _holder = Holder::take(self, group)?;
        let taken = match Checkpoint::take(self, group, SHORT_PATIENCE) {
            Err(Error::Unreadable { .. } | Error::OutOfRange(_)) => Taken::Unreadable,
            taken => taken?.map_or(Taken::New, Taken::Good),
        };
        if let Taken::New = taken {
            let planned = self.plan_seek(group, target)?;
            let to = make_group(self, group, Start::At(planned.to), now)?;
            self.write_down(group, &Line { at: now, from: None, to, undo: false })?;
            return Ok(planned);
        }
        let _shared = GroupsLock::take(self, LockMode::Shared)?;
        let planned = self.plan_seek(group, target)?;
        let undo = *target == SeekTarget::Undo;
        // What does not move is no step for an undo; an undo that does not is one done.
        if undo || planned.from != Some(planned.to) {
            self.write_down(group, &Line { at: now, from: planned.from, to: planned.to, undo })?;
        }
        let before = checkpoint::time_before(self, planned.to, &self.bounds()?)?;
        let progress = Progress { next: planned.to, before };
        match taken {
            Taken::Good(mut checkpoint) => {
                checkpoint.store(self, progress, now)?;
                checkpoint.sync()?;
            }
            _ => checkpoint::replace(self, group, progress, now)?,
        }
        Ok(planned)
    }

    fn target(
        &self,
        group: &GroupName,
        from: Option<Offset>,
        target: &SeekTarget,
    ) -> Result<Offset> {
        let known = || from.ok_or_else(|| Error::NoGroup(group.clone()));
        match target {
            SeekTarget::To(start) => self.resolve(*start),
            SeekTarget::Current => self.resolve(Start::At(known()?)),
            SeekTarget::By(records) => Ok(self.shifted(known()?, *records, &self.bounds()?)),
            SeekTarget::Group(other) => {
                let state = checkpoint::read(self, other)?;
                let state = state.ok_or_else(|| Error::NoGroup(other.clone()))?;
                self.resolve(Start::At(state.next))
            }
            SeekTarget::Undo => {
                if from.is_none() && !self.home.exists(&checkpoint::path(self, group))? {
                    return Err(Error::NoGroup(group.clone()));
                }
                let nothing = || Error::NothingToUndo(group.clone());
                self.resolve(Start::At(self.last_from(group)?.ok_or_else(nothing)?))
            }
        }
    }

    fn shifted(&self, from: Offset, records: i64, bounds: &Bounds) -> Offset {
        let distance = records.unsigned_abs();
        let wanted = match records < 0 {
            true => (from.get() >= distance).then(|| from.back(distance)),
            false => from.forward(distance),
        };
        match wanted.filter(|wanted| bounds.check(*wanted).is_ok()) {
            Some(wanted) => wanted,
            None => {
                let to = if records < 0 { bounds.start } else { bounds.end };
                self.home.tell(&Note::Clamped { to });
                to
            }
        }
    }

    /// Where the group was before its last seek that was not taken back.
    fn last_from(&self, group: &GroupName) -> Result<Option<Offset>> {
        let mut moves = Vec::new();
        for line in self.history(group)? {
            if line.undo {
                moves.pop();
            } else {
                moves.push(line.from);
            }
        }
        Ok(moves.pop().flatten())
    }

    fn history(&self, group: &GroupName) -> Result<Vec<Line>> {
        let path = self.home.groups_dir().join(file_name::history(group));
        let file = match self.home.open(&path, Access::Read) {
            Err(error) if error.is_not_found() => return Ok(Vec::new()),
            opened => opened?,
        };
        let length = file.size().map_err(Error::io("read", &path))?;
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
        let read = read_full(file.as_ref(), &mut bytes, 0).map_err(Error::io("read", &path))?;
        // A line that a crash tore is no line; its seek did not happen.
        let lines = bytes[..read].split(|&byte| byte == b'\n');
        Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }

    fn write_down(&self, group: &GroupName, line: &Line) -> Result<()> {
        let dir = self.home.groups_dir();
        let path = dir.join(file_name::history(group));
        let (file, is_new) = match self.home.open(&path, Access::ReadWrite) {
            Err(error) if error.is_not_found() => {
                let made = self.home.disk().create_new(&path);
                (made.map_err(Error::io("create", &path))?, true)
            }
            opened => (opened?, false),
        };
        let length = file.size().map_err(Error::io("read", &path))?;
        let mut last = [b'\n'];
        read_full(file.as_ref(), &mut last, length.saturating_sub(1))
            .map_err(Error::io("read", &path))?;
        let mut text = if last == *b"\n" { String::new() } else { "\n".to_owned() };
        text.push_str(&serde_json::to_string(line).unwrap_or_default());
        text.push('\n');
        let written = write_all(file.as_ref(), &[text.as_bytes()], length);
        if let Err(error) = written.and_then(|()| file.sync_data()) {
            // A line that may never get to the disk must not lie beneath the next one.
            let _ = file.set_len(length);
            return Err(Error::io("write", &path)(error));
        }
        if is_new { self.home.sync_dir(&dir) } else { Ok(()) }
    }
}

/// The checkpoint that a seek will move.
enum Taken {
    New,
    Good(Checkpoint),
    Unreadable,
}
