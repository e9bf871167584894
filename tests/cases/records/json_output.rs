//! `consume -J` with everything a record can have, and `--json-payload`.

use serde_json::json;

use super::of_json;
use crate::sandbox::{Expect, Sandbox, status};

/// 2026-01-01T10:00:00Z in milliseconds.
const TEN: u64 = 1_767_261_600_000;

#[test]
fn names_stand_in_one_order_and_only_for_what_is_there() {
    let sandbox = Sandbox::new();
    let rows = [
        (r#""payload":"plain""#, None),
        (r#""key":"k","headers":["a","1","a",null],"payload":"v""#, Some(5)),
        (r#""key":"","payload":"""#, Some(-5)),
        (r#""key":"gone","payload":null"#, None),
        (
            r#""key_base64":"/w==","headers_base64":["YQ==","/w=="],"payload_base64":"/wA=""#,
            Some(TEN as i64),
        ),
        (r#""headers":["é",""],"payload":"two\nlines\t\"\\\u0000""#, None),
    ];
    let (mut input, mut want) = (String::new(), String::new());
    for (offset, (rest, own_time)) in rows.into_iter().enumerate() {
        let own = own_time.map_or(String::new(), |time| format!("\"ts\":{time},"));
        input += &format!("{{{own}{rest}}}\n");
        let (next, time) = (offset + 1, own_time.unwrap_or(TEN as i64));
        want += &format!(
            "{{\"offset\":{offset},\"next\":{next},\"ts\":{time},\"append_ts\":{TEN},{rest}}}\n"
        );
    }
    let mut produce = sandbox.at("2026-01-01T10:00:00Z", "produce -J");
    produce.write_stdin(input).prints("");
    sandbox.tapelog("consume -J").prints(want);
}

#[test]
fn each_part_is_base64_by_itself_when_it_is_no_text() {
    let sandbox = of_json(concat!(
        r#"{"key_base64":"/w==","payload":"text"}"#,
        "\n",
        r#"{"key":"text","payload_base64":"/w=="}"#,
        "\n",
        r#"{"headers_base64":["YQ==","/w=="],"key":"k","payload":"v"}"#,
        "\n",
        r#"{"headers_base64":["/w==",null],"payload":null}"#,
        "\n",
    ));
    let got = sandbox.tapelog("consume -J").json();
    let names: Vec<Vec<_>> = got
        .iter()
        .map(|record| record.as_object().unwrap().keys().map(String::as_str).collect())
        .map(|mut names: Vec<&str>| {
            names.sort();
            names.retain(|name| {
                name.contains("key") || name.contains("head") || name.contains("pay")
            });
            names
        })
        .collect();
    let want = [
        vec!["key_base64", "payload"],
        vec!["key", "payload_base64"],
        vec!["headers_base64", "key", "payload"],
        vec!["headers_base64", "payload"],
    ];
    assert_eq!(names, want);
}

/// Values, and what stands for them with `--json-payload`.
const EMBEDDED: [(&str, &str); 20] = [
    (r#"{"b":1,"a":[true,null]}"#, r#""json":{"b":1,"a":[true,null]}"#),
    ("[]", r#""json":[]"#),
    ("{}", r#""json":{}"#),
    ("1", r#""json":1"#),
    ("-1.50e+07", r#""json":-1.50e+07"#),
    ("123456789012345678901234567890", r#""json":123456789012345678901234567890"#),
    (r#"{"n":1.0,"n":2}"#, r#""json":{"n":1.0,"n":2}"#),
    (r#""text""#, r#""json":"text""#),
    ("null", r#""json":null"#),
    ("true", r#""json":true"#),
    (r#"" é""#, r#""json":" é""#),
    ("", r#""payload":"""#),
    ("text", r#""payload":"text""#),
    ("{", r#""payload":"{""#),
    ("{} {}", r#""payload":"{} {}""#),
    ("01", r#""payload":"01""#),
    ("NaN", r#""payload":"NaN""#),
    ("'a'", r#""payload":"'a'""#),
    ("[1,]", r#""payload":"[1,]""#),
    // Half a character: JSON by its grammar, but no reader takes it.
    (r#"{"a":"\ud800"}"#, r#""payload":"{\"a\":\"\\ud800\"}""#),
];

#[test]
fn values_that_are_json_stand_under_json_as_they_are_and_others_under_payload() {
    let sandbox = Sandbox::new();
    sandbox.produce("", EMBEDDED.map(|(value, _)| format!("{value}\n")).concat());
    let text = sandbox.tapelog("consume --json-payload").text();
    for ((value, shown), line) in EMBEDDED.iter().zip(text.lines()) {
        assert!(line.ends_with(&format!(",{shown}}}")), "{value} is shown as {line}");
        let read = serde_json::from_str::<serde_json::Value>(line);
        assert!(read.is_ok_and(|read| read["offset"].is_number()), "{line}");
    }
    assert_eq!(text.lines().count(), EMBEDDED.len());
}

#[test]
fn json_over_several_lines_is_embedded_on_one() {
    let sandbox = Sandbox::new();
    sandbox.produce("--whole", "{\n  \"a\": [1,\r\n\t2],\n  \"b\": \" x \\n\"\n}\n");
    let got = sandbox.tapelog("consume --json-payload").json();
    assert_eq!((got.len(), &got[0]["json"]), (1, &json!({"a": [1, 2], "b": " x \n"})));
}

#[test]
fn tombstones_and_bytes_that_are_no_text_are_not_embedded() {
    let sandbox = of_json(concat!(
        r#"{"payload":null,"key":"k"}"#,
        "\n",
        r#"{"payload_base64":"Iv8i"}"#,
        "\n",
        r#"{"payload":"\"\u0001\""}"#,
        "\n",
    ));
    let got = sandbox.tapelog("consume --json-payload").json();
    assert!(got[0].as_object().unwrap().contains_key("payload") && got[0]["payload"].is_null());
    assert_eq!(got[1]["payload_base64"], "Iv8i");
    assert_eq!(got[2]["payload"], "\"\u{1}\"", "a control character makes it no JSON");
    assert!(got.iter().all(|record| record.get("json").is_none()));
}

#[test]
fn a_deeply_nested_value_does_no_harm() {
    let sandbox = Sandbox::new();
    let deep = "[".repeat(50_000) + &"]".repeat(50_000);
    sandbox.produce("", format!("{}\n{deep}\n[1]\n", "[".repeat(100_000)));
    let text = sandbox.tapelog("consume --json-payload").text();
    assert_eq!(text.lines().count(), 3);
    assert!(text.lines().last().unwrap().ends_with(r#","json":[1]}"#));
}

#[test]
fn what_was_embedded_is_refused_by_produce() {
    let (from, into) = (Sandbox::new(), Sandbox::new());
    from.produce("", "no json\n{}\nmore\n");
    let shown = from.tapelog("consume --json-payload").text();
    let mut produce = into.tapelog("produce -J");
    produce.write_stdin(shown).fails(status::FAILED, &["record 2 ", "json"]);
    into.all().prints("no json\n");
}

#[test]
fn one_form_at_a_time() {
    let sandbox = Sandbox::new();
    sandbox.mk(1);
    for both in
        ["-J -K :", "--json-payload -F %v", "--json-payload -0", "-F %v -K :", "-J --json-payload"]
    {
        let outcome = sandbox.tapelog(&format!("consume {both}")).outcome();
        outcome.ended(status::USAGE).printed("");
    }
}
