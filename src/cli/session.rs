//! What every command begins with: the clock, the log's path, and where notes go.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use clap::Args;

use super::failure::{Usage, say};
use crate::cli::text::when::parse_time;
use crate::disk::real::RealDisk;
use crate::log::{Home, Log, Note};
use crate::model::{LogId, Timestamp};

/// Options that every command takes.
#[derive(Args, Clone, Debug)]
pub struct Session {
    /// Say nothing but errors
    #[arg(short, long, global = true, display_order = 100)]
    quiet: bool,

    /// A fixed clock, for tests
    #[arg(long, global = true, hide = true, value_name = "TIME")]
    now: Option<String>,
}

impl Session {
    /// The time, by the system's clock or the fixed one.
    ///
    /// # Errors
    /// [`Usage`] for a `--now` that is no time.
    pub fn now(&self) -> Result<Timestamp> {
        match &self.now {
            Some(text) => Ok(parse_time(text, system_time()).map_err(Usage)?),
            None => Ok(system_time()),
        }
    }

    /// The log's home: a local directory.
    ///
    /// # Errors
    /// [`Usage`] for an address of another kind.
    pub fn home(&self, log: &LogArgument) -> Result<Home> {
        Ok(self.home_at(log.local_path()?))
    }

    /// The home of the log in a directory.
    pub fn home_at(&self, dir: PathBuf) -> Home {
        let (quiet, told) = (self.quiet, Mutex::new(HashSet::new()));
        Home::new(Arc::new(RealDisk), dir, move |note| tell_once(quiet, &told, note))
    }

    /// Opens the log.
    ///
    /// # Errors
    /// What [`Log::open`] says.
    pub fn open(&self, log: &LogArgument) -> Result<Log> {
        Ok(Log::open(&self.home(log)?)?)
    }

    /// One line of explanation on stderr, unless `--quiet`.
    pub fn note(&self, line: &str) {
        if !self.quiet {
            say(&format!("note: {line}"));
        }
    }
}

/// So many notes are remembered, so that much damage takes no memory.
const REMEMBERED: usize = 1000;

/// The same note is not worth two lines.
fn tell_once(quiet: bool, told: &Mutex<HashSet<String>>, note: &Note) {
    let line = format!("note: {note}");
    let is_new = told.lock().is_ok_and(|mut told| {
        if told.len() >= REMEMBERED {
            told.clear();
        }
        told.insert(line.clone())
    });
    if is_new && !quiet {
        say(&line);
    }
}

fn system_time() -> Timestamp {
    let millis = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
    };
    Timestamp::from_millis(millis)
}

/// A random number for a log that may be made.
///
/// # Errors
/// What the system says.
pub fn new_log_id() -> Result<LogId> {
    let mut bits = [0; 8];
    rustix::rand::getrandom(&mut bits, rustix::rand::GetRandomFlags::empty())
        .context("can't get a random number")?;
    Ok(LogId::new(u64::from_le_bytes(bits)))
}

/// The positional LOG of every command.
#[derive(Args, Clone, Debug)]
pub struct LogArgument {
    /// The directory of the log, on a local file system
    #[arg(value_name = "LOG", value_hint = clap::ValueHint::DirPath)]
    log: OsString,
}

impl LogArgument {
    /// The LOG that an option names.
    pub fn named(log: OsString) -> LogArgument {
        LogArgument { log }
    }

    fn local_path(&self) -> Result<PathBuf> {
        let Some((scheme, _)) = self.log.to_str().and_then(|text| text.split_once("://")) else {
            if self.log.is_empty() {
                bail!(Usage("LOG is empty: give a directory".to_owned()));
            }
            return Ok(PathBuf::from(&self.log));
        };
        if scheme == "kafka" {
            let hint = "this tapelog was built without the feature kafka; \
                        build it with cargo install --features kafka";
            bail!(Usage(hint.to_owned()));
        }
        if scheme.is_empty() || scheme.contains('/') {
            return Ok(PathBuf::from(&self.log));
        }
        bail!(Usage(format!("{scheme}:// is no kind of log: give a directory or kafka://…")));
    }
}
