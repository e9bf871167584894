//! The rules of a log: what a directory of segments, checkpoints and small state
//! files means, who may change what under which lock, and what is promised.
//! Everything here returns values and typed errors; it prints nothing and reads no
//! clock.
//!
//! Reading the code: `write/append` and `read` are the main job, `find/tail` and
//! `write/recover` what happens after a crash, `groups` and `collect` who is done
//! with what.

mod collect;
mod compact;
mod create;
mod error;
mod files;
mod find;
#[cfg(test)]
mod fixture;
mod groups;
mod home;
mod keys;
mod leftovers;
mod note;
mod read;
mod read_back;
mod repair;
mod replacement;
mod segments;
mod skip;
mod verify;
mod write;

pub use collect::Collection;
pub use compact::{Compaction, CompactionFate, CompactionTerms, Outcome};
pub use error::{Damage, Error, OutOfRange, Result};
pub use groups::consumer::{Claim, Consumer};
pub use groups::seek::{Move, SeekTarget};
pub use groups::status::{BadGroup, GroupListing, GroupStatus};
pub use home::Home;
pub use keys::{DeadOffsets, Fetch, Fetched, Found, KeyIndex, Lookup, Places};
pub use note::Note;
pub use read::{Piece, Reader, Reading, Stored};
pub use read_back::{BackReader, Block};
pub use repair::Repair;
pub use segments::SegmentListing;
pub use skip::Skipped;
pub use verify::Verification;
pub use verify::finding::{Action, Finding, Kind};
pub use write::append::Appender;
pub use write::unique::Placed;
pub use write::writer::Appended;

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::disk::Access;
use crate::format::file_name;
use crate::format::settings::Settings;
use crate::format::state::{EndState, StartState};
use crate::model::{LogId, Offset, Start, Timestamp};
use files::lock::AppendLock;
use files::slot_file::SlotFile;
use find::last;
use find::locate;
use find::table::SegmentTable;
use find::tail::{self, Tail};

/// An open log. Cheap to clone; holds no file open.
#[derive(Clone, Debug)]
pub struct Log {
    home: Home,
    id: LogId,
    settings: Settings,
}

/// The offsets that a log holds: from `start` to before `end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The log start.
    pub start: Offset,
    /// The log end.
    pub end: Offset,
    /// The durable mark.
    pub durable: Offset,
    /// Damage at `end`: there should be more.
    pub damage: Option<Damage>,
}

impl Log {
    /// Where it lives.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Its id.
    pub fn id(&self) -> LogId {
        self.id
    }

    /// Its settings as they were when it was opened.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The log start: from `start`, or from the segments where that is missing.
    ///
    /// # Errors
    /// What the disk says.
    pub fn start(&self) -> Result<Offset> {
        if let Some(start) = self.stored_start()? {
            return Ok(start);
        }
        self.home.tell(&Note::Rebuilt(self.home.path(file_name::START)));
        Ok(self.home.list_segments()?.first().copied().unwrap_or(Offset::ZERO))
    }

    /// Writes `start` anew where it is missing. The caller holds the append lock.
    fn keep_start(&self) -> Result<()> {
        if self.stored_start()?.is_some() {
            return Ok(());
        }
        let start = self.start()?;
        let path = self.home.path(file_name::START);
        SlotFile::create(&self.home, &path, &StartState { log: self.id, start })
    }

    /// What `start` says; `None` if it is missing.
    fn stored_start(&self) -> Result<Option<Offset>> {
        Ok(self.open_start(Access::Read)?.map(|file| file.state().start))
    }

    fn open_start(&self, access: Access) -> Result<Option<SlotFile<StartState>>> {
        self.open_state(file_name::START, access, |start: &StartState| start.log)
    }

    /// Log start, log end and durable mark. Where the end is damaged, the log
    /// reaches to the damage.
    ///
    /// # Errors
    /// What the disk says.
    pub fn bounds(&self) -> Result<Bounds> {
        let (end, durable, damage) = match self.tail().and_then(|tail| self.reaches_all(tail)) {
            Ok(tail) => (tail.mark.offset, tail.durable.offset, None),
            Err(Error::Damage(damage)) => {
                let durable = self.end_state()?.map_or(damage.offset, |end| end.durable.offset);
                (damage.offset, durable, Some(damage))
            }
            Err(error) => return Err(error),
        };
        // Read after the end, so that it can't lie beyond it.
        let start = self.start()?.min(end);
        Ok(Bounds { start, end, durable, damage })
    }

    /// The end that was found, unless a segment lies beyond it that nothing leads to.
    fn reaches_all(&self, mut tail: Tail) -> Result<Tail> {
        const LOOKS: usize = 3;
        for _ in 0..LOOKS {
            if SegmentTable::load(self)?.active <= tail.mark.offset {
                return Ok(tail);
            }
            // Made meanwhile, unless it stays beyond the end.
            tail = self.tail()?;
        }
        Err(tail::missing_segment(&self.home, tail.mark.offset, tail.mark.offset))
    }

