//! Compacting: how fast, and in how much memory.

use std::fs;
use std::io::{BufWriter, Write};

use anyhow::{Context, Result};

use super::key;
use crate::bench::Bench;
use crate::inputs::Random;
use crate::memory::peak;
use crate::row::{Goal, Row, Unit};

const MIB: f64 = (1 << 20) as f64;

/// Measures both.
pub fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    // A tenth of the records is the newest of its key.
    let lines: u64 = bench.size(10_000_000, 500_000);
    updates(bench, "updates", lines, lines / 10)?;
    rows.extend(row(bench, "updates", "a tenth of it live", 150.0, 128.0)?);
    let keys: u64 = bench.size(20_000_000, 500_000);
    updates(bench, "keys", keys + keys / 10, keys)?;
    let what = format!("{keys} keys");
    rows.extend(row(bench, "keys", &what, 0.0, 64.0)?);
    Ok(rows)
}

/// Lines of 110 bytes: each key once in any order, then as many more as are wanted.
fn updates(bench: &Bench, name: &str, lines: u64, keys: u64) -> Result<()> {
    bench.once(name, |path| {
        let mut out = BufWriter::with_capacity(1 << 20, fs::File::create(path)?);
        let mut random = Random::new();
        for number in 0..lines {
            let id = if number < keys { number } else { random.below(keys) };
            let text = format!("{}:{:016x}{number:09}", key(id), random.next());
            writeln!(out, "{text:.<109}")?;
        }
        Ok(out.flush()?)
    })
}

fn row(bench: &Bench, name: &str, what: &str, least: f64, most: f64) -> Result<[Row; 2]> {
    let log = format!("{name}.log");
    bench.run(&format!("tapelog produce {log} -K : < {name} && rm {name}"))?;
    bench.settle()?;
    let input = size(bench, &log)?;
    let begin = std::time::Instant::now();
    let mut command = bench.tapelog(&["gc", &log, "-q", "--compact", "--even-unread", "--roll"]);
    let memory = peak(&mut command)?;
    let rate = input / begin.elapsed().as_secs_f64();
    bench.run(&format!("rm -r {log}"))?;
    let goal = if least > 0.0 { Goal::AtLeast(least * MIB) } else { Goal::Open };
    let speed = format!("gc --compact of {:.0} MiB, {what}: bytes of input a second", input / MIB);
    Ok([
        Row::figure("ids-compact", &speed, rate, Unit::Bytes, goal),
        Row::figure(
            "ids-compact",
            "its peak memory",
            memory,
            Unit::Bytes,
            Goal::AtMost(most * MIB),
        ),
    ])
}

/// The bytes of a log's segments.
fn size(bench: &Bench, log: &str) -> Result<f64> {
    let mut bytes = 0;
    for entry in fs::read_dir(bench.at(log)).with_context(|| log.to_owned())? {
        let entry = entry?;
        if entry.path().extension().is_some_and(|name| name == "log") {
            bytes += entry.metadata()?.len();
        }
    }
    Ok(bytes as f64)
}
