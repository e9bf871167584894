//! Records to JSON.

use serde_json::value::RawValue;

use crate::cli::text::encode::{put_base64, put_flat, put_json};
use crate::format::record::{Headers, RecordView};

/// Appends `record` and a newline. A tombstone's payload is null.
pub fn write_record(record: &RecordView<'_>, out: &mut Vec<u8>) {
    write_all_but_value(record, out);
    write_value(record.content.value, out);
    out.extend_from_slice(b"}\n");
}

/// As [`write_record`], but a value that is itself JSON stands as it is under `json`
/// in place of `payload`, its digits and its order kept; other values stay `payload`.
pub fn write_embedded(record: &RecordView<'_>, out: &mut Vec<u8>) {
    write_all_but_value(record, out);
    match record.content.value.and_then(as_json) {
        Some(json) => write_on_one_line(json, out),
        None => write_value(record.content.value, out),
    }
    out.extend_from_slice(b"}\n");
}

/// `value` without the space around it, if it is JSON.
fn as_json(value: &[u8]) -> Option<&str> {
    let text = str::from_utf8(value).ok()?;
    serde_json::from_str::<&RawValue>(text).ok().map(RawValue::get)
}

/// A newline can stand only between the parts of JSON, never in a string.
fn write_on_one_line(json: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"json\":");
    let start = out.len();
    out.extend_from_slice(json.as_bytes());
    for byte in &mut out[start..] {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

fn write_all_but_value(record: &RecordView<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"offset\":");
    put_json(record.offset, out);
    out.extend_from_slice(b",\"next\":");
    put_json(record.next, out);
    out.extend_from_slice(b",\"ts\":");
    put_json(record.time(), out);
    out.extend_from_slice(b",\"append_ts\":");
    put_json(record.append_time, out);
    if let Some(key) = record.content.key {
        write_bytes(key, [b",\"key\":", b",\"key_base64\":"], out);
    }
    if !record.content.headers.is_empty() {
        write_headers(record.content.headers, out);
    }
}

fn write_value(value: Option<&[u8]>, out: &mut Vec<u8>) {
    match value {
        Some(value) => write_bytes(value, [b",\"payload\":", b",\"payload_base64\":"], out),
        None => out.extend_from_slice(b",\"payload\":null"),
    }
}

/// Writes `bytes` under the first name as text, else under the second as base64.
fn write_bytes(bytes: &[u8], [text, base64]: [&[u8]; 2], out: &mut Vec<u8>) {
    if let Ok(valid) = str::from_utf8(bytes) {
        out.extend_from_slice(text);
        put_json(valid, out);
    } else {
        out.extend_from_slice(base64);
        write_quoted_base64(bytes, out);
    }
}

fn write_quoted_base64(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    put_base64(bytes, out);
    out.push(b'"');
}

