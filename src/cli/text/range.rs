//! The places that `-o` and `seek --to` name, as text. A time may hold colons
//! itself, so a range is split at the one colon where both sides can be read.

use super::when::{is_calendar_time, parse_time};
use crate::model::{Offset, Span, Start, Timestamp};

/// Two times with a colon in each zone, and the one between them.
const MOST_COLONS: usize = 3 + 1 + 3;

/// Reads what `-o` takes: a start, or a half-open range `A:B`, `A:`, `:B`. After
/// `@T1:` a bare text is another time, numbers too; every other place keeps its form.
pub fn parse_span(text: &str, now: Timestamp) -> Result<Span, String> {
    let no_place = match parse_start(text, now) {
        Ok(from) => return Ok(Span { from: Some(from), until: None }),
        Err(why) => why,
    };
    if text.matches(':').count() > MOST_COLONS {
        return Err(no_range(text));
    }
    let (mut spans, mut faults) = (Vec::new(), Vec::new());
    for (colon, _) in text.match_indices(':') {
        match split(&text[..colon], &text[colon + 1..], now) {
            Ok(span) => spans.push(span),
            Err(why) => faults.push(why),
        }
    }
    let one_time = is_calendar_time(text.strip_prefix('@').unwrap_or(text));
    match (spans.as_slice(), faults.as_slice()) {
        ([span], _) => in_order(text, *span),
        ([], faults) if faults.is_empty() || one_time => Err(no_place),
        ([], [why]) => Err(why.clone()),
        _ => Err(no_range(text)),
    }
}

fn no_range(text: &str) -> String {
    format!(
        "{text:?} is no range: give A:B, A:, :B or @T1:@T2, \
         with one colon between two places that can be read"
    )
}

/// Reads one place, as `seek --to` takes it.
pub fn parse_start(text: &str, now: Timestamp) -> Result<Start, String> {
    match text {
        "earliest" | "start" | "beginning" => return Ok(Start::Earliest),
        "latest" | "end" => return Ok(Start::Latest),
        _ => {}
    }
    if let Some(time) = text.strip_prefix('@') {
        return parse_time(time, now).map(Start::Time);
    }
    let count = |digits| number(digits).map(Offset::get);
    match text.as_bytes().first() {
        Some(b'-') => count(&text[1..]).map(Start::Last),
        Some(b'+') => count(&text[1..]).map(Start::AfterStart),
        _ => number(text).map(Start::At),
    }
    .map_err(|fault| match fault {
        NoNumber::TooLarge => too_large(text),
        NoNumber::NotDigits if parse_time(text, now).is_ok() => {
            format!("{text:?} is no place in a log: a time needs an @: @{text}")
        }
        NoNumber::NotDigits => format!(
            "{text:?} is no place in a log: give earliest, latest, an offset N, \
             -N (the last N), +N (N after the start) or @TIME"
        ),
    })
}

/// Reads a bare offset.
pub fn parse_offset(text: &str) -> Result<Offset, String> {
    number(text).map_err(|fault| match fault {
        NoNumber::TooLarge => too_large(text),
        NoNumber::NotDigits => format!("{text:?} is no offset: give a whole number from 0"),
    })
}

enum NoNumber {
    NotDigits,
    TooLarge,
}

fn number(digits: &str) -> Result<Offset, NoNumber> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(NoNumber::NotDigits);
    }
    let number: Option<u64> = digits.parse().ok();
    let offset = number.map(Offset::new).filter(|&offset| offset <= Offset::MAX);
    offset.ok_or(NoNumber::TooLarge)
}

fn too_large(text: &str) -> String {
    format!("{text:?} is beyond the largest offset: give at most {}", Offset::MAX)
}

fn split(left: &str, right: &str, now: Timestamp) -> Result<Span, String> {
    if left.is_empty() && right.is_empty() {
        return Err("\":\" is no range: give a place on one side at least".to_owned());
    }
    let from = side(left, |left| parse_start(left, now))?;
    let until = side(right, |right| match parse_start(right, now) {
        Ok(Start::At(_)) | Err(_) if left.starts_with('@') => {
            parse_time(right, now).map(Start::Time)
        }
        place => place,
    })?;
    Ok(Span { from, until })
}

fn side(
    text: &str,
    parse: impl Fn(&str) -> Result<Start, String>,
) -> Result<Option<Start>, String> {
    (!text.is_empty()).then(|| parse(text)).transpose()
}

/// Refuses a range that can be seen to end before it begins, whatever the log
/// holds: reading it would quietly print nothing.
fn in_order(text: &str, span: Span) -> Result<Span, String> {
    if is_backwards(span) {
        return Err(format!("{text:?} ends before it begins: give the earlier place first"));
    }
    Ok(span)
}

