//! A log in a directory of its own, and the real binary run on it with an empty
//! environment. What a run must print, say and end with is stated in one place;
//! silence on stderr is expected unless stated.
//!
//! A command line is written as one would type it, without `tapelog` and LOG:
//! `sandbox.tapelog("consume -g g -n 3").prints(want(1, 3))`.

#![allow(dead_code, unused_imports, reason = "each test binary uses a part of it")]

mod background;
mod clock;
mod expect;
mod files;
mod groups;
mod lines;
mod piped;
mod small_disk;
mod trace;
mod unclosed;
mod users;

pub use background::{
    Background, handles_of, hold_lock, is_locked, peak_memory, stays, wait_until,
};
pub use expect::{Expect, Outcome, same_bytes, status};
pub use files::{append_bytes, batch_of, copy_tree, cut, flip, len, open, position_of, tree};
pub use groups::numbers;
pub use lines::{Random, lines, offsets, want};
pub use piped::{A_SECOND, Piped, is_quiet};
pub use small_disk::on_a_small_disk;
pub use trace::{Call, Strace, calls, was_injected};
pub use unclosed::Unclosed;
pub use users::{allow_writing, deny_writing, is_root};

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command as StdCommand;
use std::time::Duration;

use assert_cmd::Command;
use tempfile::TempDir;

/// What the cases allow most often.
pub const SECOND: Duration = Duration::from_secs(1);

/// Nothing that a test runs in the foreground may take longer.
const RUN_LIMIT: Duration = Duration::from_secs(120);

/// A directory for one test, with the log's path in it. Removed on drop.
pub struct Sandbox {
    dir: TempDir,
    log: PathBuf,
}

impl Sandbox {
    /// An empty directory; the log is made by the first `produce` or `config`.
    pub fn new() -> Sandbox {
        let dir = TempDir::with_prefix("tapelog-test-").unwrap();
        let log = dir.path().join("log");
        Sandbox { dir, log }
    }

    /// A sandbox with an empty log that has these settings: `"segment-size=4096"`.
    pub fn with_config(settings: &str) -> Sandbox {
        let sandbox = Sandbox::new();
        sandbox.config(settings);
        sandbox
    }

    /// `tapelog config LOG SETTINGS`, whatever it prints.
    pub fn config(&self, settings: &str) {
        self.tapelog(&format!("config {settings}")).outcome().succeeded();
    }

    /// The path of the log.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Another path in the sandbox, for inputs and outputs.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes an input file into the sandbox.
    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// The same log, byte for byte, in a sandbox of its own.
    pub fn copy(&self) -> Sandbox {
        let copy = Sandbox::new();
        copy_tree(&self.log, &copy.log);
        copy
    }

    /// `tapelog VERB LOG ARGUMENTS`, ready for its stdin and an expectation.
    pub fn tapelog(&self, line: &str) -> Command {
        foreground(self.command(line))
    }

    /// The same as a plain command, for pipes, users and signals.
    pub fn command(&self, line: &str) -> StdCommand {
        self.command_on(&self.log, line)
    }

    /// `tapelog consume LOG OPTIONS --exec LINE`, the line as it is.
    pub fn exec(&self, options: &str, line: &str) -> Command {
        foreground(self.exec_command(options, line))
    }

    /// The same as a plain command.
    pub fn exec_command(&self, options: &str, line: &str) -> StdCommand {
        let mut command = self.command(&format!("consume {options}"));
        command.args(["--exec", line]);
        command
    }

    /// The same on another LOG, taken as it stands, relative to the sandbox.
    pub fn command_on(&self, log: impl AsRef<OsStr>, line: &str) -> StdCommand {
        let mut words = line.split_whitespace();
        let mut command = self.bare();
        command.args(words.next()).arg(log.as_ref()).args(words);
        command
    }

    /// The binary alone: no arguments, no environment, in the sandbox.
    pub fn bare(&self) -> StdCommand {
        let mut command = StdCommand::new(binary());
        command.env_clear().current_dir(self.dir.path());
        command
    }

    /// Runs a command in the background with stdout and stderr in files.
    pub fn spawn(&self, name: &str, command: StdCommand) -> Background {
        Background::spawn(
            command,
            self.path(format!("{name}.out")),
            self.path(format!("{name}.err")),
        )
    }

    /// The same with this as its stdout.
    pub fn spawn_onto(
        &self,
        name: &str,
        command: StdCommand,
        stdout: impl Into<std::process::Stdio>,
    ) -> Background {
        let (out, err) = (self.path(format!("{name}.out")), self.path(format!("{name}.err")));
        Background::start(command, stdout.into(), out, err)
    }

