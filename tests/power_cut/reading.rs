//! Reading a log as the tests do: everything, each step checked.

use std::collections::BTreeMap;

use tapelog::format::key_hash::KeyHash;
use tapelog::log::{Error, KeyIndex, Log, Reader, Reading};
use tapelog::model::{GroupName, Offset, Timestamp};

/// What an error of the log is to a test.
pub fn words(what: &str) -> impl Fn(Error) -> String {
    move |error| format!("{what}: {error} [{error:?}]")
}

/// Where every group stands.
pub fn groups(log: &Log) -> Result<BTreeMap<GroupName, u64>, String> {
    let mut found = BTreeMap::new();
    for group in log.group_names().map_err(words("group_names"))? {
        let next = log.group_position(&group).map_err(words("group_position"))?;
        found.insert(group, next.ok_or("a group without a checkpoint")?.get());
    }
    Ok(found)
}

/// The records of a log from its start to its end.
#[derive(Clone, Debug, Default)]
pub struct Read {
    pub start: u64,
    pub values: Vec<Vec<u8>>,
    /// Why reading stopped before the end.
    pub error: Option<String>,
}

impl Read {
    pub fn end(&self) -> u64 {
        self.start + self.values.len() as u64
    }
}

/// Reads a log from its start to its end.
pub fn read_all(log: &Log) -> Result<Read, String> {
    let read = read_to_error(log)?;
    match read.error {
        None => Ok(read),
        Some(what) => Err(what),
    }
}

/// Reads a log from its start to its end, or to what keeps it from going on.
pub fn read_to_error(log: &Log) -> Result<Read, String> {
    let start = log.bounds().map_err(words("bounds"))?.start;
    let mut read = Read { start: start.get(), ..Read::default() };
    let mut reader = Reader::open(log, start).map_err(words("open a reader"))?;
    loop {
        match reader.read() {
            Ok(Reading::End) => return Ok(read),
            Ok(Reading::Records(piece)) => {
                let skip = piece.from.since(piece.header.base);
                if piece.from.get() != read.end() {
                    return Err(format!("read offset {} after {}", piece.from, read.end()));
                }
                let records = piece.records().map_err(|error| error.to_string())?;
                for record in records.skip(skip as usize) {
                    read.values.push(record.content.value.ok_or("a null record")?.to_vec());
                }
                if read.end() != piece.header.next.get() {
                    return Err(format!("{:?} holds records up to {}", piece.header, read.end()));
                }
            }
            Err(error) => {
                read.error = Some(words("read")(error));
                return Ok(read);
            }
        }
    }
}

/// Whether each record that was read is the one that was appended there.
pub fn compare(read: &Read, expected: &[Vec<u8>]) -> Result<(), String> {
    for (offset, value) in (read.start..).zip(&read.values) {
        let text = String::from_utf8_lossy;
        match expected.get(offset as usize) {
            Some(right) if right == value => {}
            Some(right) => {
                return Err(format!("offset {offset} is {}, not {}", text(value), text(right)));
            }
            None => return Err(format!("offset {offset} is {}: invented", text(value))),
        }
    }
    Ok(())
}

/// Whether the key index knows of each key what a walk over all records finds.
pub fn check_keys(log: &Log) -> Result<(), String> {
    let expected = offsets_by_key(log)?;
    let index = KeyIndex::open(log).map_err(words("open the key index"))?;
    let hash = |key: &[u8]| KeyHash::of(log.id(), key);
    let hashes: Vec<KeyHash> = expected.keys().map(|key| hash(key)).chain([hash(b"no")]).collect();
    let newest = index.newest(&hashes).map_err(words("newest"))?;
    let last = expected.values().map(|offsets| offsets.last().copied()).chain([None]);
    if !newest.iter().copied().eq(last) {
        return Err(format!("the newest of the keys are at {newest:?}, not as {expected:?}"));
    }
    for (key, offsets) in &expected {
        let versions = index.versions(hash(key)).map_err(words("versions"))?;
        let found: Result<Vec<Offset>, _> = versions.collect();
        let found = found.map_err(words("versions"))?;
        if found != *offsets {
            return Err(format!("{key:?} is at {found:?}, not at {offsets:?}"));
        }
    }
    Ok(())
}

fn offsets_by_key(log: &Log) -> Result<BTreeMap<Vec<u8>, Vec<Offset>>, String> {
    let start = log.bounds().map_err(words("bounds"))?.start;
    let mut reader = Reader::open(log, start).map_err(words("open a reader"))?;
    let mut found: BTreeMap<Vec<u8>, Vec<Offset>> = BTreeMap::new();
    while let Reading::Records(piece) = reader.read().map_err(words("read"))? {
        let from = piece.from;
        let records = piece.records().map_err(|error| error.to_string())?;
        for record in records.filter(|record| record.offset >= from) {
            if let Some(key) = record.content.key {
                found.entry(key.to_vec()).or_default().push(record.offset);
            }
        }
    }
    Ok(found)
}

/// When the record at `offset` was appended.
pub fn append_time(log: &Log, offset: u64) -> Result<Timestamp, String> {
    let mut reader = Reader::open(log, Offset::new(offset)).map_err(words("open a reader"))?;
    match reader.read().map_err(words("read"))? {
        Reading::Records(piece) => Ok(piece.header.append_time),
        Reading::End => Err(format!("no record at {offset}")),
    }
}
