//! Bytes as text that holds any of them: JSON strings, base64, hexadecimal.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use crate::format::record::Headers;

/// Appends a number or a text as JSON.
pub fn put_json(value: impl Serialize, out: &mut Vec<u8>) {
    let written = serde_json::to_writer(out, &value);
    debug_assert!(written.is_ok(), "numbers and text in memory always become JSON");
}

/// Appends base64, in pieces that need no padding but for the last one.
pub fn put_base64(bytes: &[u8], out: &mut Vec<u8>) {
    const PIECE: usize = 3 * 256;
    let mut encoded = [0; PIECE / 3 * 4];
    for piece in bytes.chunks(PIECE) {
        let written = STANDARD.encode_slice(piece, &mut encoded);
        debug_assert!(written.is_ok(), "the buffer holds a whole piece");
        out.extend_from_slice(&encoded[..written.unwrap_or(0)]);
    }
}

/// The bytes that `text` is the base64 of: padded, and in its only form.
pub fn from_base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// Appends two hexadecimal digits a byte, in lower case.
pub fn put_hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| DIGITS[usize::from(half)];
    out.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
}

/// Appends an array of names and values in turn; `put` appends a string.
pub fn put_flat(headers: Headers<'_>, put: impl Fn(&[u8], &mut Vec<u8>), out: &mut Vec<u8>) {
    let mut before = b'[';
    for (name, value) in headers {
        out.push(before);
        put(name, out);
        out.push(b',');
        match value {
            Some(value) => put(value, out),
            None => out.extend_from_slice(b"null"),
        }
        before = b',';
    }
    if before == b'[' {
        out.push(b'[');
    }
    out.push(b']');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert_eq, proptest};

    fn made(put: impl Fn(&[u8], &mut Vec<u8>), bytes: &[u8]) -> String {
        let mut out = b"before ".to_vec();
        put(bytes, &mut out);
        String::from_utf8(out).unwrap().split_off("before ".len())
    }

    #[test]
    fn base64_is_padded_and_read_back_in_its_only_form() {
        assert_eq!(made(put_base64, b"a\0\xfe"), "YQD+");
        assert_eq!(made(put_base64, b"\xff"), "/w==");
        assert_eq!(made(put_base64, b""), "");
        for bad in ["/w", "/w=", "/x==", "_w==", "/w== ", "/w==\n", "=", "é"] {
            assert_eq!(from_base64(bad), None, "{bad}");
        }
    }

    #[test]
    fn hexadecimal_has_two_small_digits_a_byte() {
        assert_eq!(made(put_hex, b"\x00\x0f\xf0Az"), "000ff0417a");
        assert_eq!(made(put_hex, b""), "");
    }

    proptest! {
        #[test]
        fn bytes_of_any_length_come_back(bytes in prop::collection::vec(any::<u8>(), 0..4000)) {
            prop_assert_eq!(from_base64(&made(put_base64, &bytes)), Some(bytes));
        }

        #[test]
        fn hexadecimal_is_what_the_library_writes(bytes: Vec<u8>) {
            let wanted: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            prop_assert_eq!(made(put_hex, &bytes), wanted);
        }
    }
}
