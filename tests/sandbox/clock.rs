//! A fixed clock: `--now TIME` stands for what the time is.

use assert_cmd::Command;

use super::Sandbox;

impl Sandbox {
    /// `tapelog VERB LOG ARGUMENTS` at this time of the clock.
    pub fn at(&self, time: &str, line: &str) -> Command {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        self.tapelog(&format!("{verb} --now {time} {rest}"))
    }

    /// Appends bytes at this time of the clock.
    pub fn produce_at(&self, time: &str, stdin: &str) {
        self.produce(&format!("--now {time}"), stdin);
    }
}
