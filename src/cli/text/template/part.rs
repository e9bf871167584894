//! What the letters stand for, in which forms, and how each is printed.

use std::io::Write;

use super::TemplateFault;
use crate::cli::text::encode::{put_base64, put_flat, put_hex, put_json};
use crate::format::record::{Headers, RecordView};
use crate::model::Timestamp;

/// What of a record a letter stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    Offset,
    Key(Form),
    Value(Form),
    Headers(Form),
    KeyLength,
    ValueLength,
    Millis,
    /// The time by a format of strftime, or as RFC 3339.
    Date(Option<String>),
}

/// How bytes are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Plain,
    Hex,
    Base64,
    Json,
}

/// kcat's letters and rpk's, where they mean the same; `%s %S` are kcat's `%v %V`.
const LETTERS: [(char, Part); 10] = [
    ('o', Part::Offset),
    ('k', Part::Key(Form::Plain)),
    ('v', Part::Value(Form::Plain)),
    ('h', Part::Headers(Form::Plain)),
    ('K', Part::KeyLength),
    ('V', Part::ValueLength),
    ('T', Part::Millis),
    ('d', Part::Date(None)),
    ('s', Part::Value(Form::Plain)),
    ('S', Part::ValueLength),
];

const MODIFIERS: [(&str, Form); 3] =
    [("hex", Form::Hex), ("base64", Form::Base64), ("json", Form::Json)];

/// The letters there are, as they are typed after `%`.
pub fn letters() -> impl Iterator<Item = String> {
    LETTERS.iter().map(|(letter, part)| match part {
        Part::Date(_) => format!("{letter} %{letter}{{FORMAT}}"),
        _ => letter.to_string(),
    })
}

/// The modifiers there are, for the end of a message.
pub fn modifiers() -> String {
    let known: Vec<_> = MODIFIERS.iter().map(|(name, _)| format!("{{{name}}}")).collect();
    format!(r"{}, or \x7b for a brace", known.join(" "))
}

impl Part {
    /// Reads what follows a `%`: the part that it stands for, and what is left.
    pub fn take(text: &str) -> Result<(Part, &str), TemplateFault> {
        let mut rest = text.chars();
        let letter = rest.next().ok_or(TemplateFault::Unfinished)?;
        let known = LETTERS.iter().find(|&&(known, _)| known == letter);
        let (_, part) = known.ok_or(TemplateFault::UnknownLetter(letter))?;
        let Some(inner) = rest.as_str().strip_prefix('{') else {
            return Ok((part.clone(), rest.as_str()));
        };
        match inner.split_once('}') {
            Some((modifier, rest)) => Ok((part.modified(letter, modifier)?, rest)),
            None if part.is_fixed() => Err(TemplateFault::NoModifiers(letter)),
            None => Err(TemplateFault::Unclosed(letter)),
        }
    }

    /// Whether it has only one form.
    fn is_fixed(&self) -> bool {
        matches!(self, Part::Offset | Part::KeyLength | Part::ValueLength | Part::Millis)
    }

    fn modified(&self, letter: char, modifier: &str) -> Result<Part, TemplateFault> {
        let form = || {
            let known = MODIFIERS.iter().find(|&&(known, _)| known == modifier);
            let unknown = || TemplateFault::UnknownModifier(letter, modifier.to_owned());
            known.map(|&(_, form)| form).ok_or_else(unknown)
        };
        match self {
            Part::Key(_) => Ok(Part::Key(form()?)),
            Part::Value(_) => Ok(Part::Value(form()?)),
            Part::Headers(_) => Ok(Part::Headers(form()?)),
            Part::Date(_) => Ok(Part::Date(Some(date_format(modifier)?))),
            _ => Err(TemplateFault::NoModifiers(letter)),
        }
    }

    /// Appends this part of `record`.
    pub fn render(&self, record: &RecordView<'_>, out: &mut Vec<u8>) {
        match self {
            Part::Offset => put_json(record.offset, out),
            Part::Key(form) => form.put(record.content.key, out),
            Part::Value(form) => form.put(record.content.value, out),
            Part::Headers(form) => form.put_headers(record.content.headers, out),
            Part::KeyLength => put_length(record.content.key, out),
            Part::ValueLength => put_length(record.content.value, out),
            Part::Millis => put_json(record.time(), out),
            Part::Date(format) => put_date(record.time(), format.as_deref(), out),
        }
    }
}

