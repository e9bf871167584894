//! The player and the disks that it gives.

use std::collections::BTreeSet;

use super::{RANDOM, SEEDS, path, put, with_file, write};
use crate::disk::simulated::{CrashPlayer, CrashStyle, SimulatedDisk};
use crate::disk::{Access, Disk, LockMode};

/// A small log's life: some files, appends, syncs, renames.
fn busy_disk() -> SimulatedDisk {
    let disk = SimulatedDisk::new();
    disk.create_dir(path("/log")).unwrap();
    disk.sync_dir(path("/")).unwrap();
    for number in 0..20 {
        let name = format!("/log/{number}");
        let file = put(&disk, "/log/temporary", &[number; 100]);
        file.sync_data().unwrap();
        disk.rename(path("/log/temporary"), path(&name)).unwrap();
        disk.sync_dir(path("/log")).unwrap();
        for append in 0..8_u64 {
            write(file.as_ref(), &[number; 300], 100 + append * 300);
            if append % 3 == 2 {
                file.sync_data().unwrap();
            }
        }
    }
    disk
}

fn player_at(disk: &SimulatedDisk, steps: usize) -> CrashPlayer {
    let mut player = disk.crash_player();
    player.go_to(steps);
    player
}

#[test]
fn a_seed_gives_the_same_disk_again_and_seeds_differ() {
    let disk = busy_disk();
    let player = player_at(&disk, 100);
    let mut seen = BTreeSet::new();
    for seed in SEEDS {
        let (first, second) = (player.image(seed, RANDOM), disk.crash_image(100, seed, RANDOM));
        assert_eq!(first.fingerprint(), second.fingerprint());
        assert_eq!(first.boot_id().unwrap(), second.boot_id().unwrap());
        seen.insert(first.fingerprint());
    }
    assert!(seen.len() > 10, "{}", seen.len());
}

#[test]
fn going_back_is_going_anew() {
    let disk = busy_disk();
    let mut player = player_at(&disk, usize::MAX);
    assert_eq!((player.at(), player.steps()), (disk.steps(), disk.steps()));
    let last = player.image(0, CrashStyle::KeepAll);
    assert_eq!(last.fingerprint(), disk.fingerprint());
    player.go_to(0);
    let first = player.image(0, CrashStyle::KeepAll);
    assert_eq!(first.fingerprint(), SimulatedDisk::new().fingerprint());
}

#[test]
fn everything_in_an_image_is_durable_and_its_machine_has_started_again() {
    let (disk, file) = with_file(b"old");
    write(file.as_ref(), b"new", 0);
    put(&disk, "/g", b"g");
    let _lock = disk.lock(path("/f")).unwrap().try_acquire(LockMode::Exclusive).unwrap();
    for seed in SEEDS {
        let image = disk.crash_image(usize::MAX, seed, RANDOM);
        assert_eq!(image.steps(), 0);
        assert_ne!(image.boot_id().unwrap(), disk.boot_id().unwrap());
        assert!(image.lock(path("/f")).unwrap().try_acquire(LockMode::Exclusive).unwrap());
        let again = image.crash_image(0, seed, CrashStyle::DropAll);
        assert_eq!(again.fingerprint(), image.fingerprint());
    }
}

#[test]
fn an_image_and_its_disk_go_their_own_ways_and_it_can_crash_again() {
    let (disk, file) = with_file(b"old");
    let image = disk.crash_image(usize::MAX, 0, RANDOM);
    write(file.as_ref(), b"new", 0);
    assert_eq!(image.read_file(path("/f")), Some(b"old".to_vec()));
    let file = image.open(path("/f"), Access::ReadWrite).unwrap();
    write(file.as_ref(), b"two", 0);
    assert_eq!(disk.read_file(path("/f")), Some(b"new".to_vec()));
    let second = |style| image.crash_image(1, 0, style).read_file(path("/f")).unwrap();
    assert_eq!(second(CrashStyle::KeepAll), b"two");
    assert_eq!(second(CrashStyle::DropAll), b"old");
}