    /// The offset that `start` means now.
    ///
    /// # Errors
    /// [`OutOfRange`] for an offset that the log does not hold; as [`Log::bounds`].
    pub fn resolve(&self, start: Start) -> Result<Offset> {
        if start == Start::Earliest {
            // Whatever the log's end is like.
            return self.start();
        }
        let bounds = self.bounds()?;
        let offset = match start {
            Start::Earliest => bounds.start,
            Start::Latest => bounds.end,
            Start::At(offset) => offset,
            Start::Last(records) => last::offset_of_last(self, records, &bounds)?,
            Start::AfterStart(records) => bounds.start.forward(records).unwrap_or(Offset::MAX),
            Start::Time(time) => self.first_at(time, &bounds)?,
        };
        match (bounds.check(offset), bounds.damage) {
            (Ok(()), _) => Ok(offset),
            (Err(OutOfRange::BeyondEnd { .. }), Some(damage)) => Err(damage.into()),
            (Err(error), _) => Err(error.into()),
        }
    }

    /// The first offset whose record was appended at or after `time`; the log end
    /// if there is none.
    fn first_at(&self, time: Timestamp, bounds: &Bounds) -> Result<Offset> {
        Ok(locate::first_at(self, time)?.clamp(bounds.start, bounds.end))
    }

    /// What `end` says; `None` if it is missing.
    fn end_state(&self) -> Result<Option<EndState>> {
        Ok(self.open_end(Access::Read)?.map(|file| file.state().clone()))
    }

    fn open_end(&self, access: Access) -> Result<Option<SlotFile<EndState>>> {
        self.open_state(file_name::END, access, |end: &EndState| end.log)
    }

    /// A two-slot file of the log's own state; `None` if it is missing. One that is no
    /// good, or another log's, is never worked out anew: that would forget what it said.
    fn open_state<T: Serialize + DeserializeOwned + Clone>(
        &self,
        name: &str,
        access: Access,
        log: impl FnOnce(&T) -> LogId,
    ) -> Result<Option<SlotFile<T>>> {
        let path = self.home.path(name);
        let what = match SlotFile::open(&self.home, &path, access) {
            Ok(file) if log(file.state()) == self.id => return Ok(Some(file)),
            Ok(_) => "it belongs to another log".to_owned(),
            Err(Error::Unreadable { what, .. }) => what,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        let what = format!("{what}: run tapelog verify {} --repair", self.home.dir().display());
        Err(Error::Unreadable { path, what })
    }

    /// Finds the end of the log as a reader may: a verdict on the last bytes is given
    /// only when no append is in progress.
    fn tail(&self) -> Result<Tail> {
        const PAUSE: Duration = Duration::from_millis(2);
        const LOOKS: u32 = 500;
        let mut seen = self.look_at_end();
        for _ in 0..LOOKS {
            if matches!(&seen, Ok((tail, _)) if tail.as_written) {
                break;
            }
            let patience = if seen.is_ok() { Duration::ZERO } else { PAUSE };
            let lock = AppendLock::if_there(&self.home)?;
            let held = lock.as_ref().map(|lock| lock.wait_shared(patience)).transpose()?;
            // Had, or not there to be had.
            if held.as_ref().is_none_or(Option::is_some) {
                let (tail, end) = self.look_at_end()?;
                self.tell_of_tail(&tail, end.as_ref());
                return Ok(tail);
            }
            // Somebody appends. What is good so far is the end for now; what looks like
            // damage may be a half of that append, unless it stays.
            if seen.is_ok() {
                break;
            }
            seen = self.look_at_end();
        }
        seen.map(|(tail, _)| tail)
    }

    fn look_at_end(&self) -> Result<(Tail, Option<EndState>)> {
        let end = self.end_state()?;
        if end.is_none() {
            self.home.tell(&Note::Rebuilt(self.home.path(file_name::END)));
        }
        let boot = self.home.disk().boot_id().unwrap_or_default();
        let tail = tail::find(self, end.as_ref(), &boot)?;
        Ok((tail, end))
    }

    fn tell_of_tail(&self, tail: &Tail, end: Option<&EndState>) {
        if tail.torn > 0 {
            let path = self.home.segment_path(tail.mark.segment);
            let (bytes, end) = (tail.torn, tail.mark.offset);
            self.home.tell(&Note::TornTail { path, bytes, end });
        } else if let Some(lost) = end.and_then(|end| tail.lost(&self.home, end)) {
            self.home.tell(&lost);
        }
    }
}

impl Bounds {
    /// Whether a reader may begin at `offset`.
    ///
    /// # Errors
    /// [`OutOfRange`] if not.
    pub fn check(&self, offset: Offset) -> std::result::Result<(), OutOfRange> {
        let (start, end) = (self.start, self.end);
        if offset < start {
            return Err(OutOfRange::BeforeStart {
                offset,
                start,
                end,
                missing: start.since(offset),
            });
        }
        if offset > end {
            return Err(OutOfRange::BeyondEnd { offset, start, end });
        }
        Ok(())
    }
}
