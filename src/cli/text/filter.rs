//! The conditions that `consume` prints by: a record must meet each kind that is given.

use regex::bytes::Regex;

use crate::format::record::RecordView;
use crate::model::Timestamp;

/// What a record must have to be printed; by default nothing.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// One of these keys, if there are any.
    pub keys: Vec<Vec<u8>>,
    /// Each of these names with exactly its value.
    pub headers: Vec<(Vec<u8>, Vec<u8>)>,
    /// A value with a match; a tombstone has none.
    pub grep: Option<Regex>,
    /// A time from the first on and before the second.
    pub own_time: Option<(Option<Timestamp>, Option<Timestamp>)>,
}

impl Filter {
    /// Whether all records pass.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
            && self.headers.is_empty()
            && self.grep.is_none()
            && matches!(self.own_time, None | Some((None, None)))
    }

    /// Whether `record` meets every condition.
    pub fn passes(&self, record: &RecordView<'_>) -> bool {
        self.passes_time(record.time())
            && self.passes_key(record.content.key)
            && self.headers.iter().all(|header| has_header(record, header))
            && self.passes_grep(record.content.value)
    }

    fn passes_time(&self, time: Timestamp) -> bool {
        self.own_time.is_none_or(|(since, until)| {
            since.is_none_or(|since| since <= time) && until.is_none_or(|until| time < until)
        })
    }

    fn passes_key(&self, key: Option<&[u8]>) -> bool {
        let is = |key| self.keys.iter().any(|wanted| wanted == key);
        self.keys.is_empty() || key.is_some_and(is)
    }

    fn passes_grep(&self, value: Option<&[u8]>) -> bool {
        let matches = |regex: &Regex| value.is_some_and(|value| regex.is_match(value));
        self.grep.as_ref().is_none_or(matches)
    }
}

fn has_header(record: &RecordView<'_>, (name, value): &(Vec<u8>, Vec<u8>)) -> bool {
    let wanted = (&name[..], Some(&value[..]));
    { record.content.headers }.any(|header| header == wanted)
}

