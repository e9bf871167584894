//! Doing harm to files, and looking at them from outside.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A batch's header, which stands before the bytes of its records.
const BATCH_HEADER: u64 = 64;

/// XORs one byte with 1.
pub fn flip(file: &Path, position: u64) {
    let handle = OpenOptions::new().read(true).write(true).open(file).unwrap();
    let mut byte = [0];
    handle.read_exact_at(&mut byte, position).unwrap();
    handle.write_all_at(&[byte[0] ^ 1], position).unwrap();
}

/// Drops the last bytes of a file.
pub fn cut(file: &Path, bytes: u64) {
    OpenOptions::new().write(true).open(file).unwrap().set_len(len(file) - bytes).unwrap();
}

/// Adds bytes to the end of a file.
pub fn append_bytes(file: &Path, bytes: &[u8]) {
    OpenOptions::new().append(true).open(file).unwrap().write_all(bytes).unwrap();
}

/// The length of a file.
pub fn len(file: &Path) -> u64 {
    fs::metadata(file).unwrap().len()
}

/// Where a record's bytes first stand in a file: `grep -obUa`.
pub fn position_of(body: impl AsRef<[u8]>, file: &Path) -> u64 {
    let found = memchr::memmem::find(&fs::read(file).unwrap(), body.as_ref());
    found.expect("the record stands in the file") as u64
}

/// The place of the batch that holds this record alone, header and newline included.
pub fn batch_of(body: &str, file: &Path) -> Range<u64> {
    let position = position_of(format!("{body}\n"), file);
    position - BATCH_HEADER..position + body.len() as u64 + 1
}

/// Copies a directory with all that is in it.
pub fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_tree(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// Every path below a directory, with the bytes of each file and none for a directory.
pub fn tree(dir: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.append(&mut tree(&path));
            found.insert(path, None);
        } else {
            let bytes = fs::read(&path).unwrap();
            found.insert(path, Some(bytes));
        }
    }
    found
}

/// Opens a file for reading and writing, for locks and odd harm.
pub fn open(file: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(file).unwrap()
}
