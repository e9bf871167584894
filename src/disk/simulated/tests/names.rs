//! What a power cut leaves of names.

use super::{RANDOM, content, listings, path, put};
use crate::disk::Disk;
use crate::disk::simulated::{CrashStyle, SimulatedDisk};

fn all(listings: &[&[&str]]) -> std::collections::BTreeSet<Vec<String>> {
    let owned = |names: &&[&str]| names.iter().map(ToString::to_string).collect();
    listings.iter().map(owned).collect()
}

#[test]
fn unsynced_names_survive_each_alone() {
    let disk = SimulatedDisk::new();
    put(&disk, "/a", b"");
    put(&disk, "/b", b"");
    assert_eq!(listings(&disk, "/"), all(&[&[], &["a"], &["b"], &["a", "b"]]));
    disk.sync_dir(path("/")).unwrap();
    put(&disk, "/c", b"");
    assert_eq!(listings(&disk, "/"), all(&[&["a", "b"], &["a", "b", "c"]]));
}

#[test]
fn names_and_bytes_survive_without_each_other() {
    let (disk, file) = super::with_file(b"old");
    super::write(file.as_ref(), b"new", 0);
    put(&disk, "/g", b"g");
    let left = |style| (content(&disk, "/f", style), content(&disk, "/g", style));
    let bytes = |text: &str| Some(text.as_bytes().to_vec());
    assert_eq!(left(CrashStyle::NamesOnly), (bytes("old"), bytes("")));
    assert_eq!(left(CrashStyle::BytesOnly), (bytes("new"), None));
}

#[test]
fn a_removed_name_may_come_back_until_the_directory_is_synced() {
    let disk = SimulatedDisk::new();
    disk.write_file(path("/a"), b"bytes").unwrap();
    disk.remove_file(path("/a")).unwrap();
    assert_eq!(listings(&disk, "/"), all(&[&[], &["a"]]));
    assert_eq!(content(&disk, "/a", CrashStyle::DropAll), Some(b"bytes".to_vec()));
    disk.sync_dir(path("/")).unwrap();
    assert_eq!(listings(&disk, "/"), all(&[&[]]));
}

#[test]
fn a_rename_happens_or_not_never_half() {
    let disk = SimulatedDisk::new();
    disk.write_file(path("/new"), b"new").unwrap();
    disk.write_file(path("/f"), b"old").unwrap();
    disk.rename(path("/new"), path("/f")).unwrap();
    assert_eq!(listings(&disk, "/"), all(&[&["f"], &["f", "new"]]));
    let mut seen = std::collections::BTreeSet::new();
    for seed in super::SEEDS {
        let image = disk.crash_image(usize::MAX, seed, RANDOM);
        let renamed = image.names(path("/")).unwrap().len() == 1;
        let expected = if renamed { b"new" } else { b"old" };
        assert_eq!(image.read_file(path("/f")).unwrap(), expected);
        seen.insert(renamed);
    }
    assert_eq!(seen.len(), 2);
}

#[test]
fn a_rename_between_directories_is_durable_by_either() {
    for synced in ["/a", "/b"] {
        let disk = SimulatedDisk::new();
        disk.write_file(path("/a/f"), b"").unwrap();
        disk.write_file(path("/b/g"), b"").unwrap();
        disk.rename(path("/a/f"), path("/b/f")).unwrap();
        disk.sync_dir(path(synced)).unwrap();
        assert_eq!(listings(&disk, "/a"), all(&[&[]]));
        assert_eq!(listings(&disk, "/b"), all(&[&["f", "g"]]));
    }
}

#[test]
fn a_synced_change_brings_along_the_earlier_ones_of_its_names() {
    let disk = SimulatedDisk::new();
    disk.write_file(path("/b/g"), b"").unwrap();
    disk.create_dir(path("/a")).unwrap();
    disk.sync_dir(path("/")).unwrap();
    put(&disk, "/a/f", b"");
    put(&disk, "/a/other", b"");
    disk.rename(path("/a/f"), path("/b/f")).unwrap();
    disk.sync_dir(path("/b")).unwrap();
    assert_eq!(listings(&disk, "/a"), all(&[&[], &["other"]]), "f does not come back");
}

