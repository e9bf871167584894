//! What a run must print on stdout, say on stderr and end with.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use assert_cmd::Command;
use serde_json::Value;

/// The exit statuses, by name.
pub mod status {
    pub const DONE: i32 = 0;
    pub const FAILED: i32 = 1;
    pub const USAGE: i32 = 2;
    pub const NOT_THERE: i32 = 3;
    pub const DAMAGE: i32 = 4;
    pub const HELD: i32 = 5;
    pub const RANGE: i32 = 6;
    pub const TOO_BIG: i32 = 7;
    pub const HANDLER: i32 = 8;
    pub const PARTIAL: i32 = 9;
    pub const DEADLINE: i32 = 11;
}

/// One statement about one run.
pub trait Expect {
    /// Runs it and keeps everything that came out.
    #[must_use = "nothing is stated yet"]
    fn outcome(&mut self) -> Outcome;

    /// Status 0, exactly this on stdout, silence on stderr.
    fn prints(&mut self, stdout: impl AsRef<[u8]>) {
        self.outcome().succeeded().silent().printed(stdout);
    }

    /// Status 0, exactly this on stdout, one note on stderr with all these words.
    fn notes(&mut self, stdout: impl AsRef<[u8]>, words: &[&str]) {
        self.outcome().succeeded().noted(words).printed(stdout);
    }

    /// This status, nothing on stdout, one error on stderr with all these words.
    fn fails(&mut self, status: i32, words: &[&str]) {
        self.ends(status, "", words);
    }

    /// This status, exactly this on stdout, one error on stderr with all these words.
    fn ends(&mut self, status: i32, stdout: impl AsRef<[u8]>, words: &[&str]) {
        self.outcome().ended(status).said(words).printed(stdout);
    }

    /// Status 0 and silence on stderr; gives what was printed.
    fn text(&mut self) -> String {
        self.outcome().succeeded().silent().text()
    }

    /// The same, as JSON, one object a line.
    fn json(&mut self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Expect for Command {
    fn outcome(&mut self) -> Outcome {
        let output = self.output().unwrap();
        Outcome {
            command: format!("{self:?}"),
            status: output.status,
            stdout: output.stdout,
            stderr: text_of(output.stderr),
        }
    }
}

/// What came out of a run, for statements that [`Expect`] has no word for.
pub struct Outcome {
    pub command: String,
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Outcome {
    /// It ended with this status.
    pub fn ended(self, status: i32) -> Outcome {
        assert_eq!(self.status.code(), Some(status), "the status of {self}");
        self
    }

    /// It ended with 0.
    pub fn succeeded(self) -> Outcome {
        self.ended(status::DONE)
    }

    /// It ended by this signal.
    pub fn ended_by_signal(self, signal: i32) -> Outcome {
        assert_eq!(self.status.signal(), Some(signal), "the signal that ended {self}");
        self
    }

    /// It said nothing on stderr.
    pub fn silent(self) -> Outcome {
        assert_eq!(self.stderr, "", "the stderr of {self}");
        self
    }

    /// It said one note, with all these words, and nothing else.
    pub fn noted(self, words: &[&str]) -> Outcome {
        assert_eq!(
            (self.notes().len(), self.errors().len()),
            (1, 0),
            "one note, no error from {self}"
        );
        self.with_words(words)
    }

    /// It said one error, with all these words, and nothing else.
    pub fn said(self, words: &[&str]) -> Outcome {
        assert_eq!(
            (self.notes().len(), self.errors().len()),
            (0, 1),
            "no note, one error from {self}"
        );
        self.with_words(words)
    }

    /// All these words are on stderr, whose lines all name the tool.
    pub fn with_words(self, words: &[&str]) -> Outcome {
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} in the stderr of {self}");
        }
        assert!(
            self.stderr.lines().all(|line| line.starts_with("tapelog: ")),
            "the stderr of {self}"
        );
        self
    }

    /// It printed exactly this.
    pub fn printed(self, stdout: impl AsRef<[u8]>) -> Outcome {
        same_bytes(&self.stdout, stdout.as_ref(), &self.command);
        self
    }

    /// The notes on stderr.
    pub fn notes(&self) -> Vec<&str> {
        self.stderr.lines().filter(|line| line.starts_with("tapelog: note: ")).collect()
    }

    /// The lines on stderr that are no notes.
    pub fn errors(&self) -> Vec<&str> {
        self.stderr.lines().filter(|line| !line.starts_with("tapelog: note: ")).collect()
    }

    /// What was printed, as text.
    pub fn text(self) -> String {
        text_of(self.stdout)
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Outcome { command, status, stdout, stderr } = self;
        write!(f, "{command}\n{status}, {} bytes on stdout, on stderr:\n{stderr}", stdout.len())
    }
}

/// Compares long outputs without printing them: tells where they part.
#[track_caller]
pub fn same_bytes(got: &[u8], want: &[u8], what: &str) {
    if got == want {
        return;
    }
    let at = got.iter().zip(want).take_while(|(a, b)| a == b).count();
    let near = |bytes: &[u8]| {
        let start = at.saturating_sub(40);
        bytes[start.min(bytes.len())..(at + 40).min(bytes.len())].escape_ascii().to_string()
    };
    panic!(
        "the stdout of {what}\nparts from what is expected at byte {at}\n got: {} bytes, …{}…\nwant: {} bytes, …{}…",
        got.len(),
        near(got),
        want.len(),
        near(want)
    );
}

fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("what tapelog says is UTF-8")
}
