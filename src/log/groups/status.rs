//! The groups of a log: which there are, where they stand, who has them. gc asks
//! strictly: one checkpoint that can't be read, and nothing is known. Listings show
//! the other groups all the same.

use std::path::PathBuf;
use std::time::Duration;

use super::checkpoint::{self, COMMIT_PATIENCE, Checkpoint};
use super::holder::{self, Holder, make_groups_dir};
use crate::disk::{Access, DiskLock, LockMode};
use crate::format::file_name;
use crate::format::state::CheckpointState;
use crate::log::error::{Damage, Error, Result};
use crate::log::files::lock;
use crate::log::files::slot_file::SlotFile;
use crate::log::find::locate;
use crate::log::{Bounds, Log};
use crate::model::{GroupName, Offset, SegmentFacts, Timestamp};
use crate::policy::retention::{GroupPosition, held_bytes};

/// How long a change of the groups waits for gc, and gc for a change.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where a group stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupStatus {
    /// Its name.
    pub group: GroupName,
    /// Its checkpoint: the next offset to read.
    pub position: Offset,
    /// The log end.
    pub end: Offset,
    /// How many offsets lie between.
    pub lag: u64,
    /// How long the next record has been waiting; zero if there is none.
    pub lag_time: Duration,
    /// Who consumes it now.
    pub holder: Option<String>,
    /// The bytes of sealed segments that it alone keeps.
    pub held_bytes: u64,
}

/// A group whose checkpoint is of no use.
#[derive(Debug)]
pub struct BadGroup {
    /// Its name.
    pub group: GroupName,
    /// Who consumes it now.
    pub holder: Option<String>,
    /// What is wrong, and what mends it.
    pub why: Error,
}

/// Where the groups stand, as far as that can be read.
#[derive(Debug)]
pub struct GroupListing {
    /// The log end.
    pub end: Offset,
    /// Damage at the log's end: there should be more.
    pub damage: Option<Damage>,
    /// The groups that can be read, in order.
    pub good: Vec<GroupStatus>,
    /// The others, in order.
    pub bad: Vec<BadGroup>,
}

/// The lock on the directory of groups: shared by those who place a checkpoint,
/// taken alone by gc while it decides what goes.
#[derive(Debug)]
pub(crate) struct GroupsLock {
    _lock: Box<dyn DiskLock>,
}

impl GroupsLock {
    pub(crate) fn take(log: &Log, mode: LockMode) -> Result<GroupsLock> {
        log.home.require_local()?;
        let path = log.home.groups_dir();
        make_groups_dir(log)?;
        let lock = log.home.disk().lock(&path).map_err(Error::io("open", &path))?;
        if lock::wait_for(lock.as_ref(), &path, mode, PATIENCE)? {
            return Ok(GroupsLock { _lock: lock });
        }
        let what = format!("{}", path.display());
        Err(Error::Busy { what, holder: "another process".to_owned() })
    }
}

impl Log {
    /// The names of all groups, in order.
    ///
    /// # Errors
    /// What the disk says.
    pub fn group_names(&self) -> Result<Vec<GroupName>> {
        let dir = self.home.groups_dir();
        self.home.refuse_link(&dir)?;
        let names = match self.home.disk().list(&dir) {
            // A copy of the log may have lost a directory that was empty.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            names => names.map_err(Error::io("list", &dir))?,
        };
        let mut groups: Vec<GroupName> =
            names.iter().filter_map(|name| file_name::parse_checkpoint(name)).collect();
        groups.sort();
        Ok(groups)
    }

    /// The checkpoint of every group.
    ///
    /// # Errors
    /// [`Error::Unreadable`] for one that is damaged; what the disk says.
    pub fn group_positions(&self) -> Result<Vec<GroupPosition>> {
        let mut positions = Vec::new();
        for group in self.group_names()? {
            // A group may be deleted while this goes on.
            if let Some(state) = checkpoint::read(self, &group)? {
                positions.push(GroupPosition { group, next: state.next });
            }
        }
        Ok(positions)
    }

    /// The checkpoint of every group that can be read, and the groups that can't.
    ///
    /// # Errors
    /// What the disk says of the directory.
    pub(crate) fn readable_positions(&self) -> Result<(Vec<GroupPosition>, Vec<BadGroup>)> {
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        for group in self.group_names()? {
            match checkpoint::read(self, &group) {
                Ok(Some(state)) => good.push(GroupPosition { group, next: state.next }),
                Ok(None) => {}
                Err(why) => {
                    let holder = holder::name(self, &group);
                    bad.push(BadGroup { group, holder, why });
                }
            }
        }
        Ok((good, bad))
    }

    /// Where one group stands; `None` if there is none of that name.
    ///
    /// # Errors
    /// As [`Log::group_positions`].
    pub fn group_position(&self, group: &GroupName) -> Result<Option<Offset>> {
        Ok(checkpoint::read(self, group)?.map(|state| state.next))
    }

