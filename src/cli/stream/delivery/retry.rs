//! How often a command that failed is run again, and after how long.

use std::str::FromStr;
use std::time::Duration;

use crate::cli::text::duration::parse_duration;

/// Where nothing else is said, pauses do not grow beyond this.
const LONGEST: Duration = Duration::from_secs(60);

/// The pauses between attempts: each is twice the one before, up to a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    most: Duration,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff { first: Duration::from_millis(100), most: LONGEST }
    }
}

impl FromStr for Backoff {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Backoff, String> {
        let Some((first, most)) = text.split_once("..") else {
            let first = parse_duration(text)?;
            return Ok(Backoff { first, most: LONGEST.max(first) });
        };
        let (first, most) = (parse_duration(first)?, parse_duration(most)?);
        match first <= most {
            true => Ok(Backoff { first, most }),
            false => Err(format!("{text:?}: give the shorter pause first")),
        }
    }
}

impl Backoff {
    /// The pause after so many failed attempts, counted from 1.
    pub fn pause(&self, failed: u64) -> Duration {
        let doublings = u32::try_from(failed.saturating_sub(1)).unwrap_or(u32::MAX);
        let factor = 2u32.checked_pow(doublings).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(text: &str) -> [u64; 4] {
        let backoff: Backoff = text.parse().unwrap();
        [1, 2, 3, 1000].map(|failed| backoff.pause(failed).as_millis() as u64)
    }

    #[test]
    fn pauses_double_up_to_the_limit() {
        assert_eq!(pauses("1s"), [1000, 2000, 4000, 60_000]);
        assert_eq!(pauses("1s..3s"), [1000, 2000, 3000, 3000]);
        assert_eq!(pauses("2h"), [7_200_000; 4]);
        assert_eq!(pauses("0s"), [0; 4]);
        for text in ["", "1", "2s..1s", "1s..", "..1s", "1s..2s..3s"] {
            assert!(text.parse::<Backoff>().is_err(), "{text}");
        }
    }
}
