//! Text in files and names: `log.json`, file names, the names and kinds within.

use std::ffi::OsStr;
use std::fmt::{Debug, Display};
use std::os::unix::ffi::OsStrExt;
use std::str::FromStr;

use tapelog::format::codec::Compression;
use tapelog::format::file_name;
use tapelog::format::settings::{Cleanup, FORMAT_VERSION, LogFile, Settings};
use tapelog::model::{GroupName, LogId, Offset};

use super::draw::Draw;

/// The input as `log.json`; then settings drawn from it, written, changed in one place
/// and read.
pub fn log_json(input: &[u8]) {
    check_log_file(input);
    let mut draw = Draw::new(input);
    let settings = Settings {
        segment_size: draw.maybe(|draw| draw.u64().max(Settings::MIN_SEGMENT_SIZE)),
        segment_age: draw.maybe(|draw| draw.u64().max(1)),
        max_record_size: draw.maybe(|draw| u64::from(draw.u16()) + 1),
        max_log_size: draw.maybe(Draw::u64),
        compression: draw.maybe(|draw| Compression::Zstd(1 + draw.u8() % 22)),
        cleanup: draw.maybe(|draw| [Cleanup::Delete, Cleanup::Compact][usize::from(draw.u8() % 2)]),
    };
    if settings.check().is_err() {
        return;
    }
    let file = LogFile { id: LogId::new(draw.u64()), format: FORMAT_VERSION, settings };
    let mut bytes = file.encode();
    assert_eq!(LogFile::decode(&bytes).expect("a file as it was encoded"), file);
    let at = usize::from(draw.u16()) % bytes.len();
    bytes[at] = draw.u8();
    check_log_file(&bytes);
}

fn check_log_file(bytes: &[u8]) {
    let Ok(file) = LogFile::decode(bytes) else { return };
    assert_eq!(LogFile::decode(&file.encode()).expect("what was read before"), file);
}

/// The input as a name of a file, a group, a log, a compression; then names that are
/// made of it.
pub fn names(input: &[u8]) {
    let name = OsStr::from_bytes(input);
    check_name(name);
    let base = Offset::new(Draw::new(input).u64() & Offset::MAX.get());
    assert_eq!(file_name::parse_segment(file_name::segment(base).as_ref()), Some(base));
    assert_eq!(file_name::parse_index(file_name::index(base).as_ref()), Some(base));
    let table = Offset::ZERO..base;
    let again = file_name::parse_key_table(file_name::key_table(&table).as_ref());
    assert_eq!(again, (base > Offset::ZERO).then_some(table));
    let temporary = file_name::temporary(Draw::new(input).u32());
    assert!(file_name::is_temporary(temporary.as_ref()));
    if let Some(text) = name.to_str() {
        shows_as_it_was_read::<LogId>(&text.to_ascii_lowercase());
        shows_as_it_was_read::<GroupName>(text);
        if let Ok(compression) = text.parse::<Compression>() {
            assert_eq!(compression.to_string().parse(), Ok(compression));
        }
    }
}

/// A name that is taken for one of tapelog's is exactly what tapelog would call it.
fn check_name(name: &OsStr) {
    if let Some(base) = file_name::parse_segment(name) {
        assert_eq!(name, file_name::segment(base).as_str());
    }
    if let Some(base) = file_name::parse_index(name) {
        assert_eq!(name, file_name::index(base).as_str());
    }
    if let Some(range) = file_name::parse_key_table(name) {
        assert_eq!(name, file_name::key_table(&range).as_str());
    }
    if let Some(group) = file_name::parse_checkpoint(name) {
        assert_eq!(name, file_name::checkpoint(&group).as_str());
    }
    if file_name::is_temporary(name) {
        let stem = name.to_str().and_then(|name| name.split_once('.')).expect("a suffix").0;
        let number = stem.parse().expect("a number");
        assert_eq!(name, file_name::temporary(number).as_str());
    }
}

fn shows_as_it_was_read<T: FromStr + Display + Debug>(text: &str) {
    if let Ok(value) = text.parse::<T>() {
        assert_eq!(value.to_string(), text);
    }
}
