//! The inputs: text as it might come, and logs made of it. Each is made when the
//! first row needs it.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Result;

use crate::bench::Bench;

/// What a row reads.
#[derive(Clone, Copy, PartialEq)]
pub enum Input {
    /// `lines`: lines of 110 bytes, with a key before the first colon.
    Lines,
    /// `short`: lines of 7 bytes, as `seq` prints them.
    Short,
    /// `few`: an eighth of `lines`, for slow peers, and the same as `few.db`.
    Few,
    /// `large`: one record of 64 MiB, the largest there can be.
    Large,
    /// `lines.log` and so on: the same in a log.
    Log(Kind),
}

/// How a log holds its records.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    /// As lines.
    Lines,
    /// As short lines.
    Short,
    /// An eighth, as lines.
    Few,
    /// With keys.
    Keyed,
    /// Compressed with lz4.
    Lz4,
}

/// Bytes of a line, its newline included.
const LINE: usize = 110;

impl Bench {
    /// Bytes of the large inputs.
    pub fn volume(&self) -> usize {
        self.size(512 << 20, 64 << 20)
    }

    /// Makes an input, if it isn't there.
    pub fn need(&self, input: Input) -> Result<()> {
        match input {
            Input::Lines => self.once("lines", |path| lines(path, self.volume() / LINE)),
            Input::Few => self.once("few", |path| lines(path, self.volume() / LINE / 8)),
            Input::Short => self.once("short", |path| short(path, self.volume() / 7)),
            Input::Large => self.once("large", |path| Ok(fs::write(path, vec![b'x'; 64 << 20])?)),
            Input::Log(kind) => self.log(kind),
        }
    }

    fn log(&self, kind: Kind) -> Result<()> {
        let (text, log, options) = match kind {
            Kind::Lines => (Input::Lines, "lines", ""),
            Kind::Short => (Input::Short, "short", ""),
            Kind::Few => (Input::Few, "few", ""),
            Kind::Keyed => (Input::Lines, "keyed", "-K :"),
            Kind::Lz4 => (Input::Lines, "lz4", "-z lz4"),
        };
        self.need(text)?;
        let text = match text {
            Input::Short => "short",
            Input::Few => "few",
            _ => "lines",
        };
        let keys = if kind == Kind::Keyed { "-K :" } else { "" };
        self.once(&format!("{log}.log"), |_| {
            self.run(&format!("tapelog produce {log}.log {options} < {text}"))?;
            // What it is measured on has to be the same as the peer's.
            self.run(&format!("tapelog consume {log}.log {keys} | cmp - {text}"))?;
            self.settle()
        })
    }
}

/// Lines like those of a web server, which compress to about a third.
fn lines(path: &Path, count: usize) -> Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut random = Random::new();
    for number in 0..count {
        let line = format!(
            "user-{:06}:2026-11-29T12:{:02}:{:02}Z GET /orders/{:08} 200 {:5} bytes in {:4} ms, request {:016x}",
            random.below(100_000),
            number / 60_000 % 60,
            number / 1000 % 60,
            random.below(100_000_000),
            random.below(65_536),
            random.below(2000),
            random.next(),
        );
        writeln!(out, "{line:.width$}", width = LINE - 1)?;
    }
    Ok(out.flush()?)
}

fn short(path: &Path, count: usize) -> Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    for number in (100_000..1_000_000).cycle().take(count) {
        writeln!(out, "{number}")?;
    }
    Ok(out.flush()?)
}

/// The same numbers in every run (xorshift64).
pub struct Random(u64);

impl Random {
    /// The first of the row.
    pub fn new() -> Random {
        Random(0x9E37_79B9_7F4A_7C15)
    }

    /// The next one.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// The next one, brought below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }
}
