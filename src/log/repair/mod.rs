//! Mending a log: keeps every good record, sets aside what is damaged, leaves a gap in
//! the place of what is lost, and makes the rest anew. Nothing is deleted, and each step
//! is one that a crash leaves done or undone, so that the next run goes on from there.
//!
//! ```text
//! state files set aside ── strangers set aside ── broken end sealed ── per segment:
//!     copy bad bytes to quarantine ── write the segment anew ── check it ── put it in place
//! ── recover the tail ── indexes and table ── what a crash left half made ── bad lines
//! ```

pub(crate) mod log_json;
mod rewrite;

use std::path::Path;
use std::time::Duration;

use super::error::{Error, Result};
use super::find::{index_upkeep, table_file};
use super::groups::checkpoint::{self, Checkpoint};
use super::groups::status::GroupsLock;
use super::verify::chain::Chain;
use super::verify::finding::{Action, Finding, Kind};
use super::verify::identity::another_logs;
use super::{Log, Verification};
use crate::disk::{Access, Entry, LockMode};
use crate::format::file_name;
use crate::format::state::{EndState, Mark};
use crate::log::files::lock::AppendLock;
use crate::log::files::quarantine;
use crate::log::files::slot_file::SlotFile;
use crate::log::keys::directory::KeysLock;
use crate::log::write::prepare::{WriterState, create_segment};
use crate::model::{Offset, Position, Timestamp};

/// What a repair found, and what the log is like after it.
#[derive(Clone, Debug)]
pub struct Repair {
    /// What was found before.
    pub before: Verification,
    /// What is found now.
    pub after: Verification,
}

impl Log {
    /// Mends the log. Writers wait meanwhile; readers go on.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if `log.json` is another log's, which [`Log::restore`] mends; as
    /// [`Log::verify`]. What was mended until then stays so, and another run goes on.
    pub fn repair(&self, now: Timestamp, watch: &mut dyn FnMut(u64)) -> Result<Repair> {
        let before = self.verify(watch)?;
        let settings = self.home.path(file_name::SETTINGS);
        if before.findings.iter().any(|found| found.file == settings) {
            return Err(another_logs(&self.home));
        }
        all_read(&before)?;
        let needs_mending = before.findings.iter().any(is_mendable);
        if needs_mending {
            self.mend(&before.findings, now)?;
        }
        let alone = GroupsLock::take(self, LockMode::Exclusive)?;
        self.remove_leftovers(&alone)?;
        self.mend_slots(&before.findings, &alone)?;
        drop(alone);
        let after = if needs_mending { self.verify(watch)? } else { before.clone() };
        Ok(Repair { before, after })
    }

    /// What only whoever appends may change.
    fn mend(&self, findings: &[Finding], now: Timestamp) -> Result<()> {
        // What is no lock is held by nobody.
        let lock = self.home.path(file_name::LOCK);
        self.displace_bad_state(findings.iter().filter(|found| found.file == lock))?;
        let rest = findings.iter().filter(|found| found.file != lock);
        let lock = AppendLock::of(&self.home)?;
        let _held = lock.acquire(&self.home)?;
        self.displace_bad_state(rest)?;
        let (chain, found) = self.examine(|| Ok(self.look_at_end()?.0), &mut |_| ())?;
        all_read(&found)?;
        self.displace_bad_keys(&found.findings)?;
        self.mend_segments(&chain, now)?;
        // As a writer would: the torn tail, `start` and `end`.
        let mut writer = WriterState::prepare(self)?;
        if has_bad_slot(findings, &self.home.path(file_name::END)) {
            writer.end.write_again()?;
        }
        self.mend_derived(&found.findings)
    }

