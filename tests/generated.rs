//! The manual pages in man/ and the completions in completions/ are made from the
//! definition of the command line, committed, and compared here.
//! `TAPELOG_UPDATE=1 cargo test --locked --test generated` writes them anew. The pages on
//! the format and on what survives what are written by hand; only their version is compared.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on panics")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use clap::Command;
use clap::builder::Resettable;
use clap_complete::env::{Bash, EnvCompleter, Fish, Zsh};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

const REFRESH: &str = "TAPELOG_UPDATE=1 cargo test --locked --test generated";

/// The pages that are no command's.
const BY_HAND: [&str; 2] = ["tapelog-format.5", "tapelog.7"];

#[test]
fn the_manual_pages_are_up_to_date() {
    let mut pages = manual_pages();
    pages.extend(BY_HAND.map(|name| (name.to_owned(), page_by_hand(name))));
    compare("man", &pages);
}

#[test]
fn the_pages_written_by_hand_name_this_version() {
    let version = format!("\"tapelog {}\"", env!("CARGO_PKG_VERSION"));
    for name in BY_HAND {
        assert!(page_by_hand(name).contains(&version), "{name} is to name {version}");
    }
}

fn page_by_hand(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("man").join(name)).unwrap()
}

#[test]
fn the_completions_are_up_to_date() {
    compare("completions", &completions());
}

/// Compares the files in `folder` with those that should be there, or writes them.
fn compare(folder: &str, expected: &BTreeMap<String, String>) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    if std::env::var_os("TAPELOG_UPDATE").is_some_and(|value| value == "1") {
        return write(&dir, expected);
    }
    let found = read(&dir);
    let names: Vec<_> = expected.keys().chain(found.keys()).collect();
    let stale = |name: &&&String| expected.get(**name) != found.get(**name);
    let mut stale: Vec<_> = names.iter().filter(stale).collect();
    stale.sort();
    stale.dedup();
    assert!(stale.is_empty(), "{folder}: {stale:?} are not up to date; run\n  {REFRESH}");
}

fn write(dir: &Path, expected: &BTreeMap<String, String>) {
    fs::create_dir_all(dir).unwrap();
    for name in read(dir).keys().filter(|name| !expected.contains_key(*name)) {
        fs::remove_file(dir.join(name)).unwrap();
    }
    for (name, text) in expected {
        // What is right already may be read by another test just now.
        if fs::read_to_string(dir.join(name)).ok().as_ref() != Some(text) {
            fs::write(dir.join(name), text).unwrap();
        }
    }
}

fn read(dir: &Path) -> BTreeMap<String, String> {
    let Ok(entries) = fs::read_dir(dir) else { return BTreeMap::new() };
    let file = |path: &Path| {
        (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(path).unwrap())
    };
    entries.map(|entry| file(&entry.unwrap().path())).collect()
}

/// One page for the program and one for each of its commands.
fn manual_pages() -> BTreeMap<String, String> {
    let mut program = tapelog::cli::command().disable_help_subcommand(true);
    program.build();
    let exit_status: Vec<_> =
        sections(&program).into_iter().filter(|section| section.heading == "Exit status").collect();
    let commands = program.get_subcommands().map(|command| {
        let mut all = sections(command);
        all.extend(exit_status.iter().cloned());
        let see = Section { heading: "See also".to_owned(), lines: vec!["tapelog(1)".to_owned()] };
        all.push(see);
        page(command, &program, &all)
    });
    commands.chain([page(&program, &program, &sections(&program))]).collect()
}

