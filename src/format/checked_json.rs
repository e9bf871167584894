//! A line of JSON that ends with its own checksum, so that a changed byte anywhere in
//! it is noticed and people can still read it:
//!
//! ```text
//! {"a":1,"b":[2,3],"crc":"9f0c11aa"}
//! ```
//!
//! `crc` is always the last member and written exactly so: the CRC-32 of the bytes
//! before its comma, in eight lower-case hexadecimal digits.

use std::fmt::Write;

use serde::Serialize;

const CRC_KEY: &[u8] = br#","crc":""#;
/// The checksum's eight digits and what closes the line.
const CRC_TAIL: usize = 8 + 2;

/// The line of an object with at least one member; `None` if `object` is no such thing.
pub fn encode<T: Serialize>(object: &T) -> Option<String> {
    let mut line = serde_json::to_string(object).ok()?;
    let members = line.strip_suffix('}').filter(|members| members.len() > 1)?.len();
    line.truncate(members);
    let crc = crc32fast::hash(line.as_bytes());
    write!(line, r#","crc":"{crc:08x}"}}"#).ok()?;
    Some(line)
}

/// Whether `line`, without a newline, is one whose checksum is right.
pub fn is_good(line: &[u8]) -> bool {
    let Some(end) = line.len().checked_sub(CRC_TAIL) else { return false };
    let (text, tail) = line.split_at(end);
    let Some(members) = text.strip_suffix(CRC_KEY) else { return false };
    tail == format!("{:08x}\"}}", crc32fast::hash(members)).as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_flipped_bit_is_noticed() {
        let good = encode(&serde_json::json!({"name": "a,\"crc\":\"b", "n": 1})).unwrap();
        assert!(is_good(good.as_bytes()));
        for bit in 0..good.len() * 8 {
            let mut bytes = good.clone().into_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_good(&bytes), "bit {bit}");
        }
        for length in 0..good.len() {
            assert!(!is_good(&good.as_bytes()[..length]), "{length} bytes");
        }
    }

    #[test]
    fn only_an_object_with_members_has_a_line() {
        assert_eq!(encode(&serde_json::json!({})), None);
        assert_eq!(encode(&7), None);
    }
}
