//! One segment, every byte of it checked.

use std::path::Path;

use crate::disk::DiskFile;
use crate::format::batch::{GapReason, Header, HeaderError, Layout};
use crate::format::index_entry::IndexEntry;
use crate::log::Log;
use crate::log::error::{Error, Result};
use crate::log::find::tail::open_if_there;
use crate::model::{Offset, Position, SegmentFacts, SegmentState};
use crate::segment::{BadBytes, BadReason, Found, INDEX_INTERVAL, Salvage, SegmentReader};

/// The part of the log that one segment holds, or should hold.
#[derive(Debug)]
pub(crate) struct Stretch {
    /// Where it begins: the segment's name.
    pub base: Offset,
    /// Where its good batches end.
    pub end: Offset,
    /// Where it has to end. What lies between is missing.
    pub next: Offset,
    /// Whether there is a file.
    pub is_there: bool,
    /// How much of the file was looked at.
    pub length: Position,
    /// What in it is no good batch.
    pub bad: Vec<BadBytes>,
    /// Offsets that an earlier repair passed.
    pub gaps: Vec<(Position, Offset, Offset)>,
    /// What the table of segments should say.
    pub facts: SegmentFacts,
    /// What the index should say.
    pub index: Vec<IndexEntry>,
}

impl Stretch {
    /// A segment that should begin at `base` and has no file.
    pub(crate) fn missing(base: Offset) -> Stretch {
        Stretch {
            base,
            end: base,
            next: base,
            is_there: false,
            length: Position::ZERO,
            bad: Vec::new(),
            gaps: Vec::new(),
            facts: SegmentFacts {
                base,
                next: base,
                records: 0,
                bytes: 0,
                first_time: None,
                last_time: None,
                state: SegmentState::Sealed,
            },
            index: Vec::new(),
        }
    }

    /// Checks the first `length` bytes of the segment at `base`, all of them unless it is
    /// given. `None` if there is no such file.
    pub(crate) fn check(
        log: &Log,
        base: Offset,
        length: Option<Position>,
        watch: &mut dyn FnMut(u64),
    ) -> Result<Option<Stretch>> {
        match open_if_there(&log.home, base)? {
            Some(file) => {
                let path = log.home.segment_path(base);
                Stretch::check_file(log, base, file, &path, length, watch).map(Some)
            }
            None => Ok(None),
        }
    }

    /// The same of a file that may have another name yet.
    pub(crate) fn check_file(
        log: &Log,
        base: Offset,
        file: Box<dyn DiskFile>,
        path: &Path,
        length: Option<Position>,
        watch: &mut dyn FnMut(u64),
    ) -> Result<Stretch> {
        let size = Position::new(file.size().map_err(Error::io("read", path))?);
        let length = length.unwrap_or(size).min(size);
        let reader = SegmentReader::new(file, log.id, base, Position::ZERO, base);
        let mut salvage = Salvage::new(reader, log.id, length);
        let mut stretch = Stretch { is_there: true, length, ..Stretch::missing(base) };
        stretch.facts.bytes = length.get();
        loop {
            let before = salvage.position();
            match salvage.find().map_err(Error::io("read", path))? {
                None => break,
                Some(Found::Batch(header, position)) => stretch.add(&header, position),
                Some(Found::Bad(bad)) => {
                    if let BadReason::Header(newer @ HeaderError::Newer { .. }) = &bad.bad.reason {
                        let (path, what) = (path.to_owned(), newer.to_string());
                        return Err(Error::Newer { path, what });
                    }
                    stretch.bad.push(bad);
                }
            }
            watch(salvage.position().since(before));
        }
        stretch.next = stretch.end;
        Ok(stretch)
    }

    fn add(&mut self, header: &Header, position: Position) {
        if header.layout == Layout::Gap(GapReason::Damaged) {
            self.gaps.push((position, header.base, header.next));
        }
        let last = self.index.last().map_or(Position::ZERO, |entry| entry.position);
        if position.since(last) >= INDEX_INTERVAL {
            let time = header.append_time;
            self.index.push(IndexEntry { offset: header.base, position, time });
        }
        self.end = header.next;
        self.facts.next = header.next;
        self.facts.records += u64::from(header.records);
        self.facts.first_time = self.facts.first_time.or(Some(header.append_time));
        self.facts.last_time = Some(header.append_time);
    }

    /// Whether all is there and good.
    pub(crate) fn is_whole(&self) -> bool {
        self.bad.is_empty() && self.end == self.next
    }

    /// Whether there is not one good batch in it.
    pub(crate) fn holds_nothing(&self) -> bool {
        self.end == self.base
    }
}
