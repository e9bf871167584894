//! `produce -J`: each line is a record, and what is none is refused by its number,
//! after everything before it was stored.

use serde_json::{Value, json};

use super::{field, of_json};
use crate::sandbox::{Expect, Sandbox, status};

#[test]
fn every_name_is_taken_in_either_form() {
    let sandbox = of_json(concat!(
        r#"{"key":"k","headers":["a","1","n",null],"payload":"v","ts":1500000000123}"#,
        "\n",
        r#"{"key_base64":"/w==","headers_base64":["/w==","AA==","bg==",null],"payload_base64":"/wA=","ts":-1}"#,
        "\n",
        r#"  { "payload" : "a\u0000\n\ud83e\udd80" , "key" : null , "headers" : [ ] }  "#,
        "\r\n",
        r#"{"key_base64":"aw==","headers_base64":["YQ==","MQ=="],"payload_base64":"","ts":0}"#,
        "\n",
    ));
    let got = sandbox.tapelog("consume -J").json();
    let null = Value::Null;
    assert_eq!(field(&got, "key"), [json!("k"), null.clone(), null.clone(), json!("k")]);
    assert_eq!(got[1]["key_base64"], "/w==");
    let headers = [json!(["a", "1", "n", null]), null.clone(), null.clone(), json!(["a", "1"])];
    assert_eq!(field(&got, "headers"), headers);
    assert_eq!(got[1]["headers_base64"], json!(["/w==", "AA==", "bg==", null]));
    assert_eq!(field(&got, "payload"), [json!("v"), null, json!("a\0\n🦀"), json!("")]);
    assert_eq!(got[1]["payload_base64"], "/wA=");
    assert_eq!(field(&got, "ts")[..2], [json!(1_500_000_000_123_i64), json!(-1)]);
    assert_eq!(got[2]["ts"], got[2]["append_ts"]);
    assert_eq!(got[3]["ts"], 0);
}

#[test]
fn where_a_record_was_before_is_ignored() {
    let sandbox = of_json(
        "{\"offset\":700,\"next\":901,\"append_ts\":5,\"payload\":\"a\"}\n{\"payload\":\"b\",\"offset\":3}\n",
    );
    let got = sandbox.tapelog("consume -J").json();
    assert_eq!(field(&got, "offset"), [json!(0), json!(1)]);
    assert_eq!(field(&got, "next"), [json!(1), json!(2)]);
    assert_ne!(got[0]["append_ts"], 5);
    assert_eq!(got[0]["ts"], got[0]["append_ts"]);
}

