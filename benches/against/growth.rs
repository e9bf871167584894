//! How cost grows: with the records of a log, its segments, its groups, and the length
//! of its lines. What stays the same an axis keeps level; what a process costs by
//! itself shows at the small end.

use std::fs::File;
use std::io::{BufWriter, Write};

use anyhow::Result;

use crate::bench::{Bench, median, seconds};

/// One thing that grows, and what was measured at each size of it.
pub struct Axis {
    /// What grows.
    pub name: &'static str,
    /// What is the same at all sizes.
    pub with: String,
    /// The sizes.
    pub sizes: Vec<u64>,
    /// A time for each size.
    pub series: Vec<Series>,
}

/// A line of the plot, a row of the table.
pub struct Series {
    /// What ran, and for how much of it the time is.
    pub name: &'static str,
    /// Seconds, in the order of the sizes.
    pub seconds: Vec<f64>,
}

/// Measures all four.
pub fn axes(bench: &Bench) -> Result<Vec<Axis>> {
    Ok(vec![records(bench)?, segments(bench)?, groups(bench)?, line_length(bench)?])
}

const PRODUCE: &str = "tapelog produce out/log < grow";
const CONSUME: &str = "tapelog consume out/log | cat > /dev/null";

/// Sizes in steps of `factor`.
fn sizes(first: u64, factor: u64, last: u64) -> Vec<u64> {
    std::iter::successors(Some(first), |size| size.checked_mul(factor))
        .take_while(|size| *size <= last)
        .collect()
}

/// Fewer rounds where one takes seconds.
fn rounds(bench: &Bench, once: f64) -> usize {
    if once > 5.0 { 1 } else { bench.rounds.min(5) }
}

/// The median of lines that leave `out/log`, each beginning without it.
fn fresh(bench: &Bench, line: &str) -> Result<f64> {
    let once = bench.seconds_from_fresh(line)?;
    let more = (1..rounds(bench, once)).map(|_| bench.seconds_from_fresh(line));
    Ok(median(more.chain([Ok(once)]).collect::<Result<Vec<f64>>>()?.into_iter()))
}

/// The median of a line that changes nothing.
fn again(bench: &Bench, line: &str) -> Result<f64> {
    bench.run(line)?;
    let times = (0..bench.rounds).map(|_| seconds(&mut bench.shell(line)));
    Ok(median(times.collect::<Result<Vec<f64>>>()?.into_iter()))
}

/// Times of writing and reading all of a log, kept for a record and for a byte of each.
struct WriteAndRead {
    produce: [Series; 2],
    consume: [Series; 2],
}

impl WriteAndRead {
    fn new() -> WriteAndRead {
        let series = |name| Series { name, seconds: Vec::new() };
        WriteAndRead {
            produce: [series("produce, a record"), series("produce, a byte")],
            consume: [series("consume, a record"), series("consume, a byte")],
        }
    }

    fn measure(&mut self, bench: &Bench, produce: &str, records: u64, bytes: u64) -> Result<()> {
        let times = [fresh(bench, produce)?, again(bench, CONSUME)?];
        for (series, time) in [&mut self.produce, &mut self.consume].into_iter().zip(times) {
            series[0].seconds.push(time / records as f64);
            series[1].seconds.push(time / bytes as f64);
        }
        Ok(())
    }

    fn series(self) -> Vec<Series> {
        self.produce.into_iter().chain(self.consume).collect()
    }
}

fn records(bench: &Bench) -> Result<Axis> {
    let sizes = sizes(10_000, 10, bench.size(100_000_000, 1_000_000));
    let mut times = WriteAndRead::new();
    for records in &sizes {
        bench.wanted(&format!("growth: {records} records"));
        bench.run(&format!("seq {records} > grow"))?;
        let bytes = bench.at("grow").metadata()?.len();
        times.measure(bench, PRODUCE, *records, bytes)?;
    }
    Ok(Axis { name: "records", with: "lines of `seq`".to_owned(), sizes, series: times.series() })
}

fn segments(bench: &Bench) -> Result<Axis> {
    let records: u64 = bench.size(1_000_000, 100_000);
    let sizes = sizes(1, 10, bench.size(10_000, 100));
    bench.run(&format!("seq {records} {} > grow", 2 * records - 1))?;
    let bytes = bench.at("grow").metadata()?.len();
    let mut times = WriteAndRead::new();
    let [mut one, mut list] = ["consume -n 1, a process", "segments, a process"]
        .map(|name| Series { name, seconds: Vec::new() });
    for segments in &sizes {
        bench.wanted(&format!("growth: {segments} segments"));
        let size = bytes.div_ceil(*segments) + 100;
        let produce = format!("tapelog config out/log -q segment-size={size} && {PRODUCE}");
        times.measure(bench, &produce, records, bytes)?;
        let middle = records / 2;
        one.seconds.push(again(bench, &format!("tapelog consume out/log -o {middle} -n 1"))?);
        list.seconds.push(again(bench, "tapelog segments out/log")?);
    }
    let [produce, _] = times.produce;
    let [consume, _] = times.consume;
    let series = vec![produce, consume, one, list];
    Ok(Axis { name: "segments", with: format!("{records} lines of `seq`"), sizes, series })
}

fn groups(bench: &Bench) -> Result<Axis> {
    let sizes = sizes(1, 10, bench.size(1000, 100));
    let lines = [
        ("groups, a process", "tapelog groups out/log"),
        ("segments, a process", "tapelog segments out/log"),
        ("gc --dry-run, a process", "tapelog gc out/log --dry-run"),
        ("consume -g, a process", "tapelog consume out/log -q -g g0 -n 1"),
    ];
    let mut series = lines.map(|(name, _)| Series { name, seconds: Vec::new() });
    bench.seconds_from_fresh("seq 100000 | tapelog produce out/log")?;
    let mut made = 0;
    for groups in &sizes {
        bench.wanted(&format!("growth: {groups} groups"));
        for group in made..*groups {
            let name = format!("g{group}");
            seconds(&mut bench.tapelog(&["commit", "out/log", "-q", "-g", &name, "0"]))?;
        }
        made = *groups;
        for ((_, line), series) in lines.iter().zip(&mut series) {
            series.seconds.push(again(bench, line)?);
        }
    }
    let with = "100000 lines of `seq`".to_owned();
    Ok(Axis { name: "groups", with, sizes, series: series.into() })
}

fn line_length(bench: &Bench) -> Result<Axis> {
    let sizes = sizes(1, 16, 1 << 20);
    let volume: u64 = bench.size(64 << 20, 8 << 20);
    let mut times = WriteAndRead::new();
    for length in &sizes {
        bench.wanted(&format!("growth: lines of {length} bytes"));
        let mut line = vec![b'x'; usize::try_from(*length)?];
        line.push(b'\n');
        let records = volume / (length + 1);
        let mut out = BufWriter::with_capacity(1 << 20, File::create(bench.at("grow"))?);
        for _ in 0..records {
            out.write_all(&line)?;
        }
        out.flush()?;
        times.measure(bench, PRODUCE, records, records * (length + 1))?;
    }
    let with = format!("{} MiB in all", volume >> 20);
    Ok(Axis { name: "bytes a line", with, sizes, series: times.series() })
}
