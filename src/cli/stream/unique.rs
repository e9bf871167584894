//! What `produce --unique` keeps count of: the records that were not stored, as their
//! keys are in the log already.

use anyhow::Result;

use crate::format::record::Content;
use crate::log::{Appender, Log, Lookup, Placed};
use crate::model::{Offset, Timestamp};

/// Appends records whose keys are new, and counts the others.
#[derive(Debug)]
pub struct Unique {
    lookup: Lookup,
    /// Records that are there already, and where the first of them is.
    repeated: u64,
    first_repeated: Offset,
    /// Records whose keys are there with other content, and the first of those keys.
    refused: u64,
    first_refused: Option<(Vec<u8>, Offset)>,
}

impl Unique {
    /// By the keys in `log`.
    ///
    /// # Errors
    /// As [`Lookup::open`].
    pub fn of(log: &Log) -> Result<Unique> {
        let lookup = Lookup::open(log)?;
        let first_repeated = Offset::ZERO;
        Ok(Unique { lookup, repeated: 0, first_repeated, refused: 0, first_refused: None })
    }

    /// Appends those of `records` that are new, if the log end is `expected`; says what
    /// became of each.
    ///
    /// # Errors
    /// As [`Appender::append_new`].
    pub fn append(
        &mut self,
        appender: &mut Appender,
        records: &[Content<'_>],
        expected: Option<Offset>,
        now: Timestamp,
    ) -> Result<Vec<Placed>> {
        let placed = appender.append_new(&mut self.lookup, records, expected, now)?;
        for (record, placed) in records.iter().zip(&placed) {
            match placed {
                Placed::New(_) => {}
                Placed::Same(offset) => {
                    if self.repeated == 0 {
                        self.first_repeated = *offset;
                    }
                    self.repeated += 1;
                }
                Placed::Other(offset) => {
                    let key = || (record.key.unwrap_or_default().to_vec(), *offset);
                    self.first_refused.get_or_insert_with(key);
                    self.refused += 1;
                }
            }
        }
        Ok(placed)
    }

    /// How many were there already, in words.
    pub fn repeats(&self) -> Option<String> {
        let first = self.first_repeated;
        match self.repeated {
            0 => None,
            1 => Some(format!("1 record was there already, at offset {first}")),
            more => Some(format!("{more} records were there already, the first at offset {first}")),
        }
    }

    /// How many were refused, in words.
    pub fn refusals(&self) -> Option<String> {
        let (key, offset) = self.first_refused.as_ref()?;
        let key = String::from_utf8_lossy(key);
        let more = match self.refused - 1 {
            0 => String::new(),
            1 => ", and so is 1 more".to_owned(),
            more => format!(", and so are {more} more"),
        };
        Some(format!(
            "key {key} exists with other content, at offset {offset}: that record is not stored{more}"
        ))
    }
}
