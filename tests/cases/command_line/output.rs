//! How records are printed: bytes as they came, delimiters, JSON, formats.

use serde_json::json;

use crate::sandbox::{Expect, Sandbox, status};

/// 2026-01-01T10:00:00Z in milliseconds.
const TEN: u64 = 1_767_261_600_000;

/// Two records of text, an empty one and one that is no text.
fn of_all_kinds() -> Sandbox {
    let sandbox = Sandbox::new();
    let mut produce = sandbox.at("2026-01-01T10:00:00Z", "produce");
    produce.write_stdin(b"a\nb \"c\"\r\n\n\xff\0\n".to_vec()).prints("");
    sandbox
}

#[test]
fn values_come_out_byte_for_byte_each_with_a_newline() {
    of_all_kinds().all().prints(b"a\nb \"c\"\r\n\n\xff\0\n");
}

#[test]
fn another_delimiter_stands_in_the_newlines_place() {
    let sandbox = Sandbox::new();
    sandbox.produce("", "a\nb\n\n");
    for (options, want) in [
        ("-D ,", "a,b,,"),
        (r"-D \r\n", "a\r\nb\r\n\r\n"),
        (r"-D \t", "a\tb\t\t"),
        (r"-D \x1e", "a\x1eb\x1e\x1e"),
        (r"-D \\", "a\\b\\\\"),
        ("-D <>", "a<>b<><>"),
        ("--delimiter ;", "a;b;;"),
        ("-0", "a\0b\0\0"),
        ("--null", "a\0b\0\0"),
    ] {
        sandbox.tapelog(&format!("consume {options}")).prints(want);
    }
}

#[test]
fn what_a_delimiter_split_comes_back_through_the_same_delimiter() {
    let sandbox = Sandbox::new();
    sandbox.produce("-0", "a\nb\0\0c\0");
    sandbox.tapelog("consume -0").prints("a\nb\0\0c\0");
    sandbox.tapelog(r"consume -F %V\n").prints("3\n0\n1\n");
}

#[test]
fn a_delimiter_that_is_none_is_a_usage_error() {
    let sandbox = Sandbox::new();
    sandbox.produce("", "a\n");
    for wrong in ["", r"\q", r"\x1", r"\xZZ", "\\"] {
        let mut consume = sandbox.tapelog("consume -D");
        consume.arg(wrong).fails(status::USAGE, &["delimiter"]);
    }
    sandbox.tapelog("consume -D , -0").outcome().ended(status::USAGE).printed("");
}

#[test]
fn json_tells_everything_about_a_record_in_one_object_a_line() {
    let record = |offset: u64, name: &str, payload: &str| {
        let mut record = json!({
            "offset": offset, "next": offset + 1, "ts": TEN, "append_ts": TEN,
        });
        record[name] = payload.into();
        record
    };
    let want = [
        record(0, "payload", "a"),
        record(1, "payload", "b \"c\"\r"),
        record(2, "payload", ""),
        record(3, "payload_base64", "/wA="),
    ];
    assert_eq!(of_all_kinds().tapelog("consume -J").json(), want);
}

#[test]
fn json_has_its_fields_in_one_order_for_the_eye() {
    let sandbox = Sandbox::new();
    sandbox.produce_at("2026-01-01T10:00:00Z", "a\n");
    let text = sandbox.tapelog("consume -J").text();
    let places = ["offset", "next", "ts", "append_ts", "payload"].map(|name| text.find(name));
    assert!(places.is_sorted() && places.iter().all(Option::is_some), "{text}");
    assert_eq!(text.lines().count(), 1);
}

#[test]
fn a_format_has_letters_and_escapes_and_adds_nothing() {
    let sandbox = of_all_kinds();
    for (format, want) in [
        ("%o:%S:%s\\n", &b"0:1:a\n1:6:b \"c\"\r\n2:0:\n3:2:\xff\0\n"[..]),
        ("%v|", b"a|b \"c\"\r||\xff\0|"),
        ("%V,%T;", b"1,1767261600000;6,1767261600000;0,1767261600000;2,1767261600000;"),
        ("%%\\t\\x41\\\\", b"%\tA\\%\tA\\%\tA\\%\tA\\"),
        (".", b"...."),
    ] {
        sandbox.tapelog("consume -F").arg(format).prints(want);
    }
}

#[test]
fn a_format_that_is_none_is_a_usage_error_with_the_place_marked() {
    let sandbox = of_all_kinds();
    for (format, place) in [("%o:%y", "%y"), ("%", "%"), ("a\\q", "\\q"), ("100% sure", "% ")] {
        let outcome = sandbox.tapelog("consume -F").arg(format).outcome().ended(status::USAGE);
        assert!(outcome.stderr.contains(place) && outcome.stdout.is_empty(), "{outcome}");
    }
}

#[test]
fn one_form_of_output_at_a_time() {
    let sandbox = of_all_kinds();
    for both in ["-J -F %o", "-J -0", "-F %o -D ,"] {
        let outcome = sandbox.tapelog(&format!("consume {both}")).outcome();
        outcome.ended(status::USAGE).printed("");
    }
}

#[test]
fn receipts_are_offsets_and_produce_is_silent_without_them() {
    let sandbox = Sandbox::new();
    sandbox.tapelog("produce").write_stdin("a\nb\n").prints("");
    sandbox.tapelog("produce --receipt").write_stdin("c\nd\n").prints("2\n3\n");
    sandbox.tapelog("produce --receipt --sync each").write_stdin("e").prints("4\n");
    sandbox.tapelog("produce --receipt --sync none").write_stdin("").prints("");
    sandbox.all().prints("a\nb\nc\nd\ne\n");
}

#[test]
fn files_are_read_in_turn_and_their_end_ends_a_record() {
    let sandbox = Sandbox::new();
    sandbox.file("one", "a\nb");
    sandbox.file("two", "c\n");
    sandbox.file("none", "");
    let mut produce = sandbox.tapelog("produce one none - two");
    produce.write_stdin("stdin").prints("");
    sandbox.all().prints("a\nb\nstdin\nc\n");
}
