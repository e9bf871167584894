//! What becomes of tables: built, merged, unreadable, another log's, removed; and how few
//! pages a look-up reads.

use std::ops::Range;
use std::path::Path;

use super::{Keyed, NOW, TINY};
use crate::disk::simulated::{Class, Lasts, Trouble};
use crate::disk::{Disk, Entry, FileSystem, LockMode};
use crate::format::body::{self, Body};
use crate::format::key_hash::KeyHash;
use crate::format::key_table::{KeyEntry, PAGE_ENTRIES, PAGE_LEN};
use crate::format::record::Content;
use crate::log::fixture::{Fixture, fixture};
use crate::log::keys::KeyIndex;
use crate::log::keys::directory::{KeysLock, Part, list, open_parts};
use crate::log::keys::table::{LastPage, Table};
use crate::log::keys::writing::{Kept, NewTable, write_table};
use crate::log::{Appender, Error, Note};
use crate::model::Offset;

/// A log of many keys, its tables made and merged.
fn covered() -> Keyed {
    let mut keyed = Keyed::new();
    for batch in 0..60u8 {
        keyed.append(&[Some(batch % 10), None, Some(batch % 7)], true);
        keyed.cover(&TINY);
    }
    keyed
}

#[test]
fn tables_stay_few_and_cover_all_that_is_durable() {
    let keyed = covered();
    let ranges = list(&keyed.fixture.log.home).unwrap();
    assert!(ranges.len() < 25, "{ranges:?}");
    let parts = open_parts(&keyed.fixture.log, &(Offset::ZERO..Offset::new(180)), None).unwrap();
    assert!(parts.iter().all(|part| matches!(part, Part::Table(..))), "{parts:?}");
    assert!(keyed.fixture.disk.names(Path::new("/log/keys")).unwrap().len() == ranges.len());
    assert_eq!(keyed.fixture.told(), []);
}

#[test]
fn h020_an_index_grown_in_many_runs_has_the_entries_of_one_made_from_scratch() {
    let keyed = covered();
    let entries = |keyed: &Keyed| {
        let log = &keyed.fixture.log;
        let parts = open_parts(log, &(Offset::ZERO..Offset::new(180)), None).unwrap();
        let mut all = Vec::new();
        for part in &parts {
            let Part::Table(table, _) = part else { panic!("{part:?}") };
            let mut entries = table.entries();
            while let Some(entry) = entries.next().unwrap() {
                all.push(entry);
            }
        }
        all.sort_by_key(|entry| entry.offset);
        all
    };
    let grown = entries(&keyed);
    assert_eq!(grown.len(), 120);
    for table in keyed.tables() {
        keyed.fixture.disk.remove_file(&table).unwrap();
    }
    assert_eq!(keyed.fixture.log.cover_keys().unwrap(), Offset::new(180));
    assert_eq!(keyed.tables().len(), 1);
    assert_eq!(entries(&keyed), grown);
}

#[test]
fn h018_a_table_that_cannot_be_read_stays_and_its_records_are_read() {
    let keyed = covered();
    let before = keyed.fixture.disk.fingerprint();
    keyed.fixture.disk.fail_at(
        Class::Open,
        8,
        Trouble::Kind(std::io::ErrorKind::PermissionDenied),
        Lasts::Once,
    );
    let index = keyed.index();
    assert!(matches!(&keyed.fixture.told()[..], [Note::IndexUnreadable { .. }]));
    keyed.check(&index, &[true]).unwrap();
    assert_eq!(keyed.fixture.disk.fingerprint(), before);
}

