//! The *columns* layout: for records that lines can't hold.
//!
//! ```text
//! present    varint        1 keys, 2 headers, 4 own times, 8 gaps, added up
//! values     varint each   0: null, n + 1: a value of n bytes
//! gaps       varint each   how many offsets are missing before this record   } if present
//! times      1 byte each   0: none, 1: then a signed varint: ms more than the }
//!                          record's before that has one, or than 1970         }
//! keys       varint each   0: no key, n + 1: a key of n bytes                }
//! headers    varint each   the bytes of its headers                          }
//! bytes      all keys, then all values, each value that is not null with a newline
//!            after it, then all headers
//! ```
//!
//! Keys can so be scanned without touching values.

use std::ops::Range;

use super::body::BodyError;
use super::record::{Content, Headers};
use super::varint;
use crate::model::Timestamp;

const KEYS: u64 = 1;
const HEADERS: u64 = 2;
const TIMES: u64 = 4;
const GAPS: u64 = 8;

/// Puts `records` into columns, at the end of `out`. A record's number is how many
/// offsets are missing before it.
pub fn encode(records: &[(u64, Content<'_>)], out: &mut Vec<u8>) {
    let any = |has: fn(&(u64, Content<'_>)) -> bool| records.iter().any(has);
    let flag = |has, flag| if has { flag } else { 0 };
    let present = flag(any(|(_, record)| record.key.is_some()), KEYS)
        | flag(any(|(_, record)| !record.headers.is_empty()), HEADERS)
        | flag(any(|(_, record)| record.own_time.is_some()), TIMES)
        | flag(any(|(gap, _)| *gap > 0), GAPS);
    varint::put(present, out);
    let length = |bytes: Option<&[u8]>| bytes.map_or(0, |bytes| bytes.len() as u64 + 1);
    records.iter().for_each(|(_, record)| varint::put(length(record.value), out));
    if present & GAPS != 0 {
        records.iter().for_each(|(gap, _)| varint::put(*gap, out));
    }
    if present & TIMES != 0 {
        put_times(records, out);
    }
    if present & KEYS != 0 {
        records.iter().for_each(|(_, record)| varint::put(length(record.key), out));
    }
    if present & HEADERS != 0 {
        let bytes = |record: &Content<'_>| record.headers.block().len() as u64;
        records.iter().for_each(|(_, record)| varint::put(bytes(record), out));
    }
    records.iter().for_each(|(_, record)| out.extend_from_slice(record.key.unwrap_or_default()));
    for value in records.iter().filter_map(|(_, record)| record.value) {
        out.extend_from_slice(value);
        out.push(b'\n');
    }
    records.iter().for_each(|(_, record)| out.extend_from_slice(record.headers.block()));
}

fn put_times(records: &[(u64, Content<'_>)], out: &mut Vec<u8>) {
    let mut before = 0i64;
    for (_, record) in records {
        let Some(time) = record.own_time else {
            out.push(0);
            continue;
        };
        out.push(1);
        varint::put_signed(time.as_millis().wrapping_sub(before), out);
        before = time.as_millis();
    }
}

/// Whether a body in columns has a key for any record.
pub fn has_keys(mut body: &[u8]) -> bool {
    varint::take(&mut body).is_some_and(|present| present & KEYS != 0)
}

/// The columns of one body, to be read record by record.
#[derive(Clone, Debug)]
pub struct Columns<'a> {
    lengths: Lengths<'a>,
    last_time: i64,
    keys: &'a [u8],
    values: &'a [u8],
    headers: &'a [u8],
}

/// The columns of numbers still to come; empty ones were not present.
#[derive(Clone, Copy, Debug, Default)]
struct Lengths<'a> {
    values: &'a [u8],
    gaps: &'a [u8],
    times: &'a [u8],
    keys: &'a [u8],
    headers: &'a [u8],
}

impl<'a> Columns<'a> {
    /// The columns in `body`, which holds `records` records.
    ///
    /// # Errors
    /// [`BodyError`] if the body can't be that.
    pub fn open(body: &'a [u8], records: usize) -> Result<Columns<'a>, BodyError> {
        let mut rest = body;
        let present = varint::take(&mut rest).ok_or(BodyError::Layout)?;
        if present >= GAPS << 1 {
            return Err(BodyError::Newer);
        }
        let column = |flag, rest: &mut &'a [u8], take: fn(&mut &'a [u8]) -> Option<u64>| {
            if present & flag == 0 { Some((&[][..], 0)) } else { column(rest, records, take) }
        };
        let mut read = || {
            let (values, value_bytes) = self::column(&mut rest, records, varint::take)?;
            let (gaps, _) = column(GAPS, &mut rest, varint::take)?;
            let (times, _) = column(TIMES, &mut rest, take_time)?;
            let (keys, key_bytes) = column(KEYS, &mut rest, |rest| {
                varint::take(rest).map(|length| length.saturating_sub(1))
            })?;
            let (headers, header_bytes) = column(HEADERS, &mut rest, varint::take)?;
            let lengths = Lengths { values, gaps, times, keys, headers };
            // A value's length counts it one byte longer: exactly its newline.
            let (key_part, rest) = rest.split_at_checked(usize::try_from(key_bytes).ok()?)?;
            let (value_part, rest) = rest.split_at_checked(usize::try_from(value_bytes).ok()?)?;
            let whole = rest.len() as u64 == header_bytes;
            let last_time = 0;
            let columns =
                Columns { lengths, last_time, keys: key_part, values: value_part, headers: rest };
            whole.then_some(columns)
        };
        read().ok_or(BodyError::Layout)
    }

    /// Where this walk over the columns of `body` stands.
    pub fn pause(&self, body: &[u8]) -> Paused {
        let Lengths { values, gaps, times, keys, headers } = self.lengths;
        let parts = [values, gaps, times, keys, headers, self.keys, self.values, self.headers];
        Paused { parts: parts.map(|part| place_in(body, part)), last_time: self.last_time }
    }

    /// The walk over the columns of `body` that was paused there.
    pub fn resume(body: &'a [u8], paused: &Paused) -> Columns<'a> {
        let parts = paused.parts.clone().map(|place| body.get(place).unwrap_or_default());
        let [values, gaps, times, keys, headers, key_bytes, value_bytes, header_bytes] = parts;
        let lengths = Lengths { values, gaps, times, keys, headers };
        let last_time = paused.last_time;
        Columns { lengths, last_time, keys: key_bytes, values: value_bytes, headers: header_bytes }
    }

    /// The next record and how many offsets are missing before it. `None` after the
    /// last one, or where the columns don't fit each other.
    pub fn next_record(&mut self) -> Option<(u64, Content<'a>)> {
        let value = self.take_value()?;
        let gap = optional(&mut self.lengths.gaps)?;
        let own_time = self.take_own_time()?;
        let key = self.take_key()?;
        let length = optional(&mut self.lengths.headers)?;
        let headers = Headers::in_block(split(&mut self.headers, length)?);
        Some((gap, Content { key, value, headers, own_time }))
    }

    /// The key of the next record, without the rest of it: how many offsets are missing
    /// before it, the key, whether it is a tombstone. Not to be mixed with
    /// [`next_record`](Self::next_record). `None` after the last one.
    pub fn next_key(&mut self) -> Option<(u64, Option<&'a [u8]>, bool)> {
        let is_null = varint::take(&mut self.lengths.values)? == 0;
        let gap = optional(&mut self.lengths.gaps)?;
        let key = self.take_key()?;
        Some((gap, key, is_null))
    }

    fn take_key(&mut self) -> Option<Option<&'a [u8]>> {
        Some(match optional(&mut self.lengths.keys)?.checked_sub(1) {
            Some(length) => Some(split(&mut self.keys, length)?),
            None => None,
        })
    }

    fn take_value(&mut self) -> Option<Option<&'a [u8]>> {
        let length = varint::take(&mut self.lengths.values)?;
        let with_newline = split(&mut self.values, length)?;
        match with_newline.split_last() {
            None => Some(None),
            Some((b'\n', value)) => Some(Some(value)),
            Some(_) => None,
        }
    }

    fn take_own_time(&mut self) -> Option<Option<Timestamp>> {
        let Some((&has, rest)) = self.lengths.times.split_first() else { return Some(None) };
        self.lengths.times = rest;
        if has == 0 {
            return Some(None);
        }
        let more = varint::take_signed(&mut self.lengths.times)?;
        self.last_time = self.last_time.wrapping_add(more);
        Some(Some(Timestamp::from_millis(self.last_time)))
    }
}

/// Where a walk over columns stands, without the body.
#[derive(Clone, Debug)]
pub struct Paused {
    /// What is left of each column.
    parts: [Range<usize>; 8],
    last_time: i64,
}

/// Where in `body` its part `part` lies.
fn place_in(body: &[u8], part: &[u8]) -> Range<usize> {
    let begin = part.as_ptr().addr().wrapping_sub(body.as_ptr().addr());
    if part.is_empty() { 0..0 } else { begin..begin.wrapping_add(part.len()) }
}

/// A column of `records` entries off the front of `rest`, and the sum of its numbers.
fn column<'a>(
    rest: &mut &'a [u8],
    records: usize,
    take: fn(&mut &'a [u8]) -> Option<u64>,
) -> Option<(&'a [u8], u64)> {
    let before = *rest;
    let mut sum = 0u64;
    for _ in 0..records {
        sum = sum.checked_add(take(rest)?)?;
    }
    Some((&before[..before.len() - rest.len()], sum))
}

fn take_time(rest: &mut &[u8]) -> Option<u64> {
    let (&has, after) = rest.split_first()?;
    *rest = after;
    match has {
        0 => {}
        1 => drop(varint::take_signed(rest)?),
        _ => return None,
    }
    Some(0)
}

/// The next number of a column, 0 where the column is not present.
fn optional(column: &mut &[u8]) -> Option<u64> {
    if column.is_empty() { Some(0) } else { varint::take(column) }
}

fn split<'a>(bytes: &mut &'a [u8], length: u64) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::record::push_header;
    use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, proptest};

    type Bytes = Vec<u8>;
    type Given = (u64, Option<Bytes>, Option<Bytes>, Vec<(Bytes, Option<Bytes>)>, Option<i64>);

    fn bytes() -> impl Strategy<Value = Bytes> {
        prop::collection::vec(any::<u8>(), 0..40)
    }

    fn given() -> impl Strategy<Value = Vec<Given>> {
        let maybe = || prop::option::of(bytes());
        let headers = prop::collection::vec((bytes(), maybe()), 0..3);
        let record = (0..3u64, maybe(), maybe(), headers, prop::option::of(any::<i64>()));
        prop::collection::vec(record, 1..20)
    }

    fn block(headers: &[(Bytes, Option<Bytes>)]) -> Bytes {
        let mut block = Vec::new();
        headers.iter().for_each(|(name, value)| push_header(name, value.as_deref(), &mut block));
        block
    }

    proptest! {
        #[test]
        fn every_record_comes_back_as_it_was(given in given()) {
            let blocks: Vec<Bytes> = given.iter().map(|(_, _, _, headers, _)| block(headers)).collect();
            let records: Vec<(u64, Content<'_>)> = given
                .iter()
                .zip(&blocks)
                .map(|((gap, key, value, _, time), block)| {
                    let headers = Headers::in_block(block);
                    let own_time = time.map(Timestamp::from_millis);
                    let (key, value) = (key.as_deref(), value.as_deref());
                    (*gap, Content { key, value, headers, own_time })
                })
                .collect();
            let mut body = Vec::new();
            encode(&records, &mut body);
            let mut columns = Columns::open(&body, records.len()).unwrap();
            for record in &records {
                prop_assert!(record.1.headers.is_sound());
                columns = Columns::resume(&body, &columns.pause(&body));
                prop_assert_eq!(columns.next_record(), Some(*record));
            }
            prop_assert_eq!(columns.next_record(), None);
            let mut columns = Columns::open(&body, records.len()).unwrap();
            for (gap, record) in &records {
                let key = (*gap, record.key, record.value.is_none());
                prop_assert_eq!(columns.next_key(), Some(key));
            }
            prop_assert_eq!(columns.next_key(), None);
            prop_assert_eq!(has_keys(&body), records.iter().any(|(_, record)| record.key.is_some()));
        }

        #[test]
        fn no_bytes_make_it_panic_or_invent(
            body in prop::collection::vec(any::<u8>(), 0..200), records in 1..50usize
        ) {
            if let Ok(mut columns) = Columns::open(&body, records) {
                let mut total = 0;
                while let Some((_, record)) = columns.next_record() {
                    total += record.size();
                }
                prop_assert!(total <= body.len());
            }
        }
    }
}
