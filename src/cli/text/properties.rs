//! What must hold of everything that reads words or JSON, whatever the input: functions
//! from bytes that panic where it does not. The fuzz targets in `tests/fuzz` take this
//! file in too, and so run the same ones.

use crate::cli::text::count::{parse_count, parse_shift};
use crate::cli::text::duration::{parse_duration, show_duration};
use crate::cli::text::escapes::unescape;
use crate::cli::text::filter::parse_header;
use crate::cli::text::range::{is_backwards, parse_offset, parse_span, parse_start};
use crate::cli::text::record_json::{OwnedRecord, parse, write_record};
use crate::cli::text::size::{parse_size, show_size};
use crate::cli::text::template::Template;
use crate::cli::text::when::{is_calendar_time, parse_time};
use crate::format::record::{Content, Headers, RecordView, push_header};
use crate::model::{Offset, Start, Timestamp};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_123);

/// The name of its fuzz target, and what panics where it does not hold.
type Property = (&'static str, fn(&[u8]));

/// All of them, by the names of their fuzz targets.
#[allow(dead_code, reason = "a fuzz target names the one that it runs")]
pub const ALL: [Property; 7] = [
    ("record_json", record_json),
    ("template", template),
    ("escapes", escapes),
    ("range", range),
    ("when", when),
    ("duration", duration),
    ("size", size),
];

/// A line for `produce -J`: what it gives is written as JSON that gives it again.
pub fn record_json(input: &[u8]) {
    let Ok(record) = parse(input) else { return };
    let mut line = Vec::new();
    write_record(&view(&record), &mut line);
    let own_time = record.own_time.or(Some(NOW));
    assert_eq!(parse(&line), Ok(OwnedRecord { own_time, ..record }));
}

fn view(record: &OwnedRecord) -> RecordView<'_> {
    RecordView {
        offset: Offset::new(7),
        next: Offset::new(8),
        append_time: NOW,
        content: Content {
            key: record.key.as_deref(),
            value: record.value.as_deref(),
            headers: Headers::in_block(&record.headers),
            own_time: record.own_time,
        },
    }
}

/// A format of `consume -F`: if it is one, every record can be printed by it.
pub fn template(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let Ok(template) = Template::parse(&text) else { return };
    let mut headers = Vec::new();
    push_header(b"name", Some(b"\xff"), &mut headers);
    push_header(b"null", None, &mut headers);
    let with_all = OwnedRecord {
        key: Some(b"key".to_vec()),
        value: Some(b"\xfe\n".to_vec()),
        headers,
        own_time: Some(Timestamp::from_millis(i64::MIN)),
    };
    for record in [OwnedRecord::default(), with_all] {
        let (mut once, mut twice) = (Vec::new(), Vec::new());
        template.render(&view(&record), &mut once);
        template.render(&view(&record), &mut twice);
        assert_eq!(once, twice);
        // A time's format may ask for widths of up to 255.
        assert!(once.len() <= 256 * (text.len() + 1), "a long line out of a short format");
    }
}

/// Text with escapes: no longer than it was typed, and any bytes can be typed.
pub fn escapes(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok(bytes) = unescape(&text) {
        assert!(bytes.len() <= text.len());
    }
    let typed: String = input.iter().map(|byte| format!("\\x{byte:02x}")).collect();
    assert_eq!(unescape(&typed).as_deref(), Ok(input));
}

/// The places of `-o` and `seek --to`, and the counts beside them.
pub fn range(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok(offset) = parse_offset(&text) {
        assert_eq!(parse_start(&text, NOW), Ok(Start::At(offset)));
        assert_eq!(parse_offset(&offset.to_string()), Ok(offset));
    }
    if let Ok(start) = parse_start(&text, NOW) {
        assert_eq!(parse_start(&shown(start), NOW), Ok(start));
    }
    if let Ok(span) = parse_span(&text, NOW) {
        assert!(!is_backwards(span) && (span.from.is_some() || span.until.is_some()));
        let side = |start: Option<Start>| start.map(shown).unwrap_or_default();
        let both = format!("{}:{}", side(span.from), side(span.until));
        assert_eq!(parse_span(&both, NOW), Ok(span), "{both}");
    }
    if let Ok(count) = parse_count(&text) {
        assert_eq!(parse_count(&count.to_string()), Ok(count));
    }
    if let Ok(shift) = parse_shift(&text) {
        assert_eq!(parse_shift(&shift.to_string()), Ok(shift));
    }
    if let Ok((name, value)) = parse_header(&text) {
        assert_eq!(name.len() + value.len() + 1, text.len());
    }
}

