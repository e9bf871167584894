//! Small files are born or replaced whole: a reader sees the old one, the new one
//! or none, never a half, whenever the power goes.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, DiskFile, write_all};
use crate::format::file_name;

/// Makes `path` with these bytes, durably; an error of kind `AlreadyExists`,
/// which changes nothing, if the name is taken.
///
/// # Errors
/// Those of the disk; a temporary file is removed again where that works.
pub fn create_whole(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    create_filled(disk, path, |file| write_all(file, &[bytes], 0))
}

/// The same with what `fill` writes.
///
/// # Errors
/// Those of `fill` and of the disk.
pub fn create_filled(
    disk: &dyn Disk,
    path: &Path,
    fill: impl FnOnce(&dyn DiskFile) -> io::Result<()>,
) -> io::Result<()> {
    put_whole(disk, path, fill, |temporary| {
        let linked = disk.link(temporary, path);
        disk.remove_file(temporary)?;
        linked
    })
}

/// Puts these bytes in place of what `path` held, durably.
///
/// # Errors
/// Those of the disk; a temporary file is removed again where that works.
pub fn replace_whole(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let fill = |file: &dyn DiskFile| write_all(file, &[bytes], 0);
    put_whole(disk, path, fill, |temporary| disk.rename(temporary, path))
}

fn put_whole(
    disk: &dyn Disk,
    path: &Path,
    fill: impl FnOnce(&dyn DiskFile) -> io::Result<()>,
    publish: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new(""));
    let (temporary, file) = create_temporary(disk, dir)?;
    let filled = fill(file.as_ref()).and_then(|()| file.sync_data());
    if let Err(error) = filled.and_then(|()| publish(&temporary)) {
        let _ = disk.remove_file(&temporary);
        return Err(error);
    }
    disk.sync_dir(dir)
}

/// A new file in `dir` under a name nobody uses.
///
/// # Errors
/// Those of the disk.
pub fn create_temporary(disk: &dyn Disk, dir: &Path) -> io::Result<(PathBuf, Box<dyn DiskFile>)> {
    let mut attempt = 0;
    loop {
        let path = dir.join(file_name::temporary(attempt));
        match disk.create_new(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => attempt += 1,
            Err(error) => return Err(error),
        }
    }
}
