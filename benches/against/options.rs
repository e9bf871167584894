//! The benchmark's own options.

use std::env;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

/// What was asked for on the command line.
pub struct Options {
    /// Small inputs and few rounds: to try the benchmark, not to quote it.
    pub quick: bool,
    /// Only what has this in its name.
    pub only: Option<String>,
    /// How often a pair is run; the median counts.
    pub rounds: usize,
    /// Where the figures go as JSON.
    pub json: Option<PathBuf>,
    /// Where the plot of the growth goes as SVG.
    pub plot: Option<PathBuf>,
    /// The binary that is measured.
    pub binary: PathBuf,
}

impl Options {
    /// Reads the arguments. Fails on one that is unknown or lacks its value.
    pub fn from_command_line() -> Result<Options> {
        let mut options = Options {
            quick: false,
            only: None,
            rounds: 7,
            json: None,
            plot: None,
            binary: PathBuf::from(env!("CARGO_BIN_EXE_tapelog")),
        };
        let mut arguments = env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value =
                || arguments.next().with_context(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--bench" => {} // Cargo adds it.
                "--quick" => options.quick = true,
                "--only" => options.only = Some(value()?),
                "--rounds" => options.rounds = value()?.parse().context("--rounds")?,
                "--json" => options.json = Some(absolute(&value()?)?),
                "--plot" => options.plot = Some(absolute(&value()?)?),
                "--binary" => options.binary = absolute(&value()?)?,
                _ => bail!("{argument} is no option; see benches/against/main.rs"),
            }
        }
        Ok(options)
    }
}

fn absolute(path: &str) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| path.to_owned())
}
