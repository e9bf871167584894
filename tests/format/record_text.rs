//! A record as a line of JSON, written here once more so that the golden logs do not
//! depend on what they are to test.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::golden::Given;

/// What `consume -J` prints for a record.
pub fn json_line(offset: u64, append_time: i64, record: &Given) -> String {
    let mut line = format!(
        r#"{{"offset":{offset},"next":{},"ts":{},"append_ts":{append_time}"#,
        offset + 1,
        record.own_time.unwrap_or(append_time)
    );
    let mut add = |name: &str, encoded: bool, value: Value| {
        let suffix = if encoded { "_base64" } else { "" };
        line.push_str(&format!(r#","{name}{suffix}":{value}"#));
    };
    if let Some(key) = &record.key {
        add("key", !is_text(key), text(Some(key), !is_text(key)));
    }
    if !record.headers.is_empty() {
        let parts = record.headers.iter().flat_map(|(name, value)| [Some(name), value.as_ref()]);
        let encoded = parts.clone().flatten().any(|part| !is_text(part));
        add("headers", encoded, parts.map(|part| text(part, encoded)).collect());
    }
    let encoded = record.value.as_ref().is_some_and(|value| !is_text(value));
    add("payload", encoded, text(record.value.as_ref(), encoded));
    line + "}\n"
}

fn is_text(bytes: &[u8]) -> bool {
    str::from_utf8(bytes).is_ok()
}

fn text(bytes: Option<&Vec<u8>>, encoded: bool) -> Value {
    match bytes {
        None => Value::Null,
        Some(bytes) if encoded => json!(STANDARD.encode(bytes)),
        Some(bytes) => json!(str::from_utf8(bytes).unwrap()),
    }
}
