//! Looking for a key without the index, where that named a wrong record: every record
//! is read.

use std::ops::ControlFlow;

use super::records_of;
use crate::format::record::RecordView;
use crate::log::{BackReader, Log, Reader, Reading, Result};
use crate::model::Offset;

/// The offset of the newest record of `key` in `log` before `before`, if one is kept.
pub(super) fn newest(log: &Log, key: &[u8], before: Offset) -> Result<Option<Offset>> {
    let mut reader = BackReader::open(log, log.start()?, before);
    while let Some(block) = reader.read()? {
        for piece in block.pieces().rev() {
            let records = records_of(log, &piece)?;
            let within = records.take_while(|record| record.offset < block.end());
            let found = within.filter(|record| record.content.key == Some(key)).last();
            if let Some(found) = found {
                return Ok(Some(found.offset));
            }
        }
    }
    Ok(None)
}

/// Calls `visit` with each record of `key` in `log` from `from` to before `before`, the
/// oldest first, until that breaks off.
pub(super) fn each(
    log: &Log,
    key: &[u8],
    from: Offset,
    before: Offset,
    visit: &mut impl FnMut(RecordView<'_>) -> ControlFlow<()>,
) -> Result<ControlFlow<()>> {
    let mut reader = Reader::open(log, from.max(log.start()?))?;
    while reader.next_offset() < before {
        let Reading::Records(piece) = reader.read()? else { break };
        let wanted = piece.from..before;
        let records = records_of(log, &piece)?.filter(|record| wanted.contains(&record.offset));
        for record in records.filter(|record| record.content.key == Some(key)) {
            if visit(record).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }
    Ok(ControlFlow::Continue(()))
}
