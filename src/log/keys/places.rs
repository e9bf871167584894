//! Where records with some keys may be, for whoever reads a log in its order and wants no
//! others: from place to place, what lies between may be passed over.

use std::fmt;
use std::iter::Peekable;

use super::KeyIndex;
use crate::format::key_hash::KeyHash;
use crate::log::Result;
use crate::model::Offset;

type Versions<'i> = Box<dyn Iterator<Item = Result<Offset>> + 'i>;

/// The places of records with one of some keys, in order.
pub struct Places<'i> {
    /// For each key, its places still to come.
    versions: Vec<Peekable<Versions<'i>>>,
    /// From the newest to the oldest.
    backwards: bool,
}

impl fmt::Debug for Places<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Places").field("keys", &self.versions.len()).finish_non_exhaustive()
    }
}

impl KeyIndex {
    /// Where records with one of `keys` may be, the oldest first.
    ///
    /// # Errors
    /// As [`versions`](Self::versions).
    pub fn places(&self, keys: &[Vec<u8>]) -> Result<Places<'_>> {
        let versions = |key: &Vec<u8>| -> Result<Peekable<Versions<'_>>> {
            let versions = self.versions(KeyHash::of(self.log.id(), key))?;
            Ok((Box::new(versions) as Versions<'_>).peekable())
        };
        Ok(Places { versions: keys.iter().map(versions).collect::<Result<_>>()?, backwards: false })
    }

    /// The same, the newest first.
    ///
    /// # Errors
    /// As [`versions`](Self::versions).
    pub fn places_back(&self, keys: &[Vec<u8>]) -> Result<Places<'_>> {
        let versions = |key: &Vec<u8>| -> Result<Peekable<Versions<'_>>> {
            let versions = self.versions(KeyHash::of(self.log.id(), key))?;
            Ok((Box::new(versions.rev()) as Versions<'_>).peekable())
        };
        Ok(Places { versions: keys.iter().map(versions).collect::<Result<_>>()?, backwards: true })
    }
}

impl Places<'_> {
    /// From where on the next place is looked for once `place` was passed.
    pub fn behind(&self, place: Offset) -> Offset {
        if self.backwards { place } else { place.forward(1).unwrap_or(Offset::MAX) }
    }

    /// The first place at `from` or later; backwards, the first before `from`. Places
    /// that were passed don't come again.
    ///
    /// # Errors
    /// What the disk says of the index.
    pub fn next_from(&mut self, from: Offset) -> Result<Option<Offset>> {
        let backwards = self.backwards;
        let is_passed = |place: Offset| if backwards { place >= from } else { place < from };
        let mut places = Vec::with_capacity(self.versions.len());
        for versions in &mut self.versions {
            let is_ahead =
                |place: &Result<Offset>| matches!(place, Ok(place) if !is_passed(*place));
            while let Some(passed) = versions.next_if(|place| !is_ahead(place)) {
                passed?;
            }
            places.extend(versions.peek().and_then(|place| place.as_ref().ok()).copied());
        }
        Ok(if backwards { places.into_iter().max() } else { places.into_iter().min() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(keys: &[&[u64]], backwards: bool) -> Places<'static> {
        let versions = |offsets: &&[u64]| {
            let mut offsets: Vec<Offset> = offsets.iter().copied().map(Offset::new).collect();
            if backwards {
                offsets.reverse();
            }
            (Box::new(offsets.into_iter().map(Ok)) as Versions<'static>).peekable()
        };
        Places { versions: keys.iter().map(versions).collect(), backwards }
    }

    #[test]
    fn the_places_of_several_keys_come_in_one_order() {
        let keys: [&[u64]; 4] = [&[1, 5, 9], &[2, 5], &[], &[7]];
        let mut forwards = places(&keys, false);
        for (from, next) in [(0, Some(1)), (1, Some(1)), (2, Some(2)), (3, Some(5)), (6, Some(7))] {
            assert_eq!(forwards.next_from(Offset::new(from)).unwrap(), next.map(Offset::new));
        }
        assert_eq!(forwards.next_from(Offset::new(8)).unwrap(), Some(Offset::new(9)));
        assert_eq!(forwards.next_from(Offset::new(10)).unwrap(), None);
        let mut backwards = places(&keys, true);
        for (from, next) in [(99, Some(9)), (9, Some(7)), (6, Some(5)), (5, Some(2)), (1, None)] {
            assert_eq!(backwards.next_from(Offset::new(from)).unwrap(), next.map(Offset::new));
        }
    }
}