/// Whether a range can be seen to end before it begins, whatever the log holds.
pub fn is_backwards(span: Span) -> bool {
    match (span.from, span.until) {
        (Some(Start::At(from)), Some(Start::At(until))) => until < from,
        (Some(Start::Time(from)), Some(Start::Time(until))) => until < from,
        (Some(Start::AfterStart(from)), Some(Start::AfterStart(until))) => until < from,
        (Some(Start::Last(from)), Some(Start::Last(until))) => until > from,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    /// 2024-01-02T03:04:05Z.
    const NOW: Timestamp = Timestamp::from_millis(1_704_164_645_000);

    const fn at(offset: u64) -> Start {
        Start::At(Offset::new(offset))
    }

    fn time(text: &str) -> Start {
        Start::Time(parse_time(text, NOW).unwrap())
    }

    fn span(text: &str) -> (Option<Start>, Option<Start>) {
        let span = parse_span(text, NOW).unwrap_or_else(|why| panic!("{why}"));
        (span.from, span.until)
    }

    fn refused(text: &str) -> String {
        let why = parse_span(text, NOW).unwrap_err();
        assert_eq!(why.lines().count(), 1, "{why}");
        why
    }

    #[test]
    fn one_place_is_where_reading_begins() {
        let places = [
            ("earliest", Start::Earliest),
            ("start", Start::Earliest),
            ("beginning", Start::Earliest),
            ("latest", Start::Latest),
            ("end", Start::Latest),
            ("0", at(0)),
            ("007", at(7)),
            ("9223372036854775807", Start::At(Offset::MAX)),
            ("-5", Start::Last(5)),
            ("-0", Start::Last(0)),
            ("+5", Start::AfterStart(5)),
            ("+0", Start::AfterStart(0)),
            ("@-1h", time("-1h")),
            ("@1 hour ago", time("-1h")),
            ("@yesterday", time("yesterday")),
            ("@1704067200", time("2024-01-01")),
            ("@2024-01-01T10:20", time("2024-01-01T10:20")),
            ("@2024-01-01T10:20:30+05:30", time("2024-01-01T10:20:30+05:30")),
        ];
        for (text, place) in places {
            assert_eq!(parse_start(text, NOW), Ok(place), "{text}");
            assert_eq!(span(text), (Some(place), None), "{text}");
        }
    }

    #[test]
    fn many_colons_are_refused_without_trying_each() {
        let begin = std::time::Instant::now();
        assert!(refused(&":".repeat(20_000)).contains("is no range: give "));
        let took = begin.elapsed();
        assert!(took < std::time::Duration::from_secs(1), "that took {took:?}");
        let zoned = "2024-01-01T00:00:00+00:00";
        assert_eq!(span(&format!("@{zoned}:@{zoned}")), (Some(time(zoned)), Some(time(zoned))));
    }

    #[test]
    fn a_range_takes_any_place_on_either_side() {
        assert_eq!(span("3:7"), (Some(at(3)), Some(at(7))));
        assert_eq!(span("3:3"), (Some(at(3)), Some(at(3))));
        assert_eq!(span("3:"), (Some(at(3)), None));
        assert_eq!(span(":7"), (None, Some(at(7))));
        assert_eq!(span("-5:-2"), (Some(Start::Last(5)), Some(Start::Last(2))));
        assert_eq!(span("+5:+9"), (Some(Start::AfterStart(5)), Some(Start::AfterStart(9))));
        assert_eq!(span("start:end"), (Some(Start::Earliest), Some(Start::Latest)));
        assert_eq!(span("100:-1"), (Some(at(100)), Some(Start::Last(1))));
        assert_eq!(span("7:@-1h"), (Some(at(7)), Some(time("-1h"))));
        assert_eq!(span(":@2024-01-01T10:20:30"), (None, Some(time("2024-01-01T10:20:30"))));
    }

    #[test]
    fn after_a_time_comes_a_time_with_or_without_its_at_sign() {
        let (early, late) = ("2024-01-01T10:20:30+05:30", "2024-01-01T10:20");
        let both = (Some(time(early)), Some(time(late)));
        assert_eq!(span(&format!("@{early}:{late}")), both);
        assert_eq!(span(&format!("@{early}:@{late}")), both);
        assert_eq!(span("@2024-01-01:2024-01-02").1, Some(time("2024-01-02")));
        assert_eq!(span("@1704067200:1704153600").1, Some(time("2024-01-02")));
        assert_eq!(span("@1704067200:2024-01-01T10:20").1, Some(time("2024-01-01T10:20")));
        assert_eq!(span("@2024-01-01T10:20:1704153600").1, Some(time("2024-01-02")));
        assert_eq!(span("@yesterday:today"), (Some(time("yesterday")), Some(time("today"))));
        assert_eq!(span("@-2h:-1h"), (Some(time("-2h")), Some(time("-1h"))));
    }

    #[test]
    fn after_a_time_every_place_but_a_bare_offset_keeps_its_form() {
        assert!(refused("@-2h:1704067200000000").contains("is beyond the year 9999"));
        assert_eq!(span("@-2h:latest").1, Some(Start::Latest));
        assert_eq!(span("@-2h:-1").1, Some(Start::Last(1)));
        assert_eq!(span("@-2h:+7").1, Some(Start::AfterStart(7)));
    }

    #[test]
    fn a_whole_time_is_never_split_and_an_open_side_needs_its_own_colon() {
        let place = time("2024-01-01T10:20:30");
        assert_eq!(span("@2024-01-01T10:20:30"), (Some(place), None));
        assert_eq!(span("@2024-01-01T10:20:30:"), (Some(place), None));
        assert_eq!(span("@2024-01-01T10:20:"), (Some(time("2024-01-01T10:20")), None));
        assert_eq!(span("@-1h:"), (Some(time("-1h")), None));
    }

    #[test]
    fn h059_an_impossible_moment_is_named_whole() {
        for text in ["2024-02-30T00:00:00Z", "2024-01-01T24:30:00", "2024-01-01T24:30"] {
            let wanted = format!("{text:?} is not in the calendar: ");
            assert!(refused(&format!("@{text}")).starts_with(&wanted));
            assert!(parse_start(&format!("@{text}"), NOW).unwrap_err().starts_with(&wanted));
        }
        assert!(refused("@1e400").starts_with("\"1e400\" is no time: "));
        assert!(refused("@-1").starts_with("\"-1\" has no unit: "));
        assert!(refused("@2024-01-01:2024-02-30").starts_with("\"2024-02-30\" is not in the"));
    }

    #[test]
    fn what_names_no_place_is_refused() {
        for text in ["", "x", "-", "+", "--5", "+-5", "1.5", "1e3", " 5", "5 "] {
            let wanted = format!("{text:?} is no place in a log: give earliest, latest");
            assert!(refused(text).starts_with(&wanted), "{text:?}");
        }
        for text in ["-1h", "yesterday", "2024-01-01", "2024-01-01T10:20:30"] {
            let wanted = format!("{text:?} is no place in a log: a time needs an @: @{text}");
            assert_eq!(refused(text), wanted);
        }
        assert!(refused("-2h:-1h").ends_with("a time needs an @: @-2h"));
        assert!(refused("@16:48").starts_with("\"16\" is too small for Unix seconds"));
        assert!(refused("1:x").starts_with("\"x\" is no place"));
        assert!(refused("x:1").starts_with("\"x\" is no place"));
        for text in [":", "::", "1:2:3", "1::2", "@@5:", "@", "@:", "@5:@@6", "10:20:30"] {
            refused(text);
        }
        assert!(refused("1:2:3").starts_with("\"1:2:3\" is no range: "));
        assert!(refused(":").starts_with("\":\" is no range: "));
    }

    #[test]
    fn offsets_beyond_63_bits_are_refused() {
        let large = "9223372036854775808";
        for text in [large.to_owned(), format!("-{large}"), format!("+{large}")] {
            let wanted =
                format!("{text:?} is beyond the largest offset: give at most 9223372036854775807");
            assert_eq!(refused(&text), wanted);
        }
        assert!(refused("99999999999999999999999999:").contains("beyond the largest offset"));
        assert!(parse_offset(large).is_err());
        assert_eq!(parse_offset("9223372036854775807"), Ok(Offset::MAX));
    }

    #[test]
    fn an_offset_alone_is_digits_only() {
        assert_eq!(parse_offset("0"), Ok(Offset::ZERO));
        for text in ["", "-1", "+1", "1:2", "@1", "end", " 1", "1.0"] {
            let why = parse_offset(text).unwrap_err();
            assert_eq!(why, format!("{text:?} is no offset: give a whole number from 0"));
        }
    }

    #[test]
    fn a_range_that_ends_before_it_begins_is_refused() {
        for text in ["7:3", "@today:yesterday", "@yesterday:1000000000", "+9:+5", "-2:-5"] {
            let wanted = format!("{text:?} ends before it begins: give the earlier place first");
            assert_eq!(refused(text), wanted);
        }
    }

    proptest! {
        #[test]
        fn two_times_split_at_the_colon_between_them(
            a in "@2024-01-0[1-9](T1[0-9]:[0-5][0-9](:[0-5][0-9])?(Z|[+-]0[0-9]:30)?)?",
            b in "@?2025-01-0[1-9](T1[0-9]:[0-5][0-9](:[0-5][0-9])?(Z|[+-]0[0-9]:30)?)?",
        ) {
            let both = (Some(time(&a[1..])), Some(time(b.trim_start_matches('@'))));
            prop_assert_eq!(span(&format!("{a}:{b}")), both);
        }

        #[test]
        fn no_text_makes_it_panic(text in any::<String>(), near in "[-@:+0-9hT]{0,12}") {
            for text in [text, near] {
                if let Err(why) = parse_span(&text, NOW) {
                    prop_assert_eq!(why.lines().count(), 1);
                }
            }
        }
    }
}
