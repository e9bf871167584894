//! Where the log ends. `end` says where to begin looking, and the segments say
//! what is true: from a place that can be trusted, batch after batch is checked
//! until there is no good one. What stands there, torn or damaged, is judged by
//! [`crate::policy::verdict`]. Nothing is changed here.

use std::ops::ControlFlow;

use crate::disk::{Access, DiskFile};
use crate::format::batch::{Header, Place};
use crate::format::state::{EndState, Mark};
use crate::log::Log;
use crate::log::error::{Damage, Error, Result};
use crate::log::home::Home;
use crate::log::note::Note;
use crate::model::{LogId, Offset, Position, Timestamp};
use crate::policy::verdict::{Surroundings, Verdict, judge};
use crate::segment::{Bad, BadReason, SegmentReader, Step, each_header, header_at};

/// The end of a log, found.
#[derive(Clone, Debug)]
pub(crate) struct Tail {
    /// Where the good batches end.
    pub mark: Mark,
    /// Where the last good batch begins; `mark.position` if the segment is empty.
    pub last_batch: Position,
    /// No record was appended later than this.
    pub time: Timestamp,
    /// The durable mark.
    pub durable: Mark,
    /// Bytes after `mark` that are torn.
    pub torn: u64,
    /// Whether `mark` is exactly what this boot's `end` says, so that nothing needs mending.
    pub as_written: bool,
}

impl Tail {
    /// What to tell of records that `end` speaks of, but that are gone without a trace.
    pub(crate) fn lost(&self, home: &Home, end: &EndState) -> Option<Note> {
        let lost = self.torn == 0 && end.written.offset > self.mark.offset;
        lost.then(|| Note::LostTail {
            path: home.segment_path(self.mark.segment),
            end: self.mark.offset,
            written: end.written.offset,
            bytes: end.written.position.since(self.mark.position),
        })
    }
}

/// Finds the end of `log`, given what `end` says, if anything, and this boot's id.
///
/// # Errors
/// [`Error::Damage`] where safe records are missing or wrong; what the disk says.
pub(crate) fn find(log: &Log, end: Option<&EndState>, boot: &str) -> Result<Tail> {
    let (home, id) = (&log.home, log.id);
    let is_good = match end {
        Some(end) => ends_with_last_batch(home, id, end)?,
        None => false,
    };
    // Where starts of the machine can't be told apart, none is trusted.
    let trusted = end.filter(|end| is_good && end.boot == boot && !boot.is_empty());
    let durable = match (trusted, end) {
        (Some(end), _) => end.durable,
        (None, end) => durable_mark(log, end)?,
    };
    // A last batch that is bad though it was synced: walking over it tells what is wrong.
    let rotten = end.filter(|end| !is_good && end.written == end.durable && end.durable == durable);
    let from = rotten.map_or(durable, |end| Mark::beginning_of(end.written.segment));
    let known = trusted.or(end.filter(|end| is_good && end.written == from));
    let mut tail = Tail {
        mark: trusted.map_or(from, |end| end.written),
        last_batch: known.map_or(from.position, |end| end.last_batch),
        time: end.map_or(Timestamp::default(), |end| end.time),
        durable,
        torn: 0,
        as_written: false,
    };
    walk(home, id, &mut tail)?;
    if tail.last_batch == tail.mark.position && tail.mark.position > Position::ZERO {
        // No batch was met: which one is the last shows only from the beginning.
        tail.mark = Mark::beginning_of(tail.mark.segment);
        walk(home, id, &mut tail)?;
    }
    tail.as_written =
        end.is_some_and(|end| trusted.is_some() && end.written == tail.mark && tail.torn == 0);
    Ok(tail)
}

/// The durable mark. Where a power cut left only an old line of `end`, gc may have
/// removed the segment that it speaks of: all before the log start was safe.
fn durable_mark(log: &Log, end: Option<&EndState>) -> Result<Mark> {
    let said = match end {
        Some(end) => end.durable,
        None => last_segment(&log.home)?,
    };
    let start = log.stored_start()?.unwrap_or(Offset::ZERO);
    Ok(if said.segment < start { Mark::beginning_of(start) } else { said })
}

/// Without `end`: every segment but the last is sealed, so it was synced.
fn last_segment(home: &Home) -> Result<Mark> {
    let bases = home.list_segments()?;
    Ok(Mark::beginning_of(bases.last().copied().unwrap_or(Offset::ZERO)))
}

/// Whether the last batch that `end` speaks of is there and good.
fn ends_with_last_batch(home: &Home, id: LogId, end: &EndState) -> Result<bool> {
    let written = end.written;
    if written.position == Position::ZERO {
        return Ok(true);
    }
    let Some(file) = open_if_there(home, written.segment)? else { return Ok(false) };
    let place = Place { log: id, segment: written.segment, position: end.last_batch };
    let read = |error| Error::io("read", home.segment_path(written.segment))(error);
    let Some(header) = header_at(file.as_ref(), &place).map_err(read)? else { return Ok(false) };
    let mut reader = SegmentReader::new(file, id, written.segment, place.position, header.base);
    let good = matches!(reader.step().map_err(read)?, Step::Batch(_));
    Ok(good && reader.position() == written.position && reader.next_offset() == written.offset)
}