    /// Writes the bad one of two lines, where nobody else is about to.
    fn mend_slots(&self, findings: &[Finding], _alone: &GroupsLock) -> Result<()> {
        if has_bad_slot(findings, &self.home.path(file_name::START))
            && let Some(mut start) = self.open_start(Access::ReadWrite)?
        {
            start.write_again()?;
        }
        for group in self.group_names()? {
            if !has_bad_slot(findings, &checkpoint::path(self, &group)) {
                continue;
            }
            match Checkpoint::take(self, &group, Duration::ZERO) {
                Ok(Some(mut checkpoint)) => {
                    checkpoint.repeat()?;
                    checkpoint.sync()?;
                }
                // Whoever holds it writes it.
                Ok(None) | Err(Error::Busy { .. } | Error::CommitsItself { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sets aside `start` or `end` of which no line is good, so that they are made anew.
    fn displace_bad_state<'a>(&self, findings: impl Iterator<Item = &'a Finding>) -> Result<()> {
        for found in findings.filter(|found| found.kind == Kind::State) {
            quarantine::displace(&self.home, &found.file, &found.what)?;
        }
        Ok(())
    }

    /// Sets aside what stands in the place of `keys/` or of one of its tables and is no
    /// directory, or no file: the index is made anew beside it.
    fn displace_bad_keys(&self, findings: &[Finding]) -> Result<()> {
        let keys = self.home.keys_dir();
        for found in findings.iter().filter(|found| found.kind == Kind::Derived) {
            if found.file == keys {
                if !matches!(self.home.entry(&keys)?, None | Some(Entry::Directory)) {
                    quarantine::displace(&self.home, &keys, &found.what)?;
                }
            } else if found.file.starts_with(&keys) {
                let _alone = KeysLock::take(self)?;
                if !matches!(self.home.entry(&found.file)?, None | Some(Entry::File { .. })) {
                    quarantine::displace(&self.home, &found.file, &found.what)?;
                }
            }
        }
        Ok(())
    }

    fn mend_segments(&self, chain: &Chain, now: Timestamp) -> Result<()> {
        let broken = || chain.stretches.iter().filter(|stretch| !stretch.is_whole());
        if chain.strangers.is_empty() && broken().next().is_none() {
            return Ok(());
        }
        table_file::remove(&self.home)?;
        // Durably, as its rows would be believed of a segment that was replaced.
        self.home.sync_dir(self.home.dir())?;
        // Its tables may know of records that are lost.
        let _keys = self.forget_keys(broken().map(|stretch| stretch.base..stretch.next))?;
        for &base in &chain.strangers {
            let why = "a segment of which nothing belongs there";
            quarantine::displace(&self.home, &self.home.segment_path(base), why)?;
        }
        if chain.broken_end().is_some_and(|last| last.base < chain.end) {
            self.seal_broken_end(chain)?;
        } else if let (Some(last), Some(end)) = (chain.stretches.last(), self.end_state()?)
            && end.written.segment < last.base
        {
            // An earlier run was killed right after it had made this segment.
            self.begin_at(last.base, Timestamp::default())?;
        }
        for stretch in broken() {
            rewrite::rewrite(self, stretch, chain.time_before(stretch.base), now)?;
            if self.home.exists(&self.home.path(file_name::index(stretch.base)))? {
                index_upkeep::make_anew(self, stretch.base)?;
            }
        }
        Ok(())
    }

    /// Begins a new segment where the damaged active one has to end, so that it can be
    /// replaced as a sealed one. All before that place counts as safe from here on, so
    /// that what is missing of it can't be taken for a torn tail.
    fn seal_broken_end(&self, chain: &Chain) -> Result<()> {
        let Some(last) = chain.stretches.last().filter(|last| last.is_there) else {
            return self.begin_at(chain.end, Timestamp::default());
        };
        let file = self.home.open_segment(last.base, Access::ReadWrite)?;
        let path = self.home.segment_path(last.base);
        file.sync_data().map_err(Error::io("sync", path))?;
        self.begin_at(chain.end, last.facts.last_time.unwrap_or_default())
    }

    /// Makes the segment at `base` the active one.
    fn begin_at(&self, base: Offset, last_time: Timestamp) -> Result<()> {
        if !self.home.exists(&self.home.segment_path(base))? {
            create_segment(self, base)?;
        }
        let old = self.open_end(Access::ReadWrite)?;
        let beginning = Mark::beginning_of(base);
        let time = old.as_ref().map_or(last_time, |end| end.state().time.max(last_time));
        let state = EndState {
            log: self.id,
            boot: self.home.disk().boot_id().unwrap_or_default(),
            written: beginning,
            last_batch: Position::ZERO,
            durable: beginning,
            time,
            suspect: false,
        };
        match old {
            Some(mut end) => {
                end.store(state.clone())?;
                end.sync()?;
                // The older line goes too, as it speaks of the segment before.
                end.store(state)?;
                end.sync()
            }
            None => SlotFile::create(&self.home, &self.home.path(file_name::END), &state),
        }
    }

    fn mend_derived(&self, findings: &[Finding]) -> Result<()> {
        for found in findings.iter().filter(|found| found.kind == Kind::Derived) {
            let name = found.file.file_name().unwrap_or_default();
            match (file_name::parse_index(name), file_name::parse_key_table(name)) {
                (Some(base), _) => drop(index_upkeep::make_anew(self, base)?),
                (None, Some(range)) => drop(self.forget_keys([range])?),
                (None, None) if found.file == self.home.keys_dir() => {}
                (None, None) => table_file::remove(&self.home)?,
            }
        }
        table_file::refresh(self)
    }
}

/// Nobody knows what a file holds that can't be read, so nothing is mended around it.
fn all_read(found: &Verification) -> Result<()> {
    match found.findings.iter().find(|found| found.kind == Kind::Unread) {
        None => Ok(()),
        Some(found) => {
            Err(Error::io("mend", &found.file)(std::io::Error::other(found.what.clone())))
        }
    }
}

fn has_bad_slot(findings: &[Finding], path: &Path) -> bool {
    findings.iter().any(|found| found.kind == Kind::Slot && found.file == path)
}

fn is_mendable(found: &Finding) -> bool {
    !matches!(found.kind.action(), Action::None | Action::Seek)
}
