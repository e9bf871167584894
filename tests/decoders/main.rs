//! Every decoder of the files on many inputs, most of them bad: no panic, no hang,
//! bounded memory, and what is encoded comes back. The properties are those of
//! `tests/fuzz`, which runs them for as long as one likes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failure here is a failed test")]

mod inputs;
mod properties;
mod seeds;

use std::fs;
use std::path::Path;
use std::sync::Mutex;

/// What all decoders together may take: the largest record, and the test itself.
const MOST_MEMORY: u64 = (64 << 20) + (64 << 20);

/// Memory is measured for the process, so the properties take turns.
static TURN: Mutex<()> = Mutex::new(());

/// Checks the property `name` and what memory that took.
fn holds(name: &str) {
    let turn = TURN.lock();
    let (_, check) = properties::ALL.iter().find(|(known, _)| *known == name).unwrap();
    inputs::hold(name, *check, &seeds::of(name));
    drop(turn);
    let peak = peak_memory();
    assert!(peak <= MOST_MEMORY, "{name}: the tests so far took {} MiB", peak >> 20);
}

/// The most memory that this process ever had, in bytes.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn a_batch_header_that_decodes_is_bounded_and_encodes_the_same() {
    holds("batch_header");
}

#[test]
fn a_body_gives_the_records_that_its_header_promises_or_an_error() {
    holds("body");
}

#[test]
fn records_come_back_from_the_body_that_they_were_put_into() {
    holds("records");
}

#[test]
fn a_block_of_headers_ends_and_comes_back() {
    holds("headers");
}

#[test]
fn inflating_takes_no_more_than_the_header_allows() {
    holds("inflate");
}

#[test]
fn the_end_file_comes_back_and_garbage_is_refused() {
    holds("end_file");
}

#[test]
fn the_start_file_comes_back_and_garbage_is_refused() {
    holds("start_file");
}

#[test]
fn a_checkpoint_comes_back_and_garbage_is_refused() {
    holds("checkpoint_file");
}

#[test]
fn log_json_comes_back_and_garbage_is_refused() {
    holds("log_json");
}

#[test]
fn an_index_entry_counts_only_where_it_was_written() {
    holds("index_entry");
}

#[test]
fn an_index_finds_what_a_walk_over_its_entries_finds() {
    holds("index_file");
}

#[test]
fn the_table_of_segments_comes_back_and_garbage_is_refused() {
    holds("segment_table");
}

#[test]
fn the_header_of_a_key_table_comes_back_and_garbage_is_refused() {
    holds("key_table");
}

#[test]
fn a_page_of_keys_counts_only_where_it_was_written() {
    holds("key_page");
}

#[test]
fn only_names_that_tapelog_gives_are_taken_for_its_own() {
    holds("names");
}

#[test]
fn every_property_is_a_target_for_cargo_fuzz() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz");
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    for (name, _) in properties::ALL {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} has no target");
        let target = fs::read_to_string(folder.join(format!("targets/{name}.rs"))).unwrap();
        assert!(
            target.contains(&format!("::{name}(input)")),
            "targets/{name}.rs checks another property"
        );
    }
}
