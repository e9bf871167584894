//! The segments as one chain: each begins where the one before ends, from the log start
//! to the log end. What breaks the chain is found here.

use super::finding::{Finding, Kind};
use super::stretch::Stretch;
use crate::format::batch::Place;
use crate::format::state::EndState;
use crate::log::Log;
use crate::log::error::{Error, Result};
use crate::log::find::tail::{Tail, synced_later};
use crate::model::{Offset, Position, Timestamp};
use crate::segment::BadBytes;

/// The end of a log, looked for.
#[derive(Debug)]
pub(crate) enum Ending {
    /// It was found.
    Found(Tail),
    /// Damage stands there, or what says where to look is damaged.
    Damaged,
}

impl Ending {
    /// What a search for the end came to.
    ///
    /// # Errors
    /// What the disk says, and what a later version wrote.
    pub(crate) fn of(tail: Result<Tail>) -> Result<Ending> {
        match tail {
            Ok(tail) => Ok(Ending::Found(tail)),
            // What can't be read is told of where its file is looked at.
            Err(
                Error::Damage(_)
                | Error::BatchTooLarge(_)
                | Error::Unreadable { .. }
                | Error::Io { .. },
            ) => Ok(Ending::Damaged),
            Err(error) => Err(error),
        }
    }
}

/// All segments of a log, checked.
#[derive(Debug)]
pub(crate) struct Chain {
    /// The log's stretches, oldest first; the last one is active.
    pub stretches: Vec<Stretch>,
    /// Files with a segment's name that are no part of the log.
    pub strangers: Vec<Offset>,
    /// What is to be told of segments that can't be read.
    pub unread: Vec<Finding>,
    /// What has been added last could not be read, so that nobody knows where it ends.
    leap: bool,
    /// The torn tail: where it begins and how long it is.
    pub torn: Option<(Position, u64)>,
    /// The log start.
    pub start: Offset,
    /// Where the log ends, or should.
    pub end: Offset,
}

impl Chain {
    /// Checks every segment of `bases` from the log start on. `tail` is the end of the log
    /// as it was found after those were listed.
    pub(crate) fn check(
        log: &Log,
        start: Offset,
        bases: &[Offset],
        tail: &Ending,
        end: Option<&EndState>,
        watch: &mut dyn FnMut(u64),
    ) -> Result<Chain> {
        let mut chain = Chain {
            stretches: Vec::new(),
            strangers: Vec::new(),
            unread: Vec::new(),
            leap: false,
            torn: None,
            start,
            end: start,
        };
        let mut start = start;
        for &base in bases {
            if base < start {
                continue;
            }
            let length = match tail {
                // What comes behind it is being appended, or torn.
                Ending::Found(tail) if tail.mark.segment == base => Some(tail.mark.position),
                _ => None,
            };
            if base < chain.end {
                chain.strangers.push(base);
                continue;
            }
            match Stretch::check(log, base, length, watch) {
                Ok(Some(stretch)) => chain.add(stretch, end),
                Ok(None) => {
                    // gc removed it meanwhile, and moved the log start before that.
                    start = log.start()?;
                    chain.end = chain.end.max(start);
                }
                Err(error) if error.is_no_file() => chain.strangers.push(base),
                Err(error) => {
                    let path = log.home.segment_path(base);
                    chain.unread.push(Finding::unread(path, Kind::Stranger, error)?);
                    chain.reach(base);
                    chain.leap = true;
                }
            }
        }
        match tail {
            Ending::Found(tail) => chain.end_as_found(tail),
            Ending::Damaged => chain.end_as_damaged(log, end)?,
        }
        Ok(chain)
    }

    /// Adds the next segment, behind what is missing between, unless it is no part of the log.
    fn add(&mut self, stretch: Stretch, end: Option<&EndState>) {
        let base = stretch.base;
        if base > self.end && stretch.holds_nothing() && !self.expects(base, end) {
            self.strangers.push(base);
            return;
        }
        self.reach(base);
        self.end = stretch.end;
        self.stretches.push(stretch);
    }

    /// Whether a segment without a good batch at `base`, beyond what was found so far, can
    /// be the log's: `end` speaks of it, or of that place; or nothing says how far the log
    /// went, and what comes before is damaged.
    fn expects(&self, base: Offset, end: Option<&EndState>) -> bool {
        match end {
            Some(end) => {
                [end.written.segment, end.written.offset, end.durable.offset].contains(&base)
            }
            None => self.stretches.last().is_some_and(|last| !last.is_whole()),
        }
    }

    /// Lets the log so far reach to `offset`.
    fn reach(&mut self, offset: Offset) {
        if offset <= self.end {
            return;
        }
        if std::mem::take(&mut self.leap) {
            self.end = offset;
            return;
        }
        if self.stretches.is_empty() {
            self.stretches.push(Stretch::missing(self.end));
        }
        if let Some(last) = self.stretches.last_mut() {
            last.next = offset;
        }
        self.end = offset;
    }

    fn end_as_found(&mut self, tail: &Tail) {
        self.reach(tail.mark.offset.max(tail.durable.offset));
        if tail.torn > 0 {
            self.torn = Some((tail.mark.position, tail.torn));
        }
    }

