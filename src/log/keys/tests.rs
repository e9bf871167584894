//! The index as a whole, on a simulated disk: whatever became of its tables, it answers
//! as a plain list of the records would.

mod rewritten;
mod tables;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proptest::prelude::{Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};
use proptest::test_runner::{Config, TestCaseResult};

use super::KeyIndex;
use super::directory::KeysLock;
use super::upkeep::{Sizes, cover};
use crate::disk::Disk;
use crate::format::body::{self, Body};
use crate::format::codec::Compression;
use crate::format::key_hash::KeyHash;
use crate::format::record::Content;
use crate::log::Appender;
use crate::log::fixture::{Fixture, fixture};
use crate::model::{Offset, Timestamp};

const TINY: Sizes = Sizes { uncovered: 1, entries: 7, most: 200, unsynced: 60, recent: 5 };
const NOW: Timestamp = Timestamp::from_millis(1);

/// A log, and the keys of all its records; `None` has none.
struct Keyed {
    fixture: Fixture,
    keys: Vec<Option<u8>>,
    tombstones: Vec<bool>,
    /// When the next record is appended.
    now: Timestamp,
}

impl Keyed {
    fn new() -> Keyed {
        Keyed { fixture: fixture(700), keys: Vec::new(), tombstones: Vec::new(), now: NOW }
    }

    /// Appends a record for each key, all of one batch; those of odd keys and offsets have
    /// no value.
    fn append(&mut self, keys: &[Option<u8>], sync: bool) {
        let texts: Vec<Option<String>> =
            keys.iter().map(|key| key.map(|key| format!("k{key}"))).collect();
        let content = |(number, key): (usize, &Option<String>)| {
            let is_null =
                keys[number].is_some_and(|key| key % 2 == 1) && (self.keys.len() + number) % 2 == 1;
            self.tombstones.push(is_null);
            let value = (!is_null).then_some(&b"some value"[..]);
            (key.clone(), value)
        };
        let contents: Vec<_> = texts.iter().enumerate().map(content).collect();
        let contents: Vec<Content<'_>> = contents
            .iter()
            .map(|(key, value)| Content {
                key: key.as_deref().map(str::as_bytes),
                value: *value,
                ..Content::default()
            })
            .collect();
        let mut bytes = Vec::new();
        let layout = body::encode(&contents, &mut bytes);
        let mut appender = Appender::open(&self.fixture.log).unwrap();
        if self.keys.len().is_multiple_of(3) {
            appender.compress(Compression::Lz4);
        }
        appender.append(&Body::plain(layout, keys.len() as u32, &bytes), self.now).unwrap();
        if sync {
            appender.sync().unwrap();
        }
        self.keys.extend(keys);
    }

    fn cover(&self, sizes: &Sizes) {
        let log = &self.fixture.log;
        let bounds = log.bounds().unwrap();
        let lock = KeysLock::take(log).unwrap();
        cover(log, &lock, &(bounds.start..bounds.durable), sizes).unwrap();
    }

    fn hash(&self, key: u8) -> KeyHash {
        KeyHash::of(self.fixture.log.id(), format!("k{key}").as_bytes())
    }

    fn start(&self) -> usize {
        self.fixture.log.start().unwrap().get() as usize
    }

    /// The offsets of a key, as a walk over all records finds them.
    fn expected(&self, key: u8) -> Vec<u64> {
        let has = |&at: &usize| self.keys[at] == Some(key);
        (self.start()..self.keys.len()).filter(has).map(|at| at as u64).collect()
    }

    fn index(&self) -> KeyIndex {
        KeyIndex::open_with(&self.fixture.log, TINY).unwrap()
    }

    /// Whether `index` knows of each key what a walk finds, whichever way it is asked.
    fn check(&self, index: &KeyIndex, turns: &[bool]) -> TestCaseResult {
        let hashes: Vec<KeyHash> = (0..12).rev().map(|key| self.hash(key)).collect();
        let newest = index.newest(&[&hashes[..], &hashes[..3]].concat()).unwrap();
        for (number, key) in (0..12).rev().enumerate() {
            let expected = self.expected(key);
            let last = expected.last().map(|&offset| Offset::new(offset));
            prop_assert_eq!(newest[number], last, "the newest of {}", key);
            let get = |offset: crate::log::Result<Offset>| offset.unwrap().get();
            let all: Vec<u64> = index.versions(hashes[number]).unwrap().map(get).collect();
            prop_assert_eq!(&all, &expected, "forwards");
            let mut back: Vec<u64> =
                index.versions(hashes[number]).unwrap().rev().map(get).collect();
            back.reverse();
            prop_assert_eq!(&back, &expected, "backwards");
            let mut both = index.versions(hashes[number]).unwrap();
            let (mut front, mut back) = (Vec::new(), Vec::new());
            for &from_front in turns.iter().cycle().take(expected.len()) {
                match from_front {
                    true => front.extend(both.next().map(get)),
                    false => back.extend(both.next_back().map(get)),
                }
            }
            prop_assert_eq!((both.next().is_none(), both.next_back().is_none()), (true, true));
            front.extend(back.into_iter().rev());
            prop_assert_eq!(&front, &expected, "from both ends");
        }
        prop_assert_eq!(&newest[..3], &newest[12..]);
        Ok(())
    }

