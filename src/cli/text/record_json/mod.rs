//! A record as one line of JSON, as `consume -J` prints it and `produce -J` takes it
//! back. The names are part of what users rely on: `offset`, `next`, `ts` and
//! `append_ts` (milliseconds since 1970), `key`, `headers` (name, value, name, value,
//! …), `payload`. What is absent is not there; what is null is null, so an empty key
//! and an empty value are neither. Bytes that are not UTF-8 stand as base64 under
//! `key_base64`, `headers_base64` and `payload_base64`.

mod form;
mod parse;
mod write;

use crate::model::Timestamp;

pub use parse::parse;
pub use write::{write_embedded, write_record};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::record::{Content, Headers, RecordView, push_header};
    use crate::model::Offset;
    use proptest::prelude::{Just, Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};

    /// Text, text that JSON must escape, or bytes that are no text.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            any::<String>().prop_map(String::into_bytes),
            r#"[\x00-\x7f"\\\n\r\u{2028}é]{0,20}"#.prop_map(String::into_bytes),
            prop::collection::vec(any::<u8>(), 0..40),
            Just(Vec::new()),
        ]
    }

    fn headers() -> impl Strategy<Value = Vec<u8>> {
        let one = (bytes(), prop::option::of(bytes()));
        prop::collection::vec(one, 0..4).prop_map(|headers| {
            let mut block = Vec::new();
            for (name, value) in headers {
                push_header(&name, value.as_deref(), &mut block);
            }
            block
        })
    }

    fn records() -> impl Strategy<Value = OwnedRecord> {
        let own_time = prop::option::of(any::<i64>().prop_map(Timestamp::from_millis));
        (prop::option::of(bytes()), prop::option::of(bytes()), headers(), own_time).prop_map(
            |(key, value, headers, own_time)| OwnedRecord { key, value, headers, own_time },
        )
    }

    fn written(record: &OwnedRecord, offset: u64, append_time: i64) -> Vec<u8> {
        let view = RecordView {
            offset: Offset::new(offset),
            next: Offset::new(offset + 1),
            append_time: Timestamp::from_millis(append_time),
            content: Content {
                key: record.key.as_deref(),
                value: record.value.as_deref(),
                headers: Headers::in_block(&record.headers),
                own_time: record.own_time,
            },
        };
        let mut out = Vec::new();
        write_record(&view, &mut out);
        out
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(record in records(), append_time: i64) {
            let line = written(&record, 7, append_time);
            let own_time = record.own_time.or(Some(Timestamp::from_millis(append_time)));
            prop_assert_eq!(parse(&line), Ok(OwnedRecord { own_time, ..record }));
        }

        #[test]
        fn what_is_read_is_written_the_same(record in records(), append_time: i64) {
            let line = written(&record, 7, append_time);
            let read = parse(&line).unwrap();
            prop_assert_eq!(written(&read, 7, append_time), line);
        }

        #[test]
        fn a_record_is_one_line_of_json(record in records()) {
            let line = written(&record, 7, 1);
            let newlines = line.iter().filter(|&&byte| byte == b'\n').count();
            prop_assert_eq!((newlines, line.last()), (1, Some(&b'\n')));
            let read: serde_json::Value = serde_json::from_slice(&line).unwrap();
            prop_assert_eq!(read.get("key").is_some(), read["key"].is_string());
            let has_key = read.get("key").is_some() || read.get("key_base64").is_some();
            prop_assert_eq!(has_key, record.key.is_some());
        }
    }
}
