//! One segment written anew: the good batches as they are, gaps for what is lost. The
//! new file is whole, synced and checked before it takes the old one's name.

use std::io;
use std::path::Path;

use serde::Serialize;

use crate::disk::{Access, Disk, DiskFile};
use crate::format::batch::{GapReason, Header, Layout};
use crate::format::body::Body;
use crate::format::file_name;
use crate::log::Log;
use crate::log::error::{Damage, Error, Result};
use crate::log::files::quarantine::{self, Piece};
use crate::log::files::whole_file;
use crate::log::find::tail::open_if_there;
use crate::log::verify::stretch::Stretch;
use crate::model::{Offset, Position, Timestamp};
use crate::segment::{BadBytes, Found, NewBatch, Salvage, SegmentReader, SegmentWriter};

/// Puts a whole segment in place of the one of `stretch`, whose bad bytes are kept in
/// quarantine. No record before it was appended later than `last_time`.
pub(crate) fn rewrite(
    log: &Log,
    stretch: &Stretch,
    last_time: Timestamp,
    now: Timestamp,
) -> Result<()> {
    let path = log.home.segment_path(stretch.base);
    let old = open_if_there(&log.home, stretch.base)?;
    if let Some(old) = &old {
        for bad in &stretch.bad {
            set_aside(log, stretch, old.as_ref(), bad, now)?;
        }
    }
    let disk = log.home.disk();
    let made = whole_file::create_temporary(disk, log.home.dir());
    let (temporary, new) = made.map_err(Error::io("create a file for", &path))?;
    let mut copy = Copy {
        writer: SegmentWriter::new(new, log.id, stretch.base, Position::ZERO),
        next: stretch.base,
        time: last_time,
    };
    let written = copy
        .all_of(log, old, stretch)
        .and_then(|()| copy.writer.file().sync_data())
        .map_err(Error::io("write", &temporary))
        .and_then(|()| check(log, stretch, &temporary))
        .and_then(|()| put_in_place(disk, &temporary, &path));
    if written.is_err() {
        let _ = disk.remove_file(&temporary);
    }
    written
}

/// What is known of bytes that were set aside.
#[derive(Serialize)]
struct NoteOn {
    file: String,
    position: Position,
    bytes: u64,
    first: Offset,
    next: Offset,
    why: String,
    set_aside: Timestamp,
}

fn set_aside(
    log: &Log,
    stretch: &Stretch,
    file: &dyn DiskFile,
    bad: &BadBytes,
    now: Timestamp,
) -> Result<()> {
    let position = bad.bad.position;
    let piece = Piece { file, from: position, to: bad.end };
    let kept = quarantine::keep(&log.home, &piece, |attempt| {
        file_name::damaged(stretch.base, position, attempt)
    })?;
    let note = NoteOn {
        file: file_name::segment(stretch.base),
        position,
        bytes: bad.end.since(position),
        first: bad.bad.offset,
        next: bad.next.unwrap_or(stretch.next),
        why: bad.bad.reason.to_string(),
        set_aside: now,
    };
    quarantine::note(&log.home, &kept, &serde_json::to_string(&note).unwrap_or_default())
}

/// A segment in the making.
struct Copy {
    writer: SegmentWriter,
    next: Offset,
    time: Timestamp,
}

impl Copy {
    fn all_of(
        &mut self,
        log: &Log,
        old: Option<Box<dyn DiskFile>>,
        stretch: &Stretch,
    ) -> io::Result<()> {
        if let Some(old) = old {
            let reader =
                SegmentReader::new(old, log.id, stretch.base, Position::ZERO, stretch.base);
            let mut salvage = Salvage::new(reader, log.id, stretch.length);
            while let Some(found) = salvage.find()? {
                if let Found::Batch(header, _) = found {
                    self.gap_to(header.base)?;
                    self.batch(&header, salvage.last_body())?;
                }
            }
        }
        self.gap_to(stretch.next)
    }

    fn batch(&mut self, header: &Header, stored: &[u8]) -> io::Result<()> {
        let Header { layout, codec, records, raw, .. } = *header;
        self.writer.append(&NewBatch {
            base: header.base,
            next: header.next,
            synced: header.synced,
            time: header.append_time,
            body: Body { layout, codec, records, raw, bytes: stored },
        })?;
        (self.next, self.time) = (header.next, self.time.max(header.append_time));
        Ok(())
    }

    /// Says that the offsets up to `next` are missing: in as many gaps as that takes.
    fn gap_to(&mut self, next: Offset) -> io::Result<()> {
        while self.next < next {
            let offsets = next.since(self.next).min(u64::from(u32::MAX));
            let to = self.next.forward(offsets).unwrap_or(next);
            self.writer.append(&NewBatch {
                base: self.next,
                next: to,
                synced: self.next,
                time: self.time,
                body: Body { records: 0, ..Body::plain(Layout::Gap(GapReason::Damaged), 0, &[]) },
            })?;
            self.next = to;
        }
        Ok(())
    }
}

/// Reads what was written, as it would be read later.
fn check(log: &Log, stretch: &Stretch, path: &Path) -> Result<()> {
    let file = log.home.open(path, Access::Read)?;
    let new = Stretch::check_file(log, stretch.base, file, path, None, &mut |_| ())?;
    if new.bad.is_empty() && new.end == stretch.next {
        return Ok(());
    }
    let what = "what was written can't be read back; the old segment stays".to_owned();
    Err(Damage { path: path.to_owned(), position: Position::ZERO, offset: new.end, what }.into())
}

/// Gives the segment at `path` its new file. Where that can't be made durable, the old one
/// gets its name back.
fn put_in_place(disk: &dyn Disk, new: &Path, path: &Path) -> Result<()> {
    let dir = path.parent().unwrap_or(Path::new(""));
    let old = second_name(disk, dir, path).map_err(Error::io("link", path))?;
    disk.rename(new, path).map_err(Error::io("replace", path))?;
    let synced = disk.sync_dir(dir).map_err(Error::io("sync", dir));
    match (old, &synced) {
        (Some(old), Ok(())) => disk.remove_file(&old).map_err(Error::io("remove", old))?,
        (Some(old), Err(_)) => {
            let _ = disk.rename(&old, path);
        }
        (None, _) => {}
    }
    synced
}

/// A second name for the file at `path`; `None` if there is no such file.
fn second_name(disk: &dyn Disk, dir: &Path, path: &Path) -> io::Result<Option<std::path::PathBuf>> {
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