    fn tables(&self) -> Vec<PathBuf> {
        let mut names = self.fixture.disk.names(Path::new("/log/keys")).unwrap_or_default();
        names.retain(|name| name.ends_with(".table"));
        names.into_iter().map(|name| Path::new("/log/keys").join(name)).collect()
    }
}

#[derive(Clone, Debug)]
enum Deed {
    Append(Vec<Option<u8>>, bool),
    Cover(usize),
    Open,
    Gc(prop::sample::Index),
    Remove(prop::sample::Index),
    Garble(prop::sample::Index, prop::sample::Index),
    Cut(prop::sample::Index, prop::sample::Index),
    PutBack,
    Advance,
}

fn deed() -> impl Strategy<Value = Deed> {
    let key = || prop_oneof![3 => (0..10u8).prop_map(Some), 1 => prop::strategy::Just(None)];
    let index = any::<prop::sample::Index>;
    prop_oneof![
        6 => (prop::collection::vec(key(), 1..6), any::<bool>()).prop_map(|(keys, sync)| Deed::Append(keys, sync)),
        4 => (1..9usize).prop_map(Deed::Cover),
        2 => prop::strategy::Just(Deed::Open),
        1 => index().prop_map(Deed::Gc),
        1 => index().prop_map(Deed::Remove),
        1 => (index(), index()).prop_map(|(table, byte)| Deed::Garble(table, byte)),
        1 => (index(), index()).prop_map(|(table, byte)| Deed::Cut(table, byte)),
        1 => prop::strategy::Just(Deed::PutBack),
        2 => prop::strategy::Just(Deed::Advance),
    ]
}

proptest! {
    #![proptest_config(Config { cases: 200, failure_persistence: None, ..Default::default() })]
    #[test]
    fn it_answers_as_a_list_of_all_records_does(
        deeds in prop::collection::vec(deed(), 0..60), turns in prop::collection::vec(any::<bool>(), 1..8)
    ) {
        let mut keyed = Keyed::new();
        let mut saved: BTreeMap<PathBuf, Vec<u8>> = BTreeMap::new();
        let mut old: Option<KeyIndex> = None;
        for deed in deeds {
            let tables = keyed.tables();
            let change = |table: prop::sample::Index, change: &dyn Fn(&mut Vec<u8>)| {
                if !tables.is_empty() {
                    let path = table.get(&tables);
                    let mut bytes = keyed.fixture.disk.read_file(path).unwrap();
                    change(&mut bytes);
                    keyed.fixture.disk.write_file(path, &bytes).unwrap();
                }
            };
            match deed {
                Deed::Append(keys, sync) => keyed.append(&keys, sync),
                Deed::Cover(entries) => keyed.cover(&Sizes { entries, ..TINY }),
                Deed::Open => {
                    let index = keyed.index();
                    keyed.check(&index, &turns)?;
                    old = Some(index);
                }
                Deed::Gc(to) => {
                    let group = "g".parse().unwrap();
                    let next = to.index(keyed.keys.len() + 1).max(keyed.start()) as u64;
                    let _ = keyed.fixture.log.commit(&group, Offset::new(next), NOW);
                    keyed.fixture.log.collect().unwrap();
                    // What it knew may be gone, which is for whoever reads the records.
                    old = None;
                }
                Deed::Remove(table) => {
                    if !tables.is_empty() {
                        keyed.fixture.disk.remove_file(table.get(&tables[..]).as_path()).unwrap();
                    }
                }
                Deed::Garble(table, byte) => change(table, &|bytes| {
                    let at = byte.index(bytes.len());
                    bytes[at] ^= 0x10;
                }),
                Deed::Cut(table, byte) => change(table, &|bytes| bytes.truncate(byte.index(bytes.len()))),
                Deed::PutBack => {
                    for (path, bytes) in &saved {
                        keyed.fixture.disk.write_file(path, bytes).unwrap();
                    }
                    let read = |path: PathBuf| (path.clone(), keyed.fixture.disk.read_file(&path).unwrap());
                    saved = keyed.tables().into_iter().map(read).collect();
                }
                Deed::Advance => {
                    if let Some(index) = &mut old {
                        index.advance(keyed.fixture.log.bounds().unwrap().end).unwrap();
                        keyed.check(index, &turns)?;
                    }
                }
            }
        }
        let index = keyed.index();
        keyed.check(&index, &turns)?;
        drop(keyed.fixture.told());
        keyed.check(&keyed.index(), &turns)?;
        prop_assert_eq!(keyed.fixture.told(), vec![], "the second time is silent");
    }
}
