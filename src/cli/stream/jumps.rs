//! Where `consume --key` may jump to: over what holds no record with one of the keys. The
//! index is a hint, so the record that it names is read first; where that has another key,
//! or the index fails, nothing more is jumped over.

use anyhow::Result;

use super::consumption::Until;
use crate::format::batch::{HEADER_LEN, Header};
use crate::log::{Fetch, Fetched, KeyIndex, Log, Places};
use crate::model::{Offset, Start};

/// A jump costs about as much as reading so many bytes.
const WORTH_A_JUMP: u64 = 512 << 10;

/// Jumps from one record with one of some keys to the next.
#[derive(Debug)]
pub struct Jumps<'i> {
    places: Places<'i>,
    keys: Vec<Vec<u8>>,
    fetch: Fetch,
    /// Before it the index knows all records, and all are wanted.
    until: Offset,
    /// The bytes and the offsets of the batch read last.
    density: Option<(u64, u64)>,
    /// The index named a wrong record, or failed: it is used no more.
    failed: bool,
}

impl<'i> Jumps<'i> {
    /// Jumps forwards over what `index` knows of `log`, to before `end` or `until`.
    ///
    /// # Errors
    /// As [`Log::resolve`] and [`KeyIndex::places`].
    pub fn forwards(
        log: &Log,
        index: &'i KeyIndex,
        keys: &[Vec<u8>],
        until: Until,
        end: Offset,
    ) -> Result<Jumps<'i>> {
        let until = match until {
            Until::Open => Offset::MAX,
            Until::Offset(offset) => offset,
            Until::Time(time) => log.resolve(Start::Time(time))?,
        };
        let until = until.min(end).min(index.end());
        Ok(Jumps::over(log, index.places(keys)?, keys, until))
    }

    /// Jumps backwards.
    ///
    /// # Errors
    /// As [`KeyIndex::places_back`].
    pub fn backwards(log: &Log, index: &'i KeyIndex, keys: &[Vec<u8>]) -> Result<Jumps<'i>> {
        Ok(Jumps::over(log, index.places_back(keys)?, keys, index.end()))
    }

    fn over(log: &Log, places: Places<'i>, keys: &[Vec<u8>], until: Offset) -> Jumps<'i> {
        let (keys, fetch) = (keys.to_vec(), Fetch::of(log));
        Jumps { places, keys, fetch, until, density: None, failed: false }
    }

    /// Takes note of a batch that was read.
    pub fn read(&mut self, header: &Header) {
        let bytes = u64::from(header.stored) + HEADER_LEN as u64;
        self.density = Some((bytes, header.next.since(header.base)));
    }

    /// Where a reader that comes to `next` may go on; `None` if it is to read on.
    pub fn over_from(&mut self, next: Offset) -> Option<Offset> {
        if self.failed || next >= self.until {
            return None;
        }
        let end = self.until;
        let place = self.jump(next, |place| place.map_or(end, |place| place.min(end)))?;
        (place > next).then_some(place)
    }

    /// Where a reader that goes back from `until` may go on: before which offset, or
    /// [`Offset::ZERO`] if nothing more is wanted. `None` if it is to read on.
    pub fn back_from(&mut self, until: Offset) -> Option<Offset> {
        if self.failed || until > self.until {
            return None;
        }
        let behind = |place: Offset| place.forward(1).unwrap_or(Offset::MAX);
        self.jump(until, |place| place.map_or(Offset::ZERO, behind))
    }

    /// Where to go on from `from`, as `target` says of the next place that holds a record
    /// with one of the keys; `None` if that is not worth it, or the index is of no use.
    fn jump(
        &mut self,
        mut from: Offset,
        target: impl Fn(Option<Offset>) -> Offset,
    ) -> Option<Offset> {
        let begin = from;
        while let Ok(place) = self.places.next_from(from) {
            let target = target(place);
            if !self.is_worth_it(begin, target) {
                return None;
            }
            let Some(place) = place else { return Some(target) };
            match self.fetch.at(place) {
                Ok(Fetched::Gone) => from = self.places.behind(place),
                Ok(Fetched::Record(record)) => {
                    let has = |key| self.keys.iter().any(|wanted| wanted == key);
                    if record.content.key.is_some_and(has) {
                        return Some(target);
                    }
                    break;
                }
                // Whoever comes there meets what keeps it from being read.
                Err(_) => return Some(target),
            }
        }
        self.failed = true;
        None
    }

    fn is_worth_it(&self, from: Offset, to: Offset) -> bool {
        let distance = from.max(to).since(from.min(to));
        self.density.is_none_or(|(bytes, offsets)| {
            distance.saturating_mul(bytes) / offsets.max(1) >= WORTH_A_JUMP
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::disk::real::RealDisk;
    use crate::format::body::{self, Body};
    use crate::format::record::Content;
    use crate::format::settings::Settings;
    use crate::log::{Appender, Home};
    use crate::model::{LogId, Timestamp};

    /// Records of 300 KiB, a batch each, with these keys.
    fn log_of(dir: &std::path::Path, keys: &[&str]) -> Log {
        let home = Home::new(Arc::new(RealDisk), dir.join("log"), |_| ());
        let log = Log::open_or_create(&home, LogId::new(1), &Settings::default()).unwrap();
        let mut appender = Appender::open(&log).unwrap();
        let value = vec![b'v'; 300 << 10];
        for key in keys {
            let content = Content { key: Some(key.as_bytes()), ..Content::of_value(&value) };
            let mut bytes = Vec::new();
            let layout = body::encode(&[content], &mut bytes);
            appender.append(&Body::plain(layout, 1, &bytes), Timestamp::default()).unwrap();
        }
        log
    }

    const KEYS: [&str; 10] = ["-", "-", "a", "b", "a", "-", "-", "-", "b", "-"];

    fn places(jump: impl Fn(u64) -> Option<Offset>) -> Vec<Option<u64>> {
        (0..=10).map(|from| jump(from).map(Offset::get)).collect()
    }

    fn density() -> Option<(u64, u64)> {
        Some((300 << 10, 1))
    }

    #[test]
    fn it_jumps_to_the_next_of_the_keys_where_that_is_far_enough() {
        let dir = tempfile::tempdir().unwrap();
        let log = log_of(dir.path(), &KEYS);
        let index = KeyIndex::open(&log).unwrap();
        let keys = [b"a".to_vec(), b"b".to_vec()];
        let found = places(|from| {
            let jumps = Jumps::forwards(&log, &index, &keys, Until::Open, Offset::MAX);
            let mut jumps = jumps.unwrap();
            jumps.density = density();
            jumps.over_from(Offset::new(from))
        });
        let far = [Some(2), None, None, None, None, Some(8), Some(8), None, None, None, None];
        assert_eq!(found, far);
        let found = places(|until| {
            let mut jumps = Jumps::backwards(&log, &index, &keys).unwrap();
            jumps.density = density();
            jumps.back_from(Offset::new(until))
        });
        let far = [None, None, Some(0), None, None, None, None, Some(5), Some(5), None, None];
        assert_eq!(found, far);
    }

    #[test]
    fn it_jumps_to_the_end_where_none_follows_and_at_first_to_whatever_is_next() {
        let dir = tempfile::tempdir().unwrap();
        let log = log_of(dir.path(), &KEYS);
        let index = KeyIndex::open(&log).unwrap();
        for (key, until, first) in
            [("x", Until::Open, 10), ("x", Until::Offset(Offset::new(7)), 7), ("b", Until::Open, 3)]
        {
            let keys = [key.as_bytes().to_vec()];
            let jumps = Jumps::forwards(&log, &index, &keys, until, Offset::MAX);
            assert_eq!(jumps.unwrap().over_from(Offset::ZERO), Some(Offset::new(first)));
        }
        let mut jumps = Jumps::backwards(&log, &index, &[b"x".to_vec()]).unwrap();
        assert_eq!(jumps.back_from(Offset::new(10)), Some(Offset::ZERO));
    }

    #[test]
    fn h019_an_index_that_names_another_record_is_used_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let log = log_of(dir.path(), &KEYS);
        let index = KeyIndex::open(&log).unwrap();
        // Its places are those of b.
        let mut jumps =
            Jumps::forwards(&log, &index, &[b"b".to_vec()], Until::Open, Offset::MAX).unwrap();
        jumps.keys = vec![b"a".to_vec()];
        assert_eq!(jumps.over_from(Offset::ZERO), None);
        assert!(jumps.failed);
    }
}
