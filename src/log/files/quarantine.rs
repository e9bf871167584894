//! `quarantine/`: what recovery and repair take out of a log is kept there, durably,
//! before it goes from its place.

use std::io;
use std::path::{Path, PathBuf};

use super::whole_file;
use crate::disk::{Access, DiskFile, read_full, write_all};
use crate::format::file_name;
use crate::log::error::{Error, Result};
use crate::log::home::Home;
use crate::model::Position;

/// How many bytes are copied at once.
const CHUNK: usize = 256 << 10;

/// Bytes of a file that are to be kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    /// The file that they are in.
    pub file: &'a dyn DiskFile,
    /// Where they begin.
    pub from: Position,
    /// Where they end.
    pub to: Position,
}

/// Copies `piece` to a new file under the first free of the names that `name` gives for
/// 0, 1, …; a copy that is there already serves, so that to be killed and run again
/// leaves one. Says where it is.
pub(crate) fn keep(
    home: &Home,
    piece: &Piece<'_>,
    name: impl Fn(u32) -> String,
) -> Result<PathBuf> {
    let dir = make_dir(home)?;
    let mut attempt = 0;
    loop {
        let path = dir.join(name(attempt));
        match whole_file::create_filled(home.disk(), &path, |copy| piece.copy_to(copy)) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::io("write", &path)(error));
            }
            Err(_) if is_copy(home, &path, piece)? => {
                home.sync_dir(&dir)?;
                return Ok(path);
            }
            Err(_) => attempt += 1,
        }
    }
}

/// Moves what is at `path` there whole, with a note why; says where it is then. The note
/// comes first, so that to be killed and run again leaves it too.
pub(crate) fn displace(home: &Home, path: &Path, why: &str) -> Result<PathBuf> {
    let dir = make_dir(home)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut attempt = 0;
    while home.exists(&dir.join(file_name::displaced(&name, attempt)))? {
        attempt += 1;
    }
    let kept = dir.join(file_name::displaced(&name, attempt));
    note(home, &kept, why)?;
    home.disk().rename(path, &kept).map_err(Error::io("move", path))?;
    home.sync_dir(&dir)?;
    home.sync_dir(path.parent().unwrap_or(home.dir()))?;
    Ok(kept)
}

/// Writes a line beside what is kept at `path`, unless there is one already.
pub(crate) fn note(home: &Home, path: &Path, line: &str) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let note = path.with_file_name(file_name::note_on(&name));
    match whole_file::create_whole(home.disk(), &note, format!("{line}\n").as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map_err(Error::io("write", &note)),
    }
}

/// The directory, its name durable.
fn make_dir(home: &Home) -> Result<PathBuf> {
    let dir = home.path(file_name::QUARANTINE);
    home.refuse_link(&dir)?;
    match home.disk().create_dir(&dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(Error::io("create", &dir)(error));
        }
        _ => {}
    }
    home.sync_dir(home.dir())?;
    Ok(dir)
}

impl Piece<'_> {
    fn copy_to(&self, copy: &dyn DiskFile) -> io::Result<()> {
        self.each_chunk(|chunk, done| write_all(copy, &[chunk], done).map(|()| true)).map(drop)
    }

    /// Hands on the bytes, with how many came before, while `take` says so; whether it
    /// always did.
    fn each_chunk(&self, mut take: impl FnMut(&[u8], u64) -> io::Result<bool>) -> io::Result<bool> {
        let mut buffer = vec![0; CHUNK];
        let length = self.to.since(self.from);
        let mut done = 0;
        while done < length {
            let wanted = (length - done).min(CHUNK as u64) as usize;
            let from = (self.from + done).get();
            let read = read_full(self.file, &mut buffer[..wanted], from)?;
            if read == 0 || !take(&buffer[..read], done)? {
                return Ok(read == 0);
            }
            done += read as u64;
        }
        Ok(true)
    }
}

/// Whether the file at `path` holds the bytes of `piece` and no more.
fn is_copy(home: &Home, path: &Path, piece: &Piece<'_>) -> Result<bool> {
    let file = home.open(path, Access::Read)?;
    let same = || -> io::Result<bool> {
        let mut other = vec![0; CHUNK];
        let same = piece.each_chunk(|chunk, done| {
            let read = read_full(file.as_ref(), &mut other[..chunk.len()], done)?;
            Ok(&other[..read] == chunk)
        })?;
        Ok(same && file.size()? == piece.to.since(piece.from))
    };
    same().map_err(Error::io("read", path))
}
