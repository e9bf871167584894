//! Reading a log as the model is read: whole records, forwards and backwards.

use std::sync::Arc;

use tapelog::format::record::RecordView;
use tapelog::log::{BackReader, Error, Log, Reader, Reading};
use tapelog::model::{Offset, Start};

use crate::plain::Record;

/// What an error is where none may be.
pub fn words(what: &str) -> impl Fn(Error) -> String {
    move |error| format!("{what}: {error} [{error:?}]")
}

/// The first offset and all records from `start` to the end of the log; the inner
/// error is that of a place which can't be begun at.
pub fn read(log: &Log, start: Start) -> Result<Result<(u64, Vec<Record>), Error>, String> {
    let mut reader = match Reader::open_at(log, start) {
        Ok(reader) => reader,
        Err(error) => return Ok(Err(error)),
    };
    let (first, mut records) = (reader.next_offset().get(), Vec::new());
    while let Reading::Records(piece) = reader.read().map_err(words("read"))? {
        for record in piece.records().map_err(|error| error.to_string())? {
            if record.offset >= piece.from {
                follows(&record, first + records.len() as u64)?;
                records.push(own(&record));
            }
        }
    }
    Ok(Ok((first, records)))
}

/// The records from `from` to before `until`, read backwards and put in order.
pub fn read_back(log: &Log, from: u64, until: u64) -> Result<Vec<Record>, String> {
    let mut reader = BackReader::open(log, Offset::new(from), Offset::new(until));
    let (mut records, mut before) = (Vec::new(), until);
    while let Some(block) = reader.read().map_err(words("read back"))? {
        let mut pieces = Vec::new();
        for piece in block.pieces() {
            for record in piece.records().map_err(|error| error.to_string())? {
                if (from..before).contains(&record.offset.get()) {
                    pieces.push((record.offset.get(), own(&record)));
                }
            }
        }
        for (offset, record) in pieces.into_iter().rev() {
            if offset + 1 != before {
                return Err(format!("read back: offset {offset} before {before}"));
            }
            before = offset;
            records.push(record);
        }
    }
    records.reverse();
    Ok(records)
}

fn follows(record: &RecordView<'_>, expected: u64) -> Result<(), String> {
    let (offset, next) = (record.offset.get(), record.next.get());
    match (offset, next) == (expected, expected + 1) {
        true => Ok(()),
        false => Err(format!("read offset {offset}, next {next}, where {expected} follows")),
    }
}

fn own(record: &RecordView<'_>) -> Record {
    let content = &record.content;
    Record {
        key: content.key.map(<[u8]>::to_vec),
        value: content.value.map(<[u8]>::to_vec),
        headers: content.headers.block().to_vec(),
        own_time: content.own_time,
        append_time: record.append_time,
    }
}

/// Whether these are the records of the model from `first` on.
pub fn compare(found: &[Record], expected: &[Arc<Record>], first: u64) -> Result<(), String> {
    let differs = found.iter().zip(expected).position(|(found, right)| found != right.as_ref());
    if let Some(index) = differs {
        let offset = first + index as u64;
        return Err(format!("offset {offset} is {}, not {}", found[index], expected[index]));
    }
    match found.len() == expected.len() {
        true => Ok(()),
        false => Err(format!("{} records from {first}, not {}", found.len(), expected.len())),
    }
}
