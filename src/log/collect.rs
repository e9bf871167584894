//! Deleting what every group is done with: a plan first, then the deed. The new
//! log start is stored durably before the first file goes, so a crash in between
//! leaves files that no reader sees and the next gc removes.

use super::error::{Error, Result};
use crate::disk::{Access, LockMode};
use crate::format::file_name;
use crate::format::state::StartState;
use crate::log::files::lock::AppendLock;
use crate::log::files::slot_file::SlotFile;
use crate::log::find::table_file;
use crate::log::groups::status::GroupsLock;
use crate::log::{Appender, Log};
use crate::model::{Offset, Timestamp};
use crate::policy::retention::{Fate, GroupPosition, plan};

/// What gc will do, or did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    /// The fate of each segment, oldest first.
    pub fates: Vec<Fate>,
    /// The groups that it was made for.
    pub groups: Vec<GroupPosition>,
}

impl Collection {
    /// The segments that go, or went.
    pub fn deleted(&self) -> impl Iterator<Item = &Fate> {
        self.fates.iter().filter(|fate| fate.reason.deletes())
    }

    /// The log start after this plan: the first segment that stays.
    fn start(&self) -> Option<Offset> {
        let stays = |fate: &&Fate| !fate.reason.deletes();
        self.fates.iter().find(stays).map(|fate| fate.segment.base)
    }
}

impl Log {
    /// What [`Log::collect`] would delete.
    ///
    /// # Errors
    /// [`Error::Damage`]; [`Error::Unreadable`] for a damaged checkpoint; what the disk says.
    pub fn plan_collection(&self) -> Result<Collection> {
        self.plan_for(self.group_positions()?)
    }

    fn plan_for(&self, groups: Vec<GroupPosition>) -> Result<Collection> {
        let (segments, damage) = self.segments()?;
        if let Some(damage) = damage {
            return Err(damage.into());
        }
        Ok(Collection { fates: plan(segments, &groups), groups })
    }

    /// Seals the active segment first: if it is past its age, or in any case with `roll`.
    ///
    /// # Errors
    /// What the disk says.
    pub fn seal_active(&self, roll: bool, now: Timestamp) -> Result<()> {
        let mut appender = Appender::open(self)?;
        if roll { appender.seal() } else { appender.seal_if_old(now) }
    }

    /// Deletes the sealed segments that every group is done with, oldest first, and
    /// says what went and why the rest stayed.
    ///
    /// # Errors
    /// As [`Log::plan_collection`]; [`Error::Busy`] while checkpoints are being
    /// placed; what the disk says, at the first file that can't be removed.
    pub fn collect(&self) -> Result<Collection> {
        let alone = GroupsLock::take(self, LockMode::Exclusive)?;
        let mut plan = self.plan_collection()?;
        let old = self.start()?;
        if plan.start() > Some(old) {
            // That plan trusts checkpoints that a power cut could still take back.
            plan = self.plan_for(self.settle_groups()?)?;
        }
        let start = plan.start().unwrap_or(old);
        if start > old {
            self.store_start(start)?;
        } else if self.home.list_segments()?.first().is_some_and(|&base| base < start) {
            // Leftovers of a gc that was killed, perhaps before its log start was durable.
            self.settle_start()?;
        }
        self.remove_leftovers(&alone)?;
        drop(alone);
        let doomed = plan.deleted().map(|fate| fate.segment.base);
        if self.remove(doomed.collect(), old)? > 0 {
            self.home.sync_dir(self.home.dir())?;
            self.refresh_table()?;
        }
        // Derived: what stays is in nobody's way.
        let _ = self.collect_keys(start);
        Ok(plan)
    }

    fn store_start(&self, start: Offset) -> Result<()> {
        let path = self.home.path(file_name::START);
        let state = StartState { log: self.id, start };
        match self.open_start(Access::ReadWrite)? {
            Some(mut file) => {
                // The slot that is written over must not be the only durable one.
                file.sync()?;
                file.store(state)?;
                file.sync()
            }
            None => SlotFile::create(&self.home, &path, &state),
        }
    }

    /// Makes durable what `start` says now.
    fn settle_start(&self) -> Result<()> {
        let path = self.home.path(file_name::START);
        SlotFile::<StartState>::open(&self.home, &path, Access::ReadWrite)?.sync()
    }

    /// Removes the segments that the plan named, and what an earlier gc left below
    /// `old`, the log start before this one; says how many.
    fn remove(&self, mut doomed: Vec<Offset>, old: Offset) -> Result<usize> {
        let leftovers = self.home.list_segments()?.into_iter().take_while(|&base| base < old);
        doomed.splice(0..0, leftovers);
        for &base in &doomed {
            for name in [file_name::segment(base), file_name::index(base)] {
                let path = self.home.path(name);
                match self.home.disk().remove_file(&path) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(Error::io("remove", &path)(error));
                    }
                    _ => {}
                }
            }
        }
        Ok(doomed.len())
    }

    /// So that the next reader need not list the directory; not worth waiting for.
    fn refresh_table(&self) -> Result<()> {
        let Some(lock) = AppendLock::to_mend(&self.home)? else { return Ok(()) };
        if let Some(_held) = lock.try_acquire(LockMode::Exclusive)? {
            let _ = table_file::refresh(self);
        }
        Ok(())
    }
}
