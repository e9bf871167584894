//! Compaction where the index or the records are not what they should be.

use super::*;

#[test]
fn no_table_is_believed_that_was_made_of_other_records() {
    let keys = |name: &str| (0..20).map(|n| format!("{name}{n}")).collect::<Vec<_>>();
    let log_of = |keys: &[String]| {
        let records: Vec<_> = keys.iter().map(|key| vec![keyed(key, Some("1"))]).collect();
        one_batch_a_segment(&records.iter().map(Vec::as_slice).collect::<Vec<_>>())
    };
    // What newer records would replace there, all with one key, is something else here.
    let other = log_of(&vec!["same".to_owned(); 20]);
    let end = other.log.cover_keys().unwrap();
    let name = file_name::key_table(&(Offset::ZERO..end));
    let table = other.log.home.path(file_name::KEYS).join(name);
    let fixture = log_of(&keys("key"));
    let before = read(&fixture.log, 0);
    assert_eq!(fixture.log.cover_keys().unwrap(), end);
    fixture.disk.write_file(&table, &other.disk.read_file(&table).unwrap()).unwrap();
    compact(&fixture, 0);
    assert_eq!(read(&fixture.log, 0), before);
}

#[test]
fn where_the_newest_record_can_not_be_read_the_older_ones_stay() {
    let versions: Vec<_> =
        (0..5).map(|n| [keyed("a", Some(["1", "2", "3", "4", "5"][n]))]).collect();
    let fixture = one_batch_a_segment(&versions.iter().map(|one| &one[..]).collect::<Vec<_>>());
    let path = |base| fixture.log.home.segment_path(Offset::new(base));
    fixture.log.cover_keys().unwrap();
    let mut bytes = fixture.disk.read_file(&path(3)).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fixture.disk.write_file(&path(3), &bytes).unwrap();
    let files =
        || (0..5).map(|base| fixture.disk.read_file(&path(base)).unwrap()).collect::<Vec<_>>();
    let before = files();
    let compacted = fixture.log.compact(&terms(EVERYTHING, 0), &mut |_| ());
    assert!(matches!(compacted, Err(Error::Damage(_))), "{compacted:?}");
    assert!(files() == before);
}
