//! `log.json`: the log's id, the format's version, its settings. One JSON object,
//! replaced whole.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::batch::MAX_RECORD;
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
#[derive(Debug, Error)]
pub enum LogFileError {
    /// It is not what this program writes.
    #[error("it is not what tapelog writes: {0}")]
    Unreadable(String),
    /// A later version wrote it.
    #[error("its format is version {0}, this program knows version {FORMAT_VERSION}")]
    Newer(u32),
}

/// Only what every version will have: read first, so that a later version's
/// file is called that and not damage.
#[derive(Deserialize)]
struct VersionOnly {
    format: u32,
}

impl LogFile {
    /// The file's bytes: JSON for people, with a newline at its end.
    pub fn encode(&self) -> Vec<u8> {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default().into_bytes();
        text.push(b'\n');
        text
    }

    /// Reads the file's bytes.
    ///
    /// # Errors
    /// [`LogFileError`]
    pub fn decode(bytes: &[u8]) -> Result<LogFile, LogFileError> {
        let unreadable = |error: String| LogFileError::Unreadable(error);
        let version: VersionOnly =
            serde_json::from_slice(bytes).map_err(|error| unreadable(error.to_string()))?;
        if version.format > FORMAT_VERSION {
            return Err(LogFileError::Newer(version.format));
        }
        let file: LogFile =
            serde_json::from_slice(bytes).map_err(|error| unreadable(error.to_string()))?;
        file.settings.check().map_err(|error| unreadable(error.to_string()))?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_back_as_it_was() {
        let settings = Settings { segment_size: Some(4096), ..Settings::default() };
        let file = LogFile { id: LogId::new(9), format: FORMAT_VERSION, settings };
        assert_eq!(LogFile::decode(&file.encode()).unwrap(), file);
    }

    #[test]
    fn a_later_version_is_told_from_nonsense() {
        let later = br#"{"format":2,"whatever":[]}"#;
        assert!(matches!(LogFile::decode(later), Err(LogFileError::Newer(2))));
        assert!(matches!(LogFile::decode(b"{}"), Err(LogFileError::Unreadable(_))));
        let zero = br#"{"id":"0000000000000009","format":1,"settings":{"segment-size":0}}"#;
        assert!(matches!(LogFile::decode(zero), Err(LogFileError::Unreadable(_))));
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
