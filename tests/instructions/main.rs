//! How many instructions the hot paths take, counted by callgrind and compared with
//! counts.txt: a path that became dearer shows here, where times on a shared machine would
//! not tell. `TAPELOG_UPDATE=1 cargo test --locked --test instructions` writes the counts
//! anew. They are those of the binary that the tests run, not of a release: what counts is
//! that they stay.
//!
//! The compiler, valgrind, the C library and the instructions that it chooses among have
//! their share in a count. The file names them; where one is another, nothing is compared,
//! and that is said.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on panics")]

#[path = "../sandbox/mod.rs"]
mod sandbox;

mod callgrind;
mod counts;
mod paths;

use std::fmt::Write;

use callgrind::Callgrind;
use counts::Counts;

const CASE: &str = "instruction counts";
const REFRESH: &str = "TAPELOG_UPDATE=1 cargo test --locked --test instructions";
/// By how much a count may differ from the one in the file.
const TOLERANCE: f64 = 0.05;

#[test]
fn the_hot_paths_take_as_many_instructions_as_ever() {
    let Some(callgrind) = Callgrind::find(CASE) else { return };
    let now = Counts { with: callgrind.circumstances(), paths: paths::count(&callgrind) };
    if std::env::var_os("TAPELOG_UPDATE").is_some_and(|value| value == "1") {
        now.save();
        return;
    }
    let before = Counts::load();
    if before.with != now.with {
        let with = format!("counts.txt is of {}, this is {}", before.with, now.with);
        sandbox::skip(CASE, &with);
        return;
    }
    let changed = changes(&before, &now);
    assert!(changed.is_empty(), "{changed}if that is meant to be so: {REFRESH}");
}

/// What differs, a line each.
fn changes(before: &Counts, now: &Counts) -> String {
    let mut changed = String::new();
    for (path, count) in &now.paths {
        let Some(old) = before.paths.get(path) else {
            writeln!(changed, "{path}: not in counts.txt").unwrap();
            continue;
        };
        let ratio = *count as f64 / *old as f64;
        if (ratio - 1.0).abs() > TOLERANCE {
            writeln!(changed, "{path}: {count} instructions, {ratio:.2} times as many as before")
                .unwrap();
        }
    }
    for path in before.paths.keys().filter(|path| !now.paths.contains_key(*path)) {
        writeln!(changed, "{path}: in counts.txt, but not counted any more").unwrap();
    }
    changed
}

#[test]
fn a_count_that_grew_or_shrank_by_more_than_a_twentieth_is_told() {
    let of = |counts: &[(&str, u64)]| Counts {
        with: String::new(),
        paths: counts.iter().map(|(path, count)| ((*path).to_owned(), *count)).collect(),
    };
    let before = of(&[("a", 1000), ("b", 1000), ("c", 1000), ("gone", 1)]);
    let now = of(&[("a", 1049), ("b", 1051), ("c", 949), ("new", 1)]);
    let changed = changes(&before, &now);
    let told: Vec<_> = changed.lines().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(told, ["b", "c", "new", "gone"]);
}
