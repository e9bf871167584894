//! Pairs: all bytes through ours, and through what would be used without it.

use anyhow::Result;

use crate::bench::{Bench, compare};
use crate::inputs::{Input, Kind};
use crate::row::{Goal, Row, Unit};

struct Pair {
    name: &'static str,
    needs: &'static [Input],
    ours: &'static str,
    peer: &'static str,
    goal: Goal,
}

const LINES: &[Input] = &[Input::Lines, Input::Log(Kind::Lines)];
const SHORT: &[Input] = &[Input::Short, Input::Log(Kind::Short)];
const KEYED: &[Input] = &[Input::Lines, Input::Log(Kind::Keyed)];
const LZ4: &[Input] = &[Input::Lines, Input::Log(Kind::Lz4)];

/// Each is run as it stands here, by `sh`; `out` is empty before.
const PAIRS: &[Pair] = &[
    Pair {
        name: "produce-file",
        needs: LINES,
        ours: "tapelog produce out/log < lines",
        peer: "cat < lines > out/copy; sync -d out/copy",
        goal: Goal::AtLeast(1.0),
    },
    Pair {
        name: "produce-pipe",
        needs: LINES,
        ours: "cat lines | tapelog produce out/log",
        peer: "cat lines | cat > out/copy; sync -d out/copy",
        goal: Goal::AtLeast(0.85),
    },
    Pair {
        name: "consume-wc",
        needs: LINES,
        ours: "tapelog consume lines.log | wc -l",
        peer: "cat lines.log/*.log | wc -l",
        goal: Goal::AtLeast(1.3),
    },
    Pair {
        name: "consume-cat",
        needs: LINES,
        ours: "tapelog consume lines.log | cat > /dev/null",
        peer: "cat lines.log/*.log | cat > /dev/null",
        goal: Goal::AtLeast(1.3),
    },
    Pair {
        name: "consume-null",
        needs: LINES,
        ours: "tapelog consume lines.log > /dev/null",
        peer: "cat lines.log/*.log > /dev/null",
        goal: Goal::AtLeast(0.9),
    },
    Pair {
        name: "consume-file",
        needs: LINES,
        ours: "tapelog consume lines.log > out/copy",
        peer: "cat lines.log/*.log > out/copy",
        goal: Goal::AtLeast(0.9),
    },
    Pair {
        name: "produce-short",
        needs: SHORT,
        ours: "tapelog produce out/log < short",
        peer: "cat < short > out/copy; sync -d out/copy",
        goal: Goal::AtLeast(0.8),
    },
    Pair {
        name: "consume-short",
        needs: SHORT,
        ours: "tapelog consume short.log | cat > /dev/null",
        peer: "cat short.log/*.log | cat > /dev/null",
        goal: Goal::AtLeast(0.8),
    },
    Pair {
        name: "produce-keyed",
        needs: KEYED,
        ours: "tapelog produce out/log -K : < lines",
        peer: "cat < lines > out/copy; sync -d out/copy",
        goal: Goal::AtLeast(0.4),
    },
    Pair {
        name: "consume-keyed",
        needs: KEYED,
        ours: "tapelog consume keyed.log -K : | cat > /dev/null",
        peer: "cat lines | cat > /dev/null",
        goal: Goal::AtLeast(0.4),
    },
    Pair {
        name: "produce-lz4",
        needs: LZ4,
        ours: "tapelog produce out/log -z lz4 < lines",
        peer: "cat < lines > out/copy; sync -d out/copy",
        goal: Goal::AtLeast(0.25),
    },
    Pair {
        name: "consume-lz4",
        needs: LZ4,
        ours: "tapelog consume lz4.log | cat > /dev/null",
        peer: "cat lines | cat > /dev/null",
        goal: Goal::AtLeast(0.25),
    },
];

/// A table filled in one transaction, and read in order. On an eighth of the lines.
const SQLITE: &[Pair] = &[
    Pair {
        name: "produce-sqlite",
        needs: &[Input::Few],
        ours: "tapelog produce out/log < few",
        peer: "sqlite3 out/db 'create table r(value text)' '.mode list' '.separator \\1 \\n' \
               '.import few r'",
        goal: Goal::Open,
    },
    Pair {
        name: "consume-sqlite",
        needs: &[Input::Log(Kind::Few)],
        ours: "tapelog consume few.log | cat > /dev/null",
        peer: "sqlite3 few.db 'select value from r order by rowid' | cat > /dev/null",
        goal: Goal::Open,
    },
];

/// Runs the pairs that are wanted; without sqlite3, those without it.
pub fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for pair in PAIRS.iter().filter(|pair| bench.wanted(pair.name)) {
        rows.push(row(bench, pair)?);
    }
    for pair in SQLITE.iter().filter(|pair| bench.wanted(pair.name)) {
        if bench.run("command -v sqlite3").is_err() {
            eprintln!("left out: there is no sqlite3");
            continue;
        }
        sqlite_table(bench)?;
        rows.push(row(bench, pair)?);
    }
    if bench.wanted("commit-each") {
        rows.push(commit_each(bench)?);
    }
    Ok(rows)
}

fn row(bench: &Bench, pair: &Pair) -> Result<Row> {
    for input in pair.needs {
        bench.need(*input)?;
    }
    bench.settle()?;
    let compared = compare(
        bench.rounds,
        || bench.seconds_from_fresh(pair.ours),
        || bench.seconds_from_fresh(pair.peer),
    )?;
    Ok(Row::speed(pair.name, pair.ours, pair.peer, compared, pair.goal))
}

fn sqlite_table(bench: &Bench) -> Result<()> {
    bench.need(Input::Few)?;
    bench.once("few.db", |_| {
        bench.run("mkdir -p out")?;
        bench.seconds_from_fresh(SQLITE[0].peer)?;
        bench.run(
            "mv out/db few.db && sqlite3 few.db 'select value from r order by rowid' | cmp - few",
        )
    })
}

/// A checkpoint after every record, on a log that is durable: what the loop of a
/// careful script costs inside one process.
fn commit_each(bench: &Bench) -> Result<Row> {
    let records = bench.size(2_000_000, 100_000);
    bench.run(&format!("seq {records} | tapelog produce each.log"))?;
    let line = "tapelog consume each.log -q -g each --commit-every 1 > /dev/null";
    let mut rates = Vec::new();
    for _ in 0..bench.rounds {
        bench.run("tapelog groups each.log -g each --delete -q 2> /dev/null || true")?;
        rates.push(f64::from(records) / bench.seconds_from_fresh(line)?);
    }
    let rate = crate::bench::median(rates.into_iter());
    Ok(Row::figure("commit-each", line, rate, Unit::PerSecond, Goal::AtLeast(500_000.0)))
}
