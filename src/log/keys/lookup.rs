//! Records by their keys: what the index names is read, and its key compared. Where it
//! named a wrong record, the log is read instead, so that the answer is right all the same.

use std::ops::ControlFlow;

use super::{Fetch, Fetched, KeyIndex, records_of, search};
use crate::format::key_hash::KeyHash;
use crate::format::record::RecordView;
use crate::log::{Log, Result};
use crate::model::Offset;

/// So many versions of a key are compared before the first of them is given.
const COMPARED: usize = 4096;

/// What was found of a key: a record, or that none is kept.
///
/// # Errors
/// [`Error::Damage`](crate::log::Error::Damage) where its record can't be read; what the disk says.
pub type Found<'a> = Result<Option<RecordView<'a>>>;

/// Finds records of one log by their keys.
#[derive(Debug)]
pub struct Lookup {
    log: Log,
    index: KeyIndex,
    fetch: Fetch,
}

/// What is where the index said that a record of some key is.
enum Kept {
    /// That record.
    There,
    /// No record any more.
    Gone,
    /// Another one: the index is wrong.
    Wrong,
}

impl Lookup {
    /// Finds the records of `log` up to its log end.
    ///
    /// # Errors
    /// As [`KeyIndex::open`].
    pub fn open(log: &Log) -> Result<Lookup> {
        let index = KeyIndex::open(log)?;
        Ok(Lookup { log: log.clone(), index, fetch: Fetch::of(log) })
    }

    /// All records before it are known.
    pub fn end(&self) -> Offset {
        self.index.end()
    }

    /// Learns the records up to `end`.
    ///
    /// # Errors
    /// As [`KeyIndex::advance`].
    pub fn advance(&mut self, end: Offset) -> Result<()> {
        self.index.advance(end)
    }

    /// Calls `visit` once for each of `keys`, by its number, with its newest record before
    /// `before`. Records are read in the order of their offsets.
    ///
    /// # Errors
    /// What the disk says of the index; of a record, `visit` is told.
    pub fn newest(
        &mut self,
        keys: &[&[u8]],
        before: Offset,
        mut visit: impl FnMut(usize, Found<'_>),
    ) -> Result<()> {
        let mut places = Vec::with_capacity(keys.len());
        for (number, place) in self.places(keys, before)?.into_iter().enumerate() {
            match place {
                Some(place) => places.push((place, number)),
                None => visit(number, Ok(None)),
            }
        }
        places.sort_unstable();
        let offsets: Vec<Offset> = places.iter().map(|(place, _)| *place).collect();
        let mut doubtful = Vec::new();
        walk(&self.log, &mut self.fetch, &offsets, |at, found| {
            let number = places[at].1;
            match found {
                Ok(Some(record)) if record.content.key == Some(keys[number]) => {
                    visit(number, Ok(Some(record)));
                }
                Ok(_) => doubtful.push(number),
                Err(error) => visit(number, Err(error)),
            }
            ControlFlow::Continue(())
        });
        for number in doubtful {
            visit(number, self.settle(keys[number], before));
        }
        Ok(())
    }

    /// Where the index has the newest record of each key before `before`.
    fn places(&self, keys: &[&[u8]], before: Offset) -> Result<Vec<Option<Offset>>> {
        let hash = |key: &&[u8]| KeyHash::of(self.log.id(), key);
        if before >= self.end() {
            return self.index.newest(&keys.iter().map(hash).collect::<Vec<_>>());
        }
        let place = |key| {
            let is_late = |offset: &Result<Offset>| matches!(offset, Ok(late) if *late >= before);
            self.index.versions(hash(key))?.rev().find(|offset| !is_late(offset)).transpose()
        };
        keys.iter().map(place).collect()
    }

    /// Whether the index has a record of each key at `known` or later.
    pub(crate) fn newer(&self, keys: &[&[u8]], known: Offset) -> Result<Vec<bool>> {
        let places = self.places(keys, Offset::MAX)?;
        Ok(places.into_iter().map(|place| place.is_some_and(|place| place >= known)).collect())
    }

    /// Makes the index say that a record of `key` is at `offset`.
    #[cfg(test)]
    pub(crate) fn pretend(&mut self, key: &[u8], offset: Offset) {
        self.index.recent.add(KeyHash::of(self.log.id(), key), offset);
    }

    /// The newest record of a key whose newest place in the index holds no such record.
    fn settle(&mut self, key: &[u8], before: Offset) -> Found<'_> {
        let Some(offset) = self.newest_kept(key, before)? else { return Ok(None) };
        match self.fetch.at(offset)? {
            Fetched::Record(record) => Ok(Some(record)),
            Fetched::Gone => Ok(None),
        }
    }