#[test]
fn h018_a_table_that_can_never_be_read_is_not_written_over() {
    let keyed = covered();
    let tables = keyed.tables();
    for table in &tables {
        let good = keyed.fixture.disk.read_file(table).unwrap();
        keyed.fixture.disk.place_link(table).unwrap();
        for _ in 0..2 {
            keyed.check(&keyed.index(), &[true, false]).unwrap();
            keyed.cover(&TINY);
            assert!(
                keyed
                    .fixture
                    .told()
                    .iter()
                    .all(|note| matches!(note, Note::IndexUnreadable { .. }))
            );
        }
        assert_eq!(keyed.fixture.disk.entry(table).unwrap(), Some(Entry::Other));
        assert_eq!(keyed.tables(), tables);
        keyed.fixture.disk.write_file(table, &good).unwrap();
    }
    keyed.check(&keyed.index(), &[true]).unwrap();
    assert_eq!(keyed.fixture.told(), []);
}

#[test]
fn a_page_that_cannot_be_read_ends_no_look_up() {
    let keyed = covered();
    let last = |key| keyed.expected(key).last().map(|&at| Offset::new(at));
    let expected: Vec<_> = (0..10).map(last).collect();
    for nth in 1..20 {
        let index = keyed.index();
        keyed.fixture.told();
        keyed.fixture.disk.fail_at(Class::Read, nth, Trouble::EIO, Lasts::Once);
        let hashes: Vec<KeyHash> = (0..10).map(|key| keyed.hash(key)).collect();
        match index.newest(&hashes) {
            Ok(newest) => assert_eq!(newest, expected),
            // One of the segments.
            Err(error) => assert!(matches!(error, Error::Io { .. }), "{error}"),
        }
        keyed.fixture.disk.clear_faults();
    }
}

#[test]
fn h016_tables_of_another_log_are_left_alone_and_not_used() {
    let (keyed, mut other) = (covered(), Keyed::new());
    let log = &other.fixture.log;
    drop(KeysLock::take(log).unwrap());
    for table in keyed.tables() {
        let mut bytes = keyed.fixture.disk.read_file(&table).unwrap();
        bytes[8] ^= 1;
        let crc = crc32fast::hash(&bytes[..64]);
        bytes[64..68].copy_from_slice(&crc.to_le_bytes());
        other.fixture.disk.write_file(&table, &bytes).unwrap();
    }
    for _ in 0..60 {
        other.append(&[Some(3), None, Some(4)], true);
    }
    other.check(&other.index(), &[true, false]).unwrap();
    assert_eq!(other.fixture.told(), []);
}

#[test]
fn where_files_are_a_servers_nothing_is_written_and_all_is_found() {
    let mut keyed = Keyed::new();
    for batch in 0..30u8 {
        keyed.append(&[Some(batch % 10), Some(3)], true);
    }
    keyed.fixture.disk.set_file_system(FileSystem::Network { name: "nfs".to_owned() });
    let home = crate::log::Home::new(keyed.fixture.disk.clone(), "/log", |note| panic!("{note}"));
    let log = crate::log::Log::open(&home).unwrap();
    let steps = keyed.fixture.disk.steps();
    let index = KeyIndex::open_with(&log, TINY).unwrap();
    keyed.check(&index, &[true, false, false]).unwrap();
    assert_eq!(keyed.fixture.disk.steps(), steps);
    assert!(matches!(log.cover_keys(), Err(Error::NetworkFileSystem { .. })));
}

#[test]
fn where_something_else_is_called_keys_all_is_found_by_reading() {
    let mut keyed = Keyed::new();
    keyed.fixture.disk.write_file(Path::new("/log/keys"), b"mine").unwrap();
    for batch in 0..30u8 {
        keyed.append(&[Some(batch % 10), None, Some(3)], true);
    }
    keyed.check(&keyed.index(), &[true, false, false]).unwrap();
    assert!(matches!(&keyed.fixture.told()[..], [Note::IndexUnreadable { .. }, ..]));
    assert!(keyed.fixture.log.cover_keys().is_err());
    keyed.fixture.log.collect().unwrap();
    assert_eq!(keyed.fixture.disk.read_file(Path::new("/log/keys")).unwrap(), b"mine");
}

