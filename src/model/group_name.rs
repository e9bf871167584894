//! The name of a consumer group, checked once, safe in a path ever after.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use thiserror::Error;

/// A group's name: 1 to 200 of `A–Z a–z 0–9 . _ -`, not beginning with `.` or
/// `-`, not ending like one of the log's own files. Nothing else reaches a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct GroupName(String);

/// Why a text is no group name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GroupNameError {
    /// Nothing was given.
    #[error("a group name can't be empty")]
    Empty,
    /// More than [`GroupName::MAX_LEN`] bytes.
    #[error("a group name has at most {max} characters, this one has {0}", max = GroupName::MAX_LEN)]
    TooLong(usize),
    /// It begins with a dot or a hyphen.
    #[error("a group name can't begin with {0:?}")]
    BadStart(char),
    /// It holds a character outside the list.
    #[error("a group name holds letters, digits, '.', '_' and '-' only, not {0:?}")]
    BadCharacter(char),
    /// It ends like a file that tapelog keeps itself.
    #[error("a group name can't end in {0:?}, which tapelog's own files do")]
    OwnSuffix(&'static str),
}

/// The endings of tapelog's own files, which no group name may have.
const OWN_SUFFIXES: [&str; 9] =
    [".checkpoint", ".holder", ".history", ".queue", ".lock", ".log", ".index", ".json", ".tmp"];

impl GroupName {
    /// The longest name, in bytes: with any suffix it still fits a file name.
    pub const MAX_LEN: usize = 200;

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for GroupName {
    type Err = GroupNameError;

    fn from_str(text: &str) -> Result<Self, GroupNameError> {
        let Some(first) = text.chars().next() else {
            return Err(GroupNameError::Empty);
        };
        if text.len() > GroupName::MAX_LEN {
            return Err(GroupNameError::TooLong(text.len()));
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if let Some(bad) = text.chars().find(|&c| !allowed(c)) {
            return Err(GroupNameError::BadCharacter(bad));
        }
        if matches!(first, '.' | '-') {
            return Err(GroupNameError::BadStart(first));
        }
        match OWN_SUFFIXES.iter().find(|suffix| text.ends_with(**suffix)) {
            Some(suffix) => Err(GroupNameError::OwnSuffix(suffix)),
            None => Ok(GroupName(text.to_owned())),
        }
    }
}

impl fmt::Display for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_names_pass() {
        let longest = "a".repeat(GroupName::MAX_LEN);
        for name in ["g", "a.b", "a_b", "A.b", "billing-2", "0", "CON", &longest] {
            assert!(name.parse::<GroupName>().is_ok(), "{name}");
        }
    }

    #[test]
    fn names_that_could_leave_the_directory_or_clash_are_refused() {
        let long = "a".repeat(GroupName::MAX_LEN + 1);
        let bad = [
            "",
            ".",
            "..",
            "../x",
            "/x",
            "a/b",
            "a\nb",
            "-rf",
            "é",
            "a b",
            ".hidden",
            "x.lock",
            "x.checkpoint",
            "a\0b",
            &long,
        ];
        for name in bad {
            assert!(name.parse::<GroupName>().is_err(), "{name:?}");
        }
    }
}
