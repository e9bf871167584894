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

/// What a shell does by itself, or not as the program of that name does: all words of
/// POSIX and of dash and bash that matter at the beginning of a line, but true and false.
const OF_THE_SHELL: [&str; 58] = [
    ".", ":", "[", "alias", "bg", "bind", "break", "builtin", "case", "cd", "chdir", "command",
    "continue", "declare", "dirs", "disown", "echo", "enable", "eval", "exec", "exit", "export",
    "fc", "fg", "for", "function", "getopts", "hash", "help", "history", "if", "jobs", "kill",
    "let", "local", "popd", "printf", "pushd", "pwd", "read", "readonly", "return", "select",
    "set", "shift", "source", "test", "time", "times", "trap", "type", "ulimit", "umask",
    "unalias", "unset", "until", "wait", "while",
];

/// A command, to be run again and again.
#[derive(Clone, Debug)]
pub struct Program {
    program: OsString,
    arguments: Vec<OsString>,
    /// The shell that is asked if the program can't be started.
    shell: Option<Box<Program>>,
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
    /// A line for the shell. Where that would only start one program, it is started
    /// without, as make does: a shell takes as long to start as the program.
    pub fn shell(line: &str) -> Program {
        let shell = Program::new("/bin/sh".into(), vec!["-c".into(), line.into()]);
        match plain_words(line).and_then(|words| Program::direct(&words)) {
            Some(direct) => Program { shell: Some(Box::new(shell)), ..direct },
            None => shell,
        }
    }

    /// A program and its arguments, as they are; `None` without a program.
    pub fn direct(words: &[OsString]) -> Option<Program> {
        let (program, arguments) = words.split_first()?;
        Some(Program::new(program.clone(), arguments.to_vec()))
    }

    fn new(program: OsString, arguments: Vec<OsString>) -> Program {
        let names = std::env::vars_os().map(|(name, _)| name);
        let inherited = names.filter(|name| is_own(name)).collect();
        Program { program, arguments, shell: None, inherited }
    }

    fn start(&self, environment: &Environment) -> io::Result<Child> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::piped());
        for name in &self.inherited {
            command.env_remove(name);
        }
        command.envs(environment.variables()).spawn()
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
        let child = match (self.start(environment), &self.shell) {
            (Ok(child), _) => Running::of(child)?,
            // It says what is wrong, or knows better.
            (Err(_), Some(shell)) => return shell.run(input, environment, tick),
            (Err(error), None) => {
                let program = self.program.display();
                return Ok(Ending::NotRun(format!("can't run {program}: {error}")));
            }
        };
        Ok(ending(child.finish(input, tick)?))
    }
}

/// The words of a line in which the shell would find nothing to do but to start a program.
fn plain_words(line: &str) -> Option<Vec<OsString>> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " _-./,:+@%".contains(c);
    let mut words = line.split(' ').filter(|word| !word.is_empty()).peekable();
    let is_own = words.peek().is_some_and(|word| OF_THE_SHELL.contains(word));
    (line.chars().all(is_plain) && !is_own).then(|| words.map(OsString::from).collect())
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
    fn a_shell_is_started_only_where_it_has_something_to_do() {
        let words = |line| plain_words(line).map(|words| words.join(" ".as_ref()));
        assert_eq!(words("true"), Some("true".into()));
        assert_eq!(words(" ./load  -n 5 a:b "), Some("./load -n 5 a:b".into()));
        for line in ["a; b", "a=1 b", "cat > x", "echo 1", "exit 0", "exec cat", "$x", "a 'b'"] {
            assert_eq!(words(line), None, "{line}");
        }
        for line in
            ["~/load", "a*", "a\nb", "a\tb", "a b &", "[ a ]", "! a", "{ a", "a # b", "a\\ b"]
        {
            assert_eq!(words(line), None, "{line}");
        }
        assert!(OF_THE_SHELL.is_sorted());
        assert_eq!(run("true", b""), Ending::Done);
        assert_eq!(run("false", b""), Ending::Failed(How::Status(1)));
        assert!(matches!(run("nosuch-program", b""), Ending::NotRun(why) if why.contains("127")));
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