#[test]
fn nothing_is_listed_or_made_for_records_without_keys() {
    let mut keyed = Keyed::new();
    keyed.append(&[None, None], true);
    let mut appender = Appender::open(&keyed.fixture.log).unwrap();
    let calls = |appender: &mut Appender, key| {
        let content = Content { key, ..Content::of_value(b"a\nb") };
        let mut bytes = Vec::new();
        let layout = body::encode(&[content], &mut bytes);
        appender.append(&Body::plain(layout, 1, &bytes), NOW).unwrap();
        let before = keyed.fixture.disk.calls(Class::Look);
        appender.sync().unwrap();
        keyed.fixture.disk.calls(Class::Look) - before
    };
    let without = calls(&mut appender, None);
    assert!(calls(&mut appender, Some(b"k")) > without);
    assert!(!keyed.fixture.disk.names(Path::new("/log")).unwrap().contains(&"keys".to_owned()));
}

#[test]
fn whoever_has_the_lock_keeps_others_from_changing_tables_but_not_from_looking() {
    let mut keyed = covered();
    let lock = keyed.fixture.disk.lock(Path::new("/log/keys")).unwrap();
    assert!(lock.try_acquire(LockMode::Exclusive).unwrap());
    keyed.append(&[Some(1), Some(2), Some(3), Some(4), Some(5), Some(6)], true);
    let tables = keyed.tables();
    keyed.check(&keyed.index(), &[true]).unwrap();
    assert_eq!(keyed.tables(), tables);
    drop(lock);
    keyed.check(&keyed.index(), &[true]).unwrap();
    assert_ne!(keyed.tables(), tables);
}

#[test]
fn gc_removes_tables_of_what_is_gone_and_what_a_crash_left() {
    let mut keyed = Keyed::new();
    for batch in 0..60u8 {
        keyed.append(&[Some(batch % 10), Some(1)], true);
    }
    keyed.cover(&TINY);
    keyed.fixture.disk.write_file(Path::new("/log/keys/7.tmp"), b"half").unwrap();
    keyed.fixture.disk.write_file(Path::new("/log/keys/notes"), b"mine").unwrap();
    keyed.fixture.log.commit(&"g".parse().unwrap(), Offset::new(100), NOW).unwrap();
    keyed.fixture.log.collect().unwrap();
    let start = keyed.fixture.log.start().unwrap();
    assert!(start > Offset::new(50));
    assert!(list(&keyed.fixture.log.home).unwrap().iter().all(|range| range.end > start));
    let names = keyed.fixture.disk.names(Path::new("/log/keys")).unwrap();
    assert!(names.contains(&"notes".to_owned()) && !names.contains(&"7.tmp".to_owned()));
    keyed.check(&keyed.index(), &[true, false]).unwrap();
}

/// A table of these entries, in a log of its own.
fn table_of(fixture: &Fixture, entries: &mut [KeyEntry], range: &Range<Offset>) -> Table {
    entries.sort_by_key(KeyEntry::place);
    let lock = KeysLock::take(&fixture.log).unwrap();
    let new = NewTable { range: range.clone(), time: NOW, room: entries.len() as u64 };
    write_table(&fixture.log, &lock, &new, Kept::Perhaps, |writer| {
        entries.iter().try_for_each(|entry| writer.push(entry))
    })
    .unwrap();
    Table::open(&fixture.log.home, Path::new("/log/keys"), fixture.log.id(), range).unwrap()
}

