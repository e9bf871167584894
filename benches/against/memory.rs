//! Peak memory, and the size of the binary.

use std::fs::{self, File};
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::bench::Bench;
use crate::inputs::{Input, Kind};
use crate::row::{Goal, Row, Unit};

const MIB: f64 = (1 << 20) as f64;

struct Run {
    needs: Input,
    /// What is read from stdin.
    input: &'static str,
    /// The arguments.
    line: &'static str,
    /// The largest record that counts, in MiB: lines don't.
    record: f64,
}

const RUNS: &[Run] = &[
    Run { needs: Input::Lines, input: "lines", line: "produce m1.log", record: 0.0 },
    Run { needs: Input::Lines, input: "lines", line: "produce m2.log -K :", record: 0.0 },
    Run { needs: Input::Lines, input: "lines", line: "produce m3.log -z lz4", record: 0.0 },
    Run { needs: Input::Log(Kind::Lines), input: "x", line: "consume lines.log", record: 0.0 },
    Run { needs: Input::Log(Kind::Keyed), input: "x", line: "consume keyed.log -K :", record: 0.0 },
    Run { needs: Input::Log(Kind::Lz4), input: "x", line: "consume lz4.log", record: 0.0 },
    Run {
        needs: Input::Log(Kind::Lines),
        input: "x",
        line: "consume lines.log -q -g peak",
        record: 0.0,
    },
    Run { needs: Input::Large, input: "large", line: "produce m4.log --whole", record: 64.0 },
    Run { needs: Input::Large, input: "x", line: "consume m4.log", record: 64.0 },
    Run { needs: Input::Large, input: "large", line: "produce m5.log", record: 64.0 },
    Run { needs: Input::Large, input: "x", line: "consume m5.log", record: 64.0 },
];

/// Measures what is wanted.
pub fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    if bench.wanted("memory") {
        bench.once("x", |path| Ok(fs::write(path, "x\n")?))?;
        for run in RUNS {
            bench.need(run.needs)?;
            let arguments: Vec<&str> = run.line.split(' ').collect();
            let mut command = bench.tapelog(&arguments);
            let bytes = peak(command.stdin(File::open(bench.at(run.input))?))?;
            let what = format!("peak memory of {}", run.line);
            let most = Goal::AtMost((16.0 + run.record) * MIB);
            rows.push(Row::figure("memory", &what, bytes, Unit::Bytes, most));
        }
    }
    if bench.wanted("binary-size") {
        let bytes = fs::metadata(bench.binary())?.len() as f64;
        let what = "size of the release binary";
        rows.push(Row::figure("binary-size", what, bytes, Unit::Bytes, Goal::AtMost(5.0 * MIB)));
    }
    Ok(rows)
}

/// The high-water mark of the resident set, in bytes. The kernel keeps it and drops it
/// at the end, so it is read until then; what is lost is the last millisecond.
pub fn peak(command: &mut Command) -> Result<f64> {
    let mut child = command.spawn()?;
    let status = format!("/proc/{}/status", child.id());
    let mut kibibytes = 0.0_f64;
    loop {
        // Gone between two looks, or without the line once it has ended.
        let text = fs::read_to_string(&status).unwrap_or_default();
        let mark = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let mark = mark.and_then(|mark| mark.trim().trim_end_matches(" kB").parse().ok());
        kibibytes = kibibytes.max(mark.unwrap_or(0.0));
        if let Some(ended) = child.try_wait()? {
            ensure!(ended.success(), "{command:?} ended with {ended}");
            return Ok(kibibytes * 1024.0);
        }
        thread::sleep(Duration::from_millis(1));
    }
}
