//! Keys, headers and tombstones, from the command line and from the lines themselves.

use serde_json::{Value, json};

use super::{field, of_json, templated};
use crate::sandbox::{Expect, Sandbox, status};

/// Key and payload of each record.
fn pairs(sandbox: &Sandbox) -> Value {
    let records = sandbox.tapelog("consume -J").json();
    records.iter().map(|record| json!([record["key"], record["payload"]])).collect()
}

#[test]
fn one_key_for_all() {
    let sandbox = Sandbox::new();
    sandbox.produce("-k order", "a\n\nb");
    assert_eq!(pairs(&sandbox), json!([["order", "a"], ["order", ""], ["order", "b"]]));
    sandbox.all().prints("a\n\nb\n");
    let sandbox = Sandbox::new();
    sandbox.produce("--key=-7", "a\n");
    assert_eq!(pairs(&sandbox), json!([["-7", "a"]]));
}

#[test]
fn the_first_separator_divides_key_and_value() {
    for (separator, input, want) in [
        (
            ":",
            "a:1\nb:2:3\n:c\nd:\n:\n",
            json!([["a", "1"], ["b", "2:3"], ["", "c"], ["d", ""], ["", ""]]),
        ),
        ("::", "a:b::c::d\n:::e\n", json!([["a:b", "c::d"], ["", ":e"]])),
        ("aa", "xaaay\n", json!([["x", "ay"]])),
        (r"\t", "a b\tc\td\n", json!([["a b", "c\td"]])),
        (r"\x3d\x3E", "a=b=>c\n", json!([["a=b", "c"]])),
        (r"\0", "a\0b\n", json!([["a", "b"]])),
        (r"\\", "a\\b\\c\n", json!([["a", "b\\c"]])),
        ("→", "a→b\n", json!([["a", "b"]])),
        ("--", "a--b\n", json!([["a", "b"]])),
        (" ", "  b\n", json!([["", " b"]])),
    ] {
        let sandbox = Sandbox::new();
        sandbox.tapelog("produce -K").arg(separator).write_stdin(input).prints("");
        assert_eq!(pairs(&sandbox), want, "-K {separator}");
        sandbox.tapelog("consume -K").arg(separator).prints(input);
    }
}

#[test]
fn the_separator_may_be_the_newline_where_that_ends_no_record() {
    let sandbox = Sandbox::new();
    sandbox.tapelog(r"produce -0 -K \n").write_stdin("a\nb\nc\0\nd\0").prints("");
    assert_eq!(pairs(&sandbox), json!([["a", "b\nc"], ["", "d"]]));
    sandbox.tapelog(r"consume -0 -K \n").prints("a\nb\nc\0\nd\0");
    sandbox.tapelog(r"produce --whole -K \n").write_stdin("e\nf\n").prints("");
    sandbox.tapelog("consume -F %k=%v -o 2").prints("e=f\n");
}

#[test]
fn a_line_without_separator_is_named_and_all_before_it_is_stored() {
    for batch in ["", "--batch-records 1", "--batch-records 2"] {
        let sandbox = Sandbox::new();
        let mut produce = sandbox.tapelog(&format!("produce -K : {batch}"));
        produce.write_stdin("a:1\nb:2\nno key here\nd:4\n");
        produce.fails(status::FAILED, &["record 3 ", "standard input", "separator"]);
        assert_eq!(pairs(&sandbox), json!([["a", "1"], ["b", "2"]]));
    }
}

#[test]
fn a_line_without_separator_is_named_with_its_file() {
    let sandbox = Sandbox::new();
    let (good, bad) = (sandbox.file("good", "a:1\n"), sandbox.file("bad", "b:2\nc\n"));
    let mut produce = sandbox.tapelog("produce -K :");
    produce.arg(&good).arg(&bad).fails(status::FAILED, &["bad", "separator"]);
    assert_eq!(pairs(&sandbox), json!([["a", "1"], ["b", "2"]]));
}

#[test]
fn no_key_keep_stores_such_lines_without_a_key() {
    let sandbox = Sandbox::new();
    sandbox.produce("-K : --no-key keep", "a:1\nnone\n:empty\n\n");
    let want = json!([["a", "1"], [null, "none"], ["", "empty"], [null, ""]]);
    assert_eq!(pairs(&sandbox), want);
    assert_eq!(templated(&sandbox, "%K "), b"1 -1 0 -1 ");
}

#[test]
fn keys_that_cannot_be_meant_are_usage_errors_and_make_no_log() {
    for (options, named) in [
        (&["-K", ""][..], "key-separator"),
        (&["-K", r"\q"], "key-separator"),
        (&["-K", r"\x1"], "key-separator"),
        (&["-K", ":", "-k", "a"], "key"),
        (&["-K", ":", "-J"], "key-separator"),
        (&["--no-key", "keep"], "key-separator"),
        (&["-K", ":", "--no-key", "drop"], "drop"),
        (&["-H", "novalue"], "header"),
        (&["-H", ""], "header"),
    ] {
        let sandbox = Sandbox::new();
        let mut produce = sandbox.tapelog("produce");
        produce.args(options).write_stdin("a:1\n").fails(status::USAGE, &[named]);
        assert!(!sandbox.log().exists(), "{options:?}");
    }
}

#[test]
fn an_empty_value_is_a_tombstone_where_that_is_asked_for() {
    let sandbox = Sandbox::new();
    sandbox.produce("-K : -Z", "a:1\na:\n");
    sandbox.produce("-Z", "\nb\n");
    sandbox.produce("-K :", "a:\n");
    let want = json!([["a", "1"], ["a", null], [null, null], [null, "b"], ["a", ""]]);
    assert_eq!(pairs(&sandbox), want);
    assert_eq!(templated(&sandbox, "%V "), b"1 -1 -1 1 0 ");
    sandbox.all().prints("1\n\n\nb\n\n");
    let whole = Sandbox::new();
    whole.produce("--whole -Z -k gone", "");
    assert_eq!(pairs(&whole), json!([["gone", null]]));
}

