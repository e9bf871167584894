//! `tapelog get`: print the newest record of each key.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;

use anyhow::{Result, bail};
use clap::Args;

use crate::cli::failure::{Ended, Status, end_with, say};
use crate::cli::printer::{Format, Printer};
use crate::cli::session::{LogArgument, Session};
use crate::cli::stream::answers::{Answers, no_record};
use crate::cli::stream::output::Output;
use crate::cli::text::filter::Filter;
use crate::cli::text::range::parse_offset;
use crate::format::record::RecordView;
use crate::log::{Error as LogError, Lookup};
use crate::model::{Offset, Start};

/// Print the newest record of each key
///
/// Keys are found by the index, however large the log is. What is printed is what
/// consume prints, in the order of the keys given. A key of which the log holds no
/// record, or whose newest is a tombstone, has a line on stderr, after the others were
/// printed, and the exit status is 3 then.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  tapelog get balances anna              the newest value of anna
  tapelog get balances anna ben -K ' '   two keys, each before its value
  tapelog get balances anna --all -J     every version of it, as JSON
  tapelog get balances anna -o 1000      as it was at offset 1000
  tapelog get balances -- -7             a key that begins with a hyphen
  xargs tapelog get balances <ids        many keys at once

What is printed:
  as consume prints it: FORMAT and JSON names are in tapelog consume --help

Index:
  It says where the keys are; each record is read and its key compared.
  Without it the log is read instead: slower once, and the same. Damage in
  records that are not asked for is not met: tapelog verify checks all.
")]
pub struct Get {
    #[command(flatten)]
    log: LogArgument,

    /// The keys; behind -- one may begin with a hyphen
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<OsString>,

    /// Every version that is kept, the oldest first; tombstones too
    #[arg(short, long)]
    all: bool,

    /// As of offset N: only records with an offset up to N count
    #[arg(short, long, value_name = "N", value_parser = parse_offset)]
    offset: Option<Offset>,

    #[command(flatten)]
    format: Format,
}

/// What is put together is written when it has so many bytes.
const FLUSH: usize = 256 << 10;

/// So many keys are looked up at first, and more once those took little memory.
const FIRST_KEYS: usize = 64;

/// Runs the command.
///
/// # Errors
/// Keys that have no record, damage met, and whatever ends it early.
pub fn run(args: &Get, session: &Session) -> Result<()> {
    let printer = args.format.printer(Filter::default())?;
    let log = session.open(&args.log)?;
    let before = match args.offset {
        Some(offset) => log.resolve(Start::At(offset))?.forward(1).unwrap_or(Offset::MAX),
        None => Offset::MAX,
    };
    let keys: Vec<&[u8]> = args.keys.iter().map(|key| key.as_bytes()).collect();
    let (lookup, output) = (Lookup::open(&log)?, Output::standard()?);
    let (missing, faults) = (Vec::new(), Vec::new());
    let mut get = Getting { lookup, before, printer, output, missing, faults };
    match args.all {
        true => keys.iter().try_for_each(|key| get.versions(key))?,
        false => get.newest(&keys)?,
    }
    get.finish()
}

/// Looking up and printing.
struct Getting {
    lookup: Lookup,
    /// Only records before this offset count.
    before: Offset,
    printer: Printer,
    output: Output,
    /// A line for each key that has no record to be printed.
    missing: Vec<String>,
    /// Records that could not be read.
    faults: Vec<LogError>,
}

impl Getting {
    /// Prints the newest record of each of `keys`. They are looked up many at once, so that
    /// records are read in the order of their offsets, and no more than fit in memory.
    fn newest(&mut self, mut keys: &[&[u8]]) -> Result<()> {
        let mut at_once = FIRST_KEYS;
        while !keys.is_empty() {
            let some = &keys[..at_once.min(keys.len())];
            let mut answers = Answers::to(some);
            let printer = &self.printer;
            self.lookup.newest(some, self.before, |number, found| {
                answers.add(number, found, printer);
            })?;
            let (answered, is_roomy) = (answers.len(), answers.is_roomy());
            for answer in answers.into_all() {
                answer.give(&mut self.output, &mut self.missing, &mut self.faults)?;
            }
            keys = &keys[answered..];
            at_once = if is_roomy { at_once * 2 } else { answered };
        }
        Ok(())
    }

    /// Prints every version of a key.
    fn versions(&mut self, key: &[u8]) -> Result<()> {
        let (mut text, mut is_there, mut failed) = (Vec::new(), false, Ok(()));
        let visit = |record: RecordView<'_>| {
            is_there = true;
            self.printer.print_one(&record, &mut text);
            if text.len() >= FLUSH {
                failed = self.output.write_unwatched(&text);
                text.clear();
            }
            if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let read = self.lookup.versions(key, self.before, visit);
        failed?;
        self.output.write_unwatched(&text)?;
        match read {
            Err(fault) => self.faults.push(fault),
            Ok(_) if is_there => {}
            Ok(_) => self.missing.push(no_record(key)),
        }
        Ok(())
    }

    /// Says what could not be printed, and ends as that asks for.
    fn finish(mut self) -> Result<()> {
        let last = if self.faults.is_empty() { self.missing.pop() } else { None };
        self.missing.iter().for_each(|line| say(line));
        end_with(self.faults)?;
        match last {
            Some(line) => bail!(Ended { status: Status::Missing, line: Some(line) }),
            None => Ok(()),
        }
    }
}
