//! A segment's offset and time index: sorted entries, one for every 64 KiB of
//! batches. Derived: it holds nothing that the segment does not, it may be missing,
//! short or garbage at any time, and what it finds is a hint that the caller
//! checks against the segment. Segments below 64 KiB have none.

use std::io;

use thiserror::Error;

use crate::disk::{DiskFile, read_full, write_all};
use crate::format::index_entry::{ENTRY_LEN, IndexEntry, IndexOf};
use crate::model::{Offset, Position, Timestamp};

/// A batch gets an entry if it begins this many bytes or more after the last
/// batch that has one (or after the segment's beginning).
pub const INDEX_INTERVAL: u64 = 64 << 10;

/// Why an index is of no use.
#[derive(Debug, Error)]
pub enum IndexError {
    /// It can't be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is not this segment's, or garbage.
    #[error("entry {0} is none of this segment's")]
    Garbage(u64),
}

/// An open index.
#[derive(Debug)]
pub struct Index {
    file: Box<dyn DiskFile>,
    of: IndexOf,
    entries: u64,
    last: Option<IndexEntry>,
}

impl Index {
    /// Opens the index in `file` of the segment `of`.
    ///
    /// # Errors
    /// [`IndexError`]: its length or its last entry is no index's.
    pub fn open(file: Box<dyn DiskFile>, of: IndexOf) -> Result<Index, IndexError> {
        let bytes = file.size()?;
        let entries = bytes / ENTRY_LEN as u64;
        if bytes % ENTRY_LEN as u64 != 0 {
            return Err(IndexError::Garbage(entries));
        }
        let mut index = Index { file, of, entries, last: None };
        if let Some(last) = entries.checked_sub(1) {
            index.last = Some(index.entry(last)?);
        }
        Ok(index)
    }

    /// How many entries there are.
    pub fn len(&self) -> u64 {
        self.entries
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// The last entry.
    pub fn last(&self) -> Option<IndexEntry> {
        self.last
    }

    /// The last entry whose batch begins at or before `offset`.
    ///
    /// # Errors
    /// [`IndexError`]
    pub fn find_offset(&self, offset: Offset) -> Result<Option<IndexEntry>, IndexError> {
        self.last_where(|entry| entry.offset <= offset)
    }

    /// The last entry whose batch was appended before `time`.
    ///
    /// # Errors
    /// [`IndexError`]
    pub fn find_time(&self, time: Timestamp) -> Result<Option<IndexEntry>, IndexError> {
        self.last_where(|entry| entry.time < time)
    }

    /// Whether a batch that begins at `position` gets an entry.
    pub fn wants(&self, position: Position) -> bool {
        let last = self.last.map_or(Position::ZERO, |entry| entry.position);
        position.since(last) >= INDEX_INTERVAL
    }

    /// Adds entries at the end.
    ///
    /// # Errors
    /// [`IndexError::Io`]
    pub fn push(&mut self, entries: &[IndexEntry]) -> Result<(), IndexError> {
        let (at, mut bytes) = (self.entries * ENTRY_LEN as u64, Vec::new());
        for (number, entry) in (self.entries..).zip(entries) {
            bytes.extend_from_slice(&entry.encode(self.of, number));
        }
        write_all(self.file.as_ref(), &[&bytes], at)?;
        self.entries += entries.len() as u64;
        self.last = entries.last().copied().or(self.last);
        Ok(())
    }

    /// Adds those of `entries`, in order, that the index [`wants`](Self::wants).
    ///
    /// # Errors
    /// [`IndexError::Io`]
    pub fn push_wanted(&mut self, entries: &[IndexEntry]) -> Result<(), IndexError> {
        let mut last = self.last.map_or(Position::ZERO, |entry| entry.position);
        let mut wanted = Vec::with_capacity(entries.len());
        for entry in entries {
            if entry.position.since(last) >= INDEX_INTERVAL {
                last = entry.position;
                wanted.push(*entry);
            }
        }
        self.push(&wanted)
    }

    /// Drops the entries at or after `position`, where the segment ends.
    ///
    /// # Errors
    /// [`IndexError`]
    pub fn cut(&mut self, position: Position) -> Result<(), IndexError> {
        if self.last.is_none_or(|last| last.position < position) {
            return Ok(());
        }
        self.entries = self.count_where(|entry| entry.position < position)?;
        self.file.set_len(self.entries * ENTRY_LEN as u64)?;
        self.last = match self.entries.checked_sub(1) {
            Some(last) => Some(self.entry(last)?),
            None => None,
        };
        Ok(())
    }

    /// Entry `number`, counted from 0.
    ///
    /// # Errors
    /// [`IndexError`]
    pub fn entry(&self, number: u64) -> Result<IndexEntry, IndexError> {
        let mut bytes = [0; ENTRY_LEN];
        if read_full(self.file.as_ref(), &mut bytes, number * ENTRY_LEN as u64)? < ENTRY_LEN {
            return Err(IndexError::Garbage(number));
        }
        IndexEntry::decode(&bytes, self.of, number).ok_or(IndexError::Garbage(number))
    }

    fn last_where(
        &self,
        holds: impl Fn(&IndexEntry) -> bool,
    ) -> Result<Option<IndexEntry>, IndexError> {
        match self.count_where(holds)?.checked_sub(1) {
            Some(number) => self.entry(number).map(Some),
            None => Ok(None),
        }
    }

    /// How many entries, counted from the first, `holds` is true for: it must be
    /// true up to some entry and false after.
    fn count_where(&self, holds: impl Fn(&IndexEntry) -> bool) -> Result<u64, IndexError> {
        let (mut low, mut high) = (0, self.entries);
        while low < high {
            let middle = low + (high - low) / 2;
            if holds(&self.entry(middle)?) { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }
}