    /// The end of a log whose end is damaged: behind all that is known to have been safe.
    fn end_as_damaged(&mut self, log: &Log, end: Option<&EndState>) -> Result<()> {
        let mut safe = end.map_or(Offset::ZERO, |end| end.durable.offset);
        if let Some(last) = self.stretches.last()
            && let Some(first) = last.bad.first()
        {
            let path = log.home.segment_path(last.base);
            let file = log.home.open_segment(last.base, crate::disk::Access::Read)?;
            let place = Place { log: log.id, segment: last.base, position: first.bad.position };
            let later =
                synced_later(file.as_ref(), place, Offset::MAX).map_err(Error::io("read", path))?;
            safe = safe.max(later.unwrap_or_default());
        }
        self.reach(safe);
        Ok(())
    }

    /// The active segment, if its records are not all there and good.
    pub(crate) fn broken_end(&self) -> Option<&Stretch> {
        self.stretches.last().filter(|last| !last.is_whole())
    }

    /// When the last record before `base` was appended. If there is none, when the first
    /// one behind was: times never go down, and what is lost has some.
    pub(crate) fn time_before(&self, base: Offset) -> Timestamp {
        let (before, behind): (Vec<_>, Vec<_>) = self
            .stretches
            .iter()
            .map(|stretch| &stretch.facts)
            .partition(|facts| facts.base < base);
        let last = before.iter().rev().find_map(|facts| facts.last_time);
        last.or(behind.iter().find_map(|facts| facts.first_time)).unwrap_or_default()
    }

    /// What is to be told of it all.
    pub(crate) fn findings(&self, log: &Log) -> Vec<Finding> {
        let mut findings = self.unread.clone();
        for (number, stretch) in self.stretches.iter().enumerate() {
            findings.extend(self.findings_of(log, stretch, number + 1 == self.stretches.len()));
        }
        for &base in &self.strangers {
            let file = log.home.segment_path(base);
            findings.push(Finding::of_file(file, Kind::Stranger, "nothing in it belongs there"));
        }
        if let (Some((position, bytes)), Some(last)) = (self.torn, self.stretches.last()) {
            findings.push(Finding {
                file: log.home.segment_path(last.base),
                position: Some(position),
                offsets: None,
                kind: Kind::Torn,
                what: format!("{bytes} bytes are an unfinished append"),
            });
        }
        findings
    }

    /// How many damaged places there are beyond the findings that tell of them.
    pub(crate) fn untold(&self) -> usize {
        let places = self.stretches.iter().map(|stretch| told_singly(&stretch.bad).1.len());
        places.map(|places| places.saturating_sub(1)).sum()
    }

    fn findings_of(&self, log: &Log, stretch: &Stretch, is_last: bool) -> Vec<Finding> {
        let file = log.home.segment_path(stretch.base);
        let finding = |position, offsets, kind, what| {
            let file = file.clone();
            Finding { file, position: Some(position), offsets, kind, what }
        };
        let mut findings = Vec::new();
        let (gaps, more) = told_singly(&stretch.gaps);
        for (position, from, next) in gaps {
            let what = "records that were damaged, passed by an earlier repair".to_owned();
            findings.push(finding(*position, Some((*from, *next)), Kind::Gap, what));
        }
        if let [(position, from, _), .., (_, _, next)] = more {
            let what = format!("{} gaps, passed by an earlier repair", more.len());
            findings.push(finding(*position, Some((*from, *next)), Kind::Gap, what));
        }
        let mut reached = stretch.end;
        let lost = |bad: &BadBytes| (bad.bad.offset, bad.next.unwrap_or(stretch.next));
        let (singly, more) = told_singly(&stretch.bad);
        for bad in singly {
            let (from, next) = lost(bad);
            let lost = (next > from).then_some((from, next));
            let torn = is_last && bad.next.is_none() && lost.is_none();
            let kind = if torn { Kind::Torn } else { Kind::Damaged };
            findings.push(finding(bad.bad.position, lost, kind, bad.bad.reason.to_string()));
            reached = reached.max(next);
        }
        if let [first, .., last] = more {
            let (from, next) = (first.bad.offset, lost(last).1);
            let what = format!(
                "{} places up to byte {}, the first: {}",
                more.len(),
                last.end,
                first.bad.reason
            );
            findings.push(finding(first.bad.position, Some((from, next)), Kind::Damaged, what));
            reached = reached.max(next);
        }
        if reached < stretch.next {
            let what = match stretch.is_there {
                true => "the records are gone".to_owned(),
                false => "the segment is gone".to_owned(),
            };
            let lost = Some((reached, stretch.next));
            findings.push(finding(stretch.length, lost, Kind::Missing, what));
        }
        findings
    }
}

/// So many of a segment's places are told one by one. What is more is told as one, so
/// that a listing does not grow with the damage.
const TOLD_SINGLY: usize = 100;

/// Those that are told one by one, and the rest, if that is more than one.
fn told_singly<T>(places: &[T]) -> (&[T], &[T]) {
    let singly = if places.len() > TOLD_SINGLY + 1 { TOLD_SINGLY } else { places.len() };
    places.split_at(singly)
}