#[test]
fn headers_are_kept_in_order_and_names_may_repeat() {
    let sandbox = Sandbox::new();
    let headers = ["b=1", "a=2", "b=3", "b=1", "empty=", "text=x=y z", "=unnamed"];
    let mut produce = sandbox.tapelog("produce");
    for header in headers {
        produce.args(["-H", header]);
    }
    produce.write_stdin("v\nw\n").prints("");
    let flat = json!([
        "b", "1", "a", "2", "b", "3", "b", "1", "empty", "", "text", "x=y z", "", "unnamed"
    ]);
    let records = sandbox.tapelog("consume -J").json();
    assert_eq!(field(&records, "headers"), [flat.clone(), flat]);
    assert_eq!(field(&records, "key"), [Value::Null, Value::Null]);
    sandbox.all().prints("v\nw\n");
}

#[test]
fn key_and_headers_of_the_command_line_join_those_of_json() {
    let sandbox = Sandbox::new();
    let mut produce = sandbox.tapelog("produce -J -k default -H z=9");
    produce.write_stdin(
        "{\"payload\":\"v\",\"headers\":[\"a\",\"1\"]}\n{\"key\":\"own\",\"payload\":\"w\"}\n",
    );
    produce.prints("");
    let records = sandbox.tapelog("consume -J").json();
    assert_eq!(field(&records, "key"), [json!("default"), json!("own")]);
    assert_eq!(field(&records, "headers"), [json!(["a", "1", "z", "9"]), json!(["z", "9"])]);
}

#[test]
fn no_key_and_an_empty_one_and_no_value_and_an_empty_one_are_four_things() {
    let sandbox = of_json(
        "{\"payload\":\"\"}\n{\"key\":\"\",\"payload\":\"\"}\n{\"payload\":null}\n{\"key\":\"\",\"payload\":null}\n",
    );
    let shown = sandbox.tapelog("consume -J").json();
    let has_key: Vec<_> = shown.iter().map(|record| record["key"].is_string()).collect();
    assert_eq!(has_key, [false, true, false, true]);
    assert_eq!(field(&shown, "payload"), [json!(""), json!(""), json!(null), json!(null)]);
    assert_eq!(templated(&sandbox, "%K,%V:%k%v;"), b"-1,0:;0,0:;-1,-1:;0,-1:;");
    assert_eq!(templated(&sandbox, "%k{json},%v{json};"), br#"null,"";"","";null,null;"",null;"#);
}

#[test]
fn values_with_newlines_are_told_from_several_values() {
    let sandbox = Sandbox::new();
    sandbox.produce("-0 -k k", "a\nb\0\n\0");
    sandbox.produce("-k k", "a\nb\n");
    assert_eq!(pairs(&sandbox), json!([["k", "a\nb"], ["k", "\n"], ["k", "a"], ["k", "b"]]));
    assert_eq!(templated(&sandbox, "%V:%v;"), b"3:a\nb;1:\n;1:a;1:b;");
    assert_eq!(templated(&sandbox, "%v{json}"), br#""a\nb""\n""a""b""#);
    sandbox.tapelog("consume -0").prints("a\nb\0\n\0a\0b\0");
}

#[test]
fn keys_are_bytes_and_may_be_long() {
    let sandbox = Sandbox::new();
    let key: Vec<u8> = (1..=255).filter(|&byte| byte != b'\n').cycle().take(70_000).collect();
    let mut line = key.clone();
    line.extend(*b"<->v\n");
    sandbox.produce("-K <->", line);
    sandbox.tapelog("consume -F %k").prints(&key);
    sandbox.tapelog("consume -F %K,%V").prints("70000,1");
    assert!(sandbox.tapelog("consume -J").json()[0]["key_base64"].is_string());
}

#[test]
fn plain_and_keyed_records_may_mix_in_one_log() {
    let sandbox = Sandbox::new();
    for round in 0..4 {
        sandbox.produce("", format!("plain-{round}\n"));
        sandbox.produce("-K :", format!("k{round}:keyed-{round}\n"));
        sandbox.produce("-0", format!("two\nlines-{round}\0"));
    }
    let want: String = (0..4).map(|n| format!("plain-{n};keyed-{n};two\nlines-{n};")).collect();
    sandbox.tapelog("consume -D ;").prints(want);
    sandbox.tapelog("consume -F %o:%k, -o 1:8").prints("1:k0,2:,3:,4:k1,5:,6:,7:k2,");
    sandbox.tapelog("consume -K = -o 3 -n 2").prints("=plain-1\nk1=keyed-1\n");
}

#[test]
fn a_separator_that_cannot_be_is_a_usage_error_for_consume_too() {
    let sandbox = Sandbox::new();
    sandbox.produce("-k k", "v\n");
    for wrong in [r"\q", r"\x1", "\\"] {
        sandbox.tapelog("consume -K").arg(wrong).fails(status::USAGE, &["key-separator"]);
    }
    sandbox.tapelog(r"consume -K \t\x3d").prints("k\t=v\n");
}

#[test]
fn what_consume_prints_with_keys_produce_takes_back() {
    let (from, into) = (Sandbox::new(), Sandbox::new());
    from.produce(r"-K \t", "a\t1\n\t2\nb\t\né\t\t\n");
    super::pipe(&from, r"-0 -K \x1f", &into, r"-0 -K \x1f");
    assert_eq!(pairs(&into), pairs(&from));
}