/// A place as it may be typed.
fn shown(start: Start) -> String {
    match start {
        Start::Earliest => "earliest".to_owned(),
        Start::Latest => "latest".to_owned(),
        Start::At(offset) => offset.to_string(),
        Start::Last(records) => format!("-{records}"),
        Start::AfterStart(records) => format!("+{records}"),
        Start::Time(time) => format!("@{}", typed(time)),
    }
}

/// A moment as it may be typed: RFC 3339, or how long it is ago where no year has four digits.
fn typed(time: Timestamp) -> String {
    let shown = time.to_string();
    let has_year = is_calendar_time(&shown) || time > NOW;
    if has_year { shown } else { format!("-{}", show_duration(NOW.since(time))) }
}

/// A moment: what is read can be typed again.
pub fn when(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok(time) = parse_time(&text, NOW) {
        assert_eq!(parse_time(&typed(time), NOW), Ok(time), "{}", typed(time));
    }
}

/// A duration: what is read is shown as text that reads the same.
pub fn duration(input: &[u8]) {
    if let Ok(duration) = parse_duration(&String::from_utf8_lossy(input)) {
        assert_eq!(parse_duration(&show_duration(duration)), Ok(duration));
    }
}

/// A size: what is read is shown as text that reads the same.
pub fn size(input: &[u8]) {
    if let Ok(bytes) = parse_size(&String::from_utf8_lossy(input)) {
        assert_eq!(parse_size(&show_size(bytes)), Ok(bytes));
    }
}

#[cfg(test)]
#[path = "../../../tests/decoders/inputs.rs"]
mod inputs;

#[cfg(test)]
mod tests {
    use super::*;

    /// Text that each parser takes, or nearly.
    fn seeds(name: &str) -> &'static [&'static str] {
        match name {
            "record_json" => &[
                r#"{"offset":1,"next":2,"ts":-5,"append_ts":7,"key":"k","headers":["a","1","b",null],"payload":"v"}"#,
                r#"{"ts":1,"key_base64":"/w==","headers_base64":["YQ==","/w=="],"payload_base64":"/w=="}"#,
                r#"{"payload":null,"key":"\u00e9\ud83d\ude00\n"}"#,
            ],
            "template" => &[
                r"%o %T %k{json} %v{hex}\n",
                r"%h{base64}%%\x7b%K%V%s%S\0",
                r"%d{%Y-%m-%d %H:%M:%S} %d",
            ],
            "escapes" => &[r"\n\r\t\0\e\\\xff", "a|b", r"\x0"],
            "range" => &[
                "earliest",
                "-5",
                "+7",
                "9:12",
                ":3",
                "4:",
                "@2026-01-31T12:00:00Z:@-1h",
                "@-1h:-5m",
                "@2026-01-31:@2026-02-01",
                "9223372036854775807",
                "name=value",
            ],
            "when" => &[
                "2026-01-31T12:00:00Z",
                "2026-01-31 12:00:00.123+02:00",
                "1700000000",
                "1700000000000",
                "-1h",
                "1 hour ago",
                "yesterday",
                "9999-12-31T23:59:59Z",
                "now",
                "-3000000d",
            ],
            "duration" => &[
                "90s",
                "1h30m",
                "PT1H30M",
                "500ms",
                "2d",
                "1w",
                "1.5 hours",
                "1ns",
                "1111111111112s",
            ],
            _ => &["512", "64K", "64MiB", "1GB", "3T", "0b", "18446744073709551615"],
        }
    }

    #[test]
    fn whatever_is_typed_is_refused_or_can_be_typed_again() {
        for (name, check) in ALL {
            let seeds: Vec<_> = seeds(name).iter().map(|text| text.as_bytes().to_vec()).collect();
            inputs::hold(name, check, &seeds);
        }
    }
}
