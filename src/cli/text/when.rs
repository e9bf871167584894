//! Moments as people write them. Without a zone they are UTC, whatever the
//! machine's zone is; the clock is passed in, never read.

use std::time::Duration;

use super::duration::parse_duration;
use crate::model::Timestamp;

/// Bare numbers from here on count milliseconds, smaller ones seconds: this many
/// seconds end in the year 5138, this many milliseconds in 1973.
const FIRST_MILLIS: i64 = 100_000_000_000;

/// The end of the year 9999.
const LAST_MILLIS: i64 = 253_402_300_799_999;

/// Smaller numbers are no seconds since 1970: this many end in 1973. They are more
/// likely an hour, a year or an offset. Zero stays, as all time begins there.
const FIRST_SECONDS: i64 = 100_000_000;

const DAY: Duration = Duration::from_secs(86_400);

/// Reads a moment: RFC 3339, Unix seconds or milliseconds, how long before `now`
/// (`-1h`, `1 hour ago`), `now`, `today`, `yesterday`.
pub fn parse_time(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    let found = match text {
        "now" => Some(now),
        "today" => Some(midnight(now)),
        "yesterday" => Some(midnight(now).before(DAY)),
        _ if is_number(text) => unix(text),
        _ if is_calendar_time(text) => calendar(text),
        _ => ago(text, now),
    };
    found.filter(|&moment| has_a_date(moment)).ok_or_else(|| refusal(text))
}

/// Whether `text` has the shape of a date, or of a date and a time of day to the
/// minute or finer, with or without a zone. The numbers may still be impossible.
pub fn is_calendar_time(text: &str) -> bool {
    let Some(time) = after(text, "dddd-dd-dd") else { return false };
    if time.is_empty() {
        return true;
    }
    let Some(rest) = ["Tdd:dd", "tdd:dd", " dd:dd"].iter().find_map(|form| after(time, form))
    else {
        return false;
    };
    is_zone(after(rest, ":dd").map_or(rest, after_fraction))
}

fn is_zone(text: &str) -> bool {
    let forms = ["Z", "z", "+dd:dd", "-dd:dd", "+dddd", "-dddd", "+dd", "-dd"];
    text.is_empty() || forms.iter().any(|form| after(text, form) == Some(""))
}

/// What follows `form` at the beginning of `text`; in a form, `d` is any digit.
fn after<'a>(text: &'a str, form: &str) -> Option<&'a str> {
    let (head, rest) = text.split_at_checked(form.len())?;
    let fits = |(c, f): (u8, u8)| if f == b'd' { c.is_ascii_digit() } else { c == f };
    head.bytes().zip(form.bytes()).all(fits).then_some(rest)
}

fn after_fraction(text: &str) -> &str {
    let Some(digits) = text.strip_prefix('.') else { return text };
    let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() < digits.len() { rest } else { text }
}