#[test]
fn after_a_kill_nothing_is_lost_and_a_power_cut_can_still_take_it() {
    let (disk, file) = with_file(b"old");
    write(file.as_ref(), b"new", 0);
    write(file.as_ref(), b"later", 0);
    let lock = disk.lock(path("/f")).unwrap();
    assert!(lock.try_acquire(LockMode::Exclusive).unwrap());
    let killed = player_at(&disk, 1).killed();
    assert_eq!(killed.read_file(path("/f")), Some(b"new".to_vec()));
    assert_eq!(killed.boot_id().unwrap(), disk.boot_id().unwrap());
    assert!(killed.lock(path("/f")).unwrap().try_acquire(LockMode::Exclusive).unwrap());
    assert_eq!(super::content(&killed, "/f", CrashStyle::DropAll), Some(b"old".to_vec()));
    killed.open(path("/f"), Access::Read).unwrap().sync_data().unwrap();
    assert_eq!(super::content(&killed, "/f", CrashStyle::DropAll), Some(b"new".to_vec()));
}

#[test]
fn a_snapshot_is_the_whole_disk_with_its_journal() {
    let (disk, file) = with_file(b"old");
    write(file.as_ref(), b"new", 0);
    let copy = disk.snapshot();
    write(file.as_ref(), b"own", 0);
    assert_eq!((copy.steps(), copy.read_file(path("/f"))), (1, Some(b"new".to_vec())));
    assert_eq!(super::content(&copy, "/f", CrashStyle::DropAll), Some(b"old".to_vec()));
    assert_eq!(copy.boot_id().unwrap(), disk.boot_id().unwrap());
}

#[test]
fn settling_makes_all_durable_and_so_does_tampering() {
    let (disk, file) = with_file(b"old");
    write(file.as_ref(), b"new", 0);
    disk.settle();
    assert_eq!(disk.steps(), 0);
    assert_eq!(super::content(&disk, "/f", CrashStyle::DropAll), Some(b"new".to_vec()));
    disk.write_file(path("/f"), b"rotten").unwrap();
    disk.write_file(path("/deep/down/g"), b"g").unwrap();
    assert!(file.is_at(path("/f")).unwrap());
    assert_eq!(file.size().unwrap(), 6);
    let image = disk.crash_image(0, 0, CrashStyle::DropAll);
    assert_eq!(image.read_file(path("/deep/down/g")), Some(b"g".to_vec()));
    assert_eq!(image.names(path("/")).unwrap(), ["deep", "f"]);
    assert!(disk.write_file(path("/deep"), b"").is_err());
    assert!(disk.write_file(path("/f/g"), b"").is_err());
}

#[test]
fn steps_are_told_in_words() {
    let disk = busy_disk();
    let told: Vec<String> = (0..7).map(|step| disk.describe_step(step).unwrap()).collect();
    let expected = [
        "make directory log",
        "sync the directory inode 1",
        "create temporary",
        "write 100 bytes at 0 of temporary",
        "sync temporary",
        "rename temporary -> 0",
        "sync the directory log",
    ];
    assert_eq!(told, expected);
    assert_eq!(disk.describe_step(disk.steps()), None);
}

#[test]
fn a_hundred_images_at_each_step_take_no_time_worth_naming() {
    let disk = busy_disk();
    let begun = std::time::Instant::now();
    let halves = [0, 1].map(|half| {
        let mut player = disk.crash_player();
        std::thread::spawn(move || {
            let mut files = 0;
            for steps in (half..=player.steps()).step_by(2) {
                player.go_to(steps);
                for seed in 0..100 {
                    files += player.image(seed, RANDOM).names(path("/log")).map_or(0, |n| n.len());
                }
            }
            files
        })
    });
    let files: usize = halves.into_iter().map(|half| half.join().unwrap()).sum();
    assert!(files > 100_000);
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    println!("{} images took {:?}", (disk.steps() + 1) * 100, begun.elapsed());
}
