//! Appending records whose keys are new. The keys are looked up in the log as it is; then,
//! under the append lock, what others appended meanwhile is looked at too, and what is new
//! after that is appended before the lock is let go. So of many producers that send the
//! same key, one stores it and the others are told where.
//!
//! ```text
//! look up before E ── lock ── learn [E, end) ── new there? ── append ── unlock
//!        ▲                                        │ no
//!        └──────────── judged by what is there ◄──┘
//! ```

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use super::append::{Appender, bound};
use super::writer::Appended;
use crate::format::batch::{Codec, Layout};
use crate::format::body::{self, Body};
use crate::format::codec::{Compression, compress};
use crate::format::record::Content;
use crate::log::error::Result;
use crate::log::keys::{Found, Lookup};
use crate::model::{Offset, Timestamp};

/// What became of a record that was to be appended if its key is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// It was appended there.
    New(Offset),
    /// A record that equals it is kept there, and it was not appended.
    Same(Offset),
    /// Records of its key are kept, the newest there, but none equals it; it was not appended.
    Other(Offset),
}

/// So many offsets are learnt so fast that hardly any come meanwhile; those are learnt
/// under the lock, where others have to wait.
const LITTLE: u64 = 4096;
/// How often it is tried to come so near without the lock.
const TRIES: usize = 4;