    /// Who consumes a group now, in that one's own words; `None` if nobody does.
    pub fn group_holder(&self, group: &GroupName) -> Option<String> {
        holder::name(self, group)
    }

    /// Where the log of a group's dead letters is, unless another was chosen for them.
    pub fn dead_letters_dir(&self, group: &GroupName) -> PathBuf {
        self.home.groups_dir().join(file_name::dead_letters(group))
    }

    /// Whether there is one.
    ///
    /// # Errors
    /// What the disk says.
    pub fn has_dead_letters(&self, group: &GroupName) -> Result<bool> {
        self.home.exists(&self.dead_letters_dir(group))
    }

    /// Where the checkpoints are, for whoever waits for one to change.
    pub fn groups_dir(&self) -> PathBuf {
        self.home.groups_dir()
    }

    /// Makes durable which groups there are and what they say now; says from where on
    /// each may read again, whatever a power cut takes back.
    pub(crate) fn settle_groups(&self) -> Result<Vec<GroupPosition>> {
        let mut positions = Vec::new();
        for group in self.group_names()? {
            let next = match Checkpoint::take(self, &group, Duration::ZERO) {
                Err(Error::Busy { .. }) => self.settle_held(&group)?,
                // Whoever takes it syncs it.
                taken => taken?.map(|checkpoint| checkpoint.next()),
            };
            positions.extend(next.map(|next| GroupPosition { group, next }));
        }
        self.home.sync_dir(&self.home.groups_dir())?;
        Ok(positions)
    }

    /// The same for a checkpoint that a consumer has. The consumer does not know of this
    /// sync and may write over the newest line, so the older one counts too. If this
    /// fails, the consumer's own sync does too.
    fn settle_held(&self, group: &GroupName) -> Result<Option<Offset>> {
        let path = checkpoint::path(self, group);
        match SlotFile::<CheckpointState>::open(&self.home, &path, Access::Read) {
            Err(error) if error.is_not_found() => Ok(None),
            opened => {
                let mut file = opened?;
                file.sync()?;
                Ok(file.states().map(|state| state.next).min())
            }
        }
    }

    /// Where every group stands at `now`.
    ///
    /// # Errors
    /// What the disk says. A checkpoint that can't be read is part of the listing.
    pub fn group_listing(&self, now: Timestamp) -> Result<GroupListing> {
        let (positions, bad) = self.readable_positions()?;
        let (segments, _) = self.segments()?;
        let Bounds { end, damage, .. } = self.bounds()?;
        let status = |position| self.status(position, end, &segments, &positions, now);
        let good = positions.iter().map(status).collect::<Result<_>>()?;
        Ok(GroupListing { end, damage, good, bad })
    }

    fn status(
        &self,
        position: &GroupPosition,
        end: Offset,
        segments: &[SegmentFacts],
        all: &[GroupPosition],
        now: Timestamp,
    ) -> Result<GroupStatus> {
        let waiting = match position.next < end {
            true => match locate::append_time(self, position.next) {
                Err(error @ Error::Io { .. }) => return Err(error),
                // A checkpoint before the log start or at damage has no age to tell.
                found => found.unwrap_or_default(),
            },
            false => None,
        };
        Ok(GroupStatus {
            group: position.group.clone(),
            position: position.next,
            end,
            lag: end.since(position.next),
            lag_time: waiting.map_or(Duration::ZERO, |time| now.since(time)),
            holder: holder::name(self, &position.group),
            held_bytes: held_bytes(segments, all, &position.group),
        })
    }

    /// Deletes a group: its checkpoint and all that belongs to it, but for its dead
    /// letters, which are records.
    ///
    /// # Errors
    /// [`Error::NoGroup`]; [`Error::Busy`] while it is consumed; what the disk says.
    pub fn delete_group(&self, group: &GroupName) -> Result<()> {
        let path = checkpoint::path(self, group);
        if !self.home.exists(&path)? {
            return Err(Error::NoGroup(group.clone()));
        }
        let _holder = Holder::take(self, group)?;
        // One whose checkpoint can't be read can be deleted all the same.
        let _checkpoint = match Checkpoint::take(self, group, COMMIT_PATIENCE) {
            Err(busy @ Error::Busy { .. }) => return Err(busy),
            taken => taken.ok(),
        };
        let dir = self.home.groups_dir();
        // The checkpoint goes first: without it there is no group.
        for name in
            [file_name::checkpoint(group), file_name::history(group), file_name::holder(group)]
        {
            let path = dir.join(name);
            match self.home.disk().remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::io("remove", &path)(error));
                }
                _ => {}
            }
        }
        self.home.sync_dir(&dir)
    }
}
