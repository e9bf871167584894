//! When the active segment is sealed and a new one begins.

use std::time::Duration;

use crate::model::Timestamp;

/// The limits of a segment.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Its largest size in bytes; one batch may be larger by itself.
    pub bytes: u64,
    /// Its greatest age.
    pub age: Duration,
}

/// The active segment.
#[derive(Clone, Copy, Debug)]
pub struct ActiveSegment {
    /// Its size in bytes.
    pub bytes: u64,
    /// The append time of its first record; `None` when it is empty.
    pub first_time: Option<Timestamp>,
}

/// Whether a new segment begins before a batch of `incoming` bytes is appended at
/// `now`. An empty segment is never sealed.
pub fn must_roll(active: &ActiveSegment, incoming: u64, now: Timestamp, limits: &Limits) -> bool {
    let full = active.bytes > 0 && active.bytes.saturating_add(incoming) > limits.bytes;
    full || active.first_time.is_some_and(|first| now.since(first) >= limits.age)
}

/// Whether gc seals the segment by the clock alone: it is past its age, or so far ahead
/// of the clock that this must have stood wrong, and no date says how old it is.
pub fn is_old(active: &ActiveSegment, now: Timestamp, limits: &Limits) -> bool {
    let off = |first: Timestamp| now.since(first).max(first.since(now));
    active.first_time.is_some_and(|first| off(first) >= limits.age)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { bytes: 1000, age: Duration::from_secs(60) };

    fn rolls(bytes: u64, incoming: u64, first: Option<i64>, now: i64) -> bool {
        let active = ActiveSegment { bytes, first_time: first.map(Timestamp::from_millis) };
        must_roll(&active, incoming, Timestamp::from_millis(now), &LIMITS)
    }

    #[test]
    fn a_batch_that_just_fits_does_not_roll() {
        assert!(!rolls(900, 100, Some(0), 0));
        assert!(rolls(900, 101, Some(0), 0));
    }

    #[test]
    fn an_empty_segment_takes_a_batch_of_any_size() {
        assert!(!rolls(0, 5000, None, i64::MAX));
    }

    #[test]
    fn age_counts_from_the_first_record_and_a_clock_that_steps_back_does_not_roll() {
        assert!(rolls(100, 1, Some(0), 60_000));
        assert!(!rolls(100, 1, Some(0), 59_999));
        assert!(!rolls(100, 1, Some(60_000), 0));
    }

    #[test]
    fn h056_a_segment_dated_far_ahead_is_sealed_by_gc() {
        let is_old = |first: i64, now: i64| {
            let first_time = Some(Timestamp::from_millis(first));
            is_old(&ActiveSegment { bytes: 1, first_time }, Timestamp::from_millis(now), &LIMITS)
        };
        assert!(is_old(0, 60_000) && is_old(4_070_908_800_000, 1_796_000_000_000));
        assert!(!is_old(0, 59_999) && !is_old(59_999, 0), "the clock may step back a little");
    }
}
