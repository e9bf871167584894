//! Reading on behind damage, for a user who asked for it: each damaged place is told,
//! counted, and passed to the next good batch.

use super::Log;
use super::error::{Damage, Error, Result};
use super::note::Note;
use super::read::{Place, Reader};
use crate::format::state::EndState;
use crate::model::{Offset, Position};
use crate::segment::{Salvage, SegmentReader};

/// Damage that was passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skipped {
    /// How many places.
    pub places: u64,
    /// How many offsets were lost with them, as far as something good follows.
    pub offsets: u64,
}

impl Skipped {
    /// Adds what another reader passed.
    pub fn add(&mut self, other: Skipped) {
        self.places += other.places;
        self.offsets += other.offsets;
    }
}

/// What a reader that may pass damage knows of it.
#[derive(Debug, Default)]
pub(super) struct Skip {
    so_far: Skipped,
    /// Met again and again at the log's end.
    last: Option<Damage>,
    /// `end` is no good, and that was told.
    told_of_end: bool,
}

impl Reader {
    /// Reads `log` from `offset` on and passes damage instead of ending with it, be it
    /// that the segment to begin in is missing.
    ///
    /// # Errors
    /// As [`Reader::open`], but for damage.
    pub fn open_skipping(log: &Log, offset: Offset) -> Result<Reader> {
        let mut reader = match Reader::open(log, offset) {
            Err(Error::Damage(_)) => Reader::at(log, Place::Before(offset), offset),
            opened => opened?,
        };
        reader.skip_damage();
        Ok(reader)
    }

    /// Lets this reader pass damage from here on.
    pub fn skip_damage(&mut self) {
        self.skip.get_or_insert_default();
    }

    /// The damage that was passed so far.
    pub fn skipped(&self) -> Skipped {
        self.skip.as_ref().map_or(Skipped::default(), |skip| skip.so_far)
    }

    /// Passes the damage that `error` tells of, if that is what it is and it may be
    /// passed; says whether there is more to read behind it.
    pub(super) fn pass_damage(&mut self, error: Error) -> Result<bool> {
        match error {
            Error::Damage(damage) | Error::BatchTooLarge(damage) if self.skip.is_some() => {
                let to = self.go_on_behind(&damage)?;
                self.note(damage, to);
                Ok(to.is_some())
            }
            error => Err(error),
        }
    }

    /// Passes a segment that begins in the midst of the one that is read, if that may be.
    pub(super) fn pass_stranger(&mut self, damage: Damage, at: Offset) -> Result<()> {
        if self.skip.is_none() {
            return Err(damage.into());
        }
        self.note(damage, Some(at));
        Ok(())
    }

    /// Goes on as if `end` were missing, if it is no good and damage may be passed.
    pub(super) fn pass_bad_state(&mut self, error: Error) -> Result<Option<EndState>> {
        let offset = self.next_offset();
        let (Some(skip), Error::Unreadable { path, what }) = (&mut self.skip, &error) else {
            return Err(error);
        };
        if !std::mem::replace(&mut skip.told_of_end, true) {
            let (path, what) = (path.clone(), what.clone());
            self.note(Damage { path, position: Position::ZERO, offset, what }, Some(offset));
        }
        Ok(None)
    }

    fn note(&mut self, damage: Damage, to: Option<Offset>) {
        let Some(skip) = self.skip.as_mut().filter(|skip| skip.last.as_ref() != Some(&damage))
        else {
            return;
        };
        skip.so_far.places += 1;
        skip.so_far.offsets += to.map_or(0, |to| to.since(damage.offset));
        skip.last = Some(damage.clone());
        self.log.home.tell(&Note::SkippedDamage { damage, to });
    }

    /// Goes to the next good batch of the segment, or else to the next segment; says at
    /// which offset that is, `None` if there is neither.
    fn go_on_behind(&mut self, damage: &Damage) -> Result<Option<Offset>> {
        let base = match std::mem::replace(&mut self.place, Place::Before(damage.offset)) {
            Place::Before(base) => base,
            // What is damaged is that the segment after this one is missing.
            Place::In(reader) if self.log.home.segment_path(reader.segment()) != damage.path => {
                reader.segment()
            }
            Place::In(reader) => {
                let (base, position) = (reader.segment(), damage.position);
                let (found, reader) = pass(&self.log, reader, position, damage.offset)?;
                self.place = Place::In(reader);
                if found.is_some() {
                    return Ok(found);
                }
                base
            }
        };
        let later = self.log.home.list_segments()?.into_iter().find(|&later| later > base);
        if let Some(later) = later {
            self.enter(later)?;
        }
        Ok(later)
    }
}

/// Passes bad bytes at `position` of a segment, where `offset` was expected; says which
/// offset follows, `None` if the segment holds nothing more.
fn pass(
    log: &Log,
    reader: SegmentReader,
    position: Position,
    offset: Offset,
) -> Result<(Option<Offset>, SegmentReader)> {
    if position < reader.position() {
        // The reader has stepped over the batch, as its header was good.
        return Ok((Some(reader.next_offset()), reader));
    }
    let path = log.home.segment_path(reader.segment());
    let length = reader.file().size().map_err(Error::io("read", &path))?;
    let mut salvage = Salvage::new(reader, log.id, Position::new(length));
    let found = salvage.pass(position, offset).map_err(Error::io("read", &path))?;
    Ok((found, salvage.into_reader()))
}
