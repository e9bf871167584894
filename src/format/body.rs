//! The body of a batch: its records' bytes.
//!
//! *Lines*: every value with a newline after it, and nothing else; so values
//! without a newline only.
//!
//! *Columns*: for the rest; see [`super::columns`].
//!
//! *Gap*: nothing.

use thiserror::Error;

use super::batch::{Codec, Header, Layout};
use super::columns::{self, Columns};
use super::record::{Content, RecordView};
use crate::model::Offset;

/// Why a body is not what its header says.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BodyError {
    /// The checksum is wrong.
    #[error("the checksum of the records is wrong")]
    Checksum,
    /// Sound bytes that don't fit the layout.
    #[error("the records don't fit their layout")]
    Layout,
    /// Compressed bytes that don't inflate to what the header says.
    #[error("the records can't be inflated")]
    Inflate,
    /// A column that this version doesn't know.
    #[error("a column is unknown to this version")]
    Newer,
}

/// The bytes of a batch to be written, and what its header must say of them.
#[derive(Clone, Copy, Debug)]
pub struct Body<'a> {
    /// How the records are laid out.
    pub layout: Layout,
    /// How `bytes` are compressed.
    pub codec: Codec,
    /// How many records they hold; not 0.
    pub records: u32,
    /// How many bytes the records take when inflated.
    pub raw: u32,
    /// The records as stored.
    pub bytes: &'a [u8],
}

impl<'a> Body<'a> {
    /// Records that are not compressed.
    pub fn plain(layout: Layout, records: u32, bytes: &'a [u8]) -> Body<'a> {
        let raw = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        Body { layout, codec: Codec::None, records, raw, bytes }
    }
}

/// Whether the body's bytes are those that the header was made for.
///
/// # Errors
/// [`BodyError::Checksum`] if not.
pub fn check(header: &Header, stored: &[u8]) -> Result<(), BodyError> {
    if crc32fast::hash(stored) == header.body_crc { Ok(()) } else { Err(BodyError::Checksum) }
}

/// Whether an inflated body is what its header says: as many records, each whole, none
/// beyond the next offset.
///
/// # Errors
/// [`BodyError`] if not.
pub fn check_layout(header: &Header, raw: &[u8]) -> Result<(), BodyError> {
    let offsets = header.next.since(header.base);
    let fits = match header.layout {
        Layout::Gap(_) => raw.is_empty(),
        Layout::Lines => raw.last() == Some(&b'\n') && count_lines(raw) == header.records as usize,
        Layout::Columns => {
            let mut columns = Columns::open(raw, header.records as usize)?;
            let mut taken = 0u64;
            let mut records = 0;
            while let Some((gap, content)) = columns.next_record() {
                taken = taken.saturating_add(gap).saturating_add(1);
                records += u32::from(content.headers.is_sound());
            }
            records == header.records && taken <= offsets
        }
    };
    if fits { Ok(()) } else { Err(BodyError::Layout) }
}

/// Puts `records` into `out`, in place of what that held, in the layout that they need.
pub fn encode(records: &[Content<'_>], out: &mut Vec<u8>) -> Layout {
    out.clear();
    if records.iter().all(Content::is_plain) {
        for value in records.iter().filter_map(|record| record.value) {
            out.extend_from_slice(value);
            out.push(b'\n');
        }
        return Layout::Lines;
    }
    let without_gaps: Vec<_> = records.iter().map(|record| (0, *record)).collect();
    columns::encode(&without_gaps, out);
    Layout::Columns
}

/// The records of an inflated body, in order.
///
/// # Errors
/// [`BodyError`] if the body can't be read as its layout.
pub fn records<'a>(header: &Header, raw: &'a [u8]) -> Result<Records<'a>, BodyError> {
    let source = match header.layout {
        Layout::Gap(_) => Source::Lines(&[]),
        Layout::Lines if raw.last() == Some(&b'\n') => Source::Lines(raw),
        Layout::Lines => return Err(BodyError::Layout),
        Layout::Columns => Source::Columns(Columns::open(raw, header.records as usize)?),
    };
    Ok(Records { source, next: header.base, header: header.clone() })
}

/// The records of one body, in order.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    source: Source<'a>,
    next: Offset,
    header: Header,
}

