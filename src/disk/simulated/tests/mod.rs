//! The instrument is tested before it is believed: each rule of the module text
//! has a test here, and where a thing may go either way, both ways must occur.

mod bytes;
mod faults;
mod like_the_system;
mod model;
mod names;
mod player;

use std::collections::BTreeSet;
use std::path::Path;

use super::{CrashStyle, SimulatedDisk};
use crate::disk::{Disk, DiskFile, write_all};

const RANDOM: CrashStyle = CrashStyle::Random { sector: 512 };
const SEEDS: std::ops::Range<u64> = 0..400;

fn path(text: &str) -> &Path {
    Path::new(text)
}

fn write(file: &dyn DiskFile, bytes: &[u8], position: u64) {
    write_all(file, &[bytes], position).unwrap();
}

/// A new file of these bytes; neither is synced.
fn put(disk: &SimulatedDisk, name: &str, bytes: &[u8]) -> Box<dyn DiskFile> {
    let file = disk.create_new(path(name)).unwrap();
    write(file.as_ref(), bytes, 0);
    file
}

/// A disk with one durable file `/f` of these bytes, open for writing.
fn with_file(bytes: &[u8]) -> (SimulatedDisk, Box<dyn DiskFile>) {
    let disk = SimulatedDisk::new();
    disk.write_file(path("/f"), bytes).unwrap();
    let file = disk.open(path("/f"), crate::disk::Access::ReadWrite).unwrap();
    (disk, file)
}

/// Every content of a file that power cuts now may leave, over many seeds.
fn contents(disk: &SimulatedDisk, name: &str, style: CrashStyle) -> BTreeSet<Option<Vec<u8>>> {
    let mut player = disk.crash_player();
    player.go_to(usize::MAX);
    SEEDS.map(|seed| player.image(seed, style).read_file(path(name))).collect()
}

/// Every listing of a directory, with contents, that power cuts now may leave.
fn listings(disk: &SimulatedDisk, dir: &str) -> BTreeSet<Vec<String>> {
    let mut player = disk.crash_player();
    player.go_to(usize::MAX);
    let listing = |seed| player.image(seed, RANDOM).names(path(dir));
    SEEDS.filter_map(listing).collect()
}

/// The one content that a style leaves.
fn content(disk: &SimulatedDisk, name: &str, style: CrashStyle) -> Option<Vec<u8>> {
    disk.crash_image(usize::MAX, 0, style).read_file(path(name))
}
