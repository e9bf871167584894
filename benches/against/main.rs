//! Measures the real binary against `cat`, `wc`, `sh`, `sqlite3`, `redb` and `fjall`, pair by pair in
//! one run, and how cost grows with records, segments, groups and the length of lines.
//!
//!     cargo bench --locked --bench against -- [--quick] [--only NAME] [--rounds N]
//!         [--json FILE] [--plot FILE] [--binary FILE]
//!
//! The tables go to stdout as Markdown, what is being measured to stderr. `--only`
//! takes a part of a name: of a row, or `growth`. `--quick` makes all inputs an eighth
//! or less, to try; `--binary` measures another build.
//!
//! - [`bench`]: the directory with the inputs and logs, and how a command is timed;
//! - [`row`]: what a row of the table holds, its goal, and whether that was reached;
//! - [`pairs`]: all bytes through ours and the peer's;
//! - [`process`]: one short process, of which a script starts many;
//! - [`ids`]: finding by key beside redb, fjall and sqlite3, and compacting;
//! - [`following`] and [`memory`]: latency, idle CPU, peak memory, size;
//! - [`growth`] and [`plot`]: time by size, and the picture of it;
//! - [`report`]: the tables and the JSON.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the figures are what it is run for")]

mod bench;
mod following;
mod growth;
mod ids;
mod inputs;
mod memory;
mod options;
mod pairs;
mod plot;
mod process;
mod report;
mod row;

use std::fs;

use anyhow::{Context, Result};

use bench::Bench;
use options::Options;

fn main() -> Result<()> {
    let options = Options::from_command_line()?;
    let bench = Bench::new(&options)?;
    let mut rows = pairs::rows(&bench)?;
    rows.extend(process::rows(&bench)?);
    rows.extend(ids::rows(&bench)?);
    rows.extend(following::rows(&bench)?);
    rows.extend(memory::rows(&bench)?);
    print!("{}", report::rows_as_markdown(&rows));
    let axes = if bench.wanted("growth") { growth::axes(&bench)? } else { Vec::new() };
    print!("{}", report::axes_as_markdown(&axes));
    if let Some(path) = &options.json {
        fs::write(path, report::as_json(&rows, &axes))
            .with_context(|| path.display().to_string())?;
    }
    if let Some(path) = &options.plot {
        fs::write(path, plot::svg(&axes)).with_context(|| path.display().to_string())?;
    }
    Ok(())
}
