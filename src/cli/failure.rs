//! How a run ends: the closed list of exit statuses, and the one line on stderr
//! that an error becomes.

use std::fmt;
use std::process::ExitCode;

use clap::error::ErrorKind;
use thiserror::Error;

use crate::cli::hints;
use crate::cli::stream::signals::{Signalled, end_by};
use crate::log;

/// The exit statuses beside 0, done. Nothing else is ever returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// Failed.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// Not there: a log, a group, a record under `--fail-empty`.
    Missing = 3,
    /// Damage.
    Damage = 4,
    /// Held by another process.
    Busy = 5,
    /// An offset out of range.
    OutOfRange = 6,
    /// A record too big.
    TooBig = 7,
    /// The command that records were handed to failed.
    HandlerFailed = 8,
    /// Done in part.
    Partly = 9,
    /// A deadline has passed.
    Deadline = 11,
}

/// A command line that can't be meant.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// Ends with a status, and with a line if there is something to say.
#[derive(Debug)]
pub struct Ended {
    /// The status.
    pub status: Status,
    /// The line, without the program's name.
    pub line: Option<String>,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.line.as_deref().unwrap_or_default())
    }
}

impl std::error::Error for Ended {}

/// Whoever read the output has gone: a quiet end.
#[derive(Debug, Error)]
#[error("the output was closed")]
pub struct OutputClosed;

/// The status that an error ends with.
fn status_of(error: &anyhow::Error) -> Status {
    if let Some(ended) = error.downcast_ref::<Ended>() {
        return ended.status;
    }
    if error.is::<Usage>() {
        return Status::Usage;
    }
    match error.downcast_ref::<log::Error>() {
        Some(error) => status_of_log_error(error),
        None => Status::Failed,
    }
}

fn status_of_log_error(error: &log::Error) -> Status {
    use log::Error as E;
    match error {
        E::NoLog(_) | E::NoGroup(_) => Status::Missing,
        E::Damage(_) | E::Unreadable { .. } => Status::Damage,
        E::Busy { .. } | E::CommitsItself { .. } => Status::Busy,
        E::OutOfRange(_) => Status::OutOfRange,
        E::TooBig { .. } | E::BatchTooLarge(_) => Status::TooBig,
        E::Io { .. }
        | E::NoParent(_)
        | E::NotALog { .. }
        | E::NetworkFileSystem { .. }
        | E::Newer { .. }
        | E::Full { .. }
        | E::Suspect(_)
        | E::Failed
        | E::NothingToUndo(_) => Status::Failed,
    }
}

/// Says what happened, once, and gives the process's exit code. After a signal
/// the process ends by that signal instead.
pub fn report(result: anyhow::Result<()>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    if error.is::<OutputClosed>() {
        return ExitCode::SUCCESS;
    }
    if let Some(Signalled(signal)) = error.downcast_ref() {
        end_by(*signal);
    }
    let line = format!("{error:#}");
    if !line.is_empty() {
        say(&line);
    }
    ExitCode::from(status_of(&error) as u8)
}

/// Says all that was wrong with a part of what a command did, each on a line of its
/// own; the last is returned, and its status counts: damage, if any was.
///
/// # Errors
/// The last of them.
pub fn end_with(faults: impl IntoIterator<Item = log::Error>) -> anyhow::Result<()> {
    let mut faults: Vec<_> = faults.into_iter().collect();
    faults.sort_by_key(|fault| status_of_log_error(fault) == Status::Damage);
    let Some(last) = faults.pop() else { return Ok(()) };
    for fault in faults {
        say(&format!("{:#}", anyhow::Error::from(fault)));
    }
    Err(last.into())
}

/// What the argument parser has to say: help on stdout, or one line on stderr.
pub fn report_usage(error: &clap::Error, command: Option<&str>) -> ExitCode {
    if !error.use_stderr() {
        // A closed pipe ends help quietly too.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
    } else {
        say(&usage_line(error, command));
    }
    ExitCode::from(Status::Usage as u8)
}

/// What is wrong with the command line, in one line that ends with what to do.
fn usage_line(error: &clap::Error, command: Option<&str>) -> String {
    if let Some(line) = hints::foreign_word(error) {
        return line;
    }
    let told = told(&error.render().to_string());
    let added = hints::misplaced_word(error, command);
    let command = command.map_or_else(String::new, |command| format!("{command} "));
    format!("{told}{added}: try tapelog {command}--help")
}

