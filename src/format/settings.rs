//! `log.json`: the log's id, the format's version, its settings. One line of JSON with
//! a checksum (see [`super::checked_json`]), replaced whole:
//!
//! ```text
//! {"id":"0123456789abcdef","format":1,"settings":{"segment-size":4096},"crc":"9f0c11aa"}
//! ```

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::batch::MAX_RECORD;
use super::checked_json;
use super::codec::Compression;
use crate::model::LogId;

/// The version of the files that this program writes and reads.
pub const FORMAT_VERSION: u32 = 1;

/// How a log behaves. A setting that was never given is not stored and has its default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Settings {
    /// Bytes after which a new segment begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment_size: Option<u64>,
    /// Milliseconds after which a new segment begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment_age: Option<u64>,
    /// The largest record that is taken, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_record_size: Option<u64>,
    /// The size at which the log refuses more, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_log_size: Option<u64>,
    /// How producers compress unless they are told otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<Compression>,
    /// What a plain gc does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanup: Option<Cleanup>,
}

/// What gc does unless it is told otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cleanup {
    /// It deletes the segments that every group is done with.
    #[default]
    Delete,
    /// It takes the records out of them that later ones replace, and deletes nothing.
    Compact,
}

impl FromStr for Cleanup {
    type Err = String;

    fn from_str(text: &str) -> Result<Cleanup, String> {
        match text {
            "delete" => Ok(Cleanup::Delete),
            "compact" => Ok(Cleanup::Compact),
            _ => Err(format!("{text:?} is no clean-up: give delete or compact")),
        }
    }
}

impl fmt::Display for Cleanup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cleanup::Delete => "delete",
            Cleanup::Compact => "compact",
        })
    }
}

impl Settings {
    /// The smallest segment: room for a header and some records.
    pub const MIN_SEGMENT_SIZE: u64 = 512;
    /// The segment size unless another one was set.
    pub const DEFAULT_SEGMENT_SIZE: u64 = 64 << 20;
    /// The segment age unless another one was set: a week, as Kafka's.
    pub const DEFAULT_SEGMENT_AGE: Duration = Duration::from_secs(7 * 24 * 3600);

    /// Bytes after which a new segment begins.
    pub fn segment_size(&self) -> u64 {
        self.segment_size.unwrap_or(Self::DEFAULT_SEGMENT_SIZE)
    }

    /// The age at which a new segment begins.
    pub fn segment_age(&self) -> Duration {
        self.segment_age.map_or(Self::DEFAULT_SEGMENT_AGE, Duration::from_millis)
    }

    /// The largest record that is taken, in bytes.
    pub fn max_record_size(&self) -> u64 {
        self.max_record_size.unwrap_or(MAX_RECORD as u64)
    }

    /// How producers compress unless they are told otherwise.
    pub fn compression(&self) -> Compression {
        self.compression.unwrap_or_default()
    }

    /// What a plain gc does.
    pub fn cleanup(&self) -> Cleanup {
        self.cleanup.unwrap_or_default()
    }

    /// Bounds every setting.
    ///
    /// # Errors
    /// The first one that is out of bounds.
    pub fn check(&self) -> Result<(), SettingError> {
        let too_small =
            |name, least: &str| SettingError { name, rule: format!("at least {least}") };
        if self.segment_size.is_some_and(|size| size < Self::MIN_SEGMENT_SIZE) {
            return Err(too_small("segment-size", "512 bytes"));
        }
        if self.segment_age == Some(0) {
            return Err(too_small("segment-age", "1ms"));
        }
        if self.max_record_size == Some(0) {
            return Err(too_small("max-record-size", "1 byte"));
        }
        if self.max_record_size.is_some_and(|size| size > MAX_RECORD as u64) {
            return Err(SettingError { name: "max-record-size", rule: "at most 64M".to_owned() });
        }
        if self.max_log_size == Some(0) {
            return Err(too_small("max-log-size", "1 byte"));
        }
        Ok(())
    }
}

/// A setting that is out of bounds.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{name} must be {rule}")]
pub struct SettingError {
    /// Which one.
    pub name: &'static str,
    /// What it must be.
    pub rule: String,
}

/// All of `log.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogFile {
    /// The log's id.
    pub id: LogId,
    /// The version of its files.
    pub format: u32,
    /// Its settings.
    #[serde(default)]
    pub settings: Settings,
}

/// Why `log.json` can't be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LogFileError {
    /// It is not what a tapelog wrote.
    #[error("its checksum is wrong")]
    Checksum,
    /// A later version wrote it.
    #[error("{0}, which this version doesn't know")]
    Newer(String),
    /// Sound bytes that no tapelog writes.
    #[error("{0}")]
    Impossible(String),
}

/// Only what every version will have.
#[derive(Deserialize)]
struct VersionOnly {
    format: u32,
}

impl LogFile {
    /// The file's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut line = checked_json::encode(self).unwrap_or_default().into_bytes();
        line.push(b'\n');
        line
    }

    /// Reads the file's bytes. As their checksum is right, what can't be understood in
    /// them was written by a later version.
    ///
    /// # Errors
    /// [`LogFileError`]
    pub fn decode(bytes: &[u8]) -> Result<LogFile, LogFileError> {
        let line = bytes.strip_suffix(b"\n").filter(|line| checked_json::is_good(line));
        let line = line.ok_or(LogFileError::Checksum)?;
        let impossible = |error: serde_json::Error| LogFileError::Impossible(error.to_string());
        let VersionOnly { format } = serde_json::from_slice(line).map_err(impossible)?;
        if format > FORMAT_VERSION {
            return Err(LogFileError::Newer(format!("its format is version {format}")));
        }
        let file: LogFile =
            serde_json::from_slice(line).map_err(|error| LogFileError::Newer(error.to_string()))?;
        file.settings.check().map_err(|error| LogFileError::Impossible(error.to_string()))?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn comes_back_as_it_was() {
        let settings = Settings { segment_size: Some(4096), ..Settings::default() };
        let file = LogFile { id: LogId::new(9), format: FORMAT_VERSION, settings };
        assert_eq!(LogFile::decode(&file.encode()).unwrap(), file);
    }

    #[test]
    fn a_later_version_is_told_from_nonsense() {
        let decode = |value: serde_json::Value| {
            LogFile::decode(format!("{}\n", checked_json::encode(&value).unwrap()).as_bytes())
        };
        let id = "0000000000000009";
        let later = [
            json!({"format": 2, "whatever": []}),
            json!({"id": id, "format": 1, "settings": {"retain-colour": "blue"}}),
            json!({"id": id, "format": 1, "settings": {"compression": "brotli"}}),
        ];
        for value in later {
            assert!(matches!(decode(value), Err(LogFileError::Newer(_))));
        }
        let zero = json!({"id": id, "format": 1, "settings": {"segment-size": 0}});
        assert!(matches!(decode(zero), Err(LogFileError::Impossible(_))));
        assert_eq!(LogFile::decode(b"{}\n"), Err(LogFileError::Checksum));
    }

    #[test]
    fn settings_out_of_bounds_are_refused() {
        let bad = [
            Settings { segment_size: Some(511), ..Settings::default() },
            Settings { segment_age: Some(0), ..Settings::default() },
            Settings { max_record_size: Some(MAX_RECORD as u64 + 1), ..Settings::default() },
            Settings { max_log_size: Some(0), ..Settings::default() },
        ];
        for settings in bad {
            assert!(settings.check().is_err(), "{settings:?}");
        }
        assert!(Settings::default().check().is_ok());
    }
}
