//! Backslash escapes in what is typed: delimiters and the text of a format. A
//! closed list, because an escape that is quietly kept or dropped changes data.

use thiserror::Error;

/// Why a backslash means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EscapeFault {
    /// The character after it is not in the list.
    #[error("unknown escape \\{}", visible(*.0))]
    Unknown(char),
    /// Nothing follows it.
    #[error("unfinished escape")]
    Unfinished,
    /// `\x` without its two digits.
    #[error("\\x without two hexadecimal digits")]
    NotHex,
}

/// What escapes there are, for the end of a message.
pub const KNOWN_ESCAPES: &str = r"\n \r \t \0 \e \\ or \xHH";

/// Turns escapes into the bytes that they stand for; all else stays as it is.
pub fn unescape(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let (byte, after) = take_escape(&rest[at + 1..]).map_err(|fault| {
            let place = place(text, text.len() - rest.len() + at);
            format!("{fault} {place}: use {KNOWN_ESCAPES}")
        })?;
        bytes.push(byte);
        rest = after;
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

/// Reads one escape, given what follows its backslash: its byte and what is left.
pub fn take_escape(text: &str) -> Result<(u8, &str), EscapeFault> {
    let mut rest = text.chars();
    let letter = rest.next().ok_or(EscapeFault::Unfinished)?;
    let rest = rest.as_str();
    let byte = match letter {
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        '0' => 0,
        'e' => 0x1b,
        '\\' => b'\\',
        'x' => return take_hex(rest),
        unknown => return Err(EscapeFault::Unknown(unknown)),
    };
    Ok((byte, rest))
}

fn take_hex(text: &str) -> Result<(u8, &str), EscapeFault> {
    let (digits, rest) = text.split_at_checked(2).ok_or(EscapeFault::NotHex)?;
    // The library would also take a sign.
    if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(EscapeFault::NotHex);
    }
    let byte = u8::from_str_radix(digits, 16).map_err(|_| EscapeFault::NotHex)?;
    Ok((byte, rest))
}

/// Says where in `text` the byte `at` is, on one line: `at character 4 of "%o:%q"`.
/// Backslashes stay single, as they were typed.
pub fn place(text: &str, at: usize) -> String {
    let before = text.char_indices().take_while(|&(start, _)| start < at).count();
    format!("at character {} of \"{}\"", before + 1, one_line(text))
}

/// `text` with what has no shape on a line escaped; backslashes stay single.
pub fn one_line(text: &str) -> String {
    text.chars().map(visible).collect()
}

fn visible(c: char) -> String {
    match c {
        '\\' | '"' | '\'' => c.to_string(),
        _ => c.escape_debug().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[test]
    fn h034_a_delimiter_of_escapes_becomes_its_bytes() {
        assert_eq!(unescape("#"), Ok(b"#".to_vec()));
        assert_eq!(unescape(r"\r\n"), Ok(b"\r\n".to_vec()));
        assert_eq!(unescape(""), Ok(Vec::new()));
    }

    #[test]
    fn every_escape_stands_for_its_byte() {
        assert_eq!(unescape(r"\n\r\t\0\e\\"), Ok(b"\n\r\t\0\x1b\\".to_vec()));
        assert_eq!(unescape(r"\x00\x7f\xfF\xC3\xa9"), Ok(vec![0, 0x7f, 0xff, 0xc3, 0xa9]));
        assert_eq!(unescape(r"a\\nb"), Ok(br"a\nb".to_vec()));
        assert_eq!(unescape(r"\x414"), Ok(b"A4".to_vec()));
        assert_eq!(unescape("é\n%"), Ok("é\n%".as_bytes().to_vec()));
    }

    #[test]
    fn what_is_no_escape_is_refused_and_its_place_marked() {
        let known = r"use \n \r \t \0 \e \\ or \xHH";
        let bad = [
            (r"a\qb", r#"unknown escape \q at character 2 of "a\qb""#),
            (r"é\é", r#"unknown escape \é at character 2 of "é\é""#),
            (r"\\\", r#"unfinished escape at character 3 of "\\\""#),
            (r"\xg0", r#"\x without two hexadecimal digits at character 1 of "\xg0""#),
            (r"..\x4", r#"\x without two hexadecimal digits at character 3 of "..\x4""#),
            (r"\x+1", r#"\x without two hexadecimal digits at character 1 of "\x+1""#),
            (r"\xé", r#"\x without two hexadecimal digits at character 1 of "\xé""#),
            ("\\\n", r#"unknown escape \\n at character 1 of "\\n""#),
            (r#""\N"#, r#"unknown escape \N at character 2 of ""\N""#),
        ];
        for (text, what) in bad {
            assert_eq!(unescape(text), Err(format!("{what}: {known}")));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_written_as_escapes(bytes: Vec<u8>) {
            let escaped: String = bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect();
            prop_assert_eq!(unescape(&escaped), Ok(bytes));
        }

        #[test]
        fn no_text_makes_it_panic(text in any::<String>(), near in r"[\\nx0-9aéq]{0,12}") {
            for text in [text, near] {
                match unescape(&text) {
                    Ok(bytes) if !text.contains('\\') => prop_assert_eq!(bytes, text.into_bytes()),
                    Ok(_) => {}
                    Err(why) => prop_assert_eq!(why.lines().count(), 1),
                }
            }
        }
    }
}
