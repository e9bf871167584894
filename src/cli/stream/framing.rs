//! Cutting input into records: what lies between delimiters, nothing trimmed,
//! nothing split. With newlines the read buffer is itself the batch's body.

use std::ops::Range;

use memchr::memmem::Finder;

use crate::format::batch::Layout;
use crate::format::body::{self, Body};

/// What is read at once: a few batches, and less than a core's cache.
const READ_SIZE: usize = 512 << 10;

/// A record larger than the log takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oversize {
    /// Which record of the input it is, from 1.
    pub line: u64,
    /// How many of its bytes were seen.
    pub seen: u64,
    /// Whether its end was seen, so that this is its size.
    pub whole: bool,
}

/// The limits of a batch.
#[derive(Clone, Copy, Debug)]
pub struct BatchLimits {
    /// Bytes of records; a single record may be larger.
    pub bytes: usize,
    /// Records.
    pub records: usize,
    /// The largest record, in bytes.
    pub record: usize,
}

/// Input on its way to batches.
#[derive(Debug)]
pub struct Framer {
    /// What ends a record; `None`: only the input's end does.
    delimiter: Option<Finder<'static>>,
    limits: BatchLimits,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes from `start` on that are known to hold no delimiter.
    searched: usize,
    /// No delimiter will follow: what is left is the last record.
    at_end: bool,
    /// Bytes of a record that is too large, passed over so far.
    skipped: u64,
    /// Records given so far.
    given: u64,
}

impl Framer {
    /// Cuts at every `delimiter`; an empty one makes each input one record.
    pub fn new(delimiter: &[u8], limits: BatchLimits) -> Framer {
        let delimiter = (!delimiter.is_empty()).then(|| Finder::new(delimiter).into_owned());
        Framer {
            delimiter,
            limits,
            buffer: vec![0; READ_SIZE],
            start: 0,
            end: 0,
            searched: 0,
            at_end: false,
            skipped: 0,
            given: 0,
        }
    }

    /// Room to read into; never empty.
    pub fn room(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.buffer.len() - self.end < READ_SIZE / 2 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.buffer.len() - self.end < READ_SIZE / 2 {
            // No more than the largest record needs, of which the end was not read yet.
            let most = self.limits.record.saturating_add(READ_SIZE);
            let least = self.end + READ_SIZE;
            self.buffer.resize((self.buffer.len() * 2).min(most).max(least), 0);
        }
        &mut self.buffer[self.end..]
    }

    /// Takes note that `count` bytes were read into the room.
    pub fn filled(&mut self, count: usize) {
        self.end += count;
    }

    /// The input ends here, and with it its last record, if one was begun. All
    /// batches must be taken before more is read.
    pub fn end_input(&mut self) {
        // A record of which much was passed over already is unfinished too.
        let unfinished = self.pending() > 0 || self.skipped > 0;
        if !self.cuts_lines() {
            self.at_end = unfinished || self.delimiter.is_none();
        } else if unfinished && (self.pending() == 0 || self.buffer[self.end - 1] != b'\n') {
            self.room()[0] = b'\n';
            self.end += 1;
        }
    }

    /// How many bytes wait that are not yet given as records.
    pub fn pending(&self) -> usize {
        self.end - self.start
    }

    /// Whether the bytes that wait are enough for a full batch.
    pub fn is_full(&self) -> bool {
        self.pending() >= self.limits.bytes
    }

