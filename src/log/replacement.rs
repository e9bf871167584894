//! A segment's new file, which takes the old one's name: written batch after batch under
//! a temporary name, synced, read back, and only then put in place. Repair and compaction
//! give a segment one. A crash before that leaves the old segment as it was.

use std::io;
use std::path::{Path, PathBuf};

use super::error::{Damage, Error, Result};
use super::verify::stretch::Stretch;
use super::{Log, files::whole_file};
use crate::disk::{Access, Disk, DiskFile};
use crate::format::file_name;
use crate::model::{Offset, Position};
use crate::segment::{NewBatch, SegmentWriter};

/// A new file of the segment at its base offset, in the making.
#[derive(Debug)]
pub(crate) struct Replacement<'a> {
    log: &'a Log,
    temporary: Temporary<'a>,
    writer: SegmentWriter,
    /// Where it has got to.
    next: Offset,
    records: u64,
}

/// One that is whole, synced and checked.
#[derive(Debug)]
pub(crate) struct Whole<'a> {
    log: &'a Log,
    temporary: Temporary<'a>,
    base: Offset,
    bytes: u64,
}

impl<'a> Replacement<'a> {
    /// Begins a new file for the segment at `base`, for now in `dir`: whoever holds the
    /// lock under which files are made there. It gets the owner and the permissions of
    /// `old`, the file that it is to replace, if there is one: whoever could use the log
    /// before still can.
    ///
    /// # Errors
    /// What the disk says; also if `old` is somebody else's and the caller is not root.
    pub(crate) fn begin(
        log: &'a Log,
        base: Offset,
        dir: &Path,
        old: Option<&dyn DiskFile>,
    ) -> Result<Replacement<'a>> {
        let disk = log.home.disk();
        let made = whole_file::create_temporary(disk, dir);
        let path = log.home.segment_path(base);
        let (temporary, file) = made.map_err(Error::io("create a file for", &path))?;
        let temporary = Temporary { disk, path: Some(temporary) };
        if let Some(old) = old {
            // Before the first byte, so that none is ever open to more users than it was.
            let given = old.rights().and_then(|rights| file.set_rights(rights));
            given.map_err(|error| {
                Error::io("give a new file the owner and permissions of", path)(with_remedy(error))
            })?;
        }
        Ok(Replacement {
            log,
            temporary,
            writer: SegmentWriter::new(file, log.id, base, Position::ZERO),
            next: base,
            records: 0,
        })
    }

    /// Where it has got to: the offset of what is to come next.
    pub(crate) fn next(&self) -> Offset {
        self.next
    }

    /// Adds a batch.
    pub(crate) fn append(&mut self, batch: &NewBatch<'_>) -> Result<()> {
        let appended = self.writer.append(batch);
        appended.map_err(Error::io("write", self.temporary.path()))?;
        self.records += u64::from(batch.body.records);
        self.next = batch.next;
        Ok(())
    }

    /// Syncs it and reads it back, as it would be read later.
    pub(crate) fn finish(self) -> Result<Whole<'a>> {
        let Replacement { log, temporary, writer, next, records } = self;
        let path = temporary.path();
        writer.file().sync_data().map_err(Error::io("write", path))?;
        let (base, bytes) = (writer.segment(), writer.position().get());
        let file = log.home.open(path, Access::Read)?;
        let new = Stretch::check_file(log, base, file, path, None, &mut |_| ())?;
        if new.bad.is_empty() && (new.end, new.facts.records) == (next, records) {
            return Ok(Whole { log, temporary, base, bytes });
        }
        let what = "what was written can't be read back; the old segment stays".to_owned();
        let (path, offset) = (path.to_owned(), new.end);
        Err(Damage { path, position: Position::ZERO, offset, what }.into())
    }
}

impl Whole<'_> {
    /// Its size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Gives the segment this file. Where that can't be made durable, the old one gets its
    /// name back. The caller holds the append lock.
    pub(crate) fn put_in_place(mut self) -> Result<()> {
        let path = self.log.home.segment_path(self.base);
        let (disk, dir) = (self.log.home.disk(), self.log.home.dir());
        let old = second_name(disk, dir, &path).map_err(Error::io("link", &path))?;
        disk.rename(self.temporary.path(), &path).map_err(Error::io("replace", &path))?;
        self.temporary.path = None;
        let synced = self.log.home.sync_dir(dir);
        match (old, &synced) {
            (Some(old), Ok(())) => disk.remove_file(&old).map_err(Error::io("remove", old))?,
            (Some(old), Err(_)) => {
                let _ = disk.rename(&old, &path);
            }
            (None, _) => {}
        }
        synced
    }
}

/// The same, with who can do what was refused.
fn with_remedy(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            io::Error::new(error.kind(), format!("{error}: run this as its owner, or as root"))
        }
        _ => error,
    }
}

/// A second name for the file at `path`; `None` if there is no such file.
fn second_name(disk: &dyn Disk, dir: &Path, path: &Path) -> io::Result<Option<PathBuf>> {
    for attempt in 0.. {
        let name = dir.join(file_name::temporary(attempt));
        match disk.link(path, &name) {
            Ok(()) => return Ok(Some(name)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Err(_) => {}
        }
    }
    Ok(None)
}

/// The name of a file in the making, removed again unless the file got its real one.
#[derive(Debug)]
struct Temporary<'a> {
    disk: &'a dyn Disk,
    path: Option<PathBuf>,
}

impl Temporary<'_> {
    fn path(&self) -> &Path {
        self.path.as_deref().unwrap_or(Path::new(""))
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // What stays is a leftover, which gc removes.
            let _ = self.disk.remove_file(path);
        }
    }
}
