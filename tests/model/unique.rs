//! Random sequences of unique and plain appends by several writers, on a simulated disk,
//! held against a map: of unique appends of a key the first is there, what equals a record
//! that is kept is found where that is, and nothing else is.

#![allow(clippy::unwrap_used, reason = "a test that can't go on panics")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};
use proptest::test_runner::Config;
use tapelog::disk::Disk;
use tapelog::disk::simulated::SimulatedDisk;
use tapelog::format::body::{self, Body};
use tapelog::format::record::Content;
use tapelog::format::settings::Settings;
use tapelog::log::{Appender, Home, Log, Lookup, Placed, Reader, Reading};
use tapelog::model::{LogId, Offset, Timestamp};

const WRITERS: usize = 3;

/// A key and a value out of few, so that they meet.
type Pair = (u8, u8);

#[derive(Clone, Debug)]
enum Call {
    Unique(usize, Vec<Pair>),
    Plain(usize, Vec<Pair>),
    Sync(usize),
    /// The writer begins anew, as after a kill.
    Reopen(usize),
    DeleteIndexes,
}

fn call() -> impl Strategy<Value = Call> {
    let pairs =
        || prop::collection::vec((0..12_u8, prop::bool::weighted(0.2).prop_map(u8::from)), 1..8);
    let writer = || 0..WRITERS;
    prop_oneof![
        8 => (writer(), pairs()).prop_map(|(writer, pairs)| Call::Unique(writer, pairs)),
        2 => (writer(), pairs()).prop_map(|(writer, pairs)| Call::Plain(writer, pairs)),
        2 => writer().prop_map(Call::Sync),
        1 => writer().prop_map(Call::Reopen),
        1 => Just(Call::DeleteIndexes),
    ]
}

struct Play {
    disk: Arc<SimulatedDisk>,
    log: Log,
    writers: Vec<(Appender, Lookup)>,
    /// What the log is to hold.
    all: Vec<Pair>,
    /// The offsets of each key's records.
    kept: BTreeMap<u8, Vec<usize>>,
}

impl Play {
    fn new(segment_size: u64) -> Play {
        let disk = Arc::new(SimulatedDisk::new());
        let home = Home::new(disk.clone(), "/log", |_| ());
        let settings = Settings { segment_size: Some(segment_size), ..Settings::default() };
        let log = Log::open_or_create(&home, LogId::new(7), &settings).unwrap();
        let writers = (0..WRITERS).map(|_| writer(&log)).collect();
        Play { disk, log, writers, all: Vec::new(), kept: BTreeMap::new() }
    }

    fn call(&mut self, call: &Call) {
        match call {
            Call::Unique(writer, pairs) => self.unique(*writer, pairs),
            Call::Plain(writer, pairs) => {
                let texts = texts(pairs);
                let mut bytes = Vec::new();
                let layout = body::encode(&contents(&texts), &mut bytes);
                let body = Body::plain(layout, pairs.len() as u32, &bytes);
                self.writers[*writer].0.append(&body, Timestamp::default()).unwrap();
                pairs.iter().for_each(|&pair| self.keep(pair));
            }
            Call::Sync(writer) => drop(self.writers[*writer].0.sync().unwrap()),
            Call::Reopen(number) => self.writers[*number] = writer(&self.log),
            Call::DeleteIndexes => {
                for dir in ["/log", "/log/keys"].map(Path::new) {
                    let names = self.disk.names(dir).into_iter().flatten();
                    let derived = |name: &String| name.ends_with(".index") || dir.ends_with("keys");
                    for name in names.filter(derived) {
                        self.disk.remove_file(&dir.join(name)).unwrap();
                    }
                }
            }
        }
    }

    fn keep(&mut self, pair: Pair) {
        self.kept.entry(pair.0).or_default().push(self.all.len());
        self.all.push(pair);
    }

    fn unique(&mut self, writer: usize, pairs: &[Pair]) {
        let texts = texts(pairs);
        let (appender, lookup) = &mut self.writers[writer];
        let now = Timestamp::default();
        let placed = appender.append_new(lookup, &contents(&texts), None, now).unwrap();
        assert_eq!(placed.len(), pairs.len());
        for (&pair, placed) in pairs.iter().zip(placed) {
            let kept = self.kept.get(&pair.0).cloned().unwrap_or_default();
            let same = |offset: Offset| self.all[offset.get() as usize] == pair;
            match placed {
                Placed::New(offset) => {
                    assert_eq!(
                        (kept.len(), offset.get() as usize),
                        (0, self.all.len()),
                        "{pair:?}"
                    );
                    self.keep(pair);
                }
                Placed::Same(offset) => assert!(same(offset), "{pair:?} at {offset}"),
                Placed::Other(offset) => {
                    assert_eq!(kept.last(), Some(&(offset.get() as usize)), "{pair:?}");
                    assert!(kept.iter().all(|&at| self.all[at] != pair), "{pair:?} is there");
                }
            }
        }
    }

    /// The log holds what it is to hold, and a look-up finds the newest of each key.
    fn compare(&self) {
        let mut found = Vec::new();
        let mut reader = Reader::open(&self.log, Offset::ZERO).unwrap();
        while let Reading::Records(piece) = reader.read().unwrap() {
            for record in piece.records().unwrap() {
                let content = record.content;
                found.push((content.key.unwrap().to_vec(), content.value.unwrap().to_vec()));
            }
        }
        assert_eq!(found, texts(&self.all));
        let keys: Vec<Vec<u8>> = (0..12).map(|key| text("key", key)).collect();
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let mut lookup = Lookup::open(&self.log).unwrap();
        let visit = |key: usize, found: tapelog::log::Found<'_>| {
            let offset = found.unwrap().map(|record| record.offset.get() as usize);
            assert_eq!(offset, self.kept.get(&(key as u8)).and_then(|kept| kept.last().copied()));
        };
        lookup.newest(&keys, Offset::MAX, visit).unwrap();
    }
}

fn writer(log: &Log) -> (Appender, Lookup) {
    (Appender::open(log).unwrap(), Lookup::open(log).unwrap())
}

fn text(what: &str, number: u8) -> Vec<u8> {
    format!("{what} {number}").into_bytes()
}

fn texts(pairs: &[Pair]) -> Vec<(Vec<u8>, Vec<u8>)> {
    pairs.iter().map(|&(key, value)| (text("key", key), text("value", value))).collect()
}

fn contents(texts: &[(Vec<u8>, Vec<u8>)]) -> Vec<Content<'_>> {
    texts
        .iter()
        .map(|(key, value)| Content { key: Some(key), ..Content::of_value(value) })
        .collect()
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::default() })]

    #[test]
    fn of_any_unique_and_plain_appends_there_is_what_a_map_says(
        calls in prop::collection::vec(call(), 1..40), small in any::<bool>(),
    ) {
        let mut play = Play::new(if small { 512 } else { 1 << 20 });
        calls.iter().for_each(|call| play.call(call));
        play.compare();
    }
}