/// Lines that are no records, each with words that the error must have.
const WRONG: [(&str, &[&str]); 46] = [
    ("", &[]),
    ("hello", &[]),
    ("{", &[]),
    (r#"{"payload":"a""#, &[]),
    (r#"{"payload":"a"} x"#, &[]),
    (r#"{"payload":"a"}{"payload":"b"}"#, &[]),
    (r#"{'payload':'a'}"#, &[]),
    (r#"{"payload":"a",}"#, &[]),
    (r#"["payload"]"#, &[]),
    (r#""payload""#, &[]),
    ("1", &[]),
    ("null", &[]),
    ("\"payload\":\"\u{1}\"", &[]),
    ("{\"payload\":\"tab\there\"}", &[]),
    (r#"{"payload":"\ud800"}"#, &[]),
    (r#"{"payload":"\x41"}"#, &[]),
    (r#"{"payload":"a","colour":"red"}"#, &["colour"]),
    (r#"{"payload":"a","Key":"k"}"#, &["Key"]),
    (r#"{"payload":"a","value":"b"}"#, &["value"]),
    (r#"{"payload":"a","":1}"#, &[]),
    (r#"{"json":{"a":1}}"#, &["json"]),
    (r#"{"payload":"a","json":null}"#, &["json"]),
    (r#"{"payload":"a","payload_base64":"YQ=="}"#, &["payload"]),
    (r#"{"payload":null,"payload_base64":"YQ=="}"#, &["payload"]),
    (r#"{"key":"a","key_base64":"YQ==","payload":"a"}"#, &["key"]),
    (r#"{"headers":["a","b"],"headers_base64":["YQ==","YQ=="],"payload":"a"}"#, &["headers"]),
    (r#"{"payload":"a","payload":"b"}"#, &["payload"]),
    (r#"{"payload":1}"#, &["payload"]),
    (r#"{"payload":{"a":1}}"#, &["payload"]),
    (r#"{"payload":true}"#, &["payload"]),
    (r#"{"payload_base64":"*"}"#, &["payload_base64"]),
    (r#"{"payload_base64":"YQ==="}"#, &["payload_base64"]),
    (r#"{"payload_base64":"Y Q=="}"#, &["payload_base64"]),
    (r#"{"payload_base64":["YQ=="]}"#, &["payload_base64"]),
    (r#"{"key":5,"payload":"a"}"#, &["key"]),
    (r#"{"key_base64":"é","payload":"a"}"#, &["key_base64"]),
    (r#"{"headers":"a","payload":"a"}"#, &["headers"]),
    (r#"{"headers":{"a":"b"},"payload":"a"}"#, &["headers"]),
    (r#"{"headers":["a"],"payload":"a"}"#, &["headers"]),
    (r#"{"headers":["a","b","c"],"payload":"a"}"#, &["headers"]),
    (r#"{"headers":[null,"b"],"payload":"a"}"#, &["headers"]),
    (r#"{"headers":["a",1],"payload":"a"}"#, &["headers"]),
    (r#"{"headers_base64":["a","YQ=="],"payload":"a"}"#, &["headers_base64"]),
    (r#"{"ts":"2026-01-01","payload":"a"}"#, &["ts"]),
    (r#"{"ts":1.5,"payload":"a"}"#, &["ts"]),
    (r#"{"ts":9223372036854775808,"payload":"a"}"#, &["ts"]),
];

#[test]
fn a_line_that_is_no_record_is_named_by_its_number_and_all_before_it_is_stored() {
    let mut faults = Vec::new();
    for (line, words) in WRONG {
        let sandbox = Sandbox::new();
        let input = format!(
            "{{\"payload\":\"1\"}}\n{{\"payload\":\"2\"}}\n{line}\n{{\"payload\":\"4\"}}\n"
        );
        let outcome = sandbox.tapelog("produce -J").write_stdin(input).outcome();
        let told = outcome.status.code() == Some(status::FAILED)
            && outcome.errors().len() == 1
            && outcome.notes().is_empty()
            && outcome.stderr.contains("record 3 ")
            && words.iter().all(|word| outcome.stderr.contains(word));
        let stored = sandbox.all().outcome().stdout;
        if !told || stored != b"1\n2\n" {
            faults.push(format!("{line}\n  {outcome}  stored: {}", stored.escape_ascii()));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_line_that_is_no_text_is_refused_by_its_number() {
    let sandbox = Sandbox::new();
    let mut produce = sandbox.tapelog("produce -J");
    produce.write_stdin(b"{\"payload\":\"a\"}\n{\"payload\":\"\xff\"}\n".to_vec());
    produce.fails(status::FAILED, &["record 2 "]);
    sandbox.all().prints("a\n");
}

#[test]
fn a_wrong_line_among_many_leaves_all_before_it_stored() {
    let sandbox = Sandbox::new();
    let good = "{\"key\":\"k\",\"payload\":\"v\"}\n".repeat(20_000);
    let mut produce = sandbox.tapelog("produce -J");
    produce.write_stdin(good.clone() + "{\"payload\":\"cut");
    produce.fails(status::FAILED, &["record 20001 "]);
    assert_eq!(sandbox.end(), 20_000);
    let file = sandbox.file("wrong.jsonl", "{\"payload\":\"a\"}\n[]\n");
    sandbox.tapelog("produce -J").arg(file).fails(status::FAILED, &["record 2 ", "wrong.jsonl"]);
    assert_eq!(sandbox.end(), 20_001);
}

#[test]
fn an_error_stays_one_short_line_whatever_the_record_holds() {
    let sandbox = Sandbox::new();
    for line in [
        format!("{{\"{}\":1,\"payload\":\"a\"}}\n", "n\\n\\u001b[31m".repeat(9000)),
        format!("{{\"payload\":\"{}\n", "x".repeat(100_000)),
        format!("{}\n", "[".repeat(100_000)),
        format!("{{\"offset\":{}\n", "[".repeat(100_000)),
    ] {
        let outcome = sandbox.tapelog("produce -J").write_stdin(line).outcome();
        let outcome = outcome.ended(status::FAILED).said(&["record 1 "]);
        assert!(outcome.stderr.len() < 1000, "{} bytes", outcome.stderr.len());
        assert!(!outcome.stderr.contains('\u{1b}'));
    }
}

#[test]
fn a_record_without_payload_is_no_silent_tombstone() {
    let sandbox = Sandbox::new();
    for line in
        ["{\"key\":\"a\"}\n", "{}\n", "{\"offset\":1,\"next\":2,\"ts\":3,\"append_ts\":4}\n"]
    {
        let mut produce = sandbox.tapelog("produce -J");
        produce.write_stdin(line).fails(status::FAILED, &["record 1 ", "payload"]);
    }
    assert_eq!(sandbox.end(), 0);
}

#[test]
fn json_lines_that_arrive_one_by_one_are_appended_at_once() {
    let sandbox = Sandbox::new();
    let mut producer = sandbox.spawn("producer", sandbox.command("produce -J"));
    producer.feed("{\"payload\":\"a\"}\n{\"payload\":");
    let holds = |want: &str| {
        crate::sandbox::wait_until(crate::sandbox::SECOND, want, || {
            sandbox.all().outcome().stdout == want.as_bytes()
        });
    };
    holds("a\n");
    producer.feed("\"b\"}\n");
    holds("a\nb\n");
    producer.close_stdin();
    assert!(producer.ends_within(crate::sandbox::SECOND * 5).success());
}
