//! Settings: shown with their defaults, checked before anything is stored.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::sandbox::{Expect, Sandbox, status, tree};

/// What `config -J` shows: value and default by setting.
fn settings(sandbox: &Sandbox) -> BTreeMap<String, (Value, Value)> {
    let rows = sandbox.tapelog("config -J").json();
    let setting = |row: &Value| row["setting"].as_str().unwrap().to_owned();
    rows.iter().map(|row| (setting(row), (row["value"].clone(), row["default"].clone()))).collect()
}

#[test]
fn every_setting_is_shown_with_its_default() {
    let sandbox = Sandbox::new();
    sandbox.mk(1);
    let shown = settings(&sandbox);
    for setting in ["segment-size", "segment-age", "max-record-size", "max-log-size"] {
        assert!(shown.contains_key(setting), "{setting} in {shown:?}");
        let table = sandbox.tapelog("config").text();
        assert!(table.contains(setting), "{setting} in {table}");
    }
    assert!(shown.values().all(|(value, default)| value == default), "{shown:?}");
}

#[test]
fn a_change_is_kept_and_leaves_the_others_as_they_were() {
    let sandbox = Sandbox::new();
    sandbox.config("segment-size=64K max-record-size=1M");
    sandbox.config("segment-age=1h");
    let shown = settings(&sandbox);
    for changed in ["segment-size", "segment-age", "max-record-size"] {
        assert_ne!(shown[changed].0, shown[changed].1, "{changed} in {shown:?}");
    }
    assert_eq!(shown["max-log-size"].0, shown["max-log-size"].1);
}

#[test]
fn sizes_are_counted_in_1024s_however_they_are_spelled() {
    let shown = ["64K", "64KiB", "65536", "64k"].map(|size| {
        let sandbox = Sandbox::with_config(&format!("segment-size={size}"));
        settings(&sandbox)["segment-size"].0.clone()
    });
    assert!(shown.iter().all(|value| value == &shown[0]), "{shown:?}");
}

#[test]
fn a_wrong_setting_is_a_usage_error_and_changes_nothing() {
    let sandbox = Sandbox::with_config("segment-size=64K");
    let wrong = [
        "segment-size=0",
        "segment-size=511",
        "segment-size=-1",
        "segment-size=big",
        "segment-size=99999999999999999999",
        "segment-age=0s",
        "segment-age=soon",
        "max-record-size=0",
        "max-record-size=65M",
        "max-log-size=0",
    ];
    let before = tree(sandbox.log());
    for setting in wrong {
        let name = setting.split('=').next().unwrap();
        sandbox.tapelog(&format!("config {setting}")).fails(status::USAGE, &[name]);
        let beside_a_good_one = format!("config max-log-size=1G {setting}");
        sandbox.tapelog(&beside_a_good_one).fails(status::USAGE, &[name]);
    }
    for (words, named) in [("no-such=1", "no-such"), ("segment-size", "segment-size"), ("=1", "")] {
        sandbox.tapelog(&format!("config {words}")).fails(status::USAGE, &[named]);
    }
    assert!(tree(sandbox.log()) == before);
}

#[test]
fn nothing_as_a_value_takes_a_setting_back_to_its_default() {
    let sandbox = Sandbox::with_config("segment-size=64K segment-age=1h");
    sandbox.config("segment-size=");
    let shown = settings(&sandbox);
    assert_eq!(shown["segment-size"].0, shown["segment-size"].1);
    assert_ne!(shown["segment-age"].0, shown["segment-age"].1);
}

#[test]
fn a_wrong_setting_makes_no_log() {
    let sandbox = Sandbox::new();
    sandbox.tapelog("config segment-size=0").fails(status::USAGE, &["segment-size"]);
    assert!(!sandbox.log().exists());
}

#[test]
fn the_smallest_segment_is_512_bytes() {
    let sandbox = Sandbox::with_config("segment-size=512");
    sandbox.produce("--batch-records 1", "x\n".repeat(30));
    assert!(sandbox.segments().len() > 1);
    sandbox.all().prints("x\n".repeat(30));
}

#[test]
fn a_new_segment_size_counts_from_the_next_append_on() {
    let sandbox = Sandbox::new();
    sandbox.produce("--batch-records 1", "x\n".repeat(30));
    sandbox.config("segment-size=512");
    sandbox.produce("--batch-records 1", "x\n".repeat(30));
    assert!(sandbox.segments().len() > 2);
    sandbox.all().prints("x\n".repeat(60));
}

#[test]
fn a_record_over_the_limit_is_named_and_what_came_before_is_stored() {
    let sandbox = Sandbox::with_config("max-record-size=10");
    let input = "0123456789\nshort\n01234567890\nnever\n";
    let mut produce = sandbox.tapelog("produce");
    produce.write_stdin(input).fails(status::TOO_BIG, &["3", "max-record-size"]);
    sandbox.all().prints("0123456789\nshort\n");
}
