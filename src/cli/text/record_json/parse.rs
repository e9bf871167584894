//! JSON to records. Strict, because what is quietly dropped or guessed is lost: no
//! unknown names, no name twice, no value of another type. Each name's value is first
//! kept as it stands, and read once all names are known.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::OwnedRecord;
use super::form::{Form, Forms, kind};
use crate::model::Timestamp;

/// What the log gives a record, not its producer.
const IGNORED: [&str; 5] = ["offset", "next", "append_ts", "receipt", "attempt"];

/// Reads one line that [`write_record`](super::write_record) can have written.
///
/// # Errors
/// What is wrong, in one line that goes on after "record 7 of the input".
pub fn parse(line: &[u8]) -> Result<OwnedRecord, String> {
    let text = str::from_utf8(line)
        .map_err(|error| format!("is not UTF-8 at byte {}", error.valid_up_to() + 1))?;
    if !text.trim_start_matches([' ', '\t', '\n', '\r']).starts_with('{') {
        return Err(r#"is no JSON object: write {"payload":"…"}"#.to_owned());
    }
    let fields: Fields<'_> = serde_json::from_str(text).map_err(|error| no_json(text, &error))?;
    fields.record()
}

/// The library counts lines and columns; in one record bytes are clearer.
fn no_json(text: &str, error: &serde_json::Error) -> String {
    let lines_before = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    let at = lines_before.map(str::len).sum::<usize>() + error.column();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let shown = error.to_string();
    format!("is no JSON: {} at byte {at}", shown.strip_suffix(&place).unwrap_or(&shown))
}

/// The values by their names, not yet read.
#[derive(Default)]
struct Fields<'a> {
    key: Forms<'a>,
    headers: Forms<'a>,
    payload: Forms<'a>,
    ts: Option<&'a RawValue>,
    ignored: [Option<&'a RawValue>; IGNORED.len()],
    /// The first name that was wrong.
    fault: Option<String>,
}

impl<'a> Fields<'a> {
    fn put(&mut self, name: &str, value: &'a RawValue) {
        let fault = match self.place(name) {
            None => unknown(name),
            Some(place) if place.is_some() => format!("has {name:?} twice"),
            Some(place) => return *place = Some(value),
        };
        self.fault.get_or_insert(fault);
    }

    fn place(&mut self, name: &str) -> Option<&mut Option<&'a RawValue>> {
        Some(match name {
            "key" => &mut self.key.text,
            "key_base64" => &mut self.key.base64,
            "headers" => &mut self.headers.text,
            "headers_base64" => &mut self.headers.base64,
            "payload" => &mut self.payload.text,
            "payload_base64" => &mut self.payload.base64,
            "ts" => &mut self.ts,
            _ => {
                let at = IGNORED.iter().position(|&ignored| ignored == name)?;
                &mut self.ignored[at]
            }
        })
    }

    fn record(self) -> Result<OwnedRecord, String> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let key = self.key.given(["key", "key_base64"])?;
        let headers = self.headers.given(["headers", "headers_base64"])?;
        let payload = self
            .payload
            .given(["payload", "payload_base64"])?
            .ok_or_else(|| String::from("has no payload: null makes a tombstone"))?;
        Ok(OwnedRecord {
            key: key.map_or(Ok(None), |key| key.bytes())?,
            value: payload.bytes()?,
            headers: headers.map_or(Ok(Vec::new()), Form::headers)?,
            own_time: self.ts.map(time).transpose()?,
        })
    }
}

fn unknown(name: &str) -> String {
    if name == "json" {
        return "has \"json\", which --json-payload prints: \
                it can't be told from the original, so it isn't taken back"
            .to_owned();
    }
    let shown: String = name.chars().take(60).collect();
    format!(
        "has an unknown name {shown:?}: a record has key, headers and payload, or \
         these with _base64, and ts; {} are ignored",
        IGNORED.join(", ")
    )
}

fn time(raw: &RawValue) -> Result<Timestamp, String> {
    let millis = raw.get().parse().map_err(|_| {
        format!("has {} as ts: ts must be whole milliseconds that fit 64 bits", kind(raw))
    })?;
    Ok(Timestamp::from_millis(millis))
}

/// A name, copied only if it holds escapes.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Names)
    }
}

struct Names;

