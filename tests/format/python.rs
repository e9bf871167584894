//! The reader in Python that is written from the manual page.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sandbox::{Outcome, find_program, skip};

/// What reader.py ends with after it said SKIPPED.
const SKIPPED: i32 = 77;

/// The reader and the program that runs it.
pub struct PythonReader {
    python: PathBuf,
}

/// The reader; `None`, loudly, without Python 3.
pub fn reader(case: &str) -> Option<PythonReader> {
    let python = find_program("python3");
    if python.is_none() {
        skip(case, "there is no python3");
    }
    Some(PythonReader { python: python? })
}

impl PythonReader {
    /// `reader.py LOG`
    pub fn on(&self, log: &Path) -> Command {
        let mut command = Command::new(&self.python);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/format/reader.py");
        command.arg(script).arg(log);
        command
    }
}

/// Whether the reader could not inflate Zstandard; said loudly.
pub fn skipped(case: &str, outcome: &Outcome) -> bool {
    let skipped = outcome.status.code() == Some(SKIPPED);
    if skipped {
        skip(case, outcome.stderr.trim());
    }
    skipped
}
