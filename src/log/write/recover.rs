//! What a writer does before its first append when the log did not end in an
//! orderly way. Nothing is destroyed: bytes that are cut off are copied to
//! `quarantine/` and synced there first; if that fails, nothing is changed.

use std::io;
use std::path::PathBuf;

use crate::disk::{DiskFile, read_full, write_all};
use crate::format::file_name;
use crate::format::state::{EndState, Mark};
use crate::log::error::{Error, Result};
use crate::log::files::slot_file::SlotFile;
use crate::log::find::tail::Tail;
use crate::log::home::Home;
use crate::log::note::Note;
use crate::model::{LogId, Position};
use crate::segment::{SegmentReader, Step};

/// How many bytes are copied at once.
const CHUNK: usize = 256 << 10;

/// Cuts the torn tail off the segment in `file`, which ends at `tail.mark`. What is
/// left is not synced yet.
pub(crate) fn cut_torn_tail(home: &Home, file: &dyn DiskFile, tail: &Tail) -> Result<()> {
    let path = home.segment_path(tail.mark.segment);
    let kept = set_aside(home, file, &tail.mark)?;
    file.set_len(tail.mark.position.get()).map_err(Error::io("cut", &path))?;
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

/// Tells the next writer, as well as the disk lets it, that a sync failed: what lies
/// behind the durable mark may never get to the disk unless it is written again.
pub(crate) fn mark_suspect(end: &mut SlotFile<EndState>) {
    let suspect = EndState { suspect: true, ..end.state().clone() };
    let _ = end.store(suspect);
}

/// After a failed sync the kernel may hold bytes, and a length, for clean that the disk
/// never got: writes every batch from `tail.durable` on again, checked, in its place, and
/// cuts the file again where it ends.
pub(crate) fn rewrite(home: &Home, log: LogId, file: Box<dyn DiskFile>, tail: &Tail) -> Result<()> {
    let Mark { segment, position, offset } = tail.durable;
    let path = home.segment_path(segment);
    file.set_len(tail.mark.position.get()).map_err(Error::io("cut", &path))?;
    let mut reader = SegmentReader::new(file, log, segment, position, offset);
    loop {
        let (position, bytes) = match reader.step().map_err(Error::io("read", &path))? {
            Step::Batch(batch) => (batch.position, batch.bytes.to_vec()),
            Step::End | Step::Bad(_) => return Ok(()),
        };
        write_all(reader.file(), &[&bytes], position.get()).map_err(Error::io("write", &path))?;
    }
}
