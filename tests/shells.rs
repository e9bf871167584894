//! The committed completions at work in their shells, and the manual pages before a
//! critical eye. What is not installed is skipped, loudly; `.ci/run` installs it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on panics")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A log with the groups billing and billing-2, and a way to run programs beside it.
struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place { dir: tempfile::tempdir().unwrap() };
        place.run("sh", &["-c", "echo a | tapelog produce demo"]).unwrap();
        for group in ["billing", "billing-2"] {
            place.run("tapelog", &["seek", "demo", "-g", group, "--to", "earliest"]).unwrap();
        }
        place
    }

    /// What a program prints, or `None`, said aloud, if it is not installed.
    fn run(&self, program: &str, args: &[&str]) -> Option<String> {
        let bin = Path::new(env!("CARGO_BIN_EXE_tapelog")).parent().unwrap();
        let path = std::env::join_paths(
            [bin.to_owned()].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH")?)),
        );
        let mut command = Command::new(program);
        command.args(args).current_dir(&self.dir).env("PATH", path.unwrap());
        match command.env("HOME", self.dir.path()).output() {
            Ok(output) => {
                let err = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{program}: {}: {err}", output.status);
                Some(String::from_utf8(output.stdout).unwrap())
            }
            Err(_) => {
                // Written past the capture of the test runner: to be seen in any case.
                let _ = writeln!(std::io::stderr(), "SKIPPED: {program} is not installed");
                None
            }
        }
    }
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn script(name: &str, code: &str) -> String {
    code.replace("SCRIPT", file("completions").join(name).to_str().unwrap())
}

#[test]
fn bash_completes_commands_and_groups() {
    let code = script(
        "tapelog.bash",
        r#"
        source 'SCRIPT'
        complete_words() {
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_TYPE=9
            _clap_complete_tapelog tapelog "${COMP_WORDS[COMP_CWORD]}"
            echo "${COMPREPLY[@]}"
        }
        complete_words tapelog prod
        complete_words tapelog seek demo -g bill
        "#,
    );
    if let Some(out) = Place::new().run("bash", &["-c", &code]) {
        assert_eq!(out, "produce\nbilling billing-2\n");
    }
}

#[test]
fn zsh_completes_commands_and_groups() {
    let code = script(
        "_tapelog",
        r#"
        compdef() { }
        _describe() { local name=${@[-1]}; print -r -- ${${(P)name}%%:*} }
        source 'SCRIPT'
        complete_words() { words=("$@") CURRENT=$#; _clap_dynamic_completer_tapelog }
        complete_words tapelog prod
        complete_words tapelog seek demo -g bill
        "#,
    );
    if let Some(out) = Place::new().run("zsh", &["-f", "-c", &code]) {
        assert_eq!(out, "produce\nbilling billing-2\n");
    }
}

#[test]
fn fish_completes_commands_and_groups() {
    let code = script(
        "tapelog.fish",
        "source 'SCRIPT'; complete -C 'tapelog prod'; complete -C 'tapelog seek demo -g bill'",
    );
    if let Some(out) = Place::new().run("fish", &["--no-config", "-c", &code]) {
        let words: Vec<_> = out.lines().map(|line| line.split('\t').next().unwrap()).collect();
        assert_eq!(words, ["produce", "billing", "billing-2"]);
    }
}

#[test]
fn the_manual_pages_are_well_formed() {
    let place = Place::new();
    for entry in std::fs::read_dir(file("man")).unwrap() {
        let page = entry.unwrap().path();
        // mandoc ends with an error if it warns; the pages have no date on purpose.
        let lint = r#"mandoc -T lint -W warning "$0" | grep -v 'missing date' || true"#;
        if place.run("mandoc", &["-T", "utf8", page.to_str().unwrap()]).is_none() {
            return;
        }
        let out = place.run("sh", &["-c", lint, page.to_str().unwrap()]).unwrap();
        assert_eq!(out, "", "{}", page.display());
    }
}