pub(crate) fn open_if_there(home: &Home, base: Offset) -> Result<Option<Box<dyn DiskFile>>> {
    match home.open_segment(base, Access::Read) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Moves `tail` over every good batch from where it stands.
fn walk(home: &Home, id: LogId, tail: &mut Tail) -> Result<()> {
    let Some(file) = open_if_there(home, tail.mark.segment)? else {
        return no_segment(home, tail);
    };
    let length = file.size().map_err(Error::io("read", home.segment_path(tail.mark.segment)))?;
    if length < tail.mark.position.get() {
        // Bytes that were there are gone: only from the beginning is it clear which.
        tail.mark = Mark::beginning_of(tail.mark.segment);
    }
    let mark = tail.mark;
    let mut reader = SegmentReader::new(file, id, mark.segment, mark.position, mark.offset);
    loop {
        let path = home.segment_path(reader.segment());
        match reader.step().map_err(Error::io("read", &path))? {
            Step::Batch(batch) => {
                tail.last_batch = batch.position;
                tail.time = tail.time.max(batch.header.append_time);
            }
            Step::Bad(bad) => {
                tail.torn = judge_bad(
                    home,
                    id,
                    reader.segment(),
                    reader.file(),
                    &bad,
                    tail.durable.offset,
                )?;
                break;
            }
            Step::End => match next_segment(home, &reader)? {
                Some(file) => {
                    let base = reader.next_offset();
                    reader = SegmentReader::new(file, id, base, Position::ZERO, base);
                    tail.last_batch = Position::ZERO;
                    // A segment is synced before the next one is made.
                    if tail.durable.offset <= base {
                        tail.durable = Mark::beginning_of(base);
                    }
                }
                None => break,
            },
        }
    }
    tail.mark = Mark {
        segment: reader.segment(),
        position: reader.position(),
        offset: reader.next_offset(),
    };
    if tail.mark.position == Position::ZERO {
        tail.last_batch = Position::ZERO;
    }
    nothing_safe_is_missing(home, tail)
}

/// The segment that begins where `reader`'s ends, if there is one.
pub(crate) fn next_segment(
    home: &Home,
    reader: &SegmentReader,
) -> Result<Option<Box<dyn DiskFile>>> {
    let base = reader.next_offset();
    if base == reader.segment() {
        return Ok(None);
    }
    open_if_there(home, base)
}

/// A log whose first segment was never made ends where it begins.
fn no_segment(home: &Home, tail: &Tail) -> Result<()> {
    if tail.mark == Mark::beginning_of(tail.mark.segment) {
        return nothing_safe_is_missing(home, tail);
    }
    Err(missing_segment(home, tail.mark.segment, tail.mark.offset))
}

pub(crate) fn missing_segment(home: &Home, base: Offset, offset: Offset) -> Error {
    let what = "the segment is missing".to_owned();
    Damage { path: home.segment_path(base), position: Position::ZERO, offset, what }.into()
}

fn nothing_safe_is_missing(home: &Home, tail: &Tail) -> Result<()> {
    if tail.mark.offset >= tail.durable.offset {
        return Ok(());
    }
    Err(missing_records(home, &tail.mark, tail.durable.offset))
}

/// The log ends before its durable mark.
pub(crate) fn missing_records(home: &Home, mark: &Mark, durable: Offset) -> Error {
    let what = format!("the log ends here, but all before offset {durable} was synced");
    let path = home.segment_path(mark.segment);
    Damage { path, position: mark.position, offset: mark.offset, what }.into()
}

/// How many bytes of torn tail begin at `bad`.
///
/// # Errors
/// [`Error::Damage`] if it is no torn tail; what the disk says.
pub(crate) fn judge_bad(
    home: &Home,
    id: LogId,
    segment: Offset,
    file: &dyn DiskFile,
    bad: &Bad,
    durable: Offset,
) -> Result<u64> {
    let path = home.segment_path(segment);
    let mut around =
        Surroundings { expected: bad.offset, durable, synced_later: None, later_segment: false };
    // What is cheap to know comes first: a reader that passes damage asks at each place.
    if judge(&around) == Verdict::Torn {
        around.later_segment = home.list_segments()?.last().is_some_and(|&last| last > segment);
    }
    if judge(&around) == Verdict::Torn {
        let place = Place { log: id, segment, position: bad.position };
        around.synced_later =
            synced_later(file, place, bad.offset).map_err(Error::io("read", &path))?;
    }
    match judge(&around) {
        Verdict::Torn if !is_sound_header(bad) => {
            let length = file.size().map_err(Error::io("read", &path))?;
            Ok(length.saturating_sub(bad.position.get()))
        }
        _ => Err(Error::bad(path, bad)),
    }
}

/// A header that is sound, but of a later version or a batch too large, is neither torn
/// nor damaged.
fn is_sound_header(bad: &Bad) -> bool {
    use crate::format::batch::HeaderError::{Newer, TooLarge};
    matches!(bad.reason, BadReason::Header(Newer { .. } | TooLarge { .. }))
}

/// The highest durable mark in any good header behind `bad`: headers say where they
/// stand, so a copy of one elsewhere does not count. Looks no further than to the first
/// mark beyond `enough`.
pub(crate) fn synced_later(
    file: &dyn DiskFile,
    bad: Place,
    enough: Offset,
) -> std::io::Result<Option<Offset>> {
    let mut highest = None;
    let from = Place { position: bad.position + 1, ..bad };
    each_header(file, from, |place, bytes| {
        highest = highest.max(Header::synced_at(bytes, place));
        Ok(match highest > Some(enough) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })
    })?;
    Ok(highest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::fixture::fixture;

    #[test]
    fn an_unknown_start_of_the_machine_is_not_the_same_as_another_unknown_one() {
        let fixture = fixture(1 << 20);
        fixture.append(3);
        let known = fixture.log.end_state().unwrap().unwrap();
        let unknown = EndState { boot: String::new(), ..known.clone() };
        let as_written =
            |end: &EndState| find(&fixture.log, Some(end), &end.boot).unwrap().as_written;
        assert!(as_written(&known) && !as_written(&unknown));
    }
}