    /// The next lines as bodies of batches, straight from the buffer: all that are whole,
    /// or with `full` only those that fill a batch, and of those at most `most`. Only where
    /// a newline is the delimiter.
    ///
    /// # Errors
    /// [`Oversize`] if the first line that was not given is too large.
    pub fn lines(&mut self, full: bool, most: usize) -> Result<Vec<Body<'_>>, Oversize> {
        let mut cuts = Vec::new();
        while cuts.len() < most && (!full || self.is_full()) {
            match self.next_lines() {
                Ok(Some(cut)) => cuts.push(cut),
                Ok(None) => break,
                // Met again once what comes before it is appended.
                Err(_) if !cuts.is_empty() => break,
                Err(oversize) => return Err(oversize),
            }
        }
        let body = |(lines, records)| Body::plain(Layout::Lines, records, &self.buffer[lines]);
        Ok(cuts.into_iter().map(body).collect())
    }

    /// Where the lines of the next batch lie, and how many there are.
    fn next_lines(&mut self) -> Result<Option<(Range<usize>, u32)>, Oversize> {
        let waiting = &self.buffer[self.start..self.end];
        let within = &waiting[..waiting.len().min(self.limits.bytes)];
        let mut length = match memchr::memrchr(b'\n', within) {
            Some(last) => last + 1,
            None => {
                let from = self.searched.max(within.len());
                match memchr::memchr(b'\n', &waiting[from..]) {
                    Some(at) => from + at + 1,
                    None => return self.unfinished(waiting.len()).map(|()| None),
                }
            }
        };
        if self.limits.records < usize::MAX {
            length = body::lines_len(&waiting[..length], self.limits.records as u64);
        }
        length = self.lines_within_limit(&waiting[..length])?;
        let lines = self.start..self.start + length;
        let records = u32::try_from(body::count_lines(&self.buffer[lines.clone()]));
        let records = records.unwrap_or(u32::MAX);
        self.start += length;
        self.searched = 0;
        self.given += u64::from(records);
        Ok(Some((lines, records)))
    }

    /// The next record's bytes; `None` if there is no whole one.
    ///
    /// # Errors
    /// [`Oversize`] if it is too large.
    pub fn record(&mut self) -> Result<Option<&[u8]>, Oversize> {
        let waiting = &self.buffer[self.start..self.end];
        let (length, width) = match self.find(self.searched) {
            Some(at) => (at, self.width()),
            // The last record, unless the delimiter ended it; a whole input is always one.
            None if self.at_end && (self.delimiter.is_none() || !waiting.is_empty()) => {
                self.at_end = false;
                (waiting.len(), 0)
            }
            None => return self.unfinished(waiting.len()).map(|()| None),
        };
        if length > self.limits.record {
            return Err(self.oversize(length, true));
        }
        let begin = self.start;
        self.start += length + width;
        self.searched = 0;
        self.given += 1;
        Ok(Some(&self.buffer[begin..begin + length]))
    }

    /// Whether a newline is the delimiter.
    pub fn cuts_lines(&self) -> bool {
        self.delimiter.as_ref().is_some_and(|delimiter| delimiter.needle() == b"\n")
    }

    /// Where in what waits the next delimiter is, at `from` or later.
    fn find(&self, from: usize) -> Option<usize> {
        let waiting = &self.buffer[self.start..self.end];
        self.delimiter.as_ref()?.find(&waiting[from..]).map(|at| from + at)
    }

    fn width(&self) -> usize {
        self.delimiter.as_ref().map_or(0, |delimiter| delimiter.needle().len())
    }

    /// Which record of the input was given last, from 1.
    pub fn line(&self) -> u64 {
        self.given
    }

    /// The length of the lines before the first one that is too large.
    fn lines_within_limit(&self, lines: &[u8]) -> Result<usize, Oversize> {
        if lines.len() <= self.limits.record + 1 {
            return Ok(lines.len());
        }
        let mut begin = 0;
        for end in memchr::memchr_iter(b'\n', lines) {
            let size = end - begin;
            if size > self.limits.record {
                return if begin > 0 { Ok(begin) } else { Err(self.oversize(size, true)) };
            }
            begin = end + 1;
        }
        Ok(begin)
    }

    /// No whole record waits; the one begun may be too large already.
    fn unfinished(&mut self, waiting: usize) -> Result<(), Oversize> {
        let width = self.width();
        self.searched = waiting.saturating_sub(width.saturating_sub(1));
        if waiting > self.limits.record + width {
            return Err(self.oversize(waiting, false));
        }
        Ok(())
    }

    fn oversize(&self, seen: usize, whole: bool) -> Oversize {
        Oversize { line: self.given + 1, seen: seen as u64, whole }
    }

    /// Passes over the record that was refused as too large; says its size once its
    /// end was read. Until then, read more and ask again.
    pub fn skip_oversize(&mut self) -> Option<u64> {
        let (width, waiting) = (self.width(), self.pending());
        self.searched = 0;
        if let Some(at) = self.find(0) {
            self.start += at + width;
            return Some(std::mem::take(&mut self.skipped) + at as u64);
        }
        // A delimiter may have begun.
        let kept = if self.at_end { 0 } else { waiting.min(width.saturating_sub(1)) };
        self.skipped += (waiting - kept) as u64;
        self.start = self.end - kept;
        std::mem::take(&mut self.at_end).then(|| std::mem::take(&mut self.skipped))
    }

    /// The limits of a batch.
    pub fn limits(&self) -> BatchLimits {
        self.limits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop, prop_assert_eq, proptest};

    const LIMITS: BatchLimits = BatchLimits { bytes: 64, records: usize::MAX, record: 1000 };

    /// All values of `input`, given to the framer in pieces of `piece` bytes.
    fn frame(input: &[u8], delimiter: &[u8], limits: BatchLimits, piece: usize) -> Vec<Vec<u8>> {
        let mut framer = Framer::new(delimiter, limits);
        let mut values = Vec::new();
        for bytes in input.chunks(piece) {
            framer.room()[..bytes.len()].copy_from_slice(bytes);
            framer.filled(bytes.len());
            take_all(&mut framer, &mut values);
        }
        framer.end_input();
        take_all(&mut framer, &mut values);
        assert_eq!(framer.pending(), 0);
        values
    }

    fn take_all(framer: &mut Framer, values: &mut Vec<Vec<u8>>) {
        if !framer.cuts_lines() {
            while let Some(record) = framer.record().unwrap() {
                values.push(record.to_vec());
            }
            return;
        }
        for batch in framer.lines(false, usize::MAX).unwrap() {
            let lines = batch.bytes.strip_suffix(b"\n").unwrap();
            let before = values.len();
            values.extend(lines.split(|&byte| byte == b'\n').map(<[u8]>::to_vec));
            assert_eq!(values.len() - before, batch.records as usize);
        }
    }

    fn split(input: &[u8], delimiter: &[u8]) -> Vec<Vec<u8>> {
        let mut values = Vec::new();
        let mut rest = input;
        while !rest.is_empty() {
            let end = memchr::memmem::find(rest, delimiter);
            values.push(rest[..end.unwrap_or(rest.len())].to_vec());
            rest = end.map_or(&[], |end| &rest[end + delimiter.len()..]);
        }
        values
    }

    #[test]
    fn h030_empty_lines_are_records() {
        let found = frame(b"a\n\n\nb\n", b"\n", LIMITS, 100);
        assert_eq!(found, [&b"a"[..], b"", b"", b"b"]);
    }

    #[test]
    fn the_last_line_needs_no_newline() {
        assert_eq!(frame(b"a\nb", b"\n", LIMITS, 1), [b"a", b"b"]);
        assert!(frame(b"", b"\n", LIMITS, 1).is_empty());
    }

    #[test]
    fn h036_a_record_of_exactly_the_limit_is_taken_and_one_byte_more_is_not() {
        for (size, fits) in [(999, true), (1000, true), (1001, false)] {
            for delimiter in [&b"\n"[..], b"\0", b"ab"] {
                let mut framer = Framer::new(delimiter, LIMITS);
                let mut input = b"x".repeat(size);
                input.extend_from_slice(delimiter);
                framer.room()[..input.len()].copy_from_slice(&input);
                framer.filled(input.len());
                assert_eq!(framer.record().is_ok(), fits, "{size} {delimiter:?}");
            }
        }
    }

    #[test]
    fn what_comes_before_a_record_that_is_too_large_is_given_first() {
        let mut framer = Framer::new(b"\n", BatchLimits { bytes: 4096, ..LIMITS });
        let input = [&b"a\nb\n"[..], &b"x".repeat(1001), b"\nc\n"].concat();
        framer.room()[..input.len()].copy_from_slice(&input);
        framer.filled(input.len());
        assert_eq!(framer.lines(false, usize::MAX).unwrap()[0].bytes, b"a\nb\n");
        let refused = framer.lines(false, usize::MAX).unwrap_err();
        assert_eq!(refused, Oversize { line: 3, seen: 1001, whole: true });
    }

    #[test]
    fn a_record_that_is_too_large_ends_with_the_input() {
        for delimiter in [&b"\n"[..], b"\0", b"ab"] {
            let mut framer = Framer::new(delimiter, LIMITS);
            for piece in 0..3 {
                framer.room()[..5000].fill(b'x');
                framer.filled(5000);
                if piece == 0 {
                    assert!(framer.record().is_err());
                }
                assert_eq!(framer.skip_oversize(), None);
            }
            framer.end_input();
            assert_eq!(framer.skip_oversize(), Some(15_000), "{delimiter:?}");
            assert_eq!(framer.pending(), 0);
        }
    }

    proptest! {
        #[test]
        fn records_are_what_lies_between_delimiters(
            input in prop::collection::vec(prop::sample::select(b"ab\n\0\r\xff".to_vec()), 0..400),
            delimiter in prop::sample::select(vec![&b"\n"[..], b"\0", b"\r\n", b"ab", b"aa"]),
            piece in 1..50usize,
            records in prop::sample::select(vec![1, 3, usize::MAX]),
        ) {
            let limits = BatchLimits { records, ..LIMITS };
            prop_assert_eq!(frame(&input, delimiter, limits, piece), split(&input, delimiter));
        }
    }
}
