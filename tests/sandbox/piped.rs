//! A process whose stdout is a pipe that the test reads at its own pace.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::wait_until;

/// A running process and the reading end of its stdout. Killed on drop.
pub struct Piped {
    child: Child,
    pipe: Option<ChildStdout>,
    err: PathBuf,
}

impl Piped {
    /// Starts it with stderr in a file and nothing on stdin.
    pub fn spawn(mut command: Command, err: PathBuf) -> Piped {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&err).unwrap());
        let mut child = command.spawn().unwrap();
        let pipe = child.stdout.take();
        Piped { child, pipe, err }
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Takes exactly so many bytes out of the pipe, never one more.
    #[track_caller]
    pub fn take(&mut self, bytes: usize) -> Vec<u8> {
        let mut taken = vec![0; bytes];
        self.pipe.as_mut().unwrap().read_exact(&mut taken).unwrap();
        taken
    }

    /// Takes what is there, at most so many bytes; waits for the first.
    pub fn take_some(&mut self, most: usize) -> Vec<u8> {
        let mut taken = vec![0; most];
        let length = self.pipe.as_mut().unwrap().read(&mut taken).unwrap();
        taken.truncate(length);
        taken
    }

    /// Takes everything up to the end of the output.
    pub fn take_rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        self.pipe.as_mut().unwrap().read_to_end(&mut rest).unwrap();
        rest
    }

    /// Hands the pipe over, to be read by lines.
    pub fn lines(&mut self) -> impl BufRead + use<> {
        BufReader::new(self.pipe.take().unwrap())
    }

    /// The reader goes away.
    pub fn close(&mut self) {
        drop(self.pipe.take());
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// `kill -9`, and waits for the end.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// What it has said on stderr so far.
    pub fn err(&self) -> String {
        std::fs::read_to_string(&self.err).unwrap()
    }

    /// Waits for its end.
    #[track_caller]
    pub fn ends_within(&mut self, limit: Duration) -> ExitStatus {
        let mut status = None;
        wait_until(limit, "the process ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Waits for its end by this signal.
    #[track_caller]
    pub fn ends_by_signal(&mut self, signal: Signal, limit: Duration) {
        let status = self.ends_within(limit);
        assert_eq!(status.signal(), Some(signal.as_raw()), "{status}, {}", self.err());
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        self.kill();
    }
}
