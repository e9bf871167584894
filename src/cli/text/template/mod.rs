//! The formats of `consume -F`: text, escapes, and letters that stand for a part
//! of a record. Letters and their modifiers are closed tables; nothing unknown is
//! printed as it is.

mod part;

use thiserror::Error;

use super::escapes::{EscapeFault, KNOWN_ESCAPES, one_line, place, take_escape};
use crate::format::record::RecordView;
use part::Part;

/// A format, checked and ready to be used for every record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(Vec<u8>),
    Part(Part),
}

/// Why a text is no format, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{fault} {place}: use {}", .fault.choices())]
pub struct TemplateError {
    fault: TemplateFault,
    place: String,
}

/// What is wrong with a format.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TemplateFault {
    /// A letter that is not in the table.
    #[error("unknown %{}", .0.escape_debug())]
    UnknownLetter(char),
    /// A `%` that ends the format.
    #[error("unfinished %")]
    Unfinished,
    /// A modifier that is not in the table.
    #[error("unknown {{{}}} after %{}", one_line(.1), .0)]
    UnknownModifier(char, String),
    /// A modifier after a letter that has only one form.
    #[error("{{ after %{0}, which has one form,")]
    NoModifiers(char),
    /// A modifier that never ends.
    #[error("{{ without }} after %{0}")]
    Unclosed(char),
    /// A time's format that can't be read.
    #[error("bad time format ({})", one_line(.0))]
    Date(String),
    /// A backslash that means nothing.
    #[error(transparent)]
    Escape(#[from] EscapeFault),
}

impl TemplateFault {
    fn choices(&self) -> String {
        match self {
            TemplateFault::UnknownLetter(_) | TemplateFault::Unfinished => {
                let letters: Vec<_> = part::letters().map(|letter| format!("%{letter}")).collect();
                format!("{} or %%", letters.join(" "))
            }
            TemplateFault::UnknownModifier(..) => part::modifiers(),
            TemplateFault::NoModifiers(_) => r"\x7b for a brace".to_owned(),
            TemplateFault::Unclosed(letter) => format!(r"%{letter}{{…}}, or \x7b for a brace"),
            TemplateFault::Date(_) => {
                "strftime's letters, such as %d{%Y-%m-%d %H:%M:%S}, or %d alone".to_owned()
            }
            TemplateFault::Escape(_) => KNOWN_ESCAPES.to_owned(),
        }
    }
}

impl Template {
    /// Reads a format.
    pub fn parse(text: &str) -> Result<Template, TemplateError> {
        let mut template = Template { pieces: Vec::new() };
        let mut rest = text;
        while let Some(at) = rest.find(['%', '\\']) {
            template.add_text(&rest.as_bytes()[..at]);
            let marker = &rest[at..];
            rest = template.take_marker(marker).map_err(|fault| TemplateError {
                fault,
                place: place(text, text.len() - marker.len()),
            })?;
        }
        template.add_text(rest.as_bytes());
        Ok(template)
    }