#[test]
fn a_look_up_reads_few_pages_whatever_the_keys() {
    let fixture = fixture(700);
    let entries = 40_000u64;
    let range = Offset::new(0)..Offset::new(entries * 2);
    // One hash; two hashes that share a home; few of many versions; all at the very end.
    let hashes: [fn(u64) -> u128; 5] = [
        |_| 7 << 90,
        |number| u128::from(number % 2) + (1 << 127),
        |number| u128::from(number % 10) << 123,
        |number| u128::MAX - u128::from(number % 3),
        |number| u128::from(number) << 20,
    ];
    for hash in hashes {
        let entry = |number| KeyEntry {
            hash: KeyHash::new(hash(number)),
            offset: Offset::new(number * 2),
            tombstone: number % 5 == 0,
        };
        let mut all: Vec<KeyEntry> = (0..entries).map(entry).collect();
        let table = table_of(&fixture, &mut all, &range);
        let pages = entries as usize / PAGE_ENTRIES;
        assert!(pages > 200, "{pages} pages, {PAGE_LEN} bytes each");
        let reads = || fixture.disk.calls(Class::Read);
        let most = 2 * pages.ilog2() as u64 + 4;
        for number in [0, 1, 2, 5, 19_999, 20_000, 39_998, 39_999] {
            let key = KeyHash::new(hash(number));
            let of_key = || all.iter().filter(|entry| entry.hash == key).map(|entry| entry.offset);
            let before = reads();
            let newest = table.newest(key, &mut LastPage::default()).unwrap();
            assert_eq!(newest.map(|entry| entry.offset), of_key().max());
            assert!(reads() - before <= most, "{} pages", reads() - before);
            let at = Offset::new(number * 2);
            let before = reads();
            let on = table.some_from(key, at, &mut LastPage::default()).unwrap();
            assert!(reads() - before <= most + 1, "{} pages", reads() - before);
            let mut expected: Vec<Offset> = of_key().filter(|&offset| offset >= at).collect();
            expected.sort_unstable();
            assert!(!on.is_empty() && expected.starts_with(&on), "{number}: {on:?}");
            let before = reads();
            let back = table.some_before(key, at, &mut LastPage::default()).unwrap();
            assert!(reads() - before <= most, "{} pages", reads() - before);
            let mut expected: Vec<Offset> = of_key().filter(|&offset| offset < at).collect();
            expected.sort_unstable_by(|one, other| other.cmp(one));
            assert!(expected.starts_with(&back) && back.is_empty() == expected.is_empty());
        }
        for missing in [KeyHash::new(3 << 91), KeyHash::new(5), KeyHash::new(u128::MAX - 9)] {
            let before = reads();
            assert_eq!(table.newest(missing, &mut LastPage::default()).unwrap(), None);
            assert!(reads() - before <= most, "{} pages", reads() - before);
        }
    }
}

#[test]
fn dead_are_all_but_the_newest_of_a_key_and_old_tombstones() {
    let mut keyed = covered();
    let log = keyed.fixture.log.clone();
    let tombstones_before = Offset::new(178);
    let expected = |keyed: &Keyed| {
        let newer = |at: usize| keyed.keys[at + 1..].contains(&keyed.keys[at]);
        let is_dead = |&at: &usize| {
            keyed.keys[at].is_some()
                && (newer(at) || (keyed.tombstones[at] && at < tombstones_before.get() as usize))
        };
        (0..keyed.keys.len()).filter(is_dead).collect::<Vec<_>>()
    };
    let dead_in = |range: Range<u64>| {
        let range = Offset::new(range.start)..Offset::new(range.end);
        log.dead_offsets(range, tombstones_before).unwrap()
    };
    let all = dead_in(0..180);
    let found: Vec<usize> = (0..200).filter(|&at| all.contains(Offset::new(at as u64))).collect();
    assert_eq!(found, expected(&keyed));
    assert_eq!(all.count(), found.len() as u64);
    let some = dead_in(30..90);
    let within = found.iter().filter(|at| (30..90).contains(*at)).count();
    assert_eq!(some.count(), within as u64);
    log.forget_dead(&some).unwrap();
    assert_eq!(dead_in(30..90).count(), 0);
    assert_eq!(dead_in(0..180).count(), all.count() - some.count());
    for &at in &found {
        if (30..90).contains(&at) {
            keyed.keys[at] = None;
        }
    }
    keyed.check(&keyed.index(), &[true, false]).unwrap();
}
