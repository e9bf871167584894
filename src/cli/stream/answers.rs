//! What is to be printed of many keys, held until it can be printed in the order that
//! they were asked for, within a budget of memory: the answers to the last half are
//! forgotten where all together would be too large, and asked for again later.

use anyhow::Result;

use super::output::Output;
use crate::cli::printer::Printer;
use crate::format::record::RecordView;
use crate::log::{Error as LogError, Found};

/// How many bytes are held at most, unless one answer alone has more.
const BUDGET: usize = 16 << 20;

/// The answer to one key.
#[derive(Debug)]
pub enum Answer {
    /// This is to be printed.
    Text(Vec<u8>),
    /// There is nothing to be printed, and why.
    Missing(String),
    /// The record can't be read.
    Fault(LogError),
}

impl Answer {
    fn of(key: &[u8], found: Found<'_>, printer: &Printer) -> Answer {
        match found {
            Ok(Some(record)) if record.content.value.is_none() => Answer::Missing(deleted(&record)),
            Ok(Some(record)) => {
                let mut text = Vec::new();
                printer.print_one(&record, &mut text);
                Answer::Text(text)
            }
            Ok(None) => Answer::Missing(no_record(key)),
            Err(fault) => Answer::Fault(fault),
        }
    }

    fn size(&self) -> usize {
        match self {
            Answer::Text(text) => text.len(),
            Answer::Missing(_) | Answer::Fault(_) => 0,
        }
    }

    /// Prints it, or adds it to what is to be said in the end.
    ///
    /// # Errors
    /// As [`Output::write_unwatched`].
    pub fn give(
        self,
        output: &mut Output,
        missing: &mut Vec<String>,
        faults: &mut Vec<LogError>,
    ) -> Result<()> {
        match self {
            Answer::Text(text) => output.write_unwatched(&text)?,
            Answer::Missing(line) => missing.push(line),
            Answer::Fault(fault) => faults.push(fault),
        }
        Ok(())
    }
}

/// Says that a key has no record.
pub fn no_record(key: &[u8]) -> String {
    format!("there is no record of key {}", String::from_utf8_lossy(key))
}

fn deleted(tombstone: &RecordView<'_>) -> String {
    let key = String::from_utf8_lossy(tombstone.content.key.unwrap_or_default());
    format!("key {key} was deleted: its newest record, offset {}, is a tombstone", tombstone.offset)
}

/// The answers to some keys, as they come in.
#[derive(Debug)]
pub struct Answers<'k> {
    keys: &'k [&'k [u8]],
    /// One for each of the first keys; the last ones may be forgotten.
    answers: Vec<Option<Answer>>,
    bytes: usize,
}

impl<'k> Answers<'k> {
    /// None yet, to these keys.
    pub fn to(keys: &'k [&'k [u8]]) -> Answers<'k> {
        let answers = keys.iter().map(|_| None).collect();
        Answers { keys, answers, bytes: 0 }
    }

    /// Adds the answer to the key with this number.
    pub fn add(&mut self, number: usize, found: Found<'_>, printer: &Printer) {
        if number >= self.answers.len() {
            return;
        }
        let answer = Answer::of(self.keys[number], found, printer);
        self.bytes += answer.size();
        self.answers[number] = Some(answer);
        while self.bytes > BUDGET && self.answers.len() > 1 {
            let kept = self.answers.len() / 2;
            let forgotten = self.answers.drain(kept..).flatten();
            self.bytes -= forgotten.map(|answer| answer.size()).sum::<usize>();
        }
    }

    /// To how many of the keys, from the first on, there are answers once all were added.
    pub fn len(&self) -> usize {
        self.answers.len()
    }

    /// Whether answers to twice as many would fit.
    pub fn is_roomy(&self) -> bool {
        self.len() == self.keys.len() && self.bytes <= BUDGET / 2
    }

    /// The answers, in the order of the keys.
    pub fn into_all(self) -> impl Iterator<Item = Answer> {
        self.answers.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::printer::Format;
    use crate::cli::text::filter::Filter;
    use crate::format::record::Content;
    use crate::model::{Offset, Timestamp};
    use clap::{Args, FromArgMatches};

    fn printer() -> Printer {
        let command = Format::augment_args(clap::Command::new("get"));
        let format = Format::from_arg_matches(&command.get_matches_from(["get"])).unwrap();
        format.printer(Filter::default()).unwrap()
    }

    fn record(value: &[u8]) -> RecordView<'_> {
        let content = Content { key: Some(b"k"), ..Content::of_value(value) };
        let append_time = Timestamp::from_millis(0);
        RecordView { offset: Offset::ZERO, next: Offset::new(1), append_time, content }
    }

    #[test]
    fn what_does_not_fit_is_forgotten_from_the_end_on() {
        let (keys, value) = ([&b"k"[..]; 8], vec![b'v'; 6 << 20]);
        let mut answers = Answers::to(&keys);
        // In any order: what was forgotten is not taken again.
        for number in [7, 0, 3, 1, 2, 6, 5, 4] {
            answers.add(number, Ok(Some(record(&value))), &printer());
        }
        assert_eq!((answers.len(), answers.bytes), (2, 2 * (value.len() + 1)));
        assert!(!answers.is_roomy());
        assert!(answers.into_all().all(|answer| answer.size() == value.len() + 1));
    }

    #[test]
    fn one_answer_is_always_kept() {
        let value = vec![b'v'; BUDGET + 1];
        let mut answers = Answers::to(&[b"k", b"k"]);
        answers.add(1, Ok(Some(record(&value))), &printer());
        answers.add(0, Ok(Some(record(&value))), &printer());
        assert_eq!((answers.len(), answers.bytes), (1, value.len() + 1));
    }
}