impl<'de> Visitor<'de> for Names {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
        let mut fields = Fields::default();
        while let Some((Name(name), value)) = map.next_entry()? {
            fields.put(&name, value);
        }
        Ok(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::record::Headers;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    fn read(line: &str) -> OwnedRecord {
        parse(line.as_bytes()).unwrap_or_else(|why| panic!("{line}: {why}"))
    }

    fn value(line: &str) -> Option<Vec<u8>> {
        let record = read(line);
        assert_eq!(OwnedRecord { value: None, ..record.clone() }, OwnedRecord::default());
        record.value
    }

    #[test]
    fn a_payload_is_enough() {
        assert_eq!(value(r#"{"payload":"abc"}"#), Some(b"abc".to_vec()));
        assert_eq!(value(r#"{"payload":""}"#), Some(Vec::new()));
        assert_eq!(value(r#"{"payload":null}"#), None);
        assert_eq!(value(r#"{"payload_base64":"/w=="}"#), Some(vec![0xff]));
        assert_eq!(value(r#"{"payload_base64":""}"#), Some(Vec::new()));
        assert_eq!(value(" {\t\"payload\" :\r\n \"é\"} \r"), Some("é".into()));
    }

    #[test]
    fn escapes_are_read_in_values_and_in_names() {
        let line = r#"{"payl\u006fad":"\n\"\\\/\u0000\ud83d\ude00"}"#;
        assert_eq!(value(line), Some("\n\"\\/\0😀".into()));
    }

    #[test]
    fn a_whole_record_is_read_in_any_order() {
        let record = read(
            r#"{"ts":-5,"headers":["a","1","a",null,"",""],"payload":"v","key":"k","offset":3}"#,
        );
        assert_eq!(record.key.as_deref(), Some(&b"k"[..]));
        assert_eq!(record.own_time, Some(Timestamp::from_millis(-5)));
        let headers: Vec<_> = Headers::in_block(&record.headers).collect();
        let wanted: [(&[u8], Option<&[u8]>); 3] =
            [(b"a", Some(b"1")), (b"a", None), (b"", Some(b""))];
        assert_eq!(headers, wanted);
    }

    #[test]
    fn base64_forms_are_bytes() {
        let record =
            read(r#"{"key_base64":"/w==","headers_base64":["YQ==","","/w==",null],"payload":""}"#);
        assert_eq!(record.key, Some(vec![0xff]));
        let headers: Vec<_> = Headers::in_block(&record.headers).collect();
        let wanted: [(&[u8], Option<&[u8]>); 2] = [(b"a", Some(b"")), (b"\xff", None)];
        assert_eq!(headers, wanted);
    }

    #[test]
    fn null_is_no_key_and_no_headers() {
        let line = r#"{"key":null,"headers":null,"payload":"v"}"#;
        assert_eq!(value(line), Some(b"v".to_vec()));
        assert_eq!(value(r#"{"headers":[],"payload":"v"}"#), Some(b"v".to_vec()));
        assert_eq!(read(r#"{"key":"","payload":"v"}"#).key, Some(Vec::new()));
    }

    #[test]
    fn what_the_log_gives_is_ignored_whatever_it_is() {
        let ignored =
            r#""offset":-1.5,"next":null,"append_ts":"\ud800","receipt":[{}],"attempt":{}"#;
        assert_eq!(value(&format!("{{{ignored},\"payload\":\"v\"}}")), Some(b"v".to_vec()));
    }

    #[test]
    fn times_are_all_of_64_bits() {
        for millis in [i64::MIN, -1, 0, i64::MAX] {
            let record = read(&format!(r#"{{"ts":{millis},"payload":""}}"#));
            assert_eq!(record.own_time, Some(Timestamp::from_millis(millis)));
        }
    }

    #[test]
    fn every_fault_is_told() {
        let unknown = "a record has key, headers and payload, or these with _base64, and ts; \
                       offset, next, append_ts, receipt, attempt are ignored";
        let object = r#"is no JSON object: write {"payload":"…"}"#;
        let array = "must be [name, value, name, value, …]";
        let bad = [
            ("", object),
            ("abc", object),
            (r#"["payload"]"#, object),
            ("null", object),
            ("{}", "has no payload: null makes a tombstone"),
            (r#"{"key":"k"}"#, "has no payload: null makes a tombstone"),
            (r#"{"payload":"v"} {}"#, "is no JSON: trailing characters at byte 17"),
            (r#"{"payload":"v",}"#, "is no JSON: trailing comma at byte 16"),
            ("{\n\"payload\"\n \"v\"}", "is no JSON: expected `:` at byte 14"),
            (r#"{"payload":"v"#, "is no JSON: EOF while parsing a string at byte 13"),
            (r#"{"payload":5}"#, "has a number as payload: payload must be text or null"),
            (r#"{"payload":{}}"#, "has an object as payload: payload must be text or null"),
            (r#"{"key":[],"payload":""}"#, "has an array as key: key must be text or null"),
            (
                r#"{"payload_base64":true}"#,
                "has true as payload_base64: payload_base64 must be text or null",
            ),
            (r#"{"payload":"\ud800"}"#, "has an escape of half a character in payload"),
            (
                r#"{"headers":["\udc00a",""],"payload":""}"#,
                "has an escape of half a character in headers",
            ),
            (r#"{"payload_base64":"/w"}"#, "has bad base64 (RFC 4648, padded) in payload_base64"),
            (
                r#"{"headers_base64":["YQ==","é"],"payload":""}"#,
                "has bad base64 (RFC 4648, padded) in headers_base64",
            ),
            (r#"{"payload":"a","payload":"b"}"#, r#"has "payload" twice"#),
            (r#"{"offset":1,"offset":1,"payload":""}"#, r#"has "offset" twice"#),
            (r#"{"key":"a","key_base64":"YQ==","payload":""}"#, "has both key and key_base64"),
            (r#"{"payload":null,"payload_base64":null}"#, "has both payload and payload_base64"),
            (r#"{"headers":["a"],"payload":""}"#, "has a name without a value in headers"),
            (r#"{"headers":[null,"a"],"payload":""}"#, "has null for a name in headers"),
            (
                r#"{"headers":["a",1],"payload":""}"#,
                "has a number as headers: headers must be text or null",
            ),
            (
                r#"{"headers":{"a":1},"payload":""}"#,
                &format!("has an object as headers: headers {array}"),
            ),
            (r#"{"headers":"a=1","payload":""}"#, &format!("has text as headers: headers {array}")),
            (
                r#"{"ts":"5","payload":""}"#,
                "has text as ts: ts must be whole milliseconds that fit 64 bits",
            ),
            (
                r#"{"ts":5.0,"payload":""}"#,
                "has a number as ts: ts must be whole milliseconds that fit 64 bits",
            ),
            (
                r#"{"ts":null,"payload":""}"#,
                "has null as ts: ts must be whole milliseconds that fit 64 bits",
            ),
            (
                r#"{"ts":9223372036854775808,"payload":""}"#,
                "has a number as ts: ts must be whole milliseconds that fit 64 bits",
            ),
            (r#"{"value":"v"}"#, &format!("has an unknown name \"value\": {unknown}")),
            (r#"{"a\nb":1,"c":2}"#, &format!("has an unknown name \"a\\nb\": {unknown}")),
            (
                r#"{"json":{}}"#,
                "has \"json\", which --json-payload prints: \
                 it can't be told from the original, so it isn't taken back",
            ),
        ];
        for (line, why) in bad {
            assert_eq!(parse(line.as_bytes()), Err(why.to_owned()), "{line}");
        }
        let not_utf8 = parse(b"{\"payload\":\"\xff\"}");
        assert_eq!(not_utf8, Err("is not UTF-8 at byte 13".to_owned()));
    }

    #[test]
    fn values_nested_without_end_are_no_danger() {
        let deep = "[".repeat(100_000);
        let line = format!(r#"{{"offset":{deep}{}, "payload":"v"}}"#, "]".repeat(100_000));
        assert_eq!(value(&line), Some(b"v".to_vec()));
        assert!(parse(format!(r#"{{"payload":{deep}"#).as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            bytes: Vec<u8>,
            near in r#"\{("(payload|key|headers|ts|x)(_base64)?":("a\\?"|null|-?[0-9.]{1,3}|\["a",?"?\]),?){0,3}\}?"#,
        ) {
            for line in [&bytes[..], near.as_bytes()] {
                if let Err(why) = parse(line) {
                    prop_assert_eq!(why.lines().count(), 1);
                }
            }
        }

        #[test]
        fn any_text_is_taken_however_it_is_escaped(text in any::<String>()) {
            let escaped: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
            for written in [serde_json::to_string(&text).unwrap(), format!("\"{escaped}\"")] {
                prop_assert_eq!(value(&format!("{{\"payload\":{written}}}")), Some(text.clone().into()));
            }
        }
    }
}
