//! What a command finds in its environment of the records that it is given. What an
//! environment can't hold is left out: NUL bytes, and all beyond a fixed size.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::format::record::{Content, Headers};

/// All variables together are kept below this: the system takes 128 KiB of one, and of
/// all of them, with our own, a quarter of the stack.
const MOST_BYTES: usize = 96 << 10;

/// What is named after a header begins so.
const HEADER: &str = "TAPELOG_HEADER_";
/// The other names.
const NAMES: [&str; 7] = [
    "TAPELOG_OFFSET",
    "TAPELOG_NEXT",
    "TAPELOG_COUNT",
    "TAPELOG_KEY",
    "TAPELOG_TIME",
    "TAPELOG_ATTEMPT",
    "TAPELOG_GROUP",
];

/// Whether a variable is one of those that are set here.
pub fn is_own(name: &OsStr) -> bool {
    let is_header = name.as_bytes().starts_with(HEADER.as_bytes());
    is_header || NAMES.iter().any(|own| name == *own)
}

/// Variables to be set for a command.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: Vec<(OsString, OsString)>,
    bytes: usize,
}

impl Environment {
    /// Sets one of the fixed ones; a later one of the same name counts.
    pub fn set(&mut self, name: &str, value: impl ToString) {
        self.put(name.as_bytes(), value.to_string().as_bytes());
    }

    /// Sets what there is of a record's key and headers. Of headers of one name the last
    /// counts; one that is null is not set.
    pub fn describe(&mut self, record: &Content<'_>) {
        if let Some(key) = record.key {
            self.put(b"TAPELOG_KEY", key);
        }
        self.describe_headers(record.headers);
    }

    fn describe_headers(&mut self, headers: Headers<'_>) {
        for (name, value) in headers {
            if let Some(value) = value {
                self.put(&[HEADER.as_bytes(), name].concat(), value);
            }
        }
    }

    fn put(&mut self, name: &[u8], value: &[u8]) {
        let bytes = name.len() + value.len();
        let fits = self.bytes + bytes <= MOST_BYTES;
        if fits && !name.contains(&b'=') && !name.contains(&0) && !value.contains(&0) {
            self.bytes += bytes;
            let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
            self.variables.push((text(name), text(value)));
        }
    }

    /// Adds all that another one has.
    pub fn add(&mut self, other: &Environment) {
        self.variables.extend_from_slice(&other.variables);
        self.bytes += other.bytes;
    }

    /// Names and values.
    pub fn variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables.iter().map(|(name, value)| (&**name, &**value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::record::push_header;

    fn of(key: Option<&[u8]>, headers: &[(&[u8], Option<&[u8]>)]) -> Vec<String> {
        let mut block = Vec::new();
        headers.iter().for_each(|(name, value)| push_header(name, *value, &mut block));
        let headers = Headers::in_block(&block);
        let mut environment = Environment::default();
        environment.describe(&Content { key, headers, ..Content::of_value(b"v") });
        let shown =
            |(name, value): (&OsStr, &OsStr)| format!("{}={}", name.display(), value.display());
        environment.variables().map(shown).collect()
    }

    #[test]
    fn keys_and_headers_are_named_and_what_fits_nowhere_is_left_out() {
        assert_eq!(of(None, &[]), [""; 0]);
        assert_eq!(of(Some(b""), &[]), ["TAPELOG_KEY="]);
        assert_eq!(of(Some(b"a\0b"), &[(b"n", Some(b"\0"))]), [""; 0]);
        let headers: [(&[u8], Option<&[u8]>); 4] =
            [(b"a b", Some(b"1=2")), (b"n", None), (b"x=y", Some(b"3")), (b"", Some(b""))];
        assert_eq!(of(None, &headers), ["TAPELOG_HEADER_a b=1=2", "TAPELOG_HEADER_="]);
        let large = vec![b'x'; MOST_BYTES];
        assert_eq!(of(Some(&large), &[(b"n", Some(b"1"))]), ["TAPELOG_HEADER_n=1"]);
    }

    #[test]
    fn ours_are_known_again() {
        let own = ["TAPELOG_KEY", "TAPELOG_HEADER_x", "TAPELOG_HEADER_"];
        assert!(own.iter().all(|name| is_own(name.as_ref())));
        assert!(!["TAPELOG_SEED", "PATH"].iter().any(|name| is_own(name.as_ref())));
    }
}