impl Appender {
    /// Appends, at `now`, those of `records` whose keys have no record in the log; of several
    /// with one key, the first. Says what became of each. All have keys. With `expected`
    /// only if the log end is that.
    ///
    /// Whatever it says is in the log when it returns, and durable after a
    /// [`sync`](Self::sync).
    ///
    /// # Errors
    /// As [`append_if_end`](Self::append_if_end) and [`KeyIndex::advance`](crate::log::KeyIndex::advance).
    pub fn append_new(
        &mut self,
        lookup: &mut Lookup,
        records: &[Content<'_>],
        expected: Option<Offset>,
        now: Timestamp,
    ) -> Result<Vec<Placed>> {
        self.catch_up(lookup)?;
        let mut expected = expected;
        let mut placed = vec![None; records.len()];
        let mut open: Vec<usize> = (0..records.len()).collect();
        // The second time round most often judges all that is left. The lock is taken
        // once in any case, so that a sync covers what others have appended.
        loop {
            open = judge(lookup, records, &open, &mut placed)?;
            let (firsts, mut later) = firsts_of_keys(records, &open);
            let appended = self.append_unless_there(lookup, records, firsts, expected, now)?;
            for (&number, offset) in appended.new.iter().zip(appended.at.base.get()..) {
                placed[number] = Some(Placed::New(Offset::new(offset)));
            }
            self.covering.appended_keys(appended.bytes);
            lookup.advance(appended.at.next)?;
            expected = expected.map(|_| appended.at.next);
            later.extend(appended.taken);
            open = later;
            if open.is_empty() {
                return Ok(placed.into_iter().flatten().collect());
            }
        }
    }

    /// Learns what others have appended until now, and goes on with that until hardly
    /// anything comes meanwhile.
    fn catch_up(&mut self, lookup: &mut Lookup) -> Result<()> {
        for _ in 0..TRIES {
            let (known, end) = (lookup.end(), self.locked(|writer| Ok(writer.end()))?);
            lookup.advance(end)?;
            if end.since(known) <= LITTLE {
                break;
            }
        }
        Ok(())
    }

    /// Appends those of the records with these numbers whose keys nobody appended since
    /// the look-up's end.
    fn append_unless_there(
        &mut self,
        lookup: &mut Lookup,
        records: &[Content<'_>],
        numbers: Vec<usize>,
        expected: Option<Offset>,
        now: Timestamp,
    ) -> Result<UnlessThere> {
        // Before the lock is taken, so that nobody waits for it.
        let (room, compression) = (self.batch_room(), self.compression);
        let prepare = |numbers| NewRecords::prepare(records, numbers, room, compression);
        let mut new = prepare(numbers)?;
        self.changing(|writer| {
            writer.expect_end(expected)?;
            let known = lookup.end();
            lookup.advance(writer.end())?;
            let mut taken = Vec::new();
            if writer.end() > known {
                let newer = lookup.newer(&keys_of(records, &new.numbers), known)?;
                if newer.contains(&true) {
                    let numbers = new.numbers.iter().copied().zip(newer);
                    let (faster, ours): (Vec<_>, Vec<_>) = numbers.partition(|(_, newer)| *newer);
                    taken = faster.into_iter().map(|(number, _)| number).collect();
                    new = prepare(ours.into_iter().map(|(number, _)| number).collect())?;
                }
            }
            let at = match new.batches.is_empty() {
                // However full the log is.
                true => Appended { base: writer.end(), next: writer.end() },
                false => writer.append(&new.bodies(), now)?,
            };
            let bytes = new.batches.iter().map(|batch| batch.raw.len() as u64).sum();
            Ok(UnlessThere { at, bytes, new: new.numbers, taken })
        })
    }
}

/// What was appended, and of which of the records.
struct UnlessThere {
    at: Appended,
    /// The size of it.
    bytes: u64,
    new: Vec<usize>,
    /// The others: somebody was faster.
    taken: Vec<usize>,
}

/// Some of the records, ready to be appended as a few batches.
struct NewRecords {
    numbers: Vec<usize>,
    batches: Vec<NewBatch>,
}

struct NewBatch {
    layout: Layout,
    records: u32,
    raw: Vec<u8>,
    codec: Codec,
    compressed: Vec<u8>,
}

impl NewRecords {
    /// Those with these numbers, in batches of about `room` bytes.
    fn prepare(
        records: &[Content<'_>],
        numbers: Vec<usize>,
        room: usize,
        compression: Compression,
    ) -> Result<NewRecords> {
        let contents: Vec<Content<'_>> = numbers.iter().map(|&number| records[number]).collect();
        let mut batches = Vec::new();
        let mut rest = &contents[..];
        while !rest.is_empty() {
            let (batch, later) = rest.split_at(count_fitting(rest, room));
            batches.push(NewBatch::of(batch, compression)?);
            rest = later;
        }
        Ok(NewRecords { numbers, batches })
    }

    fn bodies(&self) -> Vec<Body<'_>> {
        self.batches.iter().map(NewBatch::body).collect()
    }
}

impl NewBatch {
    fn of(contents: &[Content<'_>], compression: Compression) -> Result<NewBatch> {
        let (mut raw, mut compressed) = (Vec::new(), Vec::new());
        let layout = body::encode(contents, &mut raw);
        let records = u32::try_from(contents.len()).unwrap_or(u32::MAX);
        bound(&Body::plain(layout, records, &raw))?;
        let codec = compress(compression, &raw, &mut compressed);
        Ok(NewBatch { layout, records, raw, codec, compressed })
    }

    fn plain(&self) -> Body<'_> {
        Body::plain(self.layout, self.records, &self.raw)
    }

    fn body(&self) -> Body<'_> {
        match self.codec {
            Codec::None => self.plain(),
            codec => Body { codec, bytes: &self.compressed, ..self.plain() },
        }
    }
}

/// How many of the records, one at least, fit into a batch of `room` bytes.
fn count_fitting(records: &[Content<'_>], room: usize) -> usize {
    // A newline and a length for each.
    let mut bytes = 0;
    let fits = |record: &&Content<'_>| {
        bytes += record.size() + 2;
        bytes <= room
    };
    records.iter().take_while(fits).count().max(1)
}

fn keys_of<'a>(records: &[Content<'a>], numbers: &[usize]) -> Vec<&'a [u8]> {
    numbers.iter().map(|&number| records[number].key.unwrap_or_default()).collect()
}

