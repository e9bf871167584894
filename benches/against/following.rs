//! A follower: how soon it prints what is appended, and what it costs while nothing is.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::bench::{Bench, median, percentile};
use crate::row::{Goal, Row, Unit};

/// Measures what is wanted.
pub fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    if bench.wanted("follow-latency") {
        rows.extend(latency(bench)?);
    }
    if bench.wanted("follow-idle") {
        rows.push(idle(bench)?);
    }
    Ok(rows)
}

/// From the write of a line into the pipe of a running `produce` until the follower
/// has printed it: the time of both processes.
fn latency(bench: &Bench) -> Result<[Row; 2]> {
    bench.run("tapelog produce follow.log < /dev/null")?;
    let mut producer =
        Running(bench.tapelog(&["produce", "follow.log"]).stdin(Stdio::piped()).spawn()?);
    let mut follower = Running(follow(bench).stdout(Stdio::piped()).spawn()?);
    let mut input = producer.0.stdin.take().context("no stdin")?;
    let mut output = BufReader::new(follower.0.stdout.take().context("no stdout")?);
    let mut times = Vec::new();
    let mut printed = String::new();
    for number in 0..bench.size(2000, 200) {
        let line = format!("{number}\n");
        let begin = Instant::now();
        input.write_all(line.as_bytes())?;
        printed.clear();
        output.read_line(&mut printed)?;
        times.push(begin.elapsed().as_secs_f64());
        ensure!(printed == line, "the follower printed {printed:?}, not {line:?}");
        // So that both wait again, as they do between lines that people or timers write.
        thread::sleep(Duration::from_millis(2));
    }
    let typical = median(times.iter().copied());
    let slow = percentile(times.iter().copied(), 99);
    let what = "a line into produce, until consume -f has printed it";
    Ok([
        Row::figure(
            "follow-latency",
            &format!("{what}: median"),
            typical,
            Unit::Seconds,
            Goal::AtMost(0.001),
        ),
        Row::figure(
            "follow-latency",
            "the same: 99 of 100 are faster",
            slow,
            Unit::Seconds,
            Goal::AtMost(0.01),
        ),
    ])
}

fn idle(bench: &Bench) -> Result<Row> {
    bench.run("tapelog produce follow.log < /dev/null")?;
    let follower = Running(follow(bench).spawn()?);
    thread::sleep(Duration::from_secs(1));
    let wait = bench.size(30, 3);
    let before = cpu_ticks(&follower.0)?;
    thread::sleep(Duration::from_secs(wait));
    // A tick is 10 ms on Linux.
    let spent = (cpu_ticks(&follower.0)? - before) as f64 / 100.0;
    let what = format!("CPU time of consume -f in {wait} s without records");
    Ok(Row::figure("follow-idle", &what, spent, Unit::Seconds, Goal::AtMost(0.0)))
}

fn follow(bench: &Bench) -> std::process::Command {
    bench.tapelog(&["consume", "follow.log", "-f"])
}

/// User and system time, from /proc.
fn cpu_ticks(child: &Child) -> Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id()))?;
    // The name in parentheses may hold anything; what comes after it does not.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let times: Vec<u64> = fields.skip(11).take(2).map(str::parse).collect::<Result<_, _>>()?;
    ensure!(times.len() == 2, "/proc/{}/stat has no times", child.id());
    Ok(times.iter().sum())
}

/// A process that is ended when the measurement is.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to do.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