    /// Adds what a `%` or a backslash stands for; returns the text after it.
    fn take_marker<'t>(&mut self, marker: &'t str) -> Result<&'t str, TemplateFault> {
        if let Some(escape) = marker.strip_prefix('\\') {
            let (byte, rest) = take_escape(escape)?;
            self.add_text(&[byte]);
            return Ok(rest);
        }
        if let Some(rest) = marker.strip_prefix("%%") {
            self.add_text(b"%");
            return Ok(rest);
        }
        let (part, rest) = Part::take(&marker[1..])?;
        self.pieces.push(Piece::Part(part));
        Ok(rest)
    }

    fn add_text(&mut self, bytes: &[u8]) {
        if let Some(Piece::Text(text)) = self.pieces.last_mut() {
            text.extend_from_slice(bytes);
        } else if !bytes.is_empty() {
            self.pieces.push(Piece::Text(bytes.to_vec()));
        }
    }

    /// Appends `record` in this format, and nothing else: no newline of its own.
    /// What is not there has no bytes and the length -1, as in kcat.
    pub fn render(&self, record: &RecordView<'_>, out: &mut Vec<u8>) {
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text),
                Piece::Part(part) => part.render(record, out),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::record::Content;
    use crate::model::{Offset, Timestamp};
    use proptest::prelude::{any, prop_assert_eq, proptest};

    fn record(value: Option<&[u8]>) -> RecordView<'_> {
        RecordView {
            offset: Offset::new(41),
            next: Offset::new(42),
            append_time: Timestamp::from_millis(1_704_067_200_007),
            content: Content {
                value,
                own_time: Some(Timestamp::from_millis(-5)),
                ..Content::default()
            },
        }
    }

    fn rendered(format: &str, value: Option<&[u8]>) -> Vec<u8> {
        let mut out = b"before ".to_vec();
        let template = Template::parse(format).unwrap_or_else(|why| panic!("{why}"));
        template.render(&record(value), &mut out);
        out.split_off("before ".len())
    }

    #[test]
    fn every_letter_stands_for_its_part() {
        assert_eq!(rendered("%o:%V:%v@%T", Some(b"abc")), b"41:3:abc@-5");
        assert_eq!(rendered("%S %s", Some(b"abc")), b"3 abc");
        assert_eq!(rendered("100%%o", Some(b"abc")), b"100%o");
    }

    #[test]
    fn nothing_is_added() {
        assert_eq!(rendered("%v", Some(b"abc")), b"abc");
        assert_eq!(rendered("", Some(b"abc")), b"");
        assert_eq!(rendered("é", Some(b"abc")), "é".as_bytes());
    }

    #[test]
    fn escapes_are_text_even_when_they_make_a_percent_sign() {
        assert_eq!(rendered(r"%v\n\0\x25o\\", Some(b"a")), b"a\n\0%o\\");
    }

    #[test]
    fn a_tombstone_is_not_an_empty_value() {
        assert_eq!(rendered("%V:%v", Some(b"")), b"0:");
        assert_eq!(rendered("%V:%v", None), b"-1:");
    }

    #[test]
    fn values_are_copied_byte_for_byte() {
        let value = b"\0\xff%o\\n\r\n";
        assert_eq!(rendered("%v", Some(value)), value);
    }

    #[test]
    fn what_is_unknown_is_refused_and_its_place_marked() {
        let letters = "use %o %k %v %h %K %V %T %d %d{FORMAT} %s %S or %%";
        let escapes = r"use \n \r \t \0 \e \\ or \xHH";
        let bad = [
            ("%o:%q", format!(r#"unknown %q at character 4 of "%o:%q": {letters}"#)),
            ("é%é", format!(r#"unknown %é at character 2 of "é%é": {letters}"#)),
            ("%\n", format!(r#"unknown %\n at character 1 of "%\n": {letters}"#)),
            ("%o %", format!(r#"unfinished % at character 4 of "%o %": {letters}"#)),
            ("%%%", format!(r#"unfinished % at character 3 of "%%%": {letters}"#)),
            ("%{x}v", format!(r#"unknown %{{ at character 1 of "%{{x}}v": {letters}"#)),
            (r"%o\q", format!(r#"unknown escape \q at character 3 of "%o\q": {escapes}"#)),
            (r"%o\", format!(r#"unfinished escape at character 3 of "%o\": {escapes}"#)),
        ];
        for (format, wanted) in bad {
            let error = Template::parse(format).unwrap_err();
            assert_eq!(error.to_string(), wanted);
        }
    }

    #[test]
    fn what_is_no_modifier_is_refused_and_its_place_marked() {
        let modifiers = r"{hex} {base64} {json}, or \x7b for a brace";
        let brace = r"\x7b for a brace";
        let strftime = "strftime's letters, such as %d{%Y-%m-%d %H:%M:%S}, or %d alone";
        let bad = [
            ("%v{foo}", "unknown {foo} after %v", modifiers),
            ("%h{}", "unknown {} after %h", modifiers),
            ("%k{Hex}", "unknown {Hex} after %k", modifiers),
            ("%s{a\nb}", r"unknown {a\nb} after %s", modifiers),
            ("%k{hex", "{ without } after %k", r"%k{…}, or \x7b for a brace"),
            ("%o{hex}", "{ after %o, which has one form,", brace),
            ("%T{", "{ after %T, which has one form,", brace),
            (r"%d{%Y\n}", r"bad time format (\ has no meaning in it)", strftime),
        ];
        for (format, what, choices) in bad {
            let error = Template::parse(&format!("é{format}")).unwrap_err();
            let place = place(&format!("é{format}"), 2);
            assert!(place.starts_with("at character 2 of "), "{place}");
            assert_eq!(error.to_string(), format!("{what} {place}: use {choices}"));
        }
        assert_eq!(Template::parse("%q{").unwrap_err().fault, TemplateFault::UnknownLetter('q'));
    }

    #[test]
    fn a_bad_time_format_is_refused_when_it_is_read() {
        let error = Template::parse("%d{%E}").unwrap_err().to_string();
        assert!(error.starts_with("bad time format (found unrecognized specifier"), "{error}");
        for format in ["%d{%}", "%d{%é}", "%d{%E}", "%d{%Y %!}", "%d{\0%-}"] {
            let error = Template::parse(format).unwrap_err();
            assert!(matches!(error.fault, TemplateFault::Date(_)), "{error}");
            assert_eq!(error.to_string().lines().count(), 1, "{error}");
        }
    }

    #[test]
    fn the_fault_is_typed() {
        let fault = |format| Template::parse(format).unwrap_err().fault.clone();
        assert_eq!(fault("%x"), TemplateFault::UnknownLetter('x'));
        assert_eq!(fault("%"), TemplateFault::Unfinished);
        assert_eq!(fault(r"\q"), TemplateFault::Escape(EscapeFault::Unknown('q')));
    }

    proptest! {
        #[test]
        fn doubled_and_escaped_any_text_is_printed_as_it_is(text: String) {
            let format = text.replace('\\', r"\\").replace('%', "%%");
            prop_assert_eq!(rendered(&format, None), text.into_bytes());
        }

        #[test]
        fn no_format_makes_it_panic(text in any::<String>(), near in r"[%\\okvhdx0éY{} ]{0,12}") {
            for text in [text, near] {
                if let Err(why) = Template::parse(&text) {
                    prop_assert_eq!(why.to_string().lines().count(), 1);
                }
            }
        }
    }
}
