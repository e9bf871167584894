//! One segment written anew: the good batches as they are, gaps for what is lost. The
//! new file is whole, synced and checked before it takes the old one's name.

use serde::Serialize;

use crate::disk::DiskFile;
use crate::format::batch::GapReason;
use crate::format::file_name;
use crate::log::Log;
use crate::log::error::{Error, Result};
use crate::log::files::quarantine::{self, Piece};
use crate::log::find::tail::open_if_there;
use crate::log::replacement::Replacement;
use crate::log::verify::stretch::Stretch;
use crate::model::{Offset, Position, Timestamp};
use crate::segment::{BadBytes, Found, NewBatch, Salvage, SegmentReader};

/// Puts a whole segment in place of the one of `stretch`, whose bad bytes are kept in
/// quarantine. No record before it was appended later than `last_time`.
pub(crate) fn rewrite(
    log: &Log,
    stretch: &Stretch,
    last_time: Timestamp,
    now: Timestamp,
) -> Result<()> {
    let old = open_if_there(&log.home, stretch.base)?;
    if let Some(old) = &old {
        for bad in &stretch.bad {
            set_aside(log, stretch, old.as_ref(), bad, now)?;
        }
    }
    let new = Replacement::begin(log, stretch.base, log.home.dir(), old.as_deref())?;
    let mut copy = Copy { new, time: last_time };
    copy.all_of(log, old, stretch)?;
    copy.new.finish()?.put_in_place()
}

/// What is known of bytes that were set aside.
#[derive(Serialize)]
struct NoteOn {
    file: String,
    position: Position,
    bytes: u64,
    first: Offset,
    next: Offset,
    why: String,
    set_aside: Timestamp,
}

fn set_aside(
    log: &Log,
    stretch: &Stretch,
    file: &dyn DiskFile,
    bad: &BadBytes,
    now: Timestamp,
) -> Result<()> {
    let position = bad.bad.position;
    let piece = Piece { file, from: position, to: bad.end };
    let kept = quarantine::keep(&log.home, &piece, |attempt| {
        file_name::damaged(stretch.base, position, attempt)
    })?;
    let note = NoteOn {
        file: file_name::segment(stretch.base),
        position,
        bytes: bad.end.since(position),
        first: bad.bad.offset,
        next: bad.next.unwrap_or(stretch.next),
        why: bad.bad.reason.to_string(),
        set_aside: now,
    };
    quarantine::note(&log.home, &kept, &serde_json::to_string(&note).unwrap_or_default())
}

/// The good batches of a segment, on their way to its new file.
struct Copy<'a> {
    new: Replacement<'a>,
    time: Timestamp,
}

impl Copy<'_> {
    fn all_of(
        &mut self,
        log: &Log,
        old: Option<Box<dyn DiskFile>>,
        stretch: &Stretch,
    ) -> Result<()> {
        if let Some(old) = old {
            let path = log.home.segment_path(stretch.base);
            let reader =
                SegmentReader::new(old, log.id, stretch.base, Position::ZERO, stretch.base);
            let mut salvage = Salvage::new(reader, log.id, stretch.length);
            while let Some(found) = salvage.find().map_err(Error::io("read", &path))? {
                if let Found::Batch(header, _) = found {
                    self.gap_to(header.base)?;
                    self.new.append(&NewBatch::as_it_is(&header, salvage.last_body()))?;
                    self.time = self.time.max(header.append_time);
                }
            }
        }
        self.gap_to(stretch.next)
    }

    /// Says that the offsets up to `next` are missing: in as many gaps as that takes.
    fn gap_to(&mut self, next: Offset) -> Result<()> {
        while self.new.next() < next {
            let gap = NewBatch::gap(self.new.next(), next, GapReason::Damaged, self.time);
            self.new.append(&gap)?;
        }
        Ok(())
    }
}