#[derive(Clone, Debug)]
enum Source<'a> {
    /// Lines still to come.
    Lines(&'a [u8]),
    Columns(Columns<'a>),
}

impl<'a> Iterator for Records<'a> {
    type Item = RecordView<'a>;

    fn next(&mut self) -> Option<RecordView<'a>> {
        let (gap, content) = match &mut self.source {
            Source::Lines(rest) => {
                let (value, after) = rest.split_at(memchr::memchr(b'\n', rest)?);
                *rest = &after[1..];
                (0, Content::of_value(value))
            }
            Source::Columns(columns) => columns.next_record()?,
        };
        let offset = self.next.forward(gap)?;
        self.next = offset.forward(1)?;
        let append_time = self.header.append_time;
        Some(RecordView { offset, next: self.next, append_time, content })
    }
}

/// Where a walk over the records of a body stands, without the body.
#[derive(Clone, Debug)]
pub struct Paused {
    source: PausedSource,
    next: Offset,
}

#[derive(Clone, Debug)]
enum PausedSource {
    /// So many bytes of lines are left.
    Lines(usize),
    Columns(columns::Paused),
}

impl Paused {
    /// No record before this offset is left.
    pub fn next(&self) -> Offset {
        self.next
    }
}

impl<'a> Records<'a> {
    /// Where this walk over the records in `raw` stands.
    pub fn pause(&self, raw: &[u8]) -> Paused {
        let source = match &self.source {
            Source::Lines(rest) => PausedSource::Lines(rest.len()),
            Source::Columns(columns) => PausedSource::Columns(columns.pause(raw)),
        };
        Paused { source, next: self.next }
    }

    /// The walk over the records in `raw` that was paused there.
    pub fn resume(header: &Header, raw: &'a [u8], paused: &Paused) -> Records<'a> {
        let source = match &paused.source {
            PausedSource::Lines(left) => Source::Lines(&raw[raw.len().saturating_sub(*left)..]),
            PausedSource::Columns(paused) => Source::Columns(Columns::resume(raw, paused)),
        };
        Records { source, next: paused.next, header: header.clone() }
    }
}

/// The length of the first `records` lines of a *lines* body; all of it if it has fewer.
pub fn lines_len(body: &[u8], records: u64) -> usize {
    let nth = usize::try_from(records).unwrap_or(usize::MAX);
    match nth.checked_sub(1) {
        None => 0,
        Some(last) => memchr::memchr_iter(b'\n', body).nth(last).map_or(body.len(), |at| at + 1),
    }
}

/// How many lines end in `bytes`.
pub fn count_lines(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;

    fn header(layout: Layout, records: u32, body: &[u8]) -> Header {
        Header {
            layout,
            codec: Codec::None,
            base: Offset::new(40),
            next: Offset::new(40 + u64::from(records)),
            records,
            synced: Offset::ZERO,
            append_time: Timestamp::default(),
            stored: body.len() as u32,
            raw: body.len() as u32,
            body_crc: crc32fast::hash(body),
        }
    }

    #[test]
    fn lines_are_split_at_newlines_only() {
        let body = b"a\r\n\n\0b\xFF\n";
        let found = records(&header(Layout::Lines, 3, body), body).unwrap();
        let found: Vec<_> =
            found.map(|record| (record.offset.get(), record.content.value)).collect();
        let expected = [(40, Some(&b"a\r"[..])), (41, Some(&b""[..])), (42, Some(&b"\0b\xFF"[..]))];
        assert_eq!(found, expected);
    }

    #[test]
    fn lines_without_a_last_newline_do_not_fit() {
        let body = b"a\nb";
        assert_eq!(records(&header(Layout::Lines, 2, body), body).unwrap_err(), BodyError::Layout);
    }

    #[test]
    fn the_layout_is_chosen_by_what_the_records_need() {
        let plain = Content::of_value(b"a");
        let others = [
            Content::of_value(b"a\nb"),
            Content { key: Some(b""), ..plain },
            Content { value: None, ..plain },
            Content { own_time: Some(Timestamp::default()), ..plain },
        ];
        let mut out = Vec::new();
        assert_eq!(encode(&[plain, plain], &mut out), Layout::Lines);
        for other in others {
            assert_eq!(encode(&[plain, other], &mut out), Layout::Columns, "{other:?}");
            let found = records(&header(Layout::Columns, 2, &out), &out).unwrap();
            let found: Vec<_> = found.map(|record| record.content).collect();
            assert_eq!(found, [plain, other]);
        }
    }

    #[test]
    fn the_first_lines_are_measured() {
        let body = b"a\nbb\nccc\n";
        let lengths: Vec<_> = (0..5).map(|records| lines_len(body, records)).collect();
        assert_eq!(lengths, [0, 2, 5, 9, 9]);
    }
}