/// Reads `NAME=VALUE`. The first `=` parts them; either may be empty.
///
/// # Errors
/// There is none.
pub fn parse_header(text: &str) -> Result<(Vec<u8>, Vec<u8>), String> {
    match text.split_once('=') {
        Some((name, value)) => Ok((name.into(), value.into())),
        None => Err(format!("{text:?} is no header: give NAME=VALUE")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::record::{Content, Headers, push_header};
    use crate::model::Offset;
    use proptest::prelude::{prop_assert_eq, proptest};

    fn passes(filter: &Filter, content: Content<'_>) -> bool {
        filter.passes(&RecordView {
            offset: Offset::new(7),
            next: Offset::new(8),
            append_time: Timestamp::from_millis(1000),
            content,
        })
    }

    fn keyed(key: Option<&[u8]>) -> Content<'_> {
        Content { key, ..Content::of_value(b"v") }
    }

    fn grep(pattern: &str) -> Filter {
        Filter { grep: Some(Regex::new(pattern).unwrap()), ..Filter::default() }
    }

    #[test]
    fn an_empty_filter_passes_everything() {
        let open = Filter { own_time: Some((None, None)), ..Filter::default() };
        for filter in [Filter::default(), open] {
            assert!(filter.is_empty());
            assert!(passes(&filter, Content::default()));
        }
        assert!(!grep("").is_empty());
        assert!(!Filter { keys: vec![vec![]], ..Filter::default() }.is_empty());
        assert!(!Filter { headers: vec![(vec![], vec![])], ..Filter::default() }.is_empty());
        let since = Some((Some(Timestamp::default()), None));
        assert!(!Filter { own_time: since, ..Filter::default() }.is_empty());
    }

    #[test]
    fn any_one_of_the_keys_will_do() {
        let filter = Filter { keys: vec![b"a".to_vec(), b"".to_vec()], ..Filter::default() };
        assert!(passes(&filter, keyed(Some(b"a"))));
        assert!(passes(&filter, keyed(Some(b""))));
        assert!(!passes(&filter, keyed(Some(b"b"))));
        assert!(!passes(&filter, keyed(Some(b"aa"))));
        assert!(!passes(&filter, keyed(None)));
    }

    #[test]
    fn all_of_the_headers_must_be_there() {
        let mut block = Vec::new();
        for (name, value) in [("a", Some("1")), ("a", Some("2")), ("b", None), ("c", Some(""))] {
            push_header(name.as_bytes(), value.map(str::as_bytes), &mut block);
        }
        let content = Content { headers: Headers::in_block(&block), ..Content::default() };
        let has = |texts: &[&str]| {
            let headers = texts.iter().map(|text| parse_header(text).unwrap()).collect();
            passes(&Filter { headers, ..Filter::default() }, content)
        };
        assert!(has(&["a=1"]) && has(&["a=2"]) && has(&["a=1", "a=2", "c="]));
        assert!(!has(&["a=1", "a=3"]) && !has(&["a="]) && !has(&["A=1"]) && !has(&["d=1"]));
        assert!(!has(&["b="]), "null is no empty value");
    }

    #[test]
    fn the_pattern_is_looked_for_in_the_bytes_of_the_value() {
        let value = |pattern, value| passes(&grep(pattern), Content::of_value(value));
        assert!(value("b+", b"abc") && !value("^b", b"abc") && value("", b""));
        assert!(value("(?i)É", "xé".as_bytes()) && value(r"\d{3}", b"a123"));
        assert!(value(r"(?-u)\xff$", b"a\xff") && value("b", b"\xff\0b"));
        assert!(value("(?m)^b$", b"a\nb\nc") && !value("a.b", b"a\nb"));
        assert!(value(r"^\p{Lu}\w+$", "Ärger".as_bytes()));
    }

    #[test]
    fn a_tombstone_matches_no_pattern() {
        assert!(!passes(&grep(""), Content::default()));
        assert!(!passes(&grep("k"), Content { key: Some(b"k"), ..Content::default() }));
    }

    #[test]
    fn the_time_is_the_own_one_from_the_first_to_before_the_second() {
        let at = Timestamp::from_millis;
        let passing = |since, until, own_time| {
            let filter = Filter { own_time: Some((since, until)), ..Filter::default() };
            passes(&filter, Content { own_time, ..Content::default() })
        };
        let (five, nine) = (Some(at(5)), Some(at(9)));
        assert!(!passing(five, nine, Some(at(4))) && passing(five, nine, Some(at(5))));
        assert!(passing(five, nine, Some(at(8))) && !passing(five, nine, Some(at(9))));
        assert!(passing(None, nine, Some(at(-4))) && passing(five, None, Some(at(i64::MAX))));
        assert!(!passing(five, nine, None), "else it is that of appending");
        assert!(passing(Some(at(1000)), Some(at(1001)), None));
    }

    #[test]
    fn each_kind_of_condition_counts() {
        let filter = Filter { keys: vec![b"k".to_vec()], ..grep("v") };
        assert!(passes(&filter, keyed(Some(b"k"))));
        assert!(!passes(&filter, keyed(Some(b"j"))));
        assert!(!passes(&filter, Content { key: Some(b"k"), ..Content::of_value(b"w") }));
    }

    #[test]
    fn a_header_is_split_at_its_first_sign() {
        assert_eq!(parse_header("a=b=c"), Ok((b"a".to_vec(), b"b=c".to_vec())));
        assert_eq!(parse_header("=").unwrap(), Default::default());
        let why = parse_header("a\nb").unwrap_err();
        assert_eq!(why, r#""a\nb" is no header: give NAME=VALUE"#);
    }

    proptest! {
        #[test]
        fn a_literal_pattern_finds_what_stands_there(before: String, text: String, after: Vec<u8>) {
            let mut value = [before.as_bytes(), text.as_bytes()].concat();
            value.extend(after);
            let filter = grep(&regex::escape(&text));
            prop_assert_eq!(passes(&filter, Content::of_value(&value)), true);
        }
    }
}