#[test]
fn a_renamed_file_does_not_need_its_first_name() {
    let disk = SimulatedDisk::new();
    let file = put(&disk, "/temporary", b"x");
    file.sync_data().unwrap();
    disk.rename(path("/temporary"), path("/f")).unwrap();
    assert_eq!(listings(&disk, "/"), all(&[&[], &["temporary"], &["f"]]));
}

#[test]
fn a_link_is_one_change_and_both_names_are_one_file() {
    let disk = SimulatedDisk::new();
    let file = put(&disk, "/a", b"1");
    file.sync_data().unwrap();
    disk.sync_dir(path("/")).unwrap();
    disk.link(path("/a"), path("/b")).unwrap();
    assert_eq!(listings(&disk, "/"), all(&[&["a"], &["a", "b"]]));
    disk.remove_file(path("/a")).unwrap();
    assert_eq!(listings(&disk, "/"), all(&[&[], &["a"], &["b"], &["a", "b"]]));
    let image = disk.crash_image(disk.steps() - 1, 0, CrashStyle::KeepAll);
    let again = image.open(path("/a"), crate::disk::Access::ReadWrite).unwrap();
    super::write(again.as_ref(), b"2", 0);
    assert!(again.is_at(path("/b")).unwrap());
    assert_eq!(image.read_file(path("/b")), Some(b"2".to_vec()));
    image.remove_file(path("/a")).unwrap();
    drop(again);
    assert_eq!(image.read_file(path("/b")), Some(b"2".to_vec()));
}

#[test]
fn a_directory_that_is_lost_takes_along_what_is_in_it() {
    let disk = SimulatedDisk::new();
    disk.create_dir(path("/d")).unwrap();
    put(&disk, "/d/f", b"").sync_data().unwrap();
    disk.sync_dir(path("/d")).unwrap();
    assert_eq!(listings(&disk, "/"), all(&[&[], &["d"]]));
    assert_eq!(listings(&disk, "/d"), all(&[&["f"]]));
    assert_eq!(content(&disk, "/d/f", CrashStyle::DropAll), None);
    disk.sync_dir(path("/")).unwrap();
    assert_eq!(content(&disk, "/d/f", CrashStyle::DropAll), Some(Vec::new()));
}

#[test]
fn a_stamp_changes_with_each_name_and_tells_apart_what_a_cut_left() {
    let disk = SimulatedDisk::new();
    disk.create_dir(path("/d")).unwrap();
    disk.settle();
    let stamp = |disk: &SimulatedDisk| disk.dir_stamp(path("/d")).unwrap();
    let listing = |disk: &SimulatedDisk| disk.names(path("/d")).unwrap();
    let mut known = std::collections::BTreeMap::from([(stamp(&disk), listing(&disk))]);
    let mut change = |change: &dyn Fn()| {
        change();
        assert_eq!(known.insert(stamp(&disk), listing(&disk)), None);
    };
    change(&|| drop(disk.create_new(path("/d/a")).unwrap()));
    change(&|| disk.link(path("/d/a"), path("/d/b")).unwrap());
    change(&|| disk.rename(path("/d/b"), path("/d/c")).unwrap());
    change(&|| disk.remove_file(path("/d/a")).unwrap());
    let (mut same, mut other) = (0, 0);
    for seed in super::SEEDS {
        let image = disk.crash_image(usize::MAX, seed, RANDOM);
        match known.get(&stamp(&image)) {
            Some(names) => {
                assert_eq!(*names, listing(&image));
                same += 1;
            }
            None => other += 1,
        }
        drop(image.create_new(path("/d/later")).unwrap());
        assert!(!known.contains_key(&stamp(&image)));
    }
    assert!(same > 0 && other > 0);
}
