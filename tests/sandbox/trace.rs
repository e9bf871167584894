//! The binary under strace: which calls it makes, in which order, and what it does
//! when the system refuses one of them or kills it there.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::{Sandbox, find_program, skip};

/// The calls that change what is on the disk; a file may be made by opening it.
const CHANGING: [&str; 10] = [
    "open",
    "mkdir",
    "link",
    "rename",
    "unlink",
    "pwrite64",
    "pwritev",
    "ftruncate",
    "fsync",
    "fdatasync",
];

/// strace, which is here and may trace.
#[derive(Clone, Debug)]
pub struct Strace(PathBuf);

impl Strace {
    /// `None`, said loudly, where tracing is not possible.
    pub fn find(case: &str) -> Option<Strace> {
        let Some(program) = find_program("strace") else {
            skip(case, "there is no strace");
            return None;
        };
        let works = Command::new(&program).args(["-o", "/dev/null", "/bin/true"]).output().unwrap();
        if !works.status.success() {
            skip(case, &String::from_utf8_lossy(&works.stderr));
            return None;
        }
        Some(Strace(program))
    }

    /// The command under strace with these options, its trace in the sandbox.
    pub fn of(&self, sandbox: &Sandbox, options: &[&str], command: &Command) -> Command {
        let mut traced = Command::new(&self.0);
        traced.env_clear().current_dir(sandbox.path(""));
        traced.args(["-f", "-y", "-o"]).arg(trace_file(sandbox)).args(options);
        traced.arg(command.get_program()).args(command.get_args());
        traced
    }

    /// The command with one call going wrong: `"fsync:error=EIO:when=2"`.
    pub fn inject(&self, sandbox: &Sandbox, fault: &str, command: &Command) -> Command {
        let calls = fault.split(':').next().unwrap();
        let (trace, inject) = (format!("trace={calls}"), format!("inject={fault}"));
        self.of(sandbox, &["-e", &trace, "-e", &inject], command)
    }
}

/// One call of the system.
#[derive(Clone, Debug)]
pub struct Call {
    pub name: String,
    /// What stands between its brackets.
    pub arguments: String,
    /// What it returned: a number first, unless the process was killed in it.
    pub result: String,
    /// Which call of its name it is, counted from 1, as strace counts.
    pub nth: usize,
}

impl Call {
    /// Whether it did what was asked.
    pub fn succeeded(&self) -> bool {
        self.result.starts_with(|first: char| first.is_ascii_digit())
    }

    /// Its name without what tells of directories: `open` for `openat`.
    pub fn kind(&self) -> &str {
        let name = self.name.as_str();
        name.strip_suffix("at2").or_else(|| name.strip_suffix("at")).unwrap_or(name)
    }

    /// Whether it changes what is on the disk.
    pub fn changes(&self) -> bool {
        CHANGING.contains(&self.kind()) && (self.kind() != "open" || self.creates())
    }

    /// Whether it may make a file.
    pub fn creates(&self) -> bool {
        self.kind() == "open" && self.arguments.contains("O_CREAT")
    }

    /// The file that its first argument, a handle, stands for.
    pub fn file(&self) -> Option<PathBuf> {
        handle(&self.arguments)
    }

    /// The names in its arguments.
    pub fn names(&self) -> Vec<PathBuf> {
        self.arguments.split('"').skip(1).step_by(2).map(PathBuf::from).collect()
    }

    /// The handle that an opening call got, and what it stands for.
    pub fn opened(&self) -> Option<(u32, PathBuf)> {
        let number = self.result.split('<').next()?.parse().ok()?;
        Some((number, handle(&self.result)?))
    }
}

/// `3</path>`: the path.
fn handle(text: &str) -> Option<PathBuf> {
    let (number, rest) = text.split_once('<')?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
    Some(PathBuf::from(rest.split_once('>')?.0))
}

/// The calls of the last traced run, in the order in which they ended.
pub fn calls(sandbox: &Sandbox) -> Vec<Call> {
    let text = fs::read(trace_file(sandbox)).unwrap();
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut unfinished: Vec<(&str, &str)> = Vec::new();
    let mut calls: Vec<Call> = Vec::new();
    for line in text.lines() {
        let Some((process, line)) = line.split_once(char::is_whitespace) else { continue };
        let line = line.trim_start();
        if let Some(begun) = line.strip_suffix(" <unfinished ...>") {
            unfinished.push((process, begun));
            continue;
        }
        let whole = match line.strip_prefix("<... ") {
            Some(resumed) => {
                let at = unfinished.iter().position(|(other, _)| *other == process);
                let begun = at.map(|at| unfinished.remove(at).1).unwrap_or_default();
                begun.to_owned() + resumed.split_once(" resumed>").map_or("", |(_, rest)| rest)
            }
            None => line.to_owned(),
        };
        let Some((name, rest)) = whole.split_once('(') else { continue };
        // Exits and signals are no calls; of a call that never returned there is no more.
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            continue;
        }
        let (arguments, result) = rest.rsplit_once(" = ").unwrap_or((rest, "?"));
        let nth = calls.iter().filter(|call| call.name == name).count() + 1;
        calls.push(Call {
            name: name.to_owned(),
            arguments: arguments.trim_end().trim_end_matches(')').to_owned(),
            result: result.to_owned(),
            nth,
        });
    }
    calls
}

/// Whether strace made the call go wrong that it was told to.
pub fn was_injected(sandbox: &Sandbox) -> bool {
    fs::read_to_string(trace_file(sandbox)).unwrap().contains("(INJECTED)")
}

fn trace_file(sandbox: &Sandbox) -> PathBuf {
    sandbox.path("trace")
}
