//! Faults, limits and what the calls do under them.

use std::io::{ErrorKind, IoSlice};

use super::{path, put, with_file};
use crate::disk::simulated::{Class, Lasts, SimulatedDisk, Trouble};
use crate::disk::{Access, Disk, LockMode, read_full, write_all};

#[test]
fn the_nth_call_of_a_class_fails_once_and_changes_nothing() {
    let (disk, file) = with_file(b"");
    disk.fail_at(Class::Write, 2, Trouble::EIO, Lasts::Once);
    write_all(file.as_ref(), &[b"1"], 0).unwrap();
    file.sync_data().unwrap();
    let steps = disk.steps();
    let error = write_all(file.as_ref(), &[b"2"], 1).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(5));
    assert_eq!((disk.steps(), disk.read_file(path("/f"))), (steps, Some(b"1".to_vec())));
    write_all(file.as_ref(), &[b"2"], 1).unwrap();
    assert_eq!((disk.calls(Class::Write), disk.faults_met()), (3, 1));
}

#[test]
fn a_lasting_fault_stays_until_it_is_taken_back() {
    let (disk, file) = with_file(b"abc");
    disk.fail_at(Class::Read, 1, Trouble::Kind(ErrorKind::Other), Lasts::ForEver);
    for _ in 0..3 {
        assert_eq!(file.read_at(&mut [0; 1], 0).unwrap_err().kind(), ErrorKind::Other);
    }
    disk.clear_faults();
    assert_eq!(file.read_at(&mut [0; 1], 0).unwrap(), 1);
}

#[test]
fn a_fault_on_and_off_spares_every_second_call() {
    let (disk, file) = with_file(b"abc");
    disk.fail_at(Class::Read, 2, Trouble::EIO, Lasts::OnAndOff);
    let fails: Vec<bool> = (0..5).map(|_| file.read_at(&mut [0; 1], 0).is_err()).collect();
    assert_eq!(fails, [false, true, false, true, false]);
}

#[test]
fn an_interruption_is_retried_by_those_who_promise_it() {
    let (disk, file) = with_file(b"abc");
    disk.fail_at(Class::Read, 1, Trouble::EINTR, Lasts::Once);
    disk.fail_at(Class::Write, 1, Trouble::EINTR, Lasts::Once);
    let mut bytes = [0; 3];
    assert_eq!(read_full(file.as_ref(), &mut bytes, 0).unwrap(), 3);
    write_all(file.as_ref(), &[b"xyz"], 0).unwrap();
    assert_eq!(disk.read_file(path("/f")), Some(b"xyz".to_vec()));
}

#[test]
fn reads_and_writes_are_short_on_request_but_never_empty() {
    let (disk, file) = with_file(b"");
    disk.fail_at(Class::Any, 1, Trouble::Short(0), Lasts::ForEver);
    let parts = [IoSlice::new(b""), IoSlice::new(b"ab"), IoSlice::new(b"cd")];
    assert_eq!(file.write_at(&parts, 0).unwrap(), 1);
    disk.clear_faults();
    disk.fail_at(Class::Any, 1, Trouble::Short(3), Lasts::ForEver);
    assert_eq!(file.write_at(&parts, 0).unwrap(), 3);
    assert_eq!(disk.read_file(path("/f")), Some(b"abc".to_vec()));
    disk.clear_faults();
    disk.fail_at(Class::Read, 2, Trouble::Short(1), Lasts::Once);
    assert_eq!(file.read_at(&mut [0; 3], 0).unwrap(), 3);
    assert_eq!(file.read_at(&mut [0; 3], 0).unwrap(), 1);
    assert_eq!(file.read_at(&mut [0; 3], 0).unwrap(), 3);
}