/// The parser's paragraphs as one line: without its usage, and of its tips only
/// those that tell of something similar.
fn told(text: &str) -> String {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let is_hint = |paragraph: &&str| {
        paragraph.starts_with("Usage:") || paragraph.starts_with("For more information")
    };
    let paragraphs = text.split("\n\n").filter(|paragraph| !is_hint(paragraph));
    let mut told = String::new();
    for line in paragraphs.flat_map(str::lines).map(str::trim) {
        match line.strip_prefix("tip: ") {
            Some(tip) if tip.starts_with("to pass ") => {}
            Some(tip) => told.push_str(&format!("; {tip}")),
            None if told.is_empty() || line.is_empty() => told.push_str(line),
            None => told.push_str(&format!(" {line}")),
        }
    }
    told
}

/// One line on stderr. If that is closed there is nobody to tell.
pub fn say(line: &str) {
    use std::io::Write;
    let line = one_line(line);
    let _ = writeln!(std::io::stderr(), "tapelog: {line}");
}

/// Control characters, which a path may hold, shown instead of sent to the terminal.
fn one_line(text: &str) -> String {
    let shown = |c: char| match c.is_control() {
        true => c.escape_default().collect::<String>(),
        false => c.to_string(),
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    #[test]
    fn what_the_parser_says_becomes_one_line() {
        let text = "error: the following required arguments were not provided:\n  \
                    --group <GROUP>\n\nUsage: tapelog commit --group <GROUP> <LOG>\n\n\
                    For more information, try '--help'.\n";
        let line = "the following required arguments were not provided: --group <GROUP>";
        assert_eq!(told(text), line);
    }

    /// What is said about this command line.
    fn about(line: &str) -> String {
        let words = || line.split(' ').map(OsString::from);
        let program = crate::cli::command();
        let called = hints::called_command(words(), &program);
        let error = program.try_get_matches_from(words()).unwrap_err();
        usage_line(&error, called.as_deref())
    }

    #[test]
    fn of_the_parsers_tips_the_similar_word_is_told() {
        let line = "unexpected argument '--ofset' found; a similar argument exists: '--offset': \
                    try tapelog consume --help";
        assert_eq!(about("tapelog consume d --ofset 3"), line);
        let line = "unexpected argument '-x' found: try tapelog consume --help";
        assert_eq!(about("tapelog consume d -x"), line);
        let line = "unrecognized subcommand 'consum'; a similar subcommand exists: 'consume': \
                    try tapelog --help";
        assert_eq!(about("tapelog consum d"), line);
    }

    #[test]
    fn words_of_other_tools_are_translated() {
        let line = "there is no --from-beginning here: \
                    consume begins at the start; a group: seek --to earliest";
        assert_eq!(about("tapelog consume d --from-beginning"), line);
        let words = ["-c 5", "--max-messages=5", "--timeout-ms 1000", "-t d", "--topic d"];
        for word in words.map(|word| format!("tapelog consume d {word}")) {
            assert!(about(&word).starts_with("there is no -"), "{}", about(&word));
        }
        for word in ["--list", "--describe", "--reset-offsets", "tail", "cat", "ls", "reset"] {
            let said = about(&format!("tapelog {word} d"));
            assert!(said.starts_with(&format!("there is no {word} here: ")), "{said}");
        }
        for word in ["rm", "delete", "topics"] {
            let said = about(&format!("tapelog {word} d"));
            assert!(said.starts_with(&format!("there is no {word} here: ")), "{said}");
        }
    }

    #[test]
    fn a_group_without_its_letter_is_recognised() {
        for command in ["seek d me --to 3", "groups d me", "commit d me 5"] {
            let said = about(&format!("tapelog {command}"));
            assert!(said.contains("; a group is given with -g"), "{said}");
        }
        assert!(!about("tapelog segments d me").contains("-g"));
    }

    #[test]
    fn a_number_that_is_none_is_answered_with_what_is_one() {
        for line in ["consume d -n 1k", "consume d --tail x", "seek d -g g --shift-by 1k"] {
            let said = about(&format!("tapelog {line}"));
            assert!(said.contains("give a whole number: try tapelog "), "{said}");
        }
    }

    #[test]
    fn a_line_stays_one_line() {
        assert_eq!(one_line("a\nb\u{1b}[31m"), "a\\nb\\u{1b}[31m");
    }
}