fn put_length(bytes: Option<&[u8]>, out: &mut Vec<u8>) {
    match bytes {
        Some(bytes) => put_json(bytes.len(), out),
        None => out.extend_from_slice(b"-1"),
    }
}

/// A time's format, tried out so that no record can fail by it. Backslashes would be
/// printed as they are, unlike everywhere else in a format.
fn date_format(text: &str) -> Result<String, TemplateFault> {
    if text.contains('\\') {
        return Err(TemplateFault::Date(r"\ has no meaning in it".to_owned()));
    }
    match jiff::fmt::strtime::format(text, jiff::Timestamp::UNIX_EPOCH) {
        Ok(_) => Ok(text.to_owned()),
        Err(why) => {
            let why = why.to_string();
            let why = why.strip_prefix("strftime formatting failed: ").unwrap_or(&why);
            Err(TemplateFault::Date(why.to_owned()))
        }
    }
}

/// A moment that no calendar holds is its number.
fn put_date(time: Timestamp, format: Option<&str>, out: &mut Vec<u8>) {
    // Writing to a Vec can't fail.
    let _ = match (format, jiff::Timestamp::from_millisecond(time.as_millis())) {
        (Some(format), Ok(moment)) => write!(out, "{}", moment.strftime(format)),
        _ => write!(out, "{time}"),
    };
}

impl Form {
    /// Appends bytes that may not be there; only JSON shows that.
    fn put(self, bytes: Option<&[u8]>, out: &mut Vec<u8>) {
        match (self, bytes) {
            (Form::Json, None) => out.extend_from_slice(b"null"),
            (_, None) => {}
            (_, Some(bytes)) => self.put_bytes(bytes, out),
        }
    }

    fn put_bytes(self, bytes: &[u8], out: &mut Vec<u8>) {
        match self {
            Form::Plain => out.extend_from_slice(bytes),
            Form::Hex => put_hex(bytes, out),
            Form::Base64 => put_base64(bytes, out),
            // A JSON string can't hold other bytes; the other forms lose none.
            Form::Json => put_json(String::from_utf8_lossy(bytes), out),
        }
    }

