//! A command under callgrind, and what has a share in its counts besides the code.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::sandbox::{Sandbox, find_program, skip};

/// valgrind, which is here and works.
pub struct Callgrind {
    valgrind: PathBuf,
    version: String,
}

impl Callgrind {
    /// `None`, said loudly, where nothing can be counted.
    pub fn find(case: &str) -> Option<Callgrind> {
        let Some(valgrind) = find_program("valgrind") else {
            skip(case, "there is no valgrind");
            return None;
        };
        let output = Command::new(&valgrind).args(["--tool=callgrind", "--version"]).output();
        let output = output.unwrap();
        if !output.status.success() {
            skip(case, &String::from_utf8_lossy(&output.stderr));
            return None;
        }
        Some(Callgrind { valgrind, version: first_line(&output.stdout) })
    }

    /// Runs the command, which must end well, and says how many instructions it took.
    pub fn count(&self, sandbox: &Sandbox, command: &Command, stdin: Stdio, stdout: Stdio) -> u64 {
        let log = sandbox.path("callgrind");
        let mut counted = Command::new(&self.valgrind);
        counted.env_clear().current_dir(sandbox.path(""));
        counted.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
        counted.arg(format!("--log-file={}", log.display()));
        counted.arg(command.get_program()).args(command.get_args());
        // Reads what comes by a pipe to its end.
        let output = counted.stdin(stdin).stdout(stdout).output().unwrap();
        let text = fs::read_to_string(log).unwrap();
        assert!(output.status.success(), "{command:?}: {text}");
        let count = text.lines().find_map(|line| line.split_once("Collected : "));
        count.unwrap_or_else(|| panic!("no count of {command:?}: {text}")).1.parse().unwrap()
    }

    /// The compiler, the tools and the machine, in one line.
    pub fn circumstances(&self) -> String {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let rustc = first_line(&Command::new(rustc).arg("--version").output().unwrap().stdout);
        let library = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
        let library = library.map_or_else(|_| String::new(), |output| first_line(&output.stdout));
        let checks = if cfg!(debug_assertions) { "debug assertions" } else { "no assertions" };
        let target = format!("{} {}", std::env::consts::ARCH, vectors());
        format!("{rustc}, {checks}, {target}, {library}, {}", self.version)
    }
}

/// The vector instructions that valgrind passes on, if the machine has them.
fn vectors() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if !std::is_x86_feature_detected!("avx2") {
        return "without AVX2";
    }
    "with all vectors"
}

fn first_line(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).lines().next().unwrap_or_default().to_owned()
}
