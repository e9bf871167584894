//! A moment, in milliseconds since 1970 (UTC), as Kafka counts them.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970-01-01T00:00:00Z; negative before it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The moment `millis` milliseconds after 1970 began.
    pub const fn from_millis(millis: i64) -> Self {
        Timestamp(millis)
    }

    /// Milliseconds since 1970 began.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// How long ago `earlier` was, seen from here; zero if it lies ahead.
    pub fn since(self, earlier: Timestamp) -> Duration {
        let millis = self.0.saturating_sub(earlier.0);
        Duration::from_millis(u64::try_from(millis).unwrap_or(0))
    }

    /// The moment `duration` before this one, as early as can be counted.
    pub fn before(self, duration: Duration) -> Timestamp {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Timestamp(self.0.saturating_sub(millis))
    }
}

/// RFC 3339 in UTC with milliseconds: `2026-11-29T15:04:05.000Z`. A moment that
/// no calendar holds is written as its bare number.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(moment) => f.pad(&format!("{moment:.3}")),
            Err(_) => self.0.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_utc_with_milliseconds() {
        let moment = Timestamp::from_millis(1_704_067_200_007);
        assert_eq!(moment.to_string(), "2024-01-01T00:00:00.007Z");
    }

    #[test]
    fn a_moment_outside_every_calendar_is_still_shown() {
        assert_eq!(Timestamp::from_millis(i64::MAX).to_string(), i64::MAX.to_string());
    }

    #[test]
    fn time_that_lies_ahead_is_no_time_ago() {
        let (early, late) = (Timestamp::from_millis(5), Timestamp::from_millis(9));
        assert_eq!(early.since(late), Duration::ZERO);
        assert_eq!(late.since(early), Duration::from_millis(4));
    }
}
