//! Processes that run beside the test, and bounded waiting for what they do.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};

/// Polls until the condition holds; panics with `what` when the limit is over.
#[track_caller]
pub fn wait_until(limit: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < limit, "waited {limit:?} in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether the condition holds from now on for as long as this.
pub fn stays(time: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while condition() {
        if start.elapsed() > time {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

/// A running process with stdin open. Killed on drop.
pub struct Background {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Background {
    /// Starts it with stdout and stderr in these files.
    pub fn spawn(command: Command, out: PathBuf, err: PathBuf) -> Background {
        let stdout = File::create(&out).unwrap();
        Background::start(command, stdout.into(), out, err)
    }

    /// `COMMAND | cat`: the command and cat, which has stdout in a file.
    pub fn spawn_into_cat(
        command: Command,
        out: PathBuf,
        err: PathBuf,
    ) -> (Background, Background) {
        let mut cat =
            Background::spawn(Command::new("/bin/cat"), out.clone(), err.with_extension("cat"));
        let pipe = cat.child.stdin.take().unwrap();
        (Background::start(command, pipe.into(), out, err), cat)
    }

    /// The same with stdout anywhere, and `out` if that can be read there.
    pub fn start(mut command: Command, stdout: Stdio, out: PathBuf, err: PathBuf) -> Background {
        command.stdin(Stdio::piped()).stdout(stdout).stderr(File::create(&err).unwrap());
        let child = command.spawn().unwrap();
        Background { child, out, err }
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The process itself.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Writes to its stdin, which stays open.
    pub fn feed(&mut self, bytes: impl AsRef<[u8]>) {
        self.child.stdin.as_mut().unwrap().write_all(bytes.as_ref()).unwrap();
    }

    /// Ends its stdin.
    pub fn close_stdin(&mut self) {
        drop(self.child.stdin.take());
    }

    /// What it has printed so far.
    pub fn out(&self) -> Vec<u8> {
        fs::read(&self.out).unwrap()
    }

    /// What it has said on stderr so far.
    pub fn err(&self) -> String {
        fs::read_to_string(&self.err).unwrap()
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
        let mut status = None;
        wait_until(limit, "the process ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Waits until exactly this has been printed.
    #[track_caller]
    pub fn prints_within(&self, limit: Duration, want: impl AsRef<[u8]>) {
        let want = want.as_ref();
        let start = Instant::now();
        while self.out() != want && start.elapsed() < limit {
            std::thread::sleep(Duration::from_millis(2));
        }
        super::same_bytes(&self.out(), want, "a process in the background");
    }

    /// `kill -9`, and waits for the end.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The processor time it has used so far, all its threads together.
    pub fn cpu_time(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
        let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum();
        // Linux counts for programs in hundredths of a second, whatever its own tick.
        Duration::from_millis(ticks * 10)
    }

    /// As [`handles_of`].
    pub fn handles(&self) -> Vec<PathBuf> {
        handles_of(self.id())
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What the open file handles of a process point to, but for those that whoever runs the
/// tests has handed down to everybody.
pub fn handles_of(process: u32) -> Vec<PathBuf> {
    let target = |process: &str, number: &OsStr| {
        fs::read_link(Path::new("/proc").join(process).join("fd").join(number)).ok()
    };
    let process = process.to_string();
    let entries = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    let numbers = entries.map(|entry| entry.unwrap().file_name());
    let own = |number: &OsString| {
        let standard = number.len() == 1 && *number <= *"2";
        standard || target("self", number) != target(&process, number)
    };
    numbers.filter(own).filter_map(|number| target(&process, &number)).collect()
}

/// The most memory that a running process has had, in bytes.
pub fn peak_memory(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    kib * 1024
}

/// Holds the kernel lock of a file, as a process that hangs would, until dropped.
pub fn hold_lock(file: &Path) -> File {
    let handle = super::open(file);
    flock(&handle, FlockOperation::NonBlockingLockExclusive).unwrap();
    handle
}

/// Whether some process holds the lock of a file.
pub fn is_locked(file: &Path) -> bool {
    flock(super::open(file), FlockOperation::NonBlockingLockExclusive).is_err()
}