    fn newest_kept(&mut self, key: &[u8], before: Offset) -> Result<Option<Offset>> {
        let start = self.log.start()?;
        for offset in self.index.versions(KeyHash::of(self.log.id(), key))?.rev() {
            let offset = offset?;
            if offset >= before {
                continue;
            }
            match kept(&self.log, &mut self.fetch, key, offset, start)? {
                Kept::There => return Ok(Some(offset)),
                Kept::Gone => {}
                Kept::Wrong => return search::newest(&self.log, key, before.min(self.index.end())),
            }
        }
        Ok(None)
    }

    /// Calls `visit` with every record of `key` before `before` that is kept, the oldest
    /// first, until that breaks off; says whether it did.
    ///
    /// # Errors
    /// [`Error::Damage`](crate::log::Error::Damage) where a record can't be read; what the disk says.
    pub fn versions(
        &mut self,
        key: &[u8],
        before: Offset,
        mut visit: impl FnMut(RecordView<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let before = before.min(self.end());
        let is_late = |offset: &Result<Offset>| matches!(offset, Ok(late) if *late >= before);
        let places = self.index.versions(KeyHash::of(self.log.id(), key))?;
        let mut places = places.take_while(|offset| !is_late(offset));
        // Everything before it was given.
        let mut given = Offset::ZERO;
        loop {
            let offsets: Vec<Offset> = places.by_ref().take(COMPARED).collect::<Result<_>>()?;
            let Some(&last) = offsets.last() else { return Ok(ControlFlow::Continue(())) };
            if names_another(&self.log, &mut self.fetch, &offsets, key)? {
                return search::each(&self.log, key, given, before, &mut visit);
            }
            let (mut ended, mut failed) = (ControlFlow::Continue(()), Ok(()));
            walk(&self.log, &mut self.fetch, &offsets, |_, found| {
                match found {
                    Ok(Some(record)) => ended = visit(record),
                    Ok(None) => {}
                    Err(error) => failed = Err(error),
                }
                if failed.is_err() { ControlFlow::Break(()) } else { ended }
            });
            failed?;
            if ended.is_break() {
                return Ok(ended);
            }
            given = last.forward(1).unwrap_or(Offset::MAX);
        }
    }
}

/// Whether one of the records at `offsets` has another key than `key`.
fn names_another(log: &Log, fetch: &mut Fetch, offsets: &[Offset], key: &[u8]) -> Result<bool> {
    let mut another = Ok(false);
    walk(log, fetch, offsets, |_, found| {
        match found {
            Ok(Some(record)) if record.content.key != Some(key) => another = Ok(true),
            Ok(_) => return ControlFlow::Continue(()),
            Err(error) => another = Err(error),
        }
        ControlFlow::Break(())
    });
    another
}

/// Calls `visit` with what is at each of `offsets`, which don't go down, by its number,
/// until that breaks off. Each batch is read once.
fn walk(
    log: &Log,
    fetch: &mut Fetch,
    offsets: &[Offset],
    mut visit: impl FnMut(usize, Found<'_>) -> ControlFlow<()>,
) {
    let mut number = 0;
    while let Some(&first) = offsets.get(number) {
        let read = fetch.batch(first).and_then(|piece| match piece {
            Some(piece) => Ok(Some((records_of(log, &piece)?, piece.header.next))),
            None => Ok(None),
        });
        let (mut records, next) = match read {
            Ok(Some(read)) => read,
            nothing => {
                if visit(number, nothing.map(|_| None)).is_break() {
                    return;
                }
                number += 1;
                continue;
            }
        };
        let mut record = records.next();
        while let Some(&offset) = offsets.get(number).filter(|offset| **offset < next) {
            while record.is_some_and(|record| record.offset < offset) {
                record = records.next();
            }
            if visit(number, Ok(record.filter(|record| record.offset == offset))).is_break() {
                return;
            }
            number += 1;
        }
    }
}

/// What is at `offset`, where the index has a record of `key`; the log starts at `start`.
fn kept(log: &Log, fetch: &mut Fetch, key: &[u8], offset: Offset, start: Offset) -> Result<Kept> {
    let Some(piece) = fetch.batch(offset)? else {
        return Ok(if offset < start { Kept::Gone } else { Kept::Wrong });
    };
    let found = records_of(log, &piece)?.find(|record| record.offset == offset);
    Ok(match found {
        None => Kept::Gone,
        Some(record) if record.content.key == Some(key) => Kept::There,
        Some(_) => Kept::Wrong,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::body::{self, Body};
    use crate::format::record::Content;
    use crate::log::Appender;
    use crate::log::fixture::{Fixture, fixture};
    use crate::model::Timestamp;

    /// A log with these keys and values, three records a batch, and its look-up.
    fn log_of(records: &[(&str, &str)]) -> (Fixture, Lookup) {
        let fixture = fixture(1 << 20);
        let mut appender = Appender::open(&fixture.log).unwrap();
        for batch in records.chunks(3) {
            let contents: Vec<Content<'_>> = batch
                .iter()
                .map(|(key, value)| Content {
                    key: Some(key.as_bytes()),
                    ..Content::of_value(value.as_bytes())
                })
                .collect();
            let mut bytes = Vec::new();
            let layout = body::encode(&contents, &mut bytes);
            let body = Body::plain(layout, batch.len() as u32, &bytes);
            appender.append(&body, Timestamp::from_millis(0)).unwrap();
        }
        appender.sync().unwrap();
        let lookup = Lookup::open(&fixture.log).unwrap();
        (fixture, lookup)
    }

    /// `offset=value` of the newest record of each key.
    fn newest(lookup: &mut Lookup, keys: &[&str], before: u64) -> Vec<String> {
        let bytes: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes()).collect();
        let mut found = vec![String::new(); keys.len()];
        let visit = |number: usize, record: Found<'_>| {
            assert_eq!(found[number], "", "told once");
            found[number] = record.unwrap().map_or_else(|| "-".to_owned(), |record| shown(&record));
        };
        lookup.newest(&bytes, Offset::new(before), visit).unwrap();
        found
    }

    fn versions(lookup: &mut Lookup, key: &str, before: u64) -> Vec<String> {
        let mut found = Vec::new();
        let visit = |record: RecordView<'_>| {
            found.push(shown(&record));
            ControlFlow::Continue(())
        };
        let _ = lookup.versions(key.as_bytes(), Offset::new(before), visit).unwrap();
        found
    }

    fn shown(record: &RecordView<'_>) -> String {
        let value = String::from_utf8(record.content.value.unwrap().to_vec()).unwrap();
        format!("{}={value}", record.offset)
    }

    const RECORDS: [(&str, &str); 8] = [
        ("a", "1"),
        ("b", "2"),
        ("a", "3"),
        ("", "4"),
        ("c", "5"),
        ("a", "6"),
        ("b", "7"),
        ("d", "8"),
    ];

    #[test]
    fn the_newest_record_of_each_key_is_found_as_of_any_offset() {
        let (_fixture, mut lookup) = log_of(&RECORDS);
        let keys = ["b", "x", "a", "", "a", "d"];
        for before in [8, 9, Offset::MAX.get()] {
            let found = newest(&mut lookup, &keys, before);
            assert_eq!(found, ["6=7", "-", "5=6", "3=4", "5=6", "7=8"], "before {before}");
        }
        assert_eq!(newest(&mut lookup, &keys, 6), ["1=2", "-", "5=6", "3=4", "5=6", "-"]);
        assert_eq!(newest(&mut lookup, &keys, 3), ["1=2", "-", "2=3", "-", "2=3", "-"]);
        assert_eq!(newest(&mut lookup, &keys, 0), ["-"; 6]);
    }

    #[test]
    fn all_versions_are_given_from_the_oldest_on() {
        let (_fixture, mut lookup) = log_of(&RECORDS);
        assert_eq!(versions(&mut lookup, "a", 99), ["0=1", "2=3", "5=6"]);
        assert_eq!(versions(&mut lookup, "a", 5), ["0=1", "2=3"]);
        assert!(versions(&mut lookup, "x", 99).is_empty());
    }

    #[test]
    fn h019_where_the_index_names_another_record_the_log_is_read() {
        // Another key's record, one in the same batch, and one beyond the end.
        for lie in [1, 4, 7, 8, 50] {
            let (_fixture, mut lookup) = log_of(&RECORDS);
            for key in ["a", "x"] {
                lookup.pretend(key.as_bytes(), Offset::new(lie));
            }
            assert_eq!(newest(&mut lookup, &["a", "b", "x"], 99), ["5=6", "6=7", "-"], "{lie}");
            assert_eq!(versions(&mut lookup, "a", 99), ["0=1", "2=3", "5=6"], "{lie}");
            assert!(versions(&mut lookup, "x", 99).is_empty(), "{lie}");
        }
    }

    #[test]
    fn a_record_that_gc_deleted_is_not_kept() {
        let fixture = fixture(512);
        fixture.append(60);
        let mut lookup = Lookup::open(&fixture.log).unwrap();
        lookup.pretend(b"k", Offset::new(2));
        let base = fixture.log.segments().unwrap().0.last().unwrap().base;
        let group = "g".parse().unwrap();
        fixture.log.commit(&group, base, Timestamp::from_millis(0)).unwrap();
        fixture.log.collect().unwrap();
        assert_eq!(newest(&mut lookup, &["k"], 99), ["-"]);
        assert!(versions(&mut lookup, "k", 99).is_empty());
    }
}
