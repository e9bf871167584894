//! What a piece of input becomes: its key split off, headers added, an empty value
//! made a tombstone, or a whole record read from JSON.

use thiserror::Error;

use super::gather::Gathered;
use crate::cli::text::record_json;
use crate::format::record::{Content, Headers};

/// Where keys come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Nowhere.
    None,
    /// All records have this one.
    Fixed(Vec<u8>),
    /// What stands before the first separator.
    Split {
        /// The separator; not empty.
        separator: Vec<u8>,
        /// Whether a piece without one is a record without a key.
        keep: bool,
    },
}

/// How pieces of input become records.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Whether each piece is a record in JSON.
    pub json: bool,
    /// Where keys come from.
    pub keys: Keys,
    /// Whether every record must have a key that is not empty.
    pub needs_key: bool,
    /// A block of headers that all records get.
    pub headers: Vec<u8>,
    /// Whether an empty value is a tombstone.
    pub tombstones: bool,
    /// The largest record, in bytes of key, value and headers.
    pub limit: usize,
}

/// Why a piece is no record.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Misfit {
    /// It has no separator.
    #[error(
        "has no separator between key and value: --no-key keep stores such lines without a key"
    )]
    NoSeparator,
    /// It has no key, or an empty one, and needs one.
    #[error("has no key, or an empty one: --unique goes by the keys")]
    NoKey,
    /// It is no record in JSON.
    #[error("{0}")]
    Json(String),
    /// It is too large.
    #[error("has {0} bytes")]
    TooBig(usize),
}

impl Shape {
    /// Whether pieces are values and nothing else.
    pub fn is_plain(&self) -> bool {
        !self.json && self.keys == Keys::None && self.headers.is_empty() && !self.tombstones
    }

    /// The longest piece of input that can still be a record within the limit: in JSON
    /// a byte takes up to six, and the names some more.
    pub fn longest_piece(&self) -> usize {
        const NAMES: usize = 64 << 10;
        match &self.keys {
            _ if self.json => self.limit.saturating_mul(6).saturating_add(NAMES),
            Keys::Split { separator, .. } => self.limit.saturating_add(separator.len()),
            _ => self.limit,
        }
    }

    /// Adds what `piece` becomes to `batch`.
    ///
    /// # Errors
    /// [`Misfit`], and nothing was added.
    pub fn add(&self, piece: &[u8], batch: &mut Gathered) -> Result<(), Misfit> {
        if self.json {
            return self.add_json(piece, batch);
        }
        let (key, value) = self.key_and_value(piece)?;
        let headers = Headers::in_block(&self.headers);
        self.push(Content { key, value: Some(value), headers, own_time: None }, batch)
    }

    fn key_and_value<'a>(
        &'a self,
        piece: &'a [u8],
    ) -> Result<(Option<&'a [u8]>, &'a [u8]), Misfit> {
        match &self.keys {
            Keys::None => Ok((None, piece)),
            Keys::Fixed(key) => Ok((Some(key), piece)),
            Keys::Split { separator, keep } => match memchr::memmem::find(piece, separator) {
                Some(at) => Ok((Some(&piece[..at]), &piece[at + separator.len()..])),
                None if *keep => Ok((None, piece)),
                None => Err(Misfit::NoSeparator),
            },
        }
    }

    fn add_json(&self, piece: &[u8], batch: &mut Gathered) -> Result<(), Misfit> {
        let mut record = record_json::parse(piece).map_err(Misfit::Json)?;
        record.headers.extend_from_slice(&self.headers);
        let fixed = match &self.keys {
            Keys::Fixed(key) => Some(&key[..]),
            _ => None,
        };
        let content = Content {
            key: record.key.as_deref().or(fixed),
            value: record.value.as_deref(),
            headers: Headers::in_block(&record.headers),
            own_time: record.own_time,
        };
        self.push(content, batch)
    }

    fn push(&self, mut record: Content<'_>, batch: &mut Gathered) -> Result<(), Misfit> {
        if self.tombstones && record.value == Some(b"") {
            record.value = None;
        }
        if self.needs_key && record.key.is_none_or(<[u8]>::is_empty) {
            return Err(Misfit::NoKey);
        }
        if record.size() > self.limit {
            return Err(Misfit::TooBig(record.size()));
        }
        batch.push(&record);
        Ok(())
    }
}
