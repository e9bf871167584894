//! Tables of a log beneath which an older copy of its segments was put back, and other
//! records were appended since.

use std::path::{Path, PathBuf};

use super::{Keyed, NOW, TINY};
use crate::disk::Disk;
use crate::format::file_name;
use crate::log::Note;
use crate::log::keys::directory::list;
use crate::log::keys::upkeep::Sizes;
use crate::model::{Offset, Timestamp};

/// The files in the log's directory, which those of the tables are not.
fn files(keyed: &Keyed) -> Vec<(PathBuf, Vec<u8>)> {
    let names = keyed.fixture.disk.names(Path::new("/log")).unwrap();
    let paths = names.iter().map(|name| Path::new("/log").join(name));
    paths.filter_map(|path| Some((path.clone(), keyed.fixture.disk.read_file(&path)?))).collect()
}

/// So many records of `key`, in batches of two, a millisecond later than those before.
fn append(keyed: &mut Keyed, key: u8, batches: usize) {
    keyed.now = Timestamp::from_millis(keyed.now.as_millis() + 1);
    for _ in 0..batches {
        keyed.append(&[Some(key), Some(key + 1)], true);
    }
}

/// The tables of 80 records, in a log whose last 40 are others than these.
fn rewritten() -> Keyed {
    let mut keyed = Keyed::new();
    append(&mut keyed, 1, 20);
    keyed.cover(&Sizes { entries: 20, ..TINY });
    let old = files(&keyed);
    append(&mut keyed, 3, 20);
    keyed.cover(&Sizes { entries: 20, ..TINY });
    for (path, _) in files(&keyed) {
        keyed.fixture.disk.remove_file(&path).unwrap();
    }
    for (path, bytes) in &old {
        keyed.fixture.disk.write_file(path, bytes).unwrap();
    }
    keyed.keys.truncate(40);
    keyed.tombstones.truncate(40);
    keyed.now = Timestamp::from_millis(NOW.as_millis() + 5);
    (0..20).for_each(|n| keyed.append(&[Some(100 + n), Some(n % 12)], true));
    let durable = keyed.fixture.log.bounds().unwrap().durable;
    let newest = list(&keyed.fixture.log.home).unwrap().iter().map(|table| table.end).max();
    assert_eq!((durable, newest), (Offset::new(80), Some(Offset::new(80))));
    keyed.fixture.told();
    keyed
}

#[test]
fn tables_of_other_records_are_discarded_and_those_beneath_them_stay() {
    let keyed = rewritten();
    keyed.check(&keyed.index(), &[true, false]).unwrap();
    let table = |range: std::ops::Range<u64>| {
        let range = Offset::new(range.start)..Offset::new(range.end);
        Note::IndexRebuilt(Path::new("/log/keys").join(file_name::key_table(&range)))
    };
    assert_eq!(keyed.fixture.told(), [table(60..80), table(40..60)]);
    keyed.check(&keyed.index(), &[true, false]).unwrap();
    assert_eq!(keyed.fixture.told(), [], "the second time is silent");
}

#[test]
fn compaction_does_not_take_records_for_dead_by_tables_of_others() {
    let keyed = rewritten();
    let all = Offset::ZERO..Offset::new(80);
    let dead = keyed.fixture.log.dead_offsets(all, Offset::ZERO).unwrap();
    let newer = |at: usize| keyed.keys[at + 1..].contains(&keyed.keys[at]);
    for at in 0..80 {
        assert_eq!(dead.contains(Offset::new(at)), newer(at as usize), "offset {at}");
    }
}

#[test]
fn verify_tells_of_tables_of_other_records_and_repair_forgets_them() {
    let keyed = rewritten();
    let told = |keyed: &Keyed| {
        let findings = keyed.fixture.log.verify(&mut |_| ()).unwrap().findings;
        findings.iter().map(|found| found.what.clone()).collect::<Vec<_>>()
    };
    let found = told(&keyed);
    assert!(!found.is_empty() && found.iter().all(|what| what.contains("rewritten")), "{found:?}");
    keyed.fixture.log.repair(keyed.now, &mut |_| ()).unwrap();
    assert_eq!(told(&keyed), [""; 0]);
    keyed.check(&keyed.index(), &[true]).unwrap();
    assert_eq!(keyed.fixture.told(), []);
}
