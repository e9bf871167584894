//! A reader whose output goes into a pipe that the test empties, or does not.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::{Sandbox, wait_until};

/// What may end "within a second", on a busy machine.
pub const A_SECOND: Duration = Duration::from_millis(1300);

/// A reader whose output goes into a pipe that the test reads.
pub struct Piped {
    child: Child,
    out: Option<BufReader<ChildStdout>>,
    err: PathBuf,
}

impl Piped {
    /// Starts it; nothing is read before the test asks.
    pub fn start(sandbox: &Sandbox, line: &str) -> Piped {
        Piped::of(sandbox, sandbox.command(line))
    }

    /// The same of any command.
    pub fn of(sandbox: &Sandbox, mut command: Command) -> Piped {
        let err = sandbox.path("piped.err");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&err).unwrap());
        let mut child = command.spawn().unwrap();
        let out = child.stdout.take().map(BufReader::new);
        Piped { child, out, err }
    }

    /// The next line.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.as_mut().unwrap().read_line(&mut line).unwrap();
        line
    }

    /// Takes exactly so many bytes out of the pipe.
    pub fn take(&mut self, bytes: usize) -> Vec<u8> {
        let mut taken = vec![0; bytes];
        self.out.as_mut().unwrap().get_mut().read_exact(&mut taken).unwrap();
        taken
    }

    /// All that is still to come.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        self.out.as_mut().unwrap().read_to_end(&mut rest).unwrap();
        rest
    }

    /// Takes what is there, at most so many bytes; waits for the first.
    pub fn take_some(&mut self, most: usize) -> Vec<u8> {
        let mut taken = vec![0; most];
        let length = self.out.as_mut().unwrap().get_mut().read(&mut taken).unwrap();
        taken.truncate(length);
        taken
    }

    /// Goes away as `head` does.
    pub fn close(&mut self) {
        self.out = None;
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`, and waits for the end.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end.
    #[track_caller]
    pub fn ends_within(&mut self, limit: Duration) -> ExitStatus {
        wait_until(limit, "the reader ends", || !self.runs());
        self.child.wait().unwrap()
    }

    /// What it has said on stderr so far.
    pub fn err(&self) -> String {
        fs::read_to_string(&self.err).unwrap()
    }

    /// It ended as a program in a pipe should: with 0 or by SIGPIPE, in silence.
    #[track_caller]
    pub fn ends_quietly(&mut self) {
        let end = self.ends_within(A_SECOND);
        assert!(is_quiet(end), "{end}");
        assert_eq!(self.err(), "");
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A status that `head` may leave behind.
pub fn is_quiet(end: ExitStatus) -> bool {
    end.success() || end.signal() == Some(13) || end.code() == Some(141)
}
