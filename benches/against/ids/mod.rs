//! Finding records by their keys, making sure that each is there once, and compacting.

mod compact;
mod peers;

use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use tapelog::disk::real::RealDisk;
use tapelog::format::key_hash::KeyHash;
use tapelog::log::{Home, KeyIndex, Log};

use crate::bench::{Bench, Compared, compare, median, seconds};
use crate::inputs::Random;
use crate::process::median_of;
use crate::row::{Goal, Row, Unit, Value};

/// Measures what is wanted.
pub fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    if bench.wanted("ids-process") {
        rows.extend(processes(bench)?);
    }
    if bench.wanted("ids-lookups") {
        rows.extend(lookups(bench)?);
    }
    if bench.wanted("ids-index") {
        rows.extend(index(bench)?);
    }
    if bench.wanted("ids-unique") {
        rows.push(unique(bench)?);
    }
    if bench.wanted("ids-compact") {
        rows.extend(compact::rows(bench)?);
    }
    Ok(rows)
}

/// How many different keys there are.
fn count(bench: &Bench) -> u64 {
    bench.size(10_000_000, 500_000)
}

/// Key `number`: no two are the same, and their order is none (the finalizer of
/// splitmix64, which maps each number to another).
fn key(number: u64) -> String {
    let mut bits = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    format!("{:016x}", bits ^ (bits >> 31))
}

/// Lines of some keys.
fn write_lines(path: &Path, numbers: impl Iterator<Item = u64>) -> Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, fs::File::create(path)?);
    for number in numbers {
        writeln!(out, "{}:order {number:09}", key(number))?;
    }
    Ok(out.flush()?)
}

/// `ids.log`: a record for each key.
fn ids_log(bench: &Bench) -> Result<()> {
    bench.once("ids", |path| write_lines(path, 0..count(bench)))?;
    bench.once("ids.log", |_| {
        bench.run("tapelog produce ids.log -K : < ids")?;
        bench.settle()
    })
}

/// One key a process, in that log and behind a million appends of one line each.
fn processes(bench: &Bench) -> Result<Vec<Row>> {
    ids_log(bench)?;
    let keys = count(bench);
    let mut rows = Vec::from(one_key(bench, "ids.log", &format!("of {keys}"))?);
    let lines = bench.size(1_000_000, 20_000);
    bench.once("more", |path| write_lines(path, keys..keys + lines))?;
    bench.run("cp -r ids.log more.log")?;
    bench.run("tapelog produce more.log -K : --batch-records 1 < more")?;
    bench.settle()?;
    rows.extend(one_key(bench, "more.log", &format!("behind {lines} batches of one line more"))?);
    bench.run("rm -r more.log")?;
    Ok(rows)
}

fn one_key(bench: &Bench, log: &str, among: &str) -> Result<[Row; 3]> {
    let mut random = Random::new();
    let keys = count(bench);
    let get = median_of(bench, || {
        let key = key(random.below(keys));
        seconds(&mut bench.tapelog(&["get", log, &key]))
    })?;
    let missing = median_of(bench, || missing(bench, log, &key(random.next() | 1 << 63)))?;
    let mut number = 0;
    let unique = median_of(bench, || {
        number += 1;
        let path = bench.at("line");
        fs::write(&path, format!("{log} {number}:x\n"))?;
        let mut command = bench.tapelog(&["produce", log, "-K", ":", "--unique"]);
        seconds(command.stdin(fs::File::open(path)?))
    })?;
    let row = |what: &str, time, most| {
        Row::figure("ids-process", what, time, Unit::Seconds, Goal::AtMost(most))
    };
    Ok([
        row(&format!("get of one key {among}"), get, 0.005),
        row("the same of a key that is not there", missing, 0.005),
        row("produce --unique of one line there", unique, 0.01),
    ])
}

/// A look-up that ends with 3.
fn missing(bench: &Bench, log: &str, key: &str) -> Result<f64> {
    let begin = Instant::now();
    let mut command: Command = bench.tapelog(&["get", log, "-q", key]);
    let status = command.stderr(std::process::Stdio::null()).status()?;
    let time = begin.elapsed().as_secs_f64();
    ensure!(status.code() == Some(3), "{key} should be missing: {status}");
    Ok(time)
}