fn write_headers(headers: Headers<'_>, out: &mut Vec<u8>) {
    let is_text = |bytes| str::from_utf8(bytes).is_ok();
    if { headers }.all(|(name, value)| is_text(name) && value.is_none_or(is_text)) {
        out.extend_from_slice(b",\"headers\":");
        put_flat(headers, |bytes, out| put_json(String::from_utf8_lossy(bytes), out), out);
    } else {
        out.extend_from_slice(b",\"headers_base64\":");
        put_flat(headers, write_quoted_base64, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::record::{Content, push_header};
    use crate::model::{Offset, Timestamp};
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use serde_json::Value;

    type Write = fn(&RecordView<'_>, &mut Vec<u8>);

    fn line_of(content: Content<'_>, write: Write) -> String {
        let record = RecordView {
            offset: Offset::new(7),
            next: Offset::new(9),
            append_time: Timestamp::from_millis(1_704_067_200_007),
            content: Content {
                own_time: Some(content.own_time.unwrap_or(Timestamp::from_millis(-5))),
                ..content
            },
        };
        let mut out = b"before ".to_vec();
        write(&record, &mut out);
        String::from_utf8(out.split_off("before ".len())).unwrap()
    }

    /// What stands between the times and the end of the line.
    fn rest(content: Content<'_>, write: Write) -> String {
        const HEAD: &str = r#"{"offset":7,"next":9,"ts":-5,"append_ts":1704067200007,"#;
        let line = line_of(content, write);
        let rest = line.strip_prefix(HEAD).and_then(|rest| rest.strip_suffix("}\n"));
        rest.unwrap_or_else(|| panic!("{line}")).to_owned()
    }

    fn value(value: &[u8]) -> String {
        rest(Content::of_value(value), write_record)
    }

    fn embedded(value: &[u8]) -> String {
        rest(Content::of_value(value), write_embedded)
    }

    fn headers(headers: &[(&[u8], Option<&[u8]>)]) -> String {
        let mut block = Vec::new();
        for (name, value) in headers {
            push_header(name, *value, &mut block);
        }
        rest(Content { headers: Headers::in_block(&block), ..Content::default() }, write_record)
    }

    #[test]
    fn text_is_the_payload() {
        assert_eq!(value(b"abc"), r#""payload":"abc""#);
        assert_eq!(value(b""), r#""payload":"""#);
        assert_eq!(value("é\u{2028}".as_bytes()), "\"payload\":\"é\u{2028}\"");
    }

    #[test]
    fn a_tombstone_has_a_null_payload() {
        assert_eq!(rest(Content::default(), write_record), r#""payload":null"#);
        assert_eq!(rest(Content::default(), write_embedded), r#""payload":null"#);
    }

    #[test]
    fn what_is_not_utf8_is_base64() {
        assert_eq!(value(b"\xff"), r#""payload_base64":"/w==""#);
        assert_eq!(value(b"a\0\xfe"), r#""payload_base64":"YQD+""#);
        assert_eq!(value(b"\xed\xa0\x80"), r#""payload_base64":"7aCA""#);
    }

    #[test]
    fn newlines_nuls_and_quotes_stay_on_the_one_line() {
        assert_eq!(value(b"a\n\"\\\0\r\x1b"), r#""payload":"a\n\"\\\u0000\r\u001b""#);
    }

    #[test]
    fn the_time_is_the_own_one_else_that_of_appending() {
        let mut record = RecordView {
            offset: Offset::new(0),
            next: Offset::new(1),
            append_time: Timestamp::from_millis(40),
            content: Content::of_value(b""),
        };
        let mut out = Vec::new();
        write_record(&record, &mut out);
        record.content.own_time = Some(Timestamp::from_millis(0));
        write_record(&record, &mut out);
        let wanted = concat!(
            r#"{"offset":0,"next":1,"ts":40,"append_ts":40,"payload":""}"#,
            "\n",
            r#"{"offset":0,"next":1,"ts":0,"append_ts":40,"payload":""}"#,
            "\n"
        );
        assert_eq!(String::from_utf8(out).unwrap(), wanted);
    }

    #[test]
    fn an_empty_key_is_not_no_key() {
        let keyed = |key| rest(Content { key: Some(key), ..Content::of_value(b"v") }, write_record);
        assert_eq!(keyed(b""), r#""key":"","payload":"v""#);
        assert_eq!(keyed(b"k\t"), r#""key":"k\t","payload":"v""#);
        assert_eq!(keyed(b"\xff"), r#""key_base64":"/w==","payload":"v""#);
    }

    #[test]
    fn headers_are_one_flat_array() {
        assert_eq!(headers(&[]), r#""payload":null"#);
        assert_eq!(headers(&[(b"a", Some(b"1"))]), r#""headers":["a","1"],"payload":null"#);
        assert_eq!(
            headers(&[(b"a", Some(b"")), (b"", None), (b"a", Some(b"\""))]),
            r#""headers":["a","","",null,"a","\""],"payload":null"#
        );
    }

    #[test]
    fn one_header_that_is_no_text_makes_all_of_them_base64() {
        let wanted = r#""headers_base64":["YQ==","/w==","Yg==",null],"payload":null"#;
        assert_eq!(headers(&[(b"a", Some(b"\xff")), (b"b", None)]), wanted);
        let wanted = r#""headers_base64":["/w==",""],"payload":null"#;
        assert_eq!(headers(&[(b"\xff", Some(b""))]), wanted);
    }

    #[test]
    fn json_is_embedded_with_its_digits_and_its_order() {
        for json in [
            r#"{"b":1.10,"a":12345678901234567890123,"a":1e999,"c":-0.0}"#,
            "[]",
            "null",
            "true",
            "0",
            r#""a\n\ud800""#,
            r#"{"a": [1, {"b": "}"}]}"#,
        ] {
            assert_eq!(embedded(json.as_bytes()), format!("\"json\":{json}"));
        }
    }

    #[test]
    fn embedded_json_stays_on_the_one_line() {
        assert_eq!(embedded(b"{\n\t\"a\":\r\n 1\n}"), "\"json\":{ \t\"a\":   1 }");
        assert_eq!(embedded(b" \n[1]\r\n"), r#""json":[1]"#);
    }

    #[test]
    fn what_is_no_json_stays_the_payload() {
        let bad: [&[u8]; 13] = [
            b"",
            b" ",
            b"abc",
            b"{",
            b"[1,]",
            b"01",
            b"1 2",
            b"'a'",
            b"NaN",
            b"\"a\nb\"",
            b"{a:1}",
            b"\xef\xbb\xbf{}",
            b"\"\0\"",
        ];
        for text in bad {
            assert_eq!(embedded(text), value(text));
            assert!(embedded(text).starts_with("\"payload\":"));
        }
        assert_eq!(embedded(b"\"\xff\""), r#""payload_base64":"Iv8i""#);
    }

    proptest! {
        #[test]
        fn any_numbers_read_back(offset in 0..=Offset::MAX.get(), ts in any::<i64>()) {
            let record = RecordView {
                offset: Offset::new(offset),
                next: Offset::MAX,
                append_time: Timestamp::from_millis(ts),
                content: Content::default(),
            };
            let mut out = Vec::new();
            write_record(&record, &mut out);
            let parsed: Value = serde_json::from_slice(&out).unwrap();
            prop_assert_eq!(parsed["offset"].as_u64(), Some(offset));
            prop_assert_eq!(parsed["next"].as_u64(), Some(Offset::MAX.get()));
            prop_assert_eq!(parsed["append_ts"].as_i64(), Some(ts));
        }

        #[test]
        fn embedding_keeps_one_line_of_json(
            bytes: Vec<u8>, text: String, near in r#"[\[\]{}",:\n\r 0-9a\\]{0,12}"#,
        ) {
            let nested = serde_json::to_string_pretty(&vec![(&text, &bytes)]).unwrap();
            for value in [&bytes, text.as_bytes(), near.as_bytes(), nested.as_bytes()] {
                let line = line_of(Content::of_value(value), write_embedded);
                prop_assert!(line.find(['\n', '\r']) == Some(line.len() - 1), "{line}");
                let all: Value = serde_json::from_str(&line).unwrap();
                if let Some(json) = all.get("json") {
                    prop_assert_eq!(&serde_json::from_slice::<Value>(value).unwrap(), json);
                }
            }
        }
    }
}