    /// The same with stdout in a pipe to `cat`, and that one's stdout in a file.
    pub fn spawn_into_cat(&self, name: &str, command: StdCommand) -> (Background, Background) {
        Background::spawn_into_cat(
            command,
            self.path(format!("{name}.out")),
            self.path(format!("{name}.err")),
        )
    }

    /// Appends bytes through `produce` with these options, which must be silent.
    pub fn produce(&self, options: &str, stdin: impl Into<Vec<u8>>) {
        self.tapelog(&format!("produce {options}")).write_stdin(stdin.into()).prints("");
    }

    /// `seq -f 'm-%06g' 1 N | tapelog produce LOG`.
    pub fn mk(&self, n: u64) {
        self.produce("", want(1, n));
    }

    /// The same, one record a batch.
    pub fn mk1(&self, n: u64) {
        self.produce("--batch-records 1", want(1, n));
    }

    /// A log that was not closed: N batches of one record, copied while the
    /// unsynced producer still ran. Nothing in it is promised.
    pub fn mkx(&self, n: u64) {
        self.mkx_with("", n);
    }

    /// The same with settings: `"segment-size=1024"`.
    pub fn mkx_with(&self, settings: &str, n: u64) {
        let mut unclosed = Unclosed::start(self, settings);
        unclosed.append(&want(1, n), n);
        copy_tree(unclosed.log(), &self.log);
    }

    /// All records from the start, without a group, to the end of the log.
    pub fn all(&self) -> Command {
        self.tapelog("consume -o earliest")
    }

    /// One line through `produce`; gives the offset it got.
    pub fn append(&self, line: &str) -> u64 {
        let mut produce = self.tapelog("produce --receipt");
        offsets(&produce.write_stdin(format!("{line}\n")).text())[0]
    }

    /// The data files, oldest first.
    pub fn segments(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.log).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> =
            entries.filter(|path| path.extension() == Some(OsStr::new("log"))).collect();
        files.sort();
        files
    }

    /// The newest data file.
    pub fn active(&self) -> PathBuf {
        self.segments().pop().expect("a log with records has a data file")
    }

    /// The K-th oldest sealed data file, counted from 1.
    pub fn sealed(&self, k: usize) -> PathBuf {
        let mut files = self.segments();
        files.pop();
        files.swap_remove(k - 1)
    }

    /// Deletes every file that is derived from the segments.
    pub fn delete_indexes(&self) {
        for entry in fs::read_dir(&self.log).unwrap() {
            let path = entry.unwrap().path();
            match path.extension().and_then(OsStr::to_str) {
                Some("index") => fs::remove_file(path).unwrap(),
                _ if path.ends_with("keys") => fs::remove_dir_all(path).unwrap(),
                _ => {}
            }
        }
    }

    /// The bytes of every file that recovery set aside.
    pub fn quarantine(&self) -> Vec<Vec<u8>> {
        let dir = self.log.join("quarantine");
        if !dir.exists() {
            return Vec::new();
        }
        tree(&dir).into_values().flatten().collect()
    }

    /// The log end that `segments --summary -J` shows.
    pub fn end(&self) -> u64 {
        self.tapelog("segments --summary -J").json()[0]["end"].as_u64().unwrap()
    }

    /// The next offset of a group, as `groups -g` shows it.
    pub fn position(&self, group: &str) -> u64 {
        self.tapelog(&format!("groups -g {group} -J")).json()[0]["position"].as_u64().unwrap()
    }
}

/// A command for the foreground: bounded, and with the expectations of [`Expect`].
pub fn foreground(command: StdCommand) -> Command {
    let mut command = Command::from_std(command);
    command.timeout(RUN_LIMIT);
    command
}

/// The binary under test.
pub fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_tapelog"))
}

/// Whether the long variants are asked for by `TAPELOG_LONG=1`.
pub fn long() -> bool {
    std::env::var_os("TAPELOG_LONG").is_some_and(|value| value == "1")
}

/// A number of rounds: few by default, all of them in a long run.
pub fn rounds<N>(few: N, all: N) -> N {
    if long() { all } else { few }
}

/// A program from `PATH`, which the commands themselves do not see.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}

/// Says on the real stderr, past the test harness, that a test did not run.
pub fn skip(case: &str, reason: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED {case}: {reason}");
}
