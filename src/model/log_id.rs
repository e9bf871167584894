//! Which log a file belongs to.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A random number that a log gets when it is made. Every batch, checkpoint and
/// index names it, so that a file from another log is never taken for one of ours.
/// Written as 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogId(u64);

impl LogId {
    /// The id with these bits.
    pub const fn new(bits: u64) -> Self {
        LogId(bits)
    }

    /// The bare bits.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for LogId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let hex = text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
        match u64::from_str_radix(text, 16) {
            Ok(bits) if hex => Ok(LogId(bits)),
            _ => Err(format!("{text:?} is no log id of 16 hexadecimal digits")),
        }
    }
}

impl Serialize for LogId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for LogId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_through_text_unchanged() {
        for bits in [0, 7, u64::MAX] {
            assert_eq!(LogId::new(bits).to_string().parse(), Ok(LogId::new(bits)));
        }
        assert!("+123456789abcdef".parse::<LogId>().is_err());
        assert!("123".parse::<LogId>().is_err());
    }
}