/// The first record of each key among these, and the others.
fn firsts_of_keys(records: &[Content<'_>], numbers: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let mut seen = HashSet::with_capacity(numbers.len());
    numbers.iter().partition(|&&number| seen.insert(records[number].key))
}

/// Judges those of the records with these numbers whose keys have a record that the
/// look-up knows; the numbers of the others.
fn judge(
    lookup: &mut Lookup,
    records: &[Content<'_>],
    numbers: &[usize],
    placed: &mut [Option<Placed>],
) -> Result<Vec<usize>> {
    let (mut differing, mut failed) = (Vec::new(), Ok(()));
    lookup.newest(&keys_of(records, numbers), Offset::MAX, |at, found: Found<'_>| {
        let number = numbers[at];
        match found {
            Ok(None) => {}
            Ok(Some(there)) if there.content == records[number] => {
                placed[number] = Some(Placed::Same(there.offset));
            }
            Ok(Some(there)) => {
                placed[number] = Some(Placed::Other(there.offset));
                differing.push(number);
            }
            Err(error) => failed = Err(error),
        }
    })?;
    failed?;
    compare_older(lookup, records, &differing, placed)?;
    Ok(numbers.iter().copied().filter(|&number| placed[number].is_none()).collect())
}

/// Looks for records that differ from the newest of their keys among the older ones; the
/// versions of a key are read once.
fn compare_older(
    lookup: &mut Lookup,
    records: &[Content<'_>],
    differing: &[usize],
    placed: &mut [Option<Placed>],
) -> Result<()> {
    let keys = keys_of(records, differing);
    let mut wanted: HashMap<_, Vec<usize>> = HashMap::new();
    for (&number, key) in differing.iter().zip(&keys) {
        wanted.entry((*key, records[number].value)).or_default().push(number);
    }
    for key in keys.into_iter().collect::<HashSet<_>>() {
        let _ = lookup.versions(key, Offset::MAX, |there| {
            for &number in wanted.get(&(key, there.content.value)).into_iter().flatten() {
                if there.content == records[number] {
                    placed[number] = Some(Placed::Same(there.offset));
                }
            }
            ControlFlow::Continue(())
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::fixture::{Fixture, fixture};
    use crate::log::{Reader, Reading};

    fn record<'a>(key: &'a str, value: &'a str) -> Content<'a> {
        Content { key: Some(key.as_bytes()), ..Content::of_value(value.as_bytes()) }
    }

    fn append(
        appender: &mut Appender,
        lookup: &mut Lookup,
        records: &[(&str, &str)],
    ) -> Vec<String> {
        let records: Vec<_> = records.iter().map(|(key, value)| record(key, value)).collect();
        let now = Timestamp::from_millis(0);
        let placed = appender.append_new(lookup, &records, None, now).unwrap();
        assert_eq!(placed.len(), records.len());
        let shown = |placed: Placed| match placed {
            Placed::New(offset) => format!("new {offset}"),
            Placed::Same(offset) => format!("same {offset}"),
            Placed::Other(offset) => format!("other {offset}"),
        };
        placed.into_iter().map(shown).collect()
    }

    /// A writer and what it knows.
    fn writer(fixture: &Fixture) -> (Appender, Lookup) {
        (Appender::open(&fixture.log).unwrap(), Lookup::open(&fixture.log).unwrap())
    }

    /// `key=value` of every record.
    fn all(fixture: &Fixture) -> Vec<String> {
        let mut reader = Reader::open(&fixture.log, Offset::ZERO).unwrap();
        let mut all = Vec::new();
        while let Reading::Records(piece) = reader.read().unwrap() {
            for record in piece.records().unwrap() {
                let text =
                    |bytes: Option<&[u8]>| String::from_utf8(bytes.unwrap().to_vec()).unwrap();
                let content = record.content;
                all.push(format!("{}={}", text(content.key), text(content.value)));
            }
        }
        all
    }

    #[test]
    fn of_several_records_with_one_key_the_first_is_appended() {
        let fixture = fixture(1 << 20);
        let (mut appender, mut lookup) = writer(&fixture);
        let records = [("a", "1"), ("b", "1"), ("a", "1"), ("a", "2"), ("", "3"), ("b", "1")];
        let placed = append(&mut appender, &mut lookup, &records);
        assert_eq!(placed, ["new 0", "new 1", "same 0", "other 0", "new 2", "same 1"]);
        let placed = append(&mut appender, &mut lookup, &records);
        assert_eq!(placed, ["same 0", "same 1", "same 0", "other 0", "same 2", "same 1"]);
        assert_eq!(all(&fixture), ["a=1", "b=1", "=3"]);
    }

    #[test]
    fn what_others_append_is_seen_by_each_in_turn() {
        let fixture = fixture(512);
        let mut writers = [writer(&fixture), writer(&fixture), writer(&fixture)];
        for round in 0..20 {
            let keys: Vec<String> = (0..10).map(|n| format!("{round} {n}")).collect();
            for (number, (appender, lookup)) in writers.iter_mut().enumerate() {
                let records: Vec<_> = keys.iter().map(|key| (key.as_str(), "v")).collect();
                let placed = append(appender, lookup, &records);
                let word = if number == 0 { "new" } else { "same" };
                let wanted: Vec<_> =
                    (0..10).map(|n| format!("{word} {}", round * 10 + n)).collect();
                assert_eq!(placed, wanted);
            }
        }
        assert_eq!(all(&fixture).len(), 200);
    }

    #[test]
    fn what_comes_before_the_lock_is_had_is_not_appended_again() {
        let fixture = fixture(1 << 20);
        let (mut appender, mut lookup) = writer(&fixture);
        let (mut other, mut others) = writer(&fixture);
        append(&mut other, &mut others, &[("b", "1"), ("x", "1")]);
        let records = [record("a", "1"), record("b", "1"), record("c", "1")];
        let now = Timestamp::from_millis(0);
        let numbers = vec![0, 1, 2];
        let found = appender.append_unless_there(&mut lookup, &records, numbers, None, now);
        let found = found.unwrap();
        assert_eq!((found.new, found.taken), (vec![0, 2], vec![1]));
        assert_eq!(all(&fixture), ["b=1", "x=1", "a=1", "c=1"]);
    }

    #[test]
    fn a_record_that_equals_an_older_version_is_there() {
        let fixture = fixture(1 << 20);
        let mut plain = Appender::open(&fixture.log).unwrap();
        for value in ["1", "2", "3"] {
            let mut bytes = Vec::new();
            let layout = body::encode(&[record("a", value)], &mut bytes);
            plain.append(&Body::plain(layout, 1, &bytes), Timestamp::from_millis(0)).unwrap();
        }
        let (mut appender, mut lookup) = writer(&fixture);
        let placed = append(&mut appender, &mut lookup, &[("a", "1"), ("a", "4"), ("a", "3")]);
        assert_eq!(placed, ["same 0", "other 2", "same 2"]);
    }

    #[test]
    fn h019_a_wrong_index_neither_hides_a_new_record_nor_doubles_an_old_one() {
        let fixture = fixture(1 << 20);
        let (mut appender, mut lookup) = writer(&fixture);
        append(&mut appender, &mut lookup, &[("a", "1"), ("b", "2")]);
        lookup.pretend(b"a", Offset::new(1));
        lookup.pretend(b"c", Offset::new(1));
        let placed = append(&mut appender, &mut lookup, &[("a", "1"), ("c", "3"), ("c", "3")]);
        assert_eq!(placed, ["same 0", "new 2", "same 2"]);
        assert_eq!(all(&fixture), ["a=1", "b=2", "c=3"]);
    }

    #[test]
    fn nothing_is_appended_where_another_end_was_expected() {
        let fixture = fixture(1 << 20);
        let (mut appender, mut lookup) = writer(&fixture);
        let now = Timestamp::from_millis(0);
        let mut append = |expected| {
            let records = [record("a", "1")];
            appender.append_new(&mut lookup, &records, Some(Offset::new(expected)), now)
        };
        assert!(append(1).is_err());
        assert_eq!(append(0).unwrap(), [Placed::New(Offset::ZERO)]);
        assert!(append(0).is_err(), "though there would be nothing to append");
        assert_eq!(append(1).unwrap(), [Placed::Same(Offset::ZERO)]);
    }
}
