//! What README.md says, held to: the paths that it names exist, and its tour runs
//! with the output that it shows. `TAPELOG_UPDATE=1 cargo test --locked --test readme`
//! writes what has changed of that output anew.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on panics")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

fn readme() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")
}

#[test]
fn every_path_that_it_names_is_there() {
    const FOLDERS: [&str; 6] = ["src/", "tests/", "benches/", "man/", "completions/", ".ci/"];
    let text = fs::read_to_string(readme()).unwrap();
    let words = text.split(|c: char| !c.is_alphanumeric() && !"/._-".contains(c));
    let named: Vec<&str> = words
        .map(|word| word.trim_end_matches(['.', '/']))
        .filter(|word| FOLDERS.iter().any(|folder| word.starts_with(folder)))
        .collect();
    assert!(named.len() > 8, "these are too few to be all: {named:?}");
    let root = readme().parent().unwrap().to_owned();
    let missing: Vec<&str> = named.into_iter().filter(|name| !root.join(name).exists()).collect();
    assert!(missing.is_empty(), "README.md names what is not there: {missing:?}");
}

#[test]
fn no_line_is_too_wide_to_read() {
    let text = fs::read_to_string(readme()).unwrap();
    // Rows of tables and blocks of commands and their output can't be broken.
    let prose = text.split("```").step_by(2).flat_map(str::lines);
    let wide: Vec<&str> =
        prose.filter(|line| !line.starts_with('|') && line.chars().count() > 90).collect();
    assert!(wide.is_empty(), "over 90 columns:\n{}", wide.join("\n"));
}

#[test]
fn the_tour_runs_and_prints_what_is_shown() {
    let text = fs::read_to_string(readme()).unwrap();
    let steps = steps(&text);
    assert!(steps.len() > 10, "only {} steps", steps.len());
    let Some(bash) = found_on_the_path("bash") else {
        // Written past the capture of the test runner: to be seen in any case.
        let _ = writeln!(std::io::stderr(), "SKIPPED the tour of README.md: there is no bash");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let mut told = Vec::new();
    for step in &steps {
        let printed = run(&bash, dir.path(), &step.command);
        if masked(&printed) != masked(&step.output) {
            told.push((step, printed));
        }
    }
    if std::env::var_os("TAPELOG_UPDATE").is_some_and(|value| value == "1") {
        return fs::write(readme(), updated(&text, &told)).unwrap();
    }
    let show = |(step, printed): &(&Step, String)| {
        format!("$ {}\n{printed}README.md shows\n{}", step.command, step.output)
    };
    assert!(told.is_empty(), "{}", told.iter().map(show).collect::<Vec<_>>().join("\n"));
}

/// A command of the tour and what is shown below it.
struct Step {
    command: String,
    output: String,
    /// The numbers of the lines that hold the output.
    lines: std::ops::Range<usize>,
}

/// What stands in the blocks marked `console`.
fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut in_block = false;
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            in_block = line == "```console";
        } else if let (true, Some(command)) = (in_block, line.strip_prefix("$ ")) {
            let lines = number + 1..number + 1;
            steps.push(Step { command: command.to_owned(), output: String::new(), lines });
        } else if let (true, Some(step)) = (in_block, steps.last_mut()) {
            step.output.push_str(&format!("{line}\n"));
            step.lines.end = number + 1;
        }
    }
    steps
}

/// What a command prints, on stdout and stderr, with the built binary on the `PATH`.
fn run(bash: &Path, dir: &Path, command: &str) -> String {
    let bin = Path::new(env!("CARGO_BIN_EXE_tapelog")).parent().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(bin.to_owned()).chain(std::env::split_paths(&path));
    let mut shell = Command::new(bash);
    shell.args(["-c", &format!("exec 2>&1; {command}")]).current_dir(dir);
    shell.env("PATH", std::env::join_paths(path).unwrap());
    String::from_utf8(shell.output().unwrap().stdout).unwrap()
}

fn found_on_the_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())
}

/// The text without what is different each time: moments, durations, and blanks,
/// whose number depends on these.
fn masked(text: &str) -> Vec<String> {
    let line = |line: &str| line.split_whitespace().map(masked_word).collect::<Vec<_>>().join(" ");
    text.lines().map(line).collect()
}

fn masked_word(word: &str) -> String {
    let is_number = word.starts_with(|c: char| c.is_ascii_digit());
    if is_number && word.contains('T') && word.trim_end_matches([',', '.']).ends_with('Z') {
        // To the second or finer is to be seen.
        return word.replace(|c: char| c.is_ascii_digit(), "0");
    }
    if is_number && word.ends_with(['s', 'm', 'h']) && !word.contains(['.', '-', ':']) {
        return "DURATION".to_owned();
    }
    let mut word = word.to_owned();
    for name in ["\"ts\":", "\"append_ts\":", "\"lag_ms\":"] {
        if let Some((before, after)) = word.split_once(name) {
            word = format!("{before}{name}_{}", after.trim_start_matches(|c: char| c.is_numeric()));
        }
    }
    word
}

/// The text with what these steps really print.
fn updated(text: &str, told: &[(&Step, String)]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (step, printed) in told.iter().rev() {
        lines.splice(step.lines.clone(), printed.lines().map(str::to_owned));
    }
    lines.join("\n") + "\n"
}

#[test]
fn only_what_changes_by_itself_is_masked() {
    let shown = "g 120  31     360ms  504 B 2026-11-29T16:26:51Z\n";
    assert_eq!(masked(shown), ["g 120 31 DURATION 504 B 0000-00-00T00:00:00Z"]);
    let shown = r#"{"offset":40,"ts":1795969611182,"append_ts":17,"payload":"order 41"}"#;
    let wanted = r#"{"offset":40,"ts":_,"append_ts":_,"payload":"order 41"}"#;
    assert_eq!(masked(shown), [wanted]);
}
