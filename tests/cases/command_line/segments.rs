//! `segments`: what there is, and who still needs it.

use serde_json::{Value, json};

use crate::sandbox::{Expect, Sandbox, numbers, status};

/// Three segments of one batch each, appended at ten, eleven and twelve; g at 3.
fn three_segments() -> Sandbox {
    let sandbox = Sandbox::with_config("segment-size=512");
    let line = "x".repeat(200) + "\n";
    for hour in [10, 11, 12] {
        sandbox.produce_at(&format!("2026-01-01T{hour}:00:00Z"), &line.repeat(2));
    }
    sandbox.commit("g", 3);
    sandbox
}

#[test]
fn every_segment_is_one_object_with_these_names() {
    let rows = three_segments().tapelog("segments -J").json();
    let ten = 1_767_261_600_000_u64;
    let row = |n: u64, state: &str, needed_by: Value| {
        json!({
            "first": 2 * n, "next": 2 * n + 2, "records": 2, "bytes": 466,
            "first_time": ten + n * 3_600_000, "last_time": ten + n * 3_600_000,
            "state": state, "needed_by": needed_by,
        })
    };
    let want = [
        row(0, "sealed", json!([])),
        row(1, "sealed", json!(["g"])),
        row(2, "active", json!(["g"])),
    ];
    assert_eq!(rows, want);
}

#[test]
fn the_summary_is_one_object_with_these_names() {
    let want = json!({
        "segments": 3, "records": 6, "bytes": 3 * 466, "start": 0, "end": 6, "durable": 6,
    });
    assert_eq!(three_segments().summary(), want);
}

#[test]
fn the_table_shows_the_same_for_people() {
    let sandbox = three_segments();
    let table = sandbox.tapelog("segments").text();
    for word in ["sealed", "active", "2026-01-01T10:00:00", "g"] {
        assert!(table.contains(word), "{word} in\n{table}");
    }
    assert!(sandbox.tapelog("segments --summary").text().contains('6'));
}

#[test]
fn an_empty_log_has_no_records_and_no_times() {
    let sandbox = Sandbox::with_config("segment-size=64M");
    let summary = sandbox.summary();
    assert_eq!(["records", "start", "end", "durable"].map(|name| &summary[name]), [&json!(0); 4]);
    for row in sandbox.tapelog("segments -J").json() {
        assert_eq!((&row["first_time"], &row["last_time"]), (&Value::Null, &Value::Null), "{row}");
    }
}

#[test]
fn segments_that_were_collected_are_not_shown() {
    let sandbox = three_segments();
    sandbox.at("2026-01-01T13:00:00Z", "gc").outcome().succeeded();
    assert_eq!(numbers(&sandbox.tapelog("segments -J").json(), "first"), [2, 4]);
    sandbox.tapelog("consume -o 1").fails(status::RANGE, &["1", "2"]);
}