/// Where a million keys are, asked for inside one process, beside stores of the same.
fn lookups(bench: &Bench) -> Result<Vec<Row>> {
    ids_log(bench)?;
    let asked = Asked::at_random(bench);
    let log = open(bench, "ids.log")?;
    let index = KeyIndex::open(&log)?;
    let ours = || {
        let begin = Instant::now();
        for (keys, numbers) in asked.windows() {
            let hashes: Vec<_> =
                keys.iter().map(|key| KeyHash::of(log.id(), key.as_bytes())).collect();
            let found = index.newest(&hashes)?;
            let right = |(found, number): (&Option<_>, &u64)| {
                found.is_some_and(|offset: tapelog::model::Offset| offset.get() == *number)
            };
            ensure!(found.iter().zip(numbers).all(right), "a key was not found where it is");
        }
        Ok(begin.elapsed().as_secs_f64())
    };
    let rate = |seconds: f64| Value { amount: asked.len() / seconds, unit: Unit::PerSecond };
    let mut rows = Vec::new();
    for peer in peers::open_all(bench)? {
        let compared = compare(bench.rounds, ours, || peer.seconds(&asked))?;
        let Compared { ours, peer: theirs, .. } = compared;
        rows.push(Row {
            name: "ids-lookups",
            what: format!("where one of {} keys is, inside one process", count(bench)),
            ours: rate(ours),
            peer: Some((peer.name().to_owned(), rate(theirs))),
            result: rate(ours),
            goal: Goal::AtLeast(500_000.0),
        });
    }
    Ok(rows)
}

/// Keys to look for, and where they are.
struct Asked {
    keys: Vec<String>,
    numbers: Vec<u64>,
}

impl Asked {
    fn at_random(bench: &Bench) -> Asked {
        let mut random = Random::new();
        let many = bench.size(1_000_000, 50_000);
        let numbers: Vec<u64> = (0..many).map(|_| random.below(count(bench))).collect();
        Asked { keys: numbers.iter().map(|&number| key(number)).collect(), numbers }
    }

    fn len(&self) -> f64 {
        self.keys.len() as f64
    }

    /// As many at once as a command that reads them would hold.
    fn windows(&self) -> impl Iterator<Item = (&[String], &[u64])> {
        const WINDOW: usize = 64 << 10;
        self.keys.chunks(WINDOW).zip(self.numbers.chunks(WINDOW))
    }
}

/// What the index costs: time beside that of appending, and room.
fn index(bench: &Bench) -> Result<[Row; 2]> {
    bench.need(crate::inputs::Input::Lines)?;
    let produce = bench.seconds_from_fresh("tapelog produce out/log -K : < lines")?;
    let log = open(bench, "out/log")?;
    let mut times = Vec::new();
    for _ in 0..bench.rounds {
        bench.run("rm -r out/log/keys")?;
        let begin = Instant::now();
        log.cover_keys()?;
        times.push(begin.elapsed().as_secs_f64());
    }
    let built = median(times.into_iter());
    let compared =
        Compared { ours: built, peer: produce - built, speed: (produce - built) / built };
    let what = "its key index, made of the log alone";
    let cost = Row::cost(
        "ids-index",
        what,
        "tapelog produce out/log -K : < lines, without",
        compared,
        0.35,
    );
    ids_log(bench)?;
    open(bench, "ids.log")?.cover_keys()?;
    let files = fs::read_dir(bench.at("ids.log/keys"))?;
    let sizes = files.map(|entry| Ok(entry?.metadata()?.len())).collect::<Result<Vec<u64>>>()?;
    let bytes = sizes.iter().sum::<u64>() as f64 / count(bench) as f64;
    let room = Row::figure(
        "ids-index",
        "the key index on the disk, a key",
        bytes,
        Unit::Bytes,
        Goal::AtMost(24.0),
    );
    Ok([cost, room])
}

/// Lines of which half are there already.
fn unique(bench: &Bench) -> Result<Row> {
    ids_log(bench)?;
    let keys = count(bench);
    let lines = bench.size(2_000_000, 100_000);
    let number = |n: u64| if n.is_multiple_of(2) { keys + n } else { n * (keys / lines) };
    bench.once("half", |path| write_lines(path, (0..lines).map(number)))?;
    let mut rates = Vec::new();
    for _ in 0..bench.rounds {
        bench.run("rm -rf half.log && cp -r ids.log half.log")?;
        bench.settle()?;
        let line = "tapelog produce half.log -q -K : --unique < half";
        rates.push(lines as f64 / seconds(&mut bench.shell(line))?);
    }
    bench.run("rm -r half.log")?;
    let rate = median(rates.into_iter());
    let what = "lines of produce --unique, half of them there already";
    Ok(Row::figure("ids-unique", what, rate, Unit::PerSecond, Goal::AtLeast(500_000.0)))
}

fn open(bench: &Bench, name: &str) -> Result<Log> {
    let home = Home::new(Arc::new(RealDisk), bench.at(name), |note| eprintln!("{note}"));
    Log::open(&home).with_context(|| name.to_owned())
}
