//! The body of a batch: its records' bytes.
//!
//! *Lines*: every value with a newline after it, and nothing else; so values
//! without a newline only.
//!
//! *Columns*: for the rest.
//!
//! ```text
//! present    varint          which further columns there are; 0: none
//! lengths    varint each     0: null, n + 1: a value of n bytes
//! values     the values that are not null, each with a newline after it
//! ```
//!
//! A varint has seven bits a byte, lowest first, the high bit set on all but the last.

use thiserror::Error;

use super::batch::{Header, Layout};

/// Why a body is not what its header says.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BodyError {
    /// The checksum is wrong.
    #[error("the checksum of the records is wrong")]
    Checksum,
    /// Sound bytes that don't fit the layout.
    #[error("the records don't fit their layout")]
    Layout,
    /// A column that this version doesn't know.
    #[error("a column is unknown to this version")]
    Newer,
}

/// The bytes of a batch to be written, and what its header must say of them.
#[derive(Clone, Copy, Debug)]
pub struct Body<'a> {
    /// How `bytes` are laid out.
    pub layout: Layout,
    /// How many records they hold; not 0.
    pub records: u32,
    /// The records.
    pub bytes: &'a [u8],
}

/// Whether the body's bytes are those that the header was made for.
///
/// # Errors
/// [`BodyError::Checksum`] if not.
pub fn check(header: &Header, stored: &[u8]) -> Result<(), BodyError> {
    if crc32fast::hash(stored) == header.body_crc { Ok(()) } else { Err(BodyError::Checksum) }
}

/// Puts `values` into the columns layout, at the end of `out`.
pub fn encode_columns(values: &[Option<&[u8]>], out: &mut Vec<u8>) {
    put_varint(0, out);
    for value in values {
        put_varint(value.map_or(0, |value| value.len() as u64 + 1), out);
    }
    for value in values.iter().flatten() {
        out.extend_from_slice(value);
        out.push(b'\n');
    }
}

/// The values of a body that was checked, in order; null is `None`.
///
/// # Errors
/// [`BodyError`] if the body can't be read as its layout.
pub fn values<'a>(header: &Header, stored: &'a [u8]) -> Result<Values<'a>, BodyError> {
    let records = header.records as usize;
    match header.layout {
        Layout::Gap => Ok(Values::Lines { rest: &[] }),
        Layout::Lines if stored.last() == Some(&b'\n') => Ok(Values::Lines { rest: stored }),
        Layout::Lines => Err(BodyError::Layout),
        Layout::Columns => columns(records, stored),
    }
}

fn columns(records: usize, stored: &[u8]) -> Result<Values<'_>, BodyError> {
    let mut rest = stored;
    if take_varint(&mut rest).ok_or(BodyError::Layout)? != 0 {
        return Err(BodyError::Newer);
    }
    let lengths = rest;
    let mut bytes = 0u64;
    for _ in 0..records {
        let length = take_varint(&mut rest).ok_or(BodyError::Layout)?;
        bytes = bytes.checked_add(length).ok_or(BodyError::Layout)?;
    }
    // A length column counts each value one byte longer: exactly its newline.
    if bytes != rest.len() as u64 {
        return Err(BodyError::Layout);
    }
    let lengths = &lengths[..lengths.len() - rest.len()];
    Ok(Values::Columns { lengths, values: rest })
}

/// The values of one body, in order.
#[derive(Clone, Debug)]
pub enum Values<'a> {
    /// From the lines layout.
    Lines {
        /// What is still to come.
        rest: &'a [u8],
    },
    /// From the columns layout.
    Columns {
        /// The lengths still to come.
        lengths: &'a [u8],
        /// The values still to come.
        values: &'a [u8],
    },
}

impl<'a> Iterator for Values<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Option<&'a [u8]>> {
        match self {
            Values::Lines { rest } => {
                let end = memchr::memchr(b'\n', rest)?;
                let value = &rest[..end];
                *rest = &rest[end + 1..];
                Some(Some(value))
            }
            Values::Columns { lengths, values } => {
                let length = usize::try_from(take_varint(lengths)?).ok()?;
                let (value, rest) = values.split_at_checked(length)?;
                *values = rest;
                // The last byte of what was split off is the newline; null has none.
                Some(value.split_last().map(|(_, value)| value))
            }
        }
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

fn put_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let low = u64::from(byte & 0x7F);
        if low << shift >> shift != low {
            return None;
        }
        number |= low << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::batch::Codec;
    use crate::model::{Offset, Timestamp};
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    fn header(layout: Layout, records: u32, body: &[u8]) -> Header {
        Header {
            layout,
            codec: Codec::None,
            base: Offset::ZERO,
            next: Offset::new(u64::from(records)),
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
        let found: Vec<_> = values(&header(Layout::Lines, 3, body), body).unwrap().collect();
        assert_eq!(found, [Some(&b"a\r"[..]), Some(&b""[..]), Some(&b"\0b\xFF"[..])]);
    }

    #[test]
    fn lines_without_a_last_newline_do_not_fit() {
        let body = b"a\nb";
        assert_eq!(values(&header(Layout::Lines, 2, body), body).unwrap_err(), BodyError::Layout);
    }

    #[test]
    fn the_first_lines_are_measured() {
        let body = b"a\nbb\nccc\n";
        let lengths: Vec<_> = (0..5).map(|records| lines_len(body, records)).collect();
        assert_eq!(lengths, [0, 2, 5, 9, 9]);
    }

    proptest! {
        #[test]
        fn columns_give_back_what_went_in(
            given in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..300)), 1..40)
        ) {
            let borrowed: Vec<Option<&[u8]>> = given.iter().map(|value| value.as_deref()).collect();
            let mut body = Vec::new();
            encode_columns(&borrowed, &mut body);
            let header = header(Layout::Columns, given.len() as u32, &body);
            let found: Vec<_> = values(&header, &body).unwrap().collect();
            prop_assert_eq!(found, borrowed);
        }

        #[test]
        fn no_bytes_make_the_decoder_panic_or_invent(
            body in prop::collection::vec(any::<u8>(), 0..200), records in 1..50u32
        ) {
            if let Ok(values) = values(&header(Layout::Columns, records, &body), &body) {
                let total: usize = values.flatten().map(<[u8]>::len).sum();
                prop_assert!(total <= body.len());
            }
        }
    }
}