#[test]
fn every_class_can_fail_and_any_counts_them_all() {
    let disk = SimulatedDisk::new();
    disk.write_file(path("/f"), b"").unwrap();
    let file = disk.open(path("/f"), Access::ReadWrite).unwrap();
    let lock = disk.lock(path("/f")).unwrap();
    let calls: [(Class, &dyn Fn() -> std::io::Result<()>); 19] = [
        (Class::Open, &|| disk.open(path("/f"), Access::Read).map(drop)),
        (Class::Read, &|| file.read_at(&mut [0; 1], 0).map(drop)),
        (Class::Write, &|| write_all(file.as_ref(), &[b"x"], 0)),
        (Class::SetLen, &|| file.set_len(1)),
        (Class::Sync, &|| file.sync_data()),
        (Class::Create, &|| disk.create_new(path("/a")).map(drop)),
        (Class::Create, &|| disk.create_dir(path("/d"))),
        (Class::Link, &|| disk.link(path("/a"), path("/b"))),
        (Class::Rename, &|| disk.rename(path("/b"), path("/c"))),
        (Class::Remove, &|| disk.remove_file(path("/c"))),
        (Class::SyncDir, &|| disk.sync_dir(path("/"))),
        (Class::Lock, &|| disk.lock(path("/f")).map(drop)),
        (Class::Lock, &|| lock.try_acquire(LockMode::Shared).map(drop)),
        (Class::Look, &|| disk.list(path("/")).map(drop)),
        (Class::Look, &|| disk.entry(path("/f")).map(drop)),
        (Class::Look, &|| disk.dir_stamp(path("/")).map(drop)),
        (Class::Look, &|| disk.boot_id().map(drop)),
        (Class::Look, &|| file.size().map(drop)),
        (Class::Look, &|| file.is_at(path("/f")).and(lock.is_at(path("/f"))).map(drop)),
    ];
    let before = disk.calls(Class::Any);
    for (class, call) in &calls {
        for class in [*class, Class::Any] {
            disk.fail_at(class, 1, Trouble::EIO, Lasts::Once);
            assert_eq!(call().unwrap_err().raw_os_error(), Some(5), "{class:?}");
        }
        call().unwrap();
    }
    let last_looks_twice = 1 + 2; // `and` evaluates the second call each time
    assert_eq!(disk.calls(Class::Any) - before, calls.len() as u64 * 3 + last_looks_twice);
    assert_eq!(disk.faults_met(), calls.len() as u64 * 2);
    let by_class: u64 = Class::ALL[1..].iter().map(|class| disk.calls(*class)).sum();
    assert_eq!(by_class, disk.calls(Class::Any));
}

#[test]
fn a_failed_directory_sync_is_made_up_for_by_a_later_one() {
    let disk = SimulatedDisk::new();
    put(&disk, "/a", b"");
    disk.fail_at(Class::SyncDir, 1, Trouble::EIO, Lasts::Once);
    assert!(disk.sync_dir(path("/")).is_err());
    assert_eq!(super::listings(&disk, "/").len(), 2);
    disk.sync_dir(path("/")).unwrap();
    assert_eq!(super::listings(&disk, "/").len(), 1);
}

#[test]
fn a_full_disk_takes_a_part_then_nothing_but_lets_bytes_be_overwritten() {
    let (disk, file) = with_file(b"ab");
    disk.set_space(Some(4));
    assert_eq!(file.write_at(&[IoSlice::new(b"cdef")], 2).unwrap(), 2);
    let full = file.write_at(&[IoSlice::new(b"ef")], 4).unwrap_err();
    assert_eq!(full.kind(), ErrorKind::StorageFull);
    assert_eq!(file.set_len(5).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(file.write_at(&[IoSlice::new(b"ABCD")], 0).unwrap(), 4);
    assert_eq!(file.write_at(&[IoSlice::new(b"Dx")], 3).unwrap(), 1, "up to the end");
    put(&disk, "/empty", b"");
    file.set_len(1).unwrap();
    write_all(file.as_ref(), &[b"xyz"], 1).unwrap();
    assert_eq!((disk.read_file(path("/f")), disk.used_space()), (Some(b"Axyz".to_vec()), 4));
    let image = disk.crash_image(usize::MAX, 0, super::RANDOM);
    let file = image.create_new(path("/more")).unwrap();
    assert!(write_all(file.as_ref(), &[b"12345"], 0).is_err(), "a start makes no room");
    disk.set_space(None);
    put(&disk, "/more", b"123");
}

#[test]
fn absurd_positions_are_refused_before_memory_is_taken() {
    let (_disk, file) = with_file(b"");
    assert!(file.write_at(&[IoSlice::new(b"x")], u64::MAX).is_err());
    assert!(file.set_len(u64::MAX).is_err());
    assert_eq!(file.read_at(&mut [0; 1], u64::MAX).unwrap(), 0);
}
