//! A record as one line of JSON, as `consume -J` prints it. The names are part
//! of what users rely on: `offset`, `next`, `ts` and `append_ts` (milliseconds
//! since 1970), then `payload`, or `payload_base64` when it is not UTF-8.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use crate::format::record::RecordView;
use crate::model::Timestamp;

/// Appends `record` and a newline. A tombstone's payload is null.
pub fn write_record(record: &RecordView<'_>, out: &mut Vec<u8>) {
    field(out, "{\"offset\":", record.offset);
    field(out, ",\"next\":", record.next);
    field(out, ",\"ts\":", record.time());
    field(out, ",\"append_ts\":", record.append_time);
    payload(record.content.value, out);
    out.extend_from_slice(b"}\n");
}

fn payload(value: Option<&[u8]>, out: &mut Vec<u8>) {
    match value.map(|bytes| (bytes, str::from_utf8(bytes))) {
        None => out.extend_from_slice(b",\"payload\":null"),
        Some((_, Ok(text))) => field(out, ",\"payload\":", text),
        Some((bytes, Err(_))) => {
            out.extend_from_slice(b",\"payload_base64\":\"");
            append_base64(bytes, out);
            out.push(b'"');
        }
    }
}

fn field(out: &mut Vec<u8>, name: &str, value: impl Serialize) {
    out.extend_from_slice(name.as_bytes());
    let written = serde_json::to_writer(out, &value);
    debug_assert!(written.is_ok(), "numbers and text in memory always become JSON");
}

/// Encodes in place, in pieces that need no padding but for the last one.
fn append_base64(bytes: &[u8], out: &mut Vec<u8>) {
    const PIECE: usize = 3 * 256;
    let mut encoded = [0; PIECE / 3 * 4];
    for piece in bytes.chunks(PIECE) {
        let written = STANDARD.encode_slice(piece, &mut encoded);
        debug_assert!(written.is_ok(), "the buffer holds a whole piece");
        out.extend_from_slice(&encoded[..written.unwrap_or(0)]);
    }
}

/// A record read from JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedRecord {
    /// Its key.
    pub key: Option<Vec<u8>>,
    /// Its value; `None` is a tombstone.
    pub value: Option<Vec<u8>>,
    /// Its headers, as a block.
    pub headers: Vec<u8>,
    /// Its own time.
    pub own_time: Option<Timestamp>,
}

/// Reads one line that `write_record` can have written.
///
/// # Errors
/// What is wrong, in one line that goes on after "record 7 of the input".
pub fn parse(_line: &[u8]) -> Result<OwnedRecord, String> {
    Err("can't be read as JSON yet".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::record::Content;
    use crate::model::{Offset, Timestamp};
    use proptest::prelude::{any, prop_assert_eq, proptest};
    use serde_json::Value;

    fn line(value: Option<&[u8]>) -> String {
        let record = RecordView {
            offset: Offset::new(7),
            next: Offset::new(9),
            append_time: Timestamp::from_millis(1_704_067_200_007),
            content: Content {
                value,
                own_time: Some(Timestamp::from_millis(-5)),
                ..Content::default()
            },
        };
        let mut out = b"before ".to_vec();
        write_record(&record, &mut out);
        String::from_utf8(out.split_off("before ".len())).unwrap()
    }

    const HEAD: &str = r#"{"offset":7,"next":9,"ts":-5,"append_ts":1704067200007"#;

    #[test]
    fn text_is_the_payload() {
        assert_eq!(line(Some(b"abc")), format!("{HEAD},\"payload\":\"abc\"}}\n"));
        assert_eq!(line(Some(b"")), format!("{HEAD},\"payload\":\"\"}}\n"));
        assert_eq!(
            line(Some("é\u{2028}".as_bytes())),
            format!("{HEAD},\"payload\":\"é\u{2028}\"}}\n")
        );
    }

    #[test]
    fn a_tombstone_has_a_null_payload() {
        assert_eq!(line(None), format!("{HEAD},\"payload\":null}}\n"));
    }

    #[test]
    fn what_is_not_utf8_is_base64() {
        assert_eq!(line(Some(b"\xff")), format!("{HEAD},\"payload_base64\":\"/w==\"}}\n"));
        assert_eq!(line(Some(b"a\0\xfe")), format!("{HEAD},\"payload_base64\":\"YQD+\"}}\n"));
    }

    #[test]
    fn newlines_nuls_and_quotes_stay_on_the_one_line() {
        let shown = line(Some(b"a\n\"\\\0\r\x1b"));
        assert_eq!(shown, format!("{HEAD},\"payload\":\"a\\n\\\"\\\\\\u0000\\r\\u001b\"}}\n"));
    }

    proptest! {
        #[test]
        fn any_payload_reads_back(bytes: Vec<u8>, text: String, long in 0..4000_usize) {
            let long: Vec<u8> = bytes.iter().copied().chain([0xff]).cycle().take(long).collect();
            for value in [bytes.as_slice(), text.as_bytes(), long.as_slice()] {
                let shown = line(Some(value));
                prop_assert_eq!(shown.matches('\n').count(), 1);
                let parsed: Value = serde_json::from_str(&shown).unwrap();
                let read = match (&parsed["payload"], &parsed["payload_base64"]) {
                    (Value::String(text), Value::Null) => text.clone().into_bytes(),
                    (Value::Null, Value::String(encoded)) => STANDARD.decode(encoded).unwrap(),
                    other => panic!("{other:?}"),
                };
                prop_assert_eq!(read, value);
            }
        }

        #[test]
        fn any_numbers_read_back(offset in 0..=Offset::MAX.get(), ts in any::<i64>()) {
            let record = RecordView {
                offset: Offset::new(offset),
                next: Offset::MAX,
                append_time: Timestamp::from_millis(ts),
                time: Timestamp::default(),
                value: None,
            };
            let mut out = Vec::new();
            write_record(&record, &mut out);
            let parsed: Value = serde_json::from_slice(&out).unwrap();
            prop_assert_eq!(parsed["offset"].as_u64(), Some(offset));
            prop_assert_eq!(parsed["append_ts"].as_i64(), Some(ts));
        }
    }
}
