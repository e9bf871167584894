//! Consuming as a group, one process at a time; making a group; committing by hand.

use super::checkpoint::{self, COMMIT_PATIENCE, Checkpoint, Progress};
use super::holder::{self, Holder};
use super::status::GroupsLock;
use crate::disk::LockMode;
use crate::format::state::CheckpointState;
use crate::log::error::{Error, Result};
use crate::log::{Bounds, Log, Note, OutOfRange};
use crate::model::{GroupName, Offset, Start, Timestamp};

/// How a group is to be consumed.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Where a group begins that is new.
    pub start: Start,
    /// Where to go on if the checkpoint is outside the log: earliest or latest.
    pub out_of_range: Option<Start>,
    /// Whether this consumer moves the checkpoint, and nobody else may meanwhile.
    pub commits: bool,
    /// Who this is, in words for whoever finds the group held.
    pub holder: String,
}

/// The right to consume a group.
#[derive(Debug)]
pub struct Consumer {
    log: Log,
    group: GroupName,
    checkpoint: Option<Checkpoint>,
    position: Offset,
    stored: Timestamp,
    /// Held for as long as this lives.
    _holder: Holder,
}

impl Consumer {
    /// Takes the group, making it if it is new.
    ///
    /// # Errors
    /// [`Error::Busy`] if another process has it; [`OutOfRange`] if the log no longer
    /// holds its checkpoint; [`Error::Unreadable`] if that is damaged; what the disk says.
    pub fn claim(log: &Log, group: &GroupName, claim: &Claim, now: Timestamp) -> Result<Consumer> {
        let holder = Holder::take(log, group)?;
        holder.describe(&claim.holder);
        if checkpoint::read(log, group)?.is_none() {
            make_group(log, group, claim.start, now)?;
        }
        let Some(mut checkpoint) = Checkpoint::take(log, group, COMMIT_PATIENCE)? else {
            return Err(Error::NoGroup(group.clone()));
        };
        if let Some(to) = outside(log, checkpoint.state(), claim.out_of_range)? {
            log.home.tell(&Note::Moved {
                group: group.clone(),
                from: checkpoint.next(),
                to: to.next,
            });
            checkpoint.store(log, to, now)?;
            checkpoint.sync()?;
        }
        if claim.commits {
            checkpoint.repeat()?;
        }
        Ok(Consumer {
            log: log.clone(),
            group: group.clone(),
            position: checkpoint.next(),
            stored: checkpoint.state().stored,
            checkpoint: claim.commits.then_some(checkpoint),
            _holder: holder,
        })
    }

    /// The group.
    pub fn group(&self) -> &GroupName {
        &self.group
    }

    /// Whether it moves the checkpoint.
    pub fn commits(&self) -> bool {
        self.checkpoint.is_some()
    }

    /// Where the group goes on.
    pub fn position(&self) -> Offset {
        self.position
    }

    /// When the checkpoint that was found had been stored.
    pub fn found_stored(&self) -> Timestamp {
        self.stored
    }

    /// Stores `next` as the checkpoint; a power cut may take it back until
    /// [`sync`](Self::sync). `before` is the append time of the record before it.
    /// Does nothing for a consumer that does not commit.
    ///
    /// # Errors
    /// What the disk says.
    pub fn commit(&mut self, next: Offset, before: Timestamp, now: Timestamp) -> Result<()> {
        let Some(checkpoint) = &mut self.checkpoint else { return Ok(()) };
        checkpoint.store(&self.log, Progress { next, before: Some(before) }, now)?;
        self.position = next;
        Ok(())
    }

    /// Makes the checkpoint durable.
    ///
    /// # Errors
    /// What the disk says.
    pub fn sync(&mut self) -> Result<()> {
        let Some(checkpoint) = &mut self.checkpoint else { return Ok(()) };
        checkpoint.sync()?;
        checkpoint.repeat()
    }
}

/// Where to go on if the log no longer holds the checkpoint and the user chose a place.
fn outside(log: &Log, state: &CheckpointState, chosen: Option<Start>) -> Result<Option<Progress>> {
    let bounds = log.bounds()?;
    match (checkpoint::check(log, state, &bounds), chosen) {
        (Err(Error::OutOfRange(_)), Some(start)) => {
            progress(log, log.resolve(start)?, &bounds).map(Some)
        }
        (checked, _) => checked.map(|()| None),
    }
}

fn progress(log: &Log, next: Offset, bounds: &Bounds) -> Result<Progress> {
    Ok(Progress { next, before: checkpoint::time_before(log, next, bounds)? })
}

/// Makes a group that begins at `start`, under the lock that gc respects.
pub(crate) fn make_group(
    log: &Log,
    group: &GroupName,
    start: Start,
    now: Timestamp,
) -> Result<Offset> {
    let _shared = GroupsLock::take(log, LockMode::Shared)?;
    let next = log.resolve(start)?;
    let progress = progress(log, next, &log.bounds()?)?;
    checkpoint::create(log, group, progress, now)?;
    log.home.tell(&Note::NewGroup { group: group.clone(), next });
    Ok(next)
}

/// Tells whoever commits by hand that the consumer does it already.
fn by_hand(log: &Log, group: &GroupName, error: Error) -> Error {
    match (error, holder::name(log, group)) {
        (Error::Busy { .. }, Some(holder)) => Error::CommitsItself { group: group.clone(), holder },
        (error, _) => error,
    }
}

impl Log {
    /// Stores a checkpoint by hand, durably, making the group if it is new.
    ///
    /// # Errors
    /// [`OutOfRange`] outside the log or behind the checkpoint; [`Error::CommitsItself`]
    /// or [`Error::Busy`] while another process moves it; what the disk says.
    pub fn commit(&self, group: &GroupName, next: Offset, now: Timestamp) -> Result<()> {
        let taken = Checkpoint::take(self, group, COMMIT_PATIENCE);
        let Some(mut checkpoint) = taken.map_err(|error| by_hand(self, group, error))? else {
            return make_group(self, group, Start::At(next), now).map(drop);
        };
        let bounds = self.bounds()?;
        if next < checkpoint.next() {
            let at = checkpoint.next();
            return Err(
                OutOfRange::CommitBack { group: group.clone(), next: at, offset: next }.into()
            );
        }
        bounds.check(next)?;
        checkpoint.store(self, progress(self, next, &bounds)?, now)?;
        checkpoint.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk;
    use crate::log::fixture::fixture;

    #[test]
    fn what_is_stored_in_a_removed_checkpoint_is_never_called_durable() {
        let fixture = fixture(1 << 20);
        fixture.append(3);
        let (group, now) = ("g".parse().unwrap(), Timestamp::from_millis(0));
        let (start, holder) = (Start::At(Offset::ZERO), String::new());
        let claim = Claim { start, out_of_range: None, commits: true, holder };
        let mut consumer = Consumer::claim(&fixture.log, &group, &claim, now).unwrap();
        consumer.commit(Offset::new(1), now, now).unwrap();
        consumer.sync().unwrap();
        fixture.disk.remove_file(&checkpoint::path(&fixture.log, &group)).unwrap();
        consumer.commit(Offset::new(2), now, now).unwrap();
        let synced = consumer.sync();
        assert!(matches!(&synced, Err(Error::NoGroup(named)) if *named == group), "{synced:?}");
    }
}
