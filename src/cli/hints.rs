//! What helps with a wrong command line: the words that people bring along from
//! kcat, Kafka's tools and tail, and what they are called here. A closed table.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

const COUNT: &str = "consume -n N prints N records";
const TOPIC: &str = "a log is a directory, given as it is: tapelog consume LOG";
const LISTS: &str = "tapelog segments LOG and tapelog groups LOG list what there is";
const SEEK: &str = "tapelog seek LOG -g GROUP --to PLACE moves a group";
const DELETE: &str = "rm -r LOG deletes a log, tapelog gc LOG what all groups are done with, \
                      tapelog groups LOG -g GROUP --delete a group";

/// Options and commands of other tools, and what does the same.
const WORDS: [(&str, &str); 16] = [
    ("--from-beginning", "consume begins at the start; a group: seek --to earliest"),
    ("-c", COUNT),
    ("--max-messages", COUNT),
    ("--topic", TOPIC),
    ("-t", TOPIC),
    ("--reset-offsets", SEEK),
    ("--timeout-ms", "consume --timeout DUR ends once nothing came for so long, such as 5s"),
    ("--list", LISTS),
    ("--describe", LISTS),
    ("tail", "tapelog consume LOG --tail 10 -f"),
    ("cat", "tapelog consume LOG"),
    ("ls", LISTS),
    ("reset", SEEK),
    ("rm", DELETE),
    ("delete", DELETE),
    ("topics", "each log is a directory; tapelog segments LOG looks into one"),
];

/// The whole line for a word of another tool.
pub fn foreign_word(error: &clap::Error) -> Option<String> {
    let word = unknown_word(error)?;
    let (word, hint) = WORDS.iter().find(|(known, _)| *known == word)?;
    Some(format!("there is no {word} here: {hint}"))
}

/// What to add where a word stands that the command has no place for.
pub fn misplaced_word(error: &clap::Error, command: Option<&str>) -> &'static str {
    let is_bare = unknown_word(error).is_some_and(|word| !word.starts_with('-'));
    match command {
        Some("seek") if is_bare => "; a group is given with -g, a place with --to",
        Some("groups" | "commit") if is_bare => "; a group is given with -g",
        _ => "",
    }
}

/// The option, command or bare word that the parser does not know.
fn unknown_word(error: &clap::Error) -> Option<&str> {
    let kind = match error.kind() {
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        _ => return None,
    };
    match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word),
        _ => None,
    }
}

/// The command among the words of the command line: the first that is no option.
pub fn called_command(
    words: impl IntoIterator<Item = OsString>,
    program: &clap::Command,
) -> Option<String> {
    let words = words.into_iter().skip(1).filter_map(|word| word.into_string().ok());
    let first = words.into_iter().find(|word| !word.starts_with('-'))?;
    program.find_subcommand(&first).map(|_| first)
}
