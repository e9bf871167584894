//! Durations as people write them (`90s`, `1h30m`, `PT1H30M`) and how they are
//! shown. A day has 24 hours and a week seven days; months and years have no
//! length. Moments are the business of [`super::when`].

use std::time::Duration;

use jiff::SpanRelativeTo;

/// What is shown, the longest first; each also reads back.
const UNITS: [(&str, u128); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// As many days as the library reads: what is longer could be typed in seconds, but
/// would be shown in days, and so could not be typed again.
const LONGEST: Duration = Duration::from_secs(7_304_484 * 86_400);

/// Reads a duration. A number needs its unit, and less than nothing is refused.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    read(text).ok_or_else(|| {
        format!(
            "{text:?} is no duration: give numbers with their units, \
             such as 90s, 1h30m, 500ms, 2d, 1w or PT1H30M"
        )
    })
}

/// jiff reads more than is promised here, such as signs, clock faces and lists
/// with commas; the characters alone keep those out.
fn read(text: &str) -> Option<Duration> {
    let promised = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '.' | 'µ');
    if !text.chars().all(promised) || text.ends_with("ago") || text.ends_with(' ') {
        return None;
    }
    let span: jiff::Span = text.parse().ok()?;
    let exact = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    exact.try_into().ok().filter(|&duration| duration <= LONGEST)
}

/// Shows a duration exactly and without spaces: `1h30m`, `2d`, `500ms`, `0s`.
/// Whatever [`parse_duration`] returns reads back as the same.
pub fn show_duration(duration: Duration) -> String {
    let mut rest = duration.as_nanos();
    let mut shown = String::new();
    for (unit, nanos) in UNITS {
        if rest >= nanos {
            shown.push_str(&format!("{}{unit}", rest / nanos));
            rest %= nanos;
        }
    }
    if shown.is_empty() { "0s".to_owned() } else { shown }
}

/// Shows a duration for people, cut to its two largest units from days to seconds:
/// `1m13s`, `2s`, `350ms`.
pub fn brief_duration(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        return show_duration(Duration::from_millis(u64::from(duration.subsec_millis())));
    }
    let mut seconds = duration.as_secs();
    for (unit, second) in [(86_400, 3600), (3600, 60)] {
        if seconds >= unit {
            seconds -= seconds % second;
            break;
        }
    }
    show_duration(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    fn seconds(text: &str) -> u64 {
        let duration = parse_duration(text).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(duration.subsec_nanos(), 0, "{text}");
        duration.as_secs()
    }

    #[test]
    fn h060_three_forms_of_ninety_minutes_are_equal() {
        assert_eq!(["90m", "1h30m", "PT1H30M"].map(seconds), [5400; 3]);
        assert_eq!(seconds("0s"), 0);
    }

    #[test]
    fn h060_no_unit_a_sign_nothing_and_too_much_are_refused_in_one_line() {
        for text in [
            "-5m",
            "+5m",
            "99999999999999d",
            "1111111111112s",
            "99999999999999999999999s",
            "1",
            "0",
            "",
        ] {
            let why = parse_duration(text).unwrap_err();
            assert!(why.starts_with(&format!("{text:?} is no duration: give ")), "{why}");
            assert!(!why.contains('\n'), "{why}");
        }
    }

    #[test]
    fn every_unit_has_its_short_and_long_names() {
        assert_eq!(["90s", "90sec", "90 seconds", "1m30s", "PT90S"].map(seconds), [90; 5]);
        assert_eq!(["2d", "2 days", "48h", "48 hours", "P2D"].map(seconds), [172_800; 5]);
        assert_eq!(["1w", "1 week", "7d", "P1W"].map(seconds), [604_800; 4]);
        assert_eq!(["1.5h", "1 hour 30 min", "1h 30m", "5400000ms"].map(seconds), [5400; 4]);
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("500us"), parse_duration("500µs"));
    }

    #[test]
    fn what_is_no_plain_duration_is_refused() {
        let bad = [
            " ",
            "s",
            "h1",
            "1h30",
            "30m1h",
            "1 month",
            "1y",
            "P1M",
            "P1Y",
            "P",
            "PT",
            "P-1D",
            "1:30:00",
            "1d 02:00:00",
            "1h,30m",
            "1h ago",
            "0s ago",
            "1e3s",
            "1M",
            " 1h",
            "1h ",
            "1h\n",
            "٣s",
            "0x10s",
            "ever",
            "1d-2h",
        ];
        for text in bad {
            assert!(parse_duration(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn shown_compactly() {
        let shown = |text| show_duration(parse_duration(text).unwrap());
        assert_eq!(shown("PT1H30M"), "1h30m");
        assert_eq!(shown("48h"), "2d");
        assert_eq!(shown("1w"), "7d");
        assert_eq!(shown("0.5s"), "500ms");
        assert_eq!(shown("0ms"), "0s");
        assert_eq!(shown("90061.000001s"), "1d1h1m1s1us");
        assert!(show_duration(Duration::MAX).starts_with("213503982334601d"));
    }

    #[test]
    fn for_people_two_units_are_enough() {
        let brief = |text| brief_duration(parse_duration(text).unwrap());
        assert_eq!(brief("73.456s"), "1m13s");
        assert_eq!(brief("2.9s"), "2s");
        assert_eq!(brief("350.7ms"), "350ms");
        assert_eq!(brief("999us"), "0s");
        assert_eq!(brief("1h2m3s"), "1h2m");
        assert_eq!(brief("1d59m"), "1d");
        assert_eq!(brief("90061.5s"), "1d1h");
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(seconds in 0..600_000_000_000_u64, nanos in 0..1_000_000_000_u32) {
            for duration in [Duration::new(seconds, nanos), Duration::from_secs(seconds)] {
                prop_assert_eq!(parse_duration(&show_duration(duration)), Ok(duration));
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in any::<String>(), near in "[-PT0-9.]{0,30}[a-z ]{0,5}") {
            for text in [text, near] {
                if let Ok(duration) = parse_duration(&text) {
                    prop_assert_eq!(parse_duration(&show_duration(duration)), Ok(duration));
                }
            }
        }
    }
}
