//! What a power cut leaves of bytes and lengths.

use super::{RANDOM, content, contents, path, put, with_file, write};
use crate::disk::simulated::{Class, CrashStyle, Lasts, SimulatedDisk, Trouble};
use crate::disk::{Access, Disk};

/// A step that is no write, so that no write is the last step.
fn end_of_write(disk: &SimulatedDisk) {
    disk.sync_dir(path("/")).unwrap();
}

fn filled(parts: &[(u8, usize)]) -> Option<Vec<u8>> {
    Some(parts.iter().flat_map(|(byte, count)| vec![*byte; *count]).collect())
}

#[test]
fn synced_bytes_survive_every_cut() {
    let (disk, file) = with_file(b"");
    write(file.as_ref(), b"one", 0);
    write(file.as_ref(), b"two", 3);
    file.sync_data().unwrap();
    assert_eq!(contents(&disk, "/f", RANDOM), [Some(b"onetwo".to_vec())].into());
    assert_eq!(content(&disk, "/f", CrashStyle::DropAll), Some(b"onetwo".to_vec()));
}

#[test]
fn unsynced_bytes_are_kept_by_keep_all_and_gone_by_drop_all() {
    let (disk, file) = with_file(b"old");
    write(file.as_ref(), b"new!", 0);
    assert_eq!(content(&disk, "/f", CrashStyle::KeepAll), Some(b"new!".to_vec()));
    assert_eq!(content(&disk, "/f", CrashStyle::DropAll), Some(b"old".to_vec()));
    assert_eq!(content(&disk, "/f", CrashStyle::BytesOnly), Some(b"new!".to_vec()));
    assert_eq!(content(&disk, "/f", CrashStyle::NamesOnly), Some(b"old".to_vec()));
    let seen = contents(&disk, "/f", RANDOM);
    assert!(seen.contains(&Some(b"new!".to_vec())) && seen.contains(&Some(b"old".to_vec())));
}

#[test]
fn a_write_is_torn_at_sectors_of_the_file_and_only_there() {
    let (disk, file) = with_file(&[b'a'; 1536]);
    write(file.as_ref(), &[b'b'; 1024], 256);
    end_of_write(&disk);
    let mut expected = std::collections::BTreeSet::new();
    for kept in 0..8_u8 {
        let part = |index: u8| if kept & (1 << index) == 0 { b'a' } else { b'b' };
        expected.insert(filled(&[
            (b'a', 256),
            (part(0), 256),
            (part(1), 512),
            (part(2), 256),
            (b'a', 256),
        ]));
    }
    assert_eq!(contents(&disk, "/f", RANDOM), expected);
    let large = CrashStyle::Random { sector: 4096 };
    let whole = [filled(&[(b'a', 1536)]), filled(&[(b'a', 256), (b'b', 1024), (b'a', 256)])];
    assert_eq!(contents(&disk, "/f", large), whole.into());
}

#[test]
fn the_last_write_may_stop_at_any_byte() {
    let (disk, file) = with_file(b"");
    write(file.as_ref(), b"abc", 0);
    let prefixes = ["", "a", "ab", "abc"].map(|text| Some(text.as_bytes().to_vec()));
    let seen = contents(&disk, "/f", RANDOM);
    assert!(prefixes.iter().all(|prefix| seen.contains(prefix)), "{seen:?}");
}

#[test]
fn writes_are_reordered() {
    let (disk, file) = with_file(&[b'.'; 1024]);
    write(file.as_ref(), b"1", 0);
    write(file.as_ref(), b"2", 512);
    end_of_write(&disk);
    let seen = contents(&disk, "/f", RANDOM);
    let of = |first, second| filled(&[(first, 1), (b'.', 511), (second, 1), (b'.', 511)]);
    let all = [of(b'.', b'.'), of(b'1', b'.'), of(b'.', b'2'), of(b'1', b'2')];
    assert_eq!(seen, all.into());
}

#[test]
fn of_two_writes_to_one_sector_the_first_may_stay() {
    let (disk, file) = with_file(b"0");
    write(file.as_ref(), b"1", 0);
    write(file.as_ref(), b"2", 0);
    end_of_write(&disk);
    let all = [b"0", b"1", b"2"].map(|text| Some(text.to_vec()));
    assert_eq!(contents(&disk, "/f", RANDOM), all.into());
}

#[test]
fn a_length_without_its_bytes_reads_as_zeros_or_is_lost_too() {
    let (disk, file) = with_file(&[b'a'; 512]);
    write(file.as_ref(), &[b'b'; 1024], 512);
    end_of_write(&disk);
    let seen = contents(&disk, "/f", RANDOM);
    let expected = [
        filled(&[(b'a', 512)]),
        filled(&[(b'a', 512), (0, 512)]),
        filled(&[(b'a', 512), (0, 1024)]),
        filled(&[(b'a', 512), (b'b', 512)]),
        filled(&[(b'a', 512), (b'b', 512), (0, 512)]),
        filled(&[(b'a', 512), (0, 512), (b'b', 512)]),
        filled(&[(b'a', 512), (b'b', 1024)]),
    ];
    assert_eq!(seen, expected.into());
}

