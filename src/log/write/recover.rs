//! What a writer does before its first append when the log did not end in an
//! orderly way. Nothing is destroyed: bytes that are cut off are copied to
//! `quarantine/` and synced there first; if that fails, nothing is changed.

use crate::disk::{DiskFile, write_all};
use crate::format::file_name;
use crate::format::state::Mark;
use crate::log::error::{Error, Result};
use crate::log::files::quarantine::{self, Piece};
use crate::log::find::tail::Tail;
use crate::log::home::Home;
use crate::log::note::Note;
use crate::model::{LogId, Position};
use crate::segment::{SegmentReader, Step};

/// Cuts the torn tail off the segment in `file`, which ends at `tail.mark`, and
/// syncs what is left.
pub(crate) fn cut_torn_tail(home: &Home, file: &dyn DiskFile, tail: &Tail) -> Result<()> {
    let path = home.segment_path(tail.mark.segment);
    let from = tail.mark;
    let to = Position::new(file.size().map_err(Error::io("read", &path))?);
    let piece = Piece { file, from: from.position, to };
    let kept = quarantine::keep(home, &piece, |attempt| {
        file_name::torn(from.segment, from.position, attempt)
    })?;
    file.set_len(from.position.get()).map_err(Error::io("cut", &path))?;
    file.sync_data().map_err(Error::io("sync", &path))?;
    home.tell(&Note::CutTail { path, bytes: tail.torn, kept });
    Ok(())
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