    /// Appends `name=value,name=value`, a null value as NULL, like kcat; each name and
    /// value in this form. As JSON it is the flat array of `consume -J`.
    fn put_headers(self, headers: Headers<'_>, out: &mut Vec<u8>) {
        if self == Form::Json {
            return put_flat(headers, |bytes, out| self.put_bytes(bytes, out), out);
        }
        for (count, (name, value)) in headers.enumerate() {
            if count > 0 {
                out.push(b',');
            }
            self.put_bytes(name, out);
            out.push(b'=');
            match value {
                Some(value) => self.put_bytes(value, out),
                None => out.extend_from_slice(b"NULL"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::text::template::Template;
    use crate::format::record::{Content, Headers, RecordView, push_header};
    use crate::model::{Offset, Timestamp};
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    fn rendered(format: &str, content: Content<'_>) -> String {
        let record = RecordView {
            offset: Offset::new(41),
            next: Offset::new(42),
            append_time: Timestamp::from_millis(1_704_067_200_007),
            content,
        };
        let template = Template::parse(format).unwrap_or_else(|why| panic!("{why}"));
        let mut out = b"before ".to_vec();
        template.render(&record, &mut out);
        String::from_utf8(out).unwrap().split_off("before ".len())
    }

    fn at(millis: i64, format: &str) -> String {
        let own_time = Some(Timestamp::from_millis(millis));
        rendered(format, Content { own_time, ..Content::default() })
    }

    fn with_headers(headers: &[(&[u8], Option<&[u8]>)], format: &str) -> String {
        let mut block = Vec::new();
        for (name, value) in headers {
            push_header(name, *value, &mut block);
        }
        rendered(format, Content { headers: Headers::in_block(&block), ..Content::default() })
    }

    const BINARY: &[u8] = b"a\"\xff";

    #[test]
    fn every_letter_stands_for_its_part() {
        let content = Content { key: Some(b"key"), ..Content::of_value(b"value") };
        assert_eq!(rendered("%o %k %v %K %V", content), "41 key value 3 5");
        assert_eq!(rendered("%s %S", content), "value 5");
        assert_eq!(rendered("%T %d", content), "1704067200007 2024-01-01T00:00:00.007Z");
    }

    #[test]
    fn what_is_not_there_is_told_from_what_is_empty() {
        let empty = Content { key: Some(b""), ..Content::of_value(b"") };
        let format = "%K:%k %V:%v %k{json} %v{json} %s{hex} %k{base64}";
        assert_eq!(rendered(format, empty), "0: 0: \"\" \"\"  ");
        assert_eq!(rendered(format, Content::default()), "-1: -1: null null  ");
    }

    #[test]
    fn modifiers_choose_the_form() {
        let content = Content { key: Some(BINARY), ..Content::of_value(b"\n\0v") };
        assert_eq!(rendered("%k{hex} %k{base64}", content), "6122ff YSL/");
        assert_eq!(rendered("%v{hex} %s{base64} %v{json}", content), r#"0a0076 CgB2 "\n\u0000v""#);
        assert_eq!(rendered("%k{json}", content), "\"a\\\"\u{fffd}\"");
        assert_eq!(rendered(r"%v{hex}{hex} %o\x7bhex}", content), "0a0076{hex} 41{hex}");
    }

    #[test]
    fn headers_are_printed_like_kcats_or_as_the_flat_array() {
        let headers: [(&[u8], Option<&[u8]>); 3] =
            [(b"a", Some(b"1")), (b"b", None), (b"a", Some(b""))];
        assert_eq!(with_headers(&headers, "%h"), "a=1,b=NULL,a=");
        assert_eq!(with_headers(&headers, "%h{hex}"), "61=31,62=NULL,61=");
        assert_eq!(with_headers(&headers, "%h{base64}"), "YQ===MQ==,Yg===NULL,YQ===");
        assert_eq!(with_headers(&headers, "%h{json}"), r#"["a","1","b",null,"a",""]"#);
        assert_eq!(with_headers(&[(BINARY, None)], "%h{json}"), "[\"a\\\"\u{fffd}\",null]");
        assert_eq!(with_headers(&[], "<%h> %h{json}"), "<> []");
    }

    #[test]
    fn times_are_the_records_own_and_utc() {
        assert_eq!(at(-5, "%T"), "-5");
        assert_eq!(at(-5, "%d"), "1969-12-31T23:59:59.995Z");
        assert_eq!(at(0, "%d{%Y-%m-%d %H:%M:%S%z}"), "1970-01-01 00:00:00+0000");
        assert_eq!(at(1500, "%d{%s%.3f %a %j %% at}!"), "1.500 Thu 001 % at!");
        assert_eq!(at(0, "%d{}|"), "|");
    }

    #[test]
    fn a_moment_that_no_calendar_holds_is_its_number() {
        for format in ["%T", "%d", "%d{%Y}"] {
            assert_eq!(at(i64::MAX, format), i64::MAX.to_string());
            assert_eq!(at(i64::MIN, format), i64::MIN.to_string());
        }
    }

    #[test]
    fn all_of_strftimes_letters_fit_every_moment() {
        for letter in ('A'..='Z').chain('a'..='z') {
            let Ok(template) = Template::parse(&format!("%d{{%{letter}}}")) else { continue };
            for millis in [-377_000_000_000_000, -1, 0, 4_000_000_000_000, 253_402_000_000_000] {
                let shown = at(millis, &format!("%d{{%{letter}}}"));
                assert!(!shown.is_empty() && !shown.starts_with('%'), "{template:?} {shown}");
            }
        }
    }

    proptest! {
        #[test]
        fn every_form_of_any_bytes_is_text(
            key in prop::option::of(any::<Vec<u8>>()), value: Vec<u8>, name: Vec<u8>, time: i64,
        ) {
            let mut block = Vec::new();
            push_header(&name, Some(&value), &mut block);
            let content = Content {
                key: key.as_deref(),
                value: Some(&value),
                headers: Headers::in_block(&block),
                own_time: Some(Timestamp::from_millis(time)),
            };
            let json = rendered("[%k{json},%v{json},%h{json},%o,%K,%V,%T]", content);
            let read: serde_json::Value = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(read[0].is_null(), key.is_none());
            prop_assert_eq!(read[1].as_str(), Some(&*String::from_utf8_lossy(&value)));
            prop_assert_eq!(read[6].as_i64(), Some(time));
            let other = rendered("%k{hex}%v{hex}%h{hex} %k{base64} %h{base64} %d %d{%c}", content);
            prop_assert!(other.is_ascii());
        }
    }
}