/// A text of that shape, completed to what jiff reads, so that jiff judges the
/// calendar: leap years, hours, offsets.
fn calendar(text: &str) -> Option<Timestamp> {
    let dated = "yyyy-mm-dd".len();
    let timed = "yyyy-mm-ddThh:mm".len();
    let whole = match text.get(timed..) {
        None => format!("{}T00:00Z", text.get(..dated)?),
        Some(rest) if rest.contains(['Z', 'z', '+', '-']) => text.to_owned(),
        Some(_) => format!("{text}Z"),
    };
    if let Ok(moment) = whole.parse::<jiff::Timestamp>() {
        return Some(Timestamp::from_millis(moment.as_millisecond()));
    }
    // jiff keeps clear of the calendar's last days, so that every zone has them.
    let (day, rest) = whole.strip_prefix("9999-12-")?.split_at_checked(2)?;
    let earlier = format!("9999-12-{}{rest}", day.parse::<u8>().ok().filter(|&day| day >= 30)? - 2);
    let moment: jiff::Timestamp = earlier.parse().ok().filter(|_| day <= "31")?;
    Some(Timestamp::from_millis(moment.as_millisecond() + 2 * 86_400_000))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn unix(digits: &str) -> Option<Timestamp> {
    let number: i64 = digits.parse().ok().filter(|&number| !is_too_small(number))?;
    let millis = if number >= FIRST_MILLIS { number } else { number * 1000 };
    Some(Timestamp::from_millis(millis))
}

fn is_too_small(number: i64) -> bool {
    (1..FIRST_SECONDS).contains(&number)
}

fn ago(text: &str, now: Timestamp) -> Option<Timestamp> {
    let length = text.strip_prefix('-').or_else(|| text.strip_suffix(" ago"))?;
    parse_duration(length).ok().map(|length| now.before(length))
}

fn midnight(now: Timestamp) -> Timestamp {
    now.before(Duration::from_millis(now.as_millis().rem_euclid(86_400_000).unsigned_abs()))
}

/// Whether a calendar holds it; what does not was meant otherwise, such as
/// nanoseconds taken for milliseconds.
fn has_a_date(moment: Timestamp) -> bool {
    let millis = moment.as_millis();
    jiff::Timestamp::from_millisecond(millis).is_ok() || (0..=LAST_MILLIS).contains(&millis)
}

fn refusal(text: &str) -> String {
    let what = if is_calendar_time(text) {
        "is not in the calendar"
    } else if text.parse().is_ok_and(is_too_small) {
        "is too small for Unix seconds, which begin at 100000000 here"
    } else if is_number(text) {
        "is beyond the year 9999"
    } else if text.strip_prefix('-').is_some_and(is_number) {
        "has no unit"
    } else {
        "is no time"
    };
    format!(
        "{text:?} {what}: give RFC 3339 (2026-01-31T12:00:00Z; no zone is UTC), \
         Unix seconds or milliseconds, -1h, 1 hour ago, yesterday, today or now"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    /// 2024-01-02T03:04:05.006Z.
    const NOW: Timestamp = Timestamp::from_millis(1_704_164_645_006);
    /// 2024-01-01T00:00:00Z.
    const NEW_YEAR: Timestamp = Timestamp::from_millis(1_704_067_200_000);

    fn at(text: &str) -> String {
        parse_time(text, NOW).unwrap_or_else(|why| panic!("{why}")).to_string()
    }

    #[test]
    fn h058_a_zone_with_minutes_counts_whole() {
        let forms = [
            "2024-01-01T05:30:00+05:30",
            "2024-01-01T00:00:00Z",
            "1704067200000",
            "2023-12-31T20:30:00-03:30",
            "1704067200",
            "2024-01-01 05:30+0530",
            "2024-01-01t02:00:00+02",
            "2024-01-01T00:00:00.000z",
        ];
        for text in forms {
            assert_eq!(parse_time(text, NOW), Ok(NEW_YEAR), "{text}");
        }
    }

    #[test]
    fn h059_without_a_zone_it_is_utc() {
        let forms =
            ["2024-01-01T00:00:00", "2024-01-01 00:00:00", "2024-01-01T00:00", "2024-01-01"];
        for text in forms {
            assert_eq!(at(text), "2024-01-01T00:00:00.000Z", "{text}");
        }
        assert_eq!(at("2024-02-29T23:59:59.1239"), "2024-02-29T23:59:59.123Z");
        assert_eq!(at("2016-12-31T23:59:60Z"), "2016-12-31T23:59:59.000Z");
    }

    #[test]
    fn h059_impossible_moments_are_refused_in_one_line_that_says_what_is_accepted() {
        let bad = [
            ("2024-02-30T00:00:00Z", "is not in the calendar"),
            ("2024-02-30", "is not in the calendar"),
            ("2023-02-29", "is not in the calendar"),
            ("2024-13-01", "is not in the calendar"),
            ("2024-01-01T24:30:00", "is not in the calendar"),
            ("2024-01-01T10:60", "is not in the calendar"),
            ("2024-01-01T10:00+99:00", "is not in the calendar"),
            ("1e400", "is no time"),
            ("-1", "has no unit"),
            ("99999999999999999999999", "is beyond the year 9999"),
            ("1704067200000000", "is beyond the year 9999"),
            ("16", "is too small for Unix seconds, which begin at 100000000 here"),
            ("2026", "is too small for Unix seconds, which begin at 100000000 here"),
            ("99999999", "is too small for Unix seconds, which begin at 100000000 here"),
            ("", "is no time"),
        ];
        for (text, what) in bad {
            let why = parse_time(text, NOW).unwrap_err();
            assert!(why.starts_with(&format!("{text:?} {what}: give RFC 3339")), "{why}");
            assert!(!why.contains('\n'), "{why}");
        }
    }

    #[test]
    fn what_has_no_shape_of_a_time_is_refused() {
        let bad = [
            "tomorrow",
            "noon",
            "12:00",
            "2024-1-1",
            "2024-01-01T10",
            "2024-01-01T10:00:",
            "2024-01-01T10:00:00.",
            "2024-01-01T10:00.5",
            "2024-01-01Z",
            "2024-01-01T10:00+",
            "2024-01-01T10:00[UTC]",
            "2024-01-01T10:00Z[Asia/Kolkata]",
            "2024-01-01T10:00+05:30:15",
            "2024-01-01T10:00 Z",
            "2024-01-01x10:00",
            " 2024-01-01",
            "2024-01-01 ",
            "20240101T000000Z",
            "٢٠٢٤-01-01",
            "+1h",
            "--1h",
            "ago",
            " ago",
            "1 ago",
            "1 month ago",
            "-1h ago",
            "1h ago ago",
            "-99999999999999d",
            "-5000000d",
            "1704067200.5",
        ];
        for text in bad {
            assert!(parse_time(text, NOW).is_err(), "{text:?}");
        }
    }

    #[test]
    fn small_numbers_are_seconds_and_large_ones_milliseconds() {
        assert_eq!(at("0"), "1970-01-01T00:00:00.000Z");
        assert_eq!(at("100000000"), "1973-03-03T09:46:40.000Z");
        assert_eq!(at("99999999999"), "5138-11-16T09:46:39.000Z");
        assert_eq!(at("100000000000"), "1973-03-03T09:46:40.000Z");
    }

    #[test]
    fn the_calendar_has_its_last_days() {
        for text in [
            "9999-12-31T23:59:59.999Z",
            "9999-12-31T23:59:59.999",
            "9999-12-31T18:59:59.999-05:00",
            "253402300799999",
        ] {
            let moment = parse_time(text, NOW);
            assert_eq!(moment, Ok(Timestamp::from_millis(253_402_300_799_999)), "{text}");
        }
        let day = Timestamp::from_millis(253_402_214_400_000);
        assert_eq!(parse_time("9999-12-31", NOW), Ok(day));
        assert_eq!(parse_time("9999-12-30T24:00", NOW).ok(), None);
        for text in ["9999-12-32", "9999-12-31T24:00", "9999-12-31T23:00-05:00", "253402300800000"]
        {
            assert!(parse_time(text, NOW).is_err(), "{text}");
        }
    }

    #[test]
    fn how_long_ago_counts_from_the_clock_given() {
        for text in ["-1h", "1 hour ago", "1h ago", "60 minutes ago", "-PT1H", "-3600s"] {
            assert_eq!(at(text), "2024-01-02T02:04:05.006Z", "{text}");
        }
        for text in ["-2d", "2 days ago", "48 hours ago"] {
            assert_eq!(at(text), "2023-12-31T03:04:05.006Z", "{text}");
        }
        assert_eq!(at("-0s"), at("now"));
    }

    #[test]
    fn the_words_mean_days_of_utc() {
        assert_eq!(at("now"), NOW.to_string());
        assert_eq!(at("today"), "2024-01-02T00:00:00.000Z");
        assert_eq!(at("yesterday"), "2024-01-01T00:00:00.000Z");
        let before_1970 = Timestamp::from_millis(-1);
        let today = parse_time("today", before_1970).map(|day| day.to_string());
        assert_eq!(today.as_deref(), Ok("1969-12-31T00:00:00.000Z"));
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(millis in -62_000_000_000_000..253_402_000_000_000_i64) {
            let moment = Timestamp::from_millis(millis);
            prop_assert_eq!(parse_time(&moment.to_string(), NOW), Ok(moment));
        }

        #[test]
        fn no_text_makes_it_panic(text in any::<String>(), near in "[-+0-9TZ:. ]{0,30}", now: i64) {
            let now = Timestamp::from_millis(now);
            for text in [text.as_str(), near.as_str(), "yesterday", "-1h"] {
                if let Err(why) = parse_time(text, now) {
                    prop_assert_eq!(why.lines().count(), 1);
                }
            }
        }
    }
}