/// A page's file name and its text.
fn page(command: &Command, program: &Command, sections: &[Section]) -> (String, String) {
    let version = program.get_version().unwrap();
    let mut bare = command
        .clone()
        .after_long_help(Resettable::Reset)
        .subcommand_help_heading("COMMANDS")
        .subcommand_value_name("command")
        // A page has room for what the short help leaves out.
        .mut_args(|arg| arg.hide_short_help(false));
    // The first paragraph is what NAME says already.
    let about = command.get_long_about().map(ToString::to_string).unwrap_or_default();
    if let Some((_, rest)) = about.split_once("\n\n") {
        bare = bare.long_about(rest.to_owned());
    }
    // As in the help: with the values that options need.
    let usage = command.clone().render_usage().to_string();
    let man = Man::new(bare.override_usage(usage.trim_start_matches("Usage: ").to_owned()));
    let mut text = Vec::new();
    man.render(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    // clap_mangen leaves an empty date out, and what follows would slip into its place.
    let (preamble, text) = text.split_once(".TH ").unwrap();
    let (_, text) = text.split_once('\n').unwrap();
    let name = man.get_filename();
    let title = name.trim_end_matches(".1");
    let title = format!(".TH {title} 1 \"\" \"tapelog {version}\" \"User Commands\"");
    let text = arguments_apart(&text.replace(".br\n\n.br\n", ".sp\n"));
    let text = format!("{preamble}{title}\n{text}");
    // The version comes last, as in other manuals.
    let end = text.find(".SH VERSION").unwrap_or(text.len());
    let sections: String = sections.iter().map(Section::to_roff).collect();
    (name, format!("{}{sections}{}", &text[..end], &text[end..]))
}

/// The page with a section of their own for what stands on the command line without
/// an option; clap_mangen has it among the options.
fn arguments_apart(text: &str) -> String {
    const HEADING: &str = ".SH OPTIONS\n";
    let (before, rest) = text.split_once(HEADING).unwrap();
    let (options, after) = rest.split_at(rest.find(".SH ").unwrap_or(rest.len()));
    let entries = options.split(".TP\n").filter(|entry| !entry.is_empty());
    let (arguments, options): (Vec<_>, Vec<_>) =
        entries.partition(|entry| entry.starts_with(['<', '[']));
    let joined = |entries: Vec<&str>| -> String {
        entries.into_iter().map(|entry| format!(".TP\n{entry}")).collect()
    };
    let heading = if arguments.is_empty() { "" } else { ".SH ARGUMENTS\n" };
    format!("{before}{heading}{}{HEADING}{}{after}", joined(arguments), joined(options))
}

/// A part of the text after the options: `Heading:` and indented lines.
#[derive(Clone)]
struct Section {
    heading: String,
    lines: Vec<String>,
}

impl Section {
    fn to_roff(&self) -> String {
        let mut roff = Roff::new();
        roff.control("SH", [self.heading.to_uppercase().as_str()]);
        roff.control("nf", []);
        for line in &self.lines {
            roff.text([roman(line.as_str())]);
        }
        roff.control("fi", []);
        let preamble = Roff::new().render();
        let text = roff.render();
        text.strip_prefix(&preamble).unwrap_or(&text).to_owned()
    }
}

/// The sections of the text that follows the options in `--help`.
fn sections(command: &Command) -> Vec<Section> {
    let text = command.get_after_long_help().unwrap().to_string();
    let mut sections: Vec<Section> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(inner) = line.strip_prefix("  ") {
            let section = sections.last_mut();
            let section = section.unwrap_or_else(|| panic!("{line:?} has no heading above it"));
            section.lines.push(inner.to_owned());
        } else {
            let heading = line.strip_suffix(':');
            let heading = heading.unwrap_or_else(|| panic!("{line:?} is no heading with a colon"));
            sections.push(Section { heading: heading.to_owned(), lines: Vec::new() });
        }
    }
    sections
}

/// The scripts that make the shells ask `tapelog` itself, so that group names complete.
fn completions() -> BTreeMap<String, String> {
    let script = |shell: &dyn EnvCompleter| {
        let mut text = Vec::new();
        shell.write_registration("COMPLETE", "tapelog", "tapelog", "tapelog", &mut text).unwrap();
        format!("{}\n", String::from_utf8(text).unwrap().trim())
    };
    // zsh runs the file at the first TAB and takes what that prints for the completions.
    let zsh = script(&Zsh)
        + "[[ $funcstack[1] == _tapelog ]] && _clap_dynamic_completer_tapelog \"$@\"\n";
    [("tapelog.bash", script(&Bash)), ("_tapelog", zsh), ("tapelog.fish", script(&Fish))]
        .map(|(name, text)| (name.to_owned(), text))
        .into()
}
