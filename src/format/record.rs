//! One record between the log and what prints or appends it, borrowing its bytes.
//!
//! Headers travel as one block of bytes, header after header: the name's length and
//! bytes, then the value's; lengths are varints, one more than the bytes, 0 for null.

use super::varint;
use crate::model::{Offset, Timestamp};

/// A record as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordView<'a> {
    /// Its number.
    pub offset: Offset,
    /// The offset to go on from once it was read.
    pub next: Offset,
    /// When it was appended.
    pub append_time: Timestamp,
    /// What else it has.
    pub content: Content<'a>,
}

impl RecordView<'_> {
    /// Its own time, else the append time.
    pub fn time(&self) -> Timestamp {
        self.content.own_time.unwrap_or(self.append_time)
    }
}

/// What a producer gives of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Content<'a> {
    /// Its key; an empty key is not no key.
    pub key: Option<&'a [u8]>,
    /// Its bytes; `None` is a tombstone, which an empty value is not.
    pub value: Option<&'a [u8]>,
    /// Its headers.
    pub headers: Headers<'a>,
    /// Its own time, if it was given one.
    pub own_time: Option<Timestamp>,
}

impl<'a> Content<'a> {
    /// A record of a value and nothing else.
    pub fn of_value(value: &'a [u8]) -> Content<'a> {
        Content { value: Some(value), ..Content::default() }
    }

    /// How many bytes count towards the largest record: key, value and headers.
    pub fn size(&self) -> usize {
        let bytes = |bytes: Option<&[u8]>| bytes.map_or(0, <[u8]>::len);
        bytes(self.key) + bytes(self.value) + self.headers.0.len()
    }

    /// Whether the *lines* layout can hold it.
    pub fn is_plain(&self) -> bool {
        let newline = |value| memchr::memchr(b'\n', value).is_some();
        self.key.is_none()
            && self.headers.is_empty()
            && self.own_time.is_none()
            && self.value.is_some_and(|value| !newline(value))
    }
}

/// Headers of one record, in order; names may repeat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers<'a>(&'a [u8]);

impl<'a> Headers<'a> {
    /// The headers in `block`, as [`push_header`] made it.
    pub fn in_block(block: &'a [u8]) -> Headers<'a> {
        Headers(block)
    }

    /// The block.
    pub fn block(&self) -> &'a [u8] {
        self.0
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the block is one that [`push_header`] can have made.
    pub fn is_sound(&self) -> bool {
        let mut names = *self;
        while names.next().is_some() {}
        names.0.is_empty()
    }
}

/// Each header's name and value; a null value is `None`.
impl<'a> Iterator for Headers<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        let mut rest = self.0;
        let name = varint::take_bytes(&mut rest)??;
        let value = varint::take_bytes(&mut rest)?;
        self.0 = rest;
        Some((name, value))
    }
}

/// Adds a header to a block.
pub fn push_header(name: &[u8], value: Option<&[u8]>, block: &mut Vec<u8>) {
    varint::put_bytes(Some(name), block);
    varint::put_bytes(value, block);
}
