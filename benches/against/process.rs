//! One short process, of which a script starts many: what each costs, in a small log
//! and in a very long one.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

use crate::bench::{Bench, compare, median, seconds};
use crate::inputs::Random;
use crate::row::{Goal, Row, Unit};

const APPEND: &str = "echo x >> file";

/// Measures what is wanted.
pub fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    if bench.wanted("one-line-unsynced") {
        rows.push(one_line_unsynced(bench)?);
    }
    if bench.wanted("one-line-synced") {
        rows.push(one_line_synced(bench)?);
    }
    if bench.wanted("version") {
        rows.push(version(bench)?);
    }
    rows.extend(in_a_long_log(bench)?);
    Ok(rows)
}

fn rounds(bench: &Bench) -> usize {
    bench.size(301, 31)
}

fn one_line_unsynced(bench: &Bench) -> Result<Row> {
    bench.run("echo x | tapelog produce one.log")?;
    let compared = compare(
        rounds(bench),
        || one_line(bench, &["produce", "one.log", "--sync", "none"]),
        || seconds(&mut bench.shell(APPEND)),
    )?;
    let what = "tapelog produce one.log --sync none < x";
    Ok(Row::cost("one-line-unsynced", what, &format!("sh -c '{APPEND}'"), compared, 2.0))
}

fn one_line_synced(bench: &Bench) -> Result<Row> {
    bench.run("echo x | tapelog produce one.log")?;
    let compared = compare(
        rounds(bench),
        || one_line(bench, &["produce", "one.log"]),
        || {
            let begin = std::time::Instant::now();
            bench.run(APPEND)?;
            OpenOptions::new().append(true).open(bench.at("file"))?.sync_data()?;
            Ok(begin.elapsed().as_secs_f64())
        },
    )?;
    let peer = format!("sh -c '{APPEND}', then one fdatasync");
    Ok(Row::cost("one-line-synced", "the same, synced by default", &peer, compared, 2.0))
}

/// The input is a file, so that only the process itself is timed.
fn one_line(bench: &Bench, arguments: &[&str]) -> Result<f64> {
    bench.once("x", |path| Ok(fs::write(path, "x\n")?))?;
    let mut command = bench.tapelog(arguments);
    seconds(command.stdin(File::open(bench.at("x"))?))
}

fn version(bench: &Bench) -> Result<Row> {
    let compared = compare(
        rounds(bench),
        || seconds(&mut bench.tapelog(&["--version"])),
        || seconds(&mut bench.program("/bin/true", &[])),
    )?;
    Ok(Row::cost("version", "tapelog --version", "/bin/true", compared, 2.0))
}

/// A log of many records, segments and groups, and when its records were appended (Unix ms).
struct LongLog {
    records: u64,
    segments: usize,
    groups: usize,
    times: (u64, u64),
}

fn in_a_long_log(bench: &Bench) -> Result<Vec<Row>> {
    const NAMES: [&str; 4] = ["random-offset", "seek-datetime", "list-segments", "list-groups"];
    let wanted: Vec<&str> = NAMES.into_iter().filter(|name| bench.wanted(name)).collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let log = long_log(bench)?;
    wanted.into_iter().map(|name| in_this_log(bench, &log, name)).collect()
}

fn in_this_log(bench: &Bench, log: &LongLog, name: &str) -> Result<Row> {
    let mut random = Random::new();
    Ok(match name {
        "random-offset" => {
            let time = median_of(bench, || {
                let offset = random.below(log.records).to_string();
                seconds(&mut bench.tapelog(&["consume", "long.log", "-o", &offset, "-n", "1"]))
            })?;
            let what = format!(
                "one record at random among {} in {} segments: consume -o N -n 1",
                log.records, log.segments
            );
            Row::figure("random-offset", &what, time, Unit::Seconds, Goal::AtMost(0.003))
        }
        "seek-datetime" => {
            let time = median_of(bench, || {
                let (first, last) = log.times;
                let time = (first + random.below(last - first)).to_string();
                let seek = ["seek", "long.log", "-q", "-g", "g1", "--to-datetime", &time];
                seconds(&mut bench.tapelog(&seek))
            })?;
            let what = "seek --to-datetime there, synced";
            Row::figure("seek-datetime", what, time, Unit::Seconds, Goal::AtMost(0.005))
        }
        "list-segments" => {
            let time = median_of(bench, || seconds(&mut bench.tapelog(&["segments", "long.log"])))?;
            let what = format!("segments there, with {} groups", log.groups);
            Row::figure("list-segments", &what, time, Unit::Seconds, Goal::AtMost(0.15))
        }
        _ => {
            let time = median_of(bench, || seconds(&mut bench.tapelog(&["groups", "long.log"])))?;
            let what = format!("groups there, with {} groups", log.groups);
            Row::figure("list-groups", &what, time, Unit::Seconds, Goal::AtMost(0.15))
        }
    })
}

/// The median of many short measurements, of which the first is not counted.
pub fn median_of(bench: &Bench, mut measured: impl FnMut() -> Result<f64>) -> Result<f64> {
    measured()?;
    let times: Result<Vec<f64>> = (0..bench.size(101, 31)).map(|_| measured()).collect();
    Ok(median(times?.into_iter()))
}

/// 100 million short lines in 10,000 segments, and 1000 groups, each somewhere in it.
fn long_log(bench: &Bench) -> Result<LongLog> {
    let records: u64 = bench.size(100_000_000, 1_000_000);
    let segments: u64 = bench.size(10_000, 100);
    let groups = bench.size(1000, 100);
    // As many digits all the way, so that the size of a segment is known.
    let (first, last) = (records, 2 * records - 1);
    let line = first.to_string().len() as u64 + 1;
    let size = (records * line).div_ceil(segments) + 200;
    let begin = unix_ms()?;
    bench.run(&format!("tapelog config long.log -q segment-size={size}"))?;
    bench.run(&format!("seq {first} {last} | tapelog produce long.log"))?;
    let times = (begin, unix_ms()?);
    let mut random = Random::new();
    for group in 0..groups {
        let (name, offset) = (format!("g{group}"), random.below(records).to_string());
        seconds(&mut bench.tapelog(&["commit", "long.log", "-q", "-g", &name, &offset]))?;
    }
    bench.settle()?;
    let segments = segment_count(bench)?;
    Ok(LongLog { records, segments, groups, times })
}

fn segment_count(bench: &Bench) -> Result<usize> {
    let listing = bench
        .tapelog(&["segments", "long.log", "-J"])
        .stdout(std::process::Stdio::piped())
        .output()?;
    std::io::stderr().write_all(&listing.stderr)?;
    Ok(listing.stdout.iter().filter(|byte| **byte == b'\n').count())
}

fn unix_ms() -> Result<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock is before 1970")?;
    Ok(u64::try_from(now.as_millis())?)
}
