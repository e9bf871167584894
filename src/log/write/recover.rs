//! What a writer does before its first append when the log did not end in an
//! orderly way. Nothing is destroyed: bytes that are cut off are copied to
//! `quarantine/` and synced there first; if that fails, nothing is changed.

use crate::disk::{DiskFile, write_all};
use crate::format::file_name;
use crate::format::state::{EndState, Mark};
use crate::log::error::{Error, Result};
use crate::log::files::quarantine::{self, Piece};
use crate::log::files::slot_file::SlotFile;
use crate::log::find::tail::Tail;
use crate::log::home::Home;
use crate::log::note::Note;
use crate::model::{LogId, Position};
use crate::segment::{SegmentReader, Step};

/// Cuts the torn tail off the segment in `file`, which ends at `tail.mark`. What is
/// left is not synced yet.
pub(crate) fn cut_torn_tail(home: &Home, file: &dyn DiskFile, tail: &Tail) -> Result<()> {
    let path = home.segment_path(tail.mark.segment);
    let from = tail.mark;
    let to = Position::new(file.size().map_err(Error::io("read", &path))?);
    let piece = Piece { file, from: from.position, to };
    let kept = quarantine::keep(home, &piece, |attempt| {
        file_name::torn(from.segment, from.position, attempt)
    })?;
    file.set_len(from.position.get()).map_err(Error::io("cut", &path))?;
    home.tell(&Note::CutTail { path, bytes: tail.torn, kept });
    Ok(())
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
