//! The help texts: short with -h, with examples with --help, nothing hidden shown.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on panics")]

use clap::Command;

/// The program and its commands, as they would be shown on a terminal of 80 columns.
fn commands() -> Vec<Command> {
    let mut program = tapelog::cli::command().term_width(80);
    program.build();
    let commands = program.get_subcommands().filter(|command| command.get_name() != "help");
    let commands: Vec<_> = commands.cloned().collect();
    [program].into_iter().chain(commands).collect()
}

#[test]
fn long_help_has_examples_and_short_help_is_shorter() {
    for mut command in commands() {
        let short = command.render_help().to_string();
        let long = command.render_long_help().to_string();
        let name = command.get_name();
        assert!(long.contains("\nExamples:\n  "), "{name} --help shows no examples");
        assert!(short.lines().count() < long.lines().count(), "{name} -h is not shorter");
        assert!(!short.contains("Examples:"), "{name} -h is no summary");
        assert!(short.lines().count() <= 40, "{name} -h fills more than a screen");
    }
}

#[test]
fn every_example_calls_the_command() {
    for command in commands() {
        let text = command.get_after_long_help().unwrap().to_string();
        let examples = text.split("Examples:\n").nth(1).unwrap().split("\n\n").next().unwrap();
        let called = match command.get_name() {
            "tapelog" => "tapelog ".to_owned(),
            name => format!("tapelog {name} "),
        };
        assert!(examples.contains(&called), "no example of {called}");
    }
}

#[test]
fn help_fits_eighty_columns() {
    // A manual page indents by seven where the help indents by two.
    const WIDEST: usize = 75;
    for command in commands() {
        let text = command.get_after_long_help().unwrap().to_string();
        for line in text.lines() {
            let width = line.chars().count();
            assert!(width <= WIDEST, "{}: {width} columns: {line}", command.get_name());
        }
    }
}

#[test]
fn hidden_options_stay_hidden() {
    for mut command in commands() {
        let help = command.render_help().to_string() + &command.render_long_help().to_string();
        for option in command.get_arguments().filter(|option| option.is_hide_set()) {
            let long = option.get_long().unwrap();
            assert!(!help.contains(&format!("--{long}")), "--{long} shows");
        }
        for option in ["--now", "--batch-records"] {
            assert!(!help.contains(option), "{option} shows");
        }
    }
}

#[test]
fn everything_shown_is_explained() {
    for command in commands() {
        assert!(command.get_about().is_some(), "{} says nothing", command.get_name());
        for option in command.get_arguments() {
            assert!(option.get_help().is_some(), "{}: {}", command.get_name(), option.get_id());
        }
    }
}
