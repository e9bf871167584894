//! The command that records are handed to: how it is started, given its input, and how
//! it ends. It gets that input, our stdout and stderr, and no handle of ours; neither
//! does the bytes' content ever become a part of a command line.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::environment::{Environment, is_own};
use crate::cli::stream::output::wait;

/// What a shell ends with if a program can't be run, or is not there.
const NOT_RUN: [i32; 2] = [126, 127];
/// How often a child is looked at where the system can't tell of its end.
const LOOK: Duration = Duration::from_millis(5);

/// A command, to be run again and again.
#[derive(Clone, Debug)]
pub struct Program {
    program: OsString,
    arguments: Vec<OsString>,
    /// What our own environment tells of another record: a handler may consume too.
    inherited: Vec<OsString>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With 0.
    Done,
    /// Otherwise; the next one may end better.
    Failed(How),
    /// The program can't be run at all.
    NotRun(String),
}

/// The end of a run that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// An exit status.
    Status(i32),
    /// A signal.
    Signal(i32),
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            How::Status(status) => write!(f, "status {status}"),
            How::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

impl Program {
    /// A line for the shell.
    pub fn shell(line: &str) -> Program {
        Program::new("/bin/sh".into(), vec!["-c".into(), line.into()])
    }

    /// A program and its arguments, as they are; `None` without a program.
    pub fn direct(words: &[OsString]) -> Option<Program> {
        let (program, arguments) = words.split_first()?;
        Some(Program::new(program.clone(), arguments.to_vec()))
    }

    fn new(program: OsString, arguments: Vec<OsString>) -> Program {
        let names = std::env::vars_os().map(|(name, _)| name);
        Program { program, arguments, inherited: names.filter(|name| is_own(name)).collect() }
    }

    /// Runs it once with `input`. Meanwhile, `tick` is called when it asks for that: it
    /// says after how long.
    ///
    /// # Errors
    /// What the system says of the child; what `tick` says, once the child has ended.
    pub fn run(
        &self,
        input: &[u8],
        environment: &Environment,
        tick: &mut dyn FnMut() -> Result<Option<Duration>>,
    ) -> Result<Ending> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::piped());
        for name in &self.inherited {
            command.env_remove(name);
        }
        command.envs(environment.variables());
        let child = match command.spawn() {
            Ok(child) => Running::of(child)?,
            Err(error) => {
                let program = self.program.display();
                return Ok(Ending::NotRun(format!("can't run {program}: {error}")));
            }
        };
        Ok(ending(child.finish(input, tick)?))
    }
}

fn ending(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(0), _) => Ending::Done,
        (Some(code), _) if NOT_RUN.contains(&code) => {
            Ending::NotRun(format!("the command ended with status {code}: it can't be run"))
        }
        (Some(code), _) => Ending::Failed(How::Status(code)),
        (None, signal) => Ending::Failed(How::Signal(signal.unwrap_or_default())),
    }
}

/// A child at work.
struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    /// Becomes readable when the child ends; not every system has it.
    end: Option<OwnedFd>,
}

impl Running {
    fn of(mut child: Child) -> Result<Running> {
        let stdin = child.stdin.take();
        if let Some(stdin) = &stdin {
            // One that does not read must not keep us from seeing its end.
            rustix::io::ioctl_fionbio(stdin, true).context(NAME)?;
        }
        let end = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).ok();
        Ok(Running { child, stdin, end })
    }

    fn finish(
        mut self,
        mut input: &[u8],
        tick: &mut dyn FnMut() -> Result<Option<Duration>>,
    ) -> Result<ExitStatus> {
        let mut ticked = tick();
        loop {
            input = self.feed(input)?;
            if let Ok(due) = &mut ticked {
                let limit = self.end.is_none().then_some(LOOK);
                self.wait(due.take().into_iter().chain(limit).min())?;
            } else {
                self.wait(self.end.is_none().then_some(LOOK))?;
            }
            if let Some(status) = self.child.try_wait().context(NAME)? {
                return ticked.map(|_| status);
            }
            if ticked.is_ok() {
                ticked = tick();
            }
        }
    }

    /// Writes what fits; gives what is left. A child that does not want more is left alone.
    fn feed<'i>(&mut self, mut input: &'i [u8]) -> Result<&'i [u8]> {
        while let Some(stdin) = &mut self.stdin {
            match stdin.write(input) {
                Ok(count) => input = &input[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => input = &[],
                Err(error) => return Err(error).context("can't write to the command"),
            }
            if input.is_empty() {
                self.stdin = None;
            }
        }
        Ok(input)
    }

    /// Waits until the child has ended or takes more.
    fn wait(&self, limit: Option<Duration>) -> Result<()> {
        let mut fds = Vec::with_capacity(2);
        fds.extend(self.end.as_ref().map(|end| PollFd::new(end, PollFlags::IN)));
        fds.extend(self.stdin.as_ref().map(|stdin| PollFd::new(stdin, PollFlags::OUT)));
        wait(&mut fds, limit)
    }
}

const NAME: &str = "can't wait for the command";

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str, input: &[u8]) -> Ending {
        Program::shell(line).run(input, &Environment::default(), &mut || Ok(None)).unwrap()
    }

    #[test]
    fn the_status_decides_and_not_whether_the_input_was_read() {
        let large = vec![b'x'; 1 << 20];
        assert_eq!(run("exit 0", &large), Ending::Done);
        assert_eq!(run("exec <&-; exit 0", &large), Ending::Done);
        assert_eq!(run("test $(wc -c) = 1048576", &large), Ending::Done);
        assert_eq!(run("exit 3", b""), Ending::Failed(How::Status(3)));
        assert_eq!(run("kill -9 $$", b"x"), Ending::Failed(How::Signal(9)));
        assert!(matches!(run("./nosuch", b"x"), Ending::NotRun(_)));
    }

    #[test]
    fn what_a_tick_says_waits_for_the_end_of_the_child() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("done");
        let line = format!("sleep 0.1; echo > {}", file.display());
        let mut ticks = 0;
        let mut tick = || {
            ticks += 1;
            anyhow::ensure!(ticks < 2, "no more");
            Ok(Some(Duration::from_millis(1)))
        };
        let ran = Program::shell(&line).run(b"", &Environment::default(), &mut tick);
        assert_eq!(ran.unwrap_err().to_string(), "no more");
        assert!(file.exists());
    }
}
