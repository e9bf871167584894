//! Who may touch the system: its files, its clock, its environment, its outputs.

use crate::source::{finds, sources};

/// Calls that belong to one place.
struct Rule {
    /// What the calls do, and what to do instead.
    advice: &'static str,
    calls: &'static [&'static str],
    /// The files and folders whose business it is.
    home: &'static [&'static str],
    exceptions: &'static [Exception],
}

/// A place outside the home that needs some of the calls.
struct Exception {
    file: &'static str,
    calls: &'static [&'static str],
    #[allow(dead_code, reason = "for people")]
    why: &'static str,
}

impl Rule {
    /// Fails if code outside tests breaks the rule, or an exception is needed no more.
    fn check(&self) {
        let mut faults = Vec::new();
        let mut unused: Vec<_> = self
            .exceptions
            .iter()
            .flat_map(|exception| exception.calls.iter().map(|call| (exception.file, *call)))
            .collect();
        for source in sources("src") {
            if self.home.iter().any(|home| source.path.starts_with(home)) {
                continue;
            }
            for &call in self.calls {
                for at in finds(&source.code, call).into_iter().filter(|at| !source.is_test(*at)) {
                    let is_allowed = self.exceptions.iter().any(|exception| {
                        exception.file == source.path && exception.calls.contains(&call)
                    });
                    unused.retain(|entry| *entry != (source.path.as_str(), call));
                    if !is_allowed {
                        faults.push(format!("{}: {call}", source.place(at)));
                    }
                }
            }
        }
        assert!(faults.is_empty(), "{}\n{}", self.advice, faults.join("\n"));
        assert!(
            unused.is_empty(),
            "take these out of the exceptions, nothing needs them: {unused:?}"
        );
    }
}

#[test]
fn only_disk_calls_the_system_for_files() {
    Rule {
        advice: "Files are touched by src/disk/real.rs and src/disk/watch.rs alone, so that \
                 everything else runs on the simulated disk too. Use crate::disk::Disk:",
        calls: &[
            "std::fs",
            "std::os::unix::fs",
            "rustix::fs",
            "fs::",
            "File::",
            "OpenOptions",
            "tempfile",
            "libc::",
            ".canonicalize(",
            ".metadata(",
            ".read_dir(",
            ".read_link(",
            ".symlink_metadata(",
            ".try_exists(",
            "path.exists(",
        ],
        home: &["src/disk/real.rs", "src/disk/watch.rs"],
        exceptions: &[
            Exception {
                file: "src/cli/stream/input.rs",
                calls: &["std::fs", "rustix::fs", "fs::", "File::", ".metadata("],
                why: "opens its input files, which are no part of a log, and asks their kind",
            },
            Exception {
                file: "src/cli/stream/delivery/ack_source.rs",
                calls: &["rustix::fs", "fs::"],
                why: "opens the pipe that acknowledgements come from",
            },
            Exception {
                file: "src/cli/stream/output.rs",
                calls: &["rustix::fs", "fs::"],
                why: "standard output as a file: whether it is a pipe",
            },
            Exception {
                file: "src/cli/stream/signals.rs",
                calls: &["std::fs", "fs::"],
                why: "which signals are ignored stands in /proc only",
            },
            Exception {
                file: "src/cli/command/seek.rs",
                calls: &["std::fs", "fs::"],
                why: "reads the file of --from-file, which is no part of a log",
            },
        ],
    }
    .check();
}

#[test]
fn only_cli_prints() {
    Rule {
        advice: "Only src/cli prints and reads standard input. Return a value, or a Note, and \
                 let the command print it:",
        calls: &[
            "println!",
            "print!",
            "eprintln!",
            "eprint!",
            "dbg!",
            "stdin(",
            "stdout(",
            "stderr(",
            "rustix::stdio",
        ],
        home: &["src/cli/"],
        exceptions: &[],
    }
    .check();
}

#[test]
fn only_the_session_reads_the_clock() {
    Rule {
        advice: "The time comes from Session::now (which knows the fixed clock of tests) and is \
                 passed down as a value:",
        calls: &["SystemTime", "Timestamp::now", "Zoned::now", "clock_gettime"],
        home: &["src/cli/session.rs"],
        exceptions: &[],
    }
    .check();
}

#[test]
fn only_cli_and_the_wait_for_a_lock_measure_time() {
    Rule {
        advice: "How long something takes is a matter of src/cli; pass a duration down:",
        calls: &["Instant", "thread::sleep"],
        home: &["src/cli/"],
        exceptions: &[Exception {
            file: "src/log/files/lock.rs",
            calls: &["Instant", "thread::sleep"],
            why: "waits for a lock for a bounded time",
        }],
    }
    .check();
}

#[test]
fn only_cli_reads_the_environment_and_ends_the_process() {
    Rule {
        advice: "The environment, the process and random numbers are a matter of src/cli; pass \
                 a value down, return an error up:",
        calls: &["std::env", "env::", "std::process", "process::", "rustix::rand", "getrandom"],
        home: &["src/cli/"],
        exceptions: &[Exception {
            file: "src/main.rs",
            calls: &["std::process", "process::"],
            why: "returns the exit code of cli::main",
        }],
    }
    .check();
}
