//! Small files are born or replaced whole: a reader sees the old one, the new one
//! or none, never a half, whenever the power goes.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, write_all};
use crate::format::file_name;

/// Makes `path` with these bytes, durably; an error of kind `AlreadyExists`,
/// which changes nothing, if the name is taken.
///
/// # Errors
/// Those of the disk; a temporary file is removed again where that works.
pub fn create_whole(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    put_whole(disk, path, bytes, |temporary| {
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
    put_whole(disk, path, bytes, |temporary| disk.rename(temporary, path))
}

fn put_whole(
    disk: &dyn Disk,
    path: &Path,
    bytes: &[u8],
    publish: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new(""));
    let temporary = write_temporary(disk, dir, bytes)?;
    if let Err(error) = publish(&temporary) {
        let _ = disk.remove_file(&temporary);
        return Err(error);
    }
    disk.sync_dir(dir)
}

/// A synced file of these bytes under a name nobody uses.
fn write_temporary(disk: &dyn Disk, dir: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    let mut attempt = 0;
    let (path, file) = loop {
        let path = dir.join(file_name::temporary(attempt));
        match disk.create_new(&path) {
            Ok(file) => break (path, file),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => attempt += 1,
            Err(error) => return Err(error),
        }
    };
    let written = write_all(file.as_ref(), &[bytes], 0).and_then(|()| file.sync_data());
    if let Err(error) = written {
        let _ = disk.remove_file(&path);
        return Err(error);
    }
    Ok(path)
}