#[test]
fn a_length_without_its_bytes_may_read_as_those_of_another_file() {
    let (disk, file) = with_file(b"");
    disk.write_file(path("/other"), &[b'o'; 2048]).unwrap();
    write(file.as_ref(), &[b'b'; 1024], 0);
    end_of_write(&disk);
    let seen = contents(&disk, "/f", CrashStyle::Stale { sector: 512 });
    for left in [[(b'o', 512), (b'b', 512)], [(b'b', 512), (b'o', 512)], [(b'o', 512), (b'o', 0)]] {
        assert!(seen.contains(&filled(&left)), "{left:?}");
    }
    file.sync_data().unwrap();
    let synced = contents(&disk, "/f", CrashStyle::Stale { sector: 512 });
    assert_eq!(synced, [filled(&[(b'b', 1024)])].into());
}

#[test]
fn an_unsynced_cut_or_extension_is_kept_or_lost() {
    let (disk, file) = with_file(b"abcd");
    file.set_len(2).unwrap();
    let cut = [b"ab".to_vec(), b"abcd".to_vec()].map(Some);
    assert_eq!(contents(&disk, "/f", RANDOM), cut.into());
    file.sync_data().unwrap();
    file.set_len(3).unwrap();
    let extended = [b"ab".to_vec(), b"ab\0".to_vec()].map(Some);
    assert_eq!(contents(&disk, "/f", RANDOM), extended.into());
}

#[test]
fn bytes_behind_a_lost_cut_come_back_beside_later_ones() {
    let (disk, file) = with_file(b"abcd");
    file.set_len(1).unwrap();
    write(file.as_ref(), b"X", 1);
    end_of_write(&disk);
    let all = ["a", "abcd", "aX", "aXcd", "a\0"].map(|text| Some(text.as_bytes().to_vec()));
    assert_eq!(contents(&disk, "/f", RANDOM), all.into());
}

#[test]
fn after_a_failed_sync_a_good_one_proves_nothing() {
    let (disk, file) = with_file(b"old");
    write(file.as_ref(), b"new!", 0);
    disk.fail_at(Class::Sync, 1, Trouble::EIO, Lasts::Once);
    assert!(file.sync_data().is_err());
    file.sync_data().unwrap();
    let seen = contents(&disk, "/f", RANDOM);
    assert!(seen.contains(&Some(b"old".to_vec())) && seen.contains(&Some(b"new!".to_vec())));
    assert_eq!(content(&disk, "/f", CrashStyle::DropAll), Some(b"old".to_vec()));
    assert_eq!(disk.read_file(path("/f")), Some(b"new!".to_vec()), "the program still sees it");
}

#[test]
fn after_a_failed_sync_only_what_is_written_again_becomes_durable() {
    let (disk, file) = with_file(&[b'a'; 1024]);
    write(file.as_ref(), &[b'b'; 1024], 0);
    disk.fail_at(Class::Sync, 1, Trouble::EIO, Lasts::Once);
    assert!(file.sync_data().is_err());
    write(file.as_ref(), &[b'b'; 512], 512);
    file.sync_data().unwrap();
    let both = [filled(&[(b'a', 512), (b'b', 512)]), filled(&[(b'b', 1024)])];
    assert_eq!(contents(&disk, "/f", RANDOM), both.clone().into());
    assert_eq!(content(&disk, "/f", CrashStyle::DropAll), both[0]);
    write(file.as_ref(), &[b'b'; 512], 0);
    file.sync_data().unwrap();
    assert_eq!(contents(&disk, "/f", RANDOM), [filled(&[(b'b', 1024)])].into());
}

#[test]
fn a_length_that_a_failed_sync_left_in_doubt_is_durable_once_set_again() {
    let (disk, file) = with_file(b"abcd");
    file.set_len(2).unwrap();
    disk.fail_at(Class::Sync, 1, Trouble::EIO, Lasts::Once);
    assert!(file.sync_data().is_err());
    file.sync_data().unwrap();
    assert_eq!(content(&disk, "/f", CrashStyle::DropAll), Some(b"abcd".to_vec()));
    file.set_len(2).unwrap();
    file.sync_data().unwrap();
    assert_eq!(contents(&disk, "/f", RANDOM), [Some(b"ab".to_vec())].into());
}

#[test]
fn an_unlinked_file_still_works_and_goes_with_its_last_handle() {
    let (disk, file) = with_file(b"one");
    disk.remove_file(path("/f")).unwrap();
    write(file.as_ref(), b"two", 3);
    file.sync_data().unwrap();
    let mut read = [0; 6];
    assert_eq!(file.read_at(&mut read, 0).unwrap(), 6);
    assert_eq!(&read, b"onetwo");
    assert_eq!(disk.used_space(), 6);
    let came_back = [None, Some(b"onetwo".to_vec())];
    assert_eq!(contents(&disk, "/f", RANDOM), came_back.into());
    drop(file);
    assert_eq!(disk.used_space(), 0);
}

#[test]
fn a_file_without_a_synced_name_is_lost_however_well_it_is_synced() {
    let disk = SimulatedDisk::new();
    let file = put(&disk, "/f", b"bytes");
    file.sync_data().unwrap();
    assert_eq!(contents(&disk, "/f", RANDOM), [None, Some(b"bytes".to_vec())].into());
    disk.sync_dir(path("/")).unwrap();
    assert_eq!(contents(&disk, "/f", RANDOM), [Some(b"bytes".to_vec())].into());
}

#[test]
fn a_handle_for_reading_cannot_change_the_file() {
    let (disk, _) = with_file(b"abc");
    let file = disk.open(path("/f"), Access::Read).unwrap();
    assert!(file.write_at(&[std::io::IoSlice::new(b"x")], 0).is_err());
    assert!(file.set_len(0).is_err());
    file.sync_data().unwrap();
    assert_eq!(disk.read_file(path("/f")), Some(b"abc".to_vec()));
}
