//! The directory that everything is measured in, and how a command is timed there.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use std::{env, process};

use anyhow::{Context, Result, ensure};

use crate::options::Options;

/// A directory of its own on the disk that holds Cargo's target directory, not a
/// temporary one: that may be in memory, where a sync costs nothing.
pub struct Bench {
    dir: PathBuf,
    path: OsString,
    binary: PathBuf,
    only: Option<String>,
    /// Small inputs, few rounds.
    pub quick: bool,
    /// How often a pair is run.
    pub rounds: usize,
}

/// Medians of a pair that was run in turns.
pub struct Compared {
    /// Seconds of ours.
    pub ours: f64,
    /// Seconds of the peer's.
    pub peer: f64,
    /// The peer's time divided by ours, of the median round: how many times as fast.
    pub speed: f64,
}

impl Bench {
    /// Makes the directory, empty, and puts the binary first on the `PATH` of what runs there.
    pub fn new(options: &Options) -> Result<Bench> {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("against-{}", process::id()));
        fs::create_dir_all(dir.join("bin")).with_context(|| dir.display().to_string())?;
        let binary = fs::canonicalize(&options.binary)
            .with_context(|| options.binary.display().to_string())?;
        std::os::unix::fs::symlink(&binary, dir.join("bin/tapelog"))?;
        let mut path = dir.join("bin").into_os_string();
        path.push(":");
        path.push(env::var_os("PATH").unwrap_or_default());
        let Options { quick, rounds, only, .. } = options;
        Ok(Bench { dir, path, binary, only: only.clone(), quick: *quick, rounds: *rounds })
    }

    /// Whether `--only` leaves this in; says so, since a run takes minutes.
    pub fn wanted(&self, name: &str) -> bool {
        let wanted = self.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
        if wanted {
            eprintln!("{name}");
        }
        wanted
    }

    /// One of two numbers: the second with `--quick`.
    pub fn size<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// A path in the directory.
    pub fn at(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The binary that is measured.
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// A program in the directory, without input; what it prints is dropped.
    pub fn program(&self, program: impl AsRef<Path>, arguments: &[&str]) -> Command {
        let mut command = Command::new(program.as_ref());
        command.args(arguments).current_dir(&self.dir).env("PATH", &self.path);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// The binary that is measured, started without a shell.
    pub fn tapelog(&self, arguments: &[&str]) -> Command {
        self.program(&self.binary, arguments)
    }

    /// A line for the shell.
    pub fn shell(&self, line: &str) -> Command {
        self.program("/bin/sh", &["-c", line])
    }

    /// Runs a line for the shell, untimed.
    pub fn run(&self, line: &str) -> Result<()> {
        seconds(&mut self.shell(line)).map(|_| ())
    }

    /// The seconds that a line takes that writes to `out/`, which is empty before.
    pub fn seconds_from_fresh(&self, line: &str) -> Result<f64> {
        let out = self.at("out");
        if out.exists() {
            fs::remove_dir_all(&out)?;
        }
        fs::create_dir(&out)?;
        seconds(&mut self.shell(line))
    }

    /// Makes an input once, by `make`, which gets the path.
    pub fn once(&self, name: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let path = self.at(name);
        if path.exists() {
            return Ok(());
        }
        make(&path).with_context(|| format!("making {name}"))
    }

    /// Has the system write back what it holds, so that one row does not pay for another.
    pub fn settle(&self) -> Result<()> {
        self.run("sync -f .")
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // Gigabytes, which may not stay behind a measurement that failed either.
        if let Err(error) = fs::remove_dir_all(&self.dir) {
            eprintln!("{} stays behind: {error}", self.dir.display());
        }
    }
}

/// The seconds from the start of a command to its end. Fails if it does.
pub fn seconds(command: &mut Command) -> Result<f64> {
    let begin = Instant::now();
    let status = command.status().with_context(|| format!("{command:?}"))?;
    let seconds = begin.elapsed().as_secs_f64();
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(seconds)
}

/// Runs both in turns, the first of a round in turns too, so that neither gains from
/// its place nor from what else the machine does. One round before is not counted.
pub fn compare(
    rounds: usize,
    mut ours: impl FnMut() -> Result<f64>,
    mut peer: impl FnMut() -> Result<f64>,
) -> Result<Compared> {
    ours()?;
    peer()?;
    let mut times = Vec::new();
    for round in 0..rounds {
        times.push(if round % 2 == 0 {
            let first = ours()?;
            (first, peer()?)
        } else {
            let first = peer()?;
            (ours()?, first)
        });
    }
    Ok(Compared {
        ours: median(times.iter().map(|(ours, _)| *ours)),
        peer: median(times.iter().map(|(_, peer)| *peer)),
        speed: median(times.iter().map(|(ours, peer)| peer / ours)),
    })
}

/// The middle one, or the greater of the two in the middle; 0 if there is none.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    percentile(values, 50)
}

/// The value that `percent` of all are below.
pub fn percentile(values: impl Iterator<Item = f64>, percent: usize) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let place = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(place).copied().unwrap_or(0.0)
}
