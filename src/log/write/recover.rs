//! What a writer does before its first append when the log did not end in an
//! orderly way. Nothing is destroyed: bytes that are cut off are copied to
//! `quarantine/` and synced there first; if that fails, nothing is changed.

use std::io;
use std::path::PathBuf;

use crate::disk::{DiskFile, read_full, write_all};
use crate::format::file_name;
use crate::format::state::Mark;
use crate::log::error::{Error, Result};
use crate::log::find::tail::Tail;
use crate::log::home::Home;
use crate::log::note::Note;
use crate::model::{LogId, Position};
use crate::segment::{SegmentReader, Step};

/// How many bytes are copied at once.
const CHUNK: usize = 256 << 10;

/// Cuts the torn tail off the segment in `file`, which ends at `tail.mark`, and
/// syncs what is left.
pub(crate) fn cut_torn_tail(home: &Home, file: &dyn DiskFile, tail: &Tail) -> Result<()> {
    let path = home.segment_path(tail.mark.segment);
    let kept = set_aside(home, file, &tail.mark)?;
    file.set_len(tail.mark.position.get()).map_err(Error::io("cut", &path))?;
    file.sync_data().map_err(Error::io("sync", &path))?;
    home.tell(&Note::CutTail { path, bytes: tail.torn, kept });
    Ok(())
}

/// Copies what lies behind `from` to a new file in `quarantine/`, durably.
fn set_aside(home: &Home, file: &dyn DiskFile, from: &Mark) -> Result<PathBuf> {
    let dir = home.path(file_name::QUARANTINE);
    match home.disk().create_dir(&dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(Error::io("create", &dir)(error));
        }
        _ => {}
    }
    let mut attempt = 0;
    let (copy, path) = loop {
        let name = file_name::quarantined(from.segment, from.position.get(), attempt);
        let path = dir.join(name);
        match home.disk().create_new(&path) {
            Ok(copy) => break (copy, path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => attempt += 1,
            Err(error) => return Err(Error::io("create", &path)(error)),
        }
    };
    let copied = copy_from(file, from.position, copy.as_ref()).and_then(|()| copy.sync_data());
    if let Err(error) = copied {
        let _ = home.disk().remove_file(&path);
        return Err(Error::io("write", &path)(error));
    }
    home.sync_dir(&dir)?;
    home.sync_dir(home.dir())?;
    Ok(path)
}

fn copy_from(from: &dyn DiskFile, position: Position, to: &dyn DiskFile) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    let mut done = 0;
    loop {
        let read = read_full(from, &mut buffer, position.get() + done)?;
        if read == 0 {
            return Ok(());
        }
        write_all(to, &[&buffer[..read]], done)?;
        done += read as u64;
    }
}

/// After a failed sync the kernel may hold bytes for clean that the disk never
/// got: writes every batch from `from` on again, checked, in its place.
pub(crate) fn rewrite_from(
    home: &Home,
    log: LogId,
    file: Box<dyn DiskFile>,
    from: &Mark,
) -> Result<()> {
    let path = home.segment_path(from.segment);
    let mut reader = SegmentReader::new(file, log, from.segment, from.position, from.offset);
    loop {
        let (position, bytes) = match reader.step().map_err(Error::io("read", &path))? {
            Step::Batch(batch) => (batch.position, batch.bytes.to_vec()),
            Step::End | Step::Bad(_) => return Ok(()),
        };
        write_all(reader.file(), &[&bytes], position.get()).map_err(Error::io("write", &path))?;
    }
}
