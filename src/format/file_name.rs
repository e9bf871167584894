//! Every name in a log's directory is built and recognised here, and nowhere else.
//! Names that are not recognised belong to somebody else and are left alone.

use std::ffi::OsStr;
use std::ops::Range;

use crate::model::{GroupName, Offset, Position};

/// Id, version and settings; its presence makes a directory a log.
pub const SETTINGS: &str = "log.json";
/// The append lock.
pub const LOCK: &str = "lock";
/// The two-slot file with the log start.
pub const START: &str = "start";
/// The two-slot file that says how far the log is written and synced.
pub const END: &str = "end";
/// The table of sealed segments, derived.
pub const SEGMENT_TABLE: &str = "segments.index";
/// The directory of checkpoints.
pub const GROUPS: &str = "groups";
/// The directory of the key index, derived; compaction makes its files there too.
pub const KEYS: &str = "keys";
/// The directory of bytes set aside.
pub const QUARANTINE: &str = "quarantine";

const SEGMENT: &str = ".log";
const INDEX: &str = ".index";
const CHECKPOINT: &str = ".checkpoint";
const HOLDER: &str = ".holder";
const HISTORY: &str = ".history";
const KEY_TABLE: &str = ".table";
const DEAD: &str = ".dead";
const TEMPORARY: &str = ".tmp";
/// Twenty digits hold every `u64`, so that names sort as their numbers do.
const DIGITS: usize = 20;

/// `00000000000004750000.log`
pub fn segment(base: Offset) -> String {
    format!("{base:0DIGITS$}{SEGMENT}")
}

/// `00000000000004750000.index`
pub fn index(base: Offset) -> String {
    format!("{base:0DIGITS$}{INDEX}")
}

/// The base offset in a segment's name; `None` for any other name.
pub fn parse_segment(name: &OsStr) -> Option<Offset> {
    parse_numbered(name, SEGMENT)
}

/// The base offset in an index's name; `None` for any other name.
pub fn parse_index(name: &OsStr) -> Option<Offset> {
    parse_numbered(name, INDEX)
}

/// `00000000000000000000-00000000000004750000.table`, of the offsets from `range`'s start
/// to before its end.
pub fn key_table(range: &Range<Offset>) -> String {
    format!("{:0DIGITS$}-{:0DIGITS$}{KEY_TABLE}", range.start, range.end)
}

/// The range in a key table's name; `None` for any other name.
pub fn parse_key_table(name: &OsStr) -> Option<Range<Offset>> {
    let (first, next) = name.to_str()?.strip_suffix(KEY_TABLE)?.split_once('-')?;
    let range = parse_number(first)?..parse_number(next)?;
    (range.start < range.end).then_some(range)
}

fn parse_numbered(name: &OsStr, suffix: &str) -> Option<Offset> {
    parse_number(name.to_str()?.strip_suffix(suffix)?)
}

fn parse_number(digits: &str) -> Option<Offset> {
    if digits.len() != DIGITS || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let offset = Offset::new(digits.parse().ok()?);
    (offset <= Offset::MAX).then_some(offset)
}

/// `billing.checkpoint`
pub fn checkpoint(group: &GroupName) -> String {
    format!("{group}{CHECKPOINT}")
}

/// `billing.holder`
pub fn holder(group: &GroupName) -> String {
    format!("{group}{HOLDER}")
}

/// `billing.history`
pub fn history(group: &GroupName) -> String {
    format!("{group}{HISTORY}")
}

/// `billing.dead`, a log
pub fn dead_letters(group: &GroupName) -> String {
    format!("{group}{DEAD}")
}

/// The group in a checkpoint's name; `None` for any other name.
pub fn parse_checkpoint(name: &OsStr) -> Option<GroupName> {
    name.to_str()?.strip_suffix(CHECKPOINT)?.parse().ok()
}

/// A name for a file that is being written and will get its real name later.
pub fn temporary(number: u32) -> String {
    format!("{number}{TEMPORARY}")
}

/// Whether a name is one of [`temporary`]'s.
pub fn is_temporary(name: &OsStr) -> bool {
    let stem = name.to_str().and_then(|name| name.strip_suffix(TEMPORARY));
    let number = stem.and_then(|stem| stem.parse().ok());
    // The number's text is one of many that read as it: +7.tmp is somebody else's.
    number.is_some_and(|number| name == temporary(number).as_str())
}

/// The name under which a torn tail cut from `position` of a segment is kept; `attempt`
/// tells apart what came from the same place at different times.
pub fn torn(base: Offset, position: Position, attempt: u32) -> String {
    format!("{base:0DIGITS$}.{position}.{attempt}.torn")
}

/// The same for bytes that repair took out.
pub fn damaged(base: Offset, position: Position, attempt: u32) -> String {
    format!("{base:0DIGITS$}.{position}.{attempt}.damaged")
}

/// The name under which a whole file is kept.
pub fn displaced(name: &str, attempt: u32) -> String {
    format!("{name}.{attempt}.displaced")
}

/// The name of the note that says what is kept under `name`.
pub fn note_on(name: &str) -> String {
    format!("{name}.note")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_as_what_they_were_made_from() {
        for number in [0, 1, 4_750_000, Offset::MAX.get()] {
            let base = Offset::new(number);
            assert_eq!(parse_segment(segment(base).as_ref()), Some(base));
            assert_eq!(parse_index(index(base).as_ref()), Some(base));
        }
        let range = Offset::new(7)..Offset::MAX;
        assert_eq!(parse_key_table(key_table(&range).as_ref()), Some(range));
        let group: GroupName = "a.b".parse().unwrap();
        assert_eq!(parse_checkpoint(checkpoint(&group).as_ref()), Some(group));
        assert!(is_temporary(temporary(7).as_ref()));
    }

    #[test]
    fn foreign_names_are_not_ours() {
        for name in ["1.log", "0000000000000000000x.log", "99999999999999999999.log", "notes.log"] {
            assert_eq!(parse_segment(name.as_ref()), None, "{name}");
        }
        assert_eq!(parse_checkpoint("../x.checkpoint".as_ref()), None);
        let table = |first: u64, next: u64| format!("{first:020}-{next:020}.table");
        for name in [table(5, 5), table(6, 5), table(0, u64::MAX), "0-1.table".to_owned()] {
            assert_eq!(parse_key_table(name.as_ref()), None, "{name}");
        }
        for name in ["my-notes.tmp", "+1.tmp", "01.tmp", ".tmp", "4294967296.tmp"] {
            assert!(!is_temporary(name.as_ref()), "{name}");
        }
    }
}
