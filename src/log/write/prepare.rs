//! Getting ready to write: finding the end of the log, mending what a crash left
//! there, and opening what an append needs.

use crate::disk::{Access, DiskFile};
use crate::format::batch::Place;
use crate::format::file_name;
use crate::format::state::{EndState, Mark};
use crate::log::error::{Error, Result};
use crate::log::files::slot_file::SlotFile;
use crate::log::find::index_upkeep;
use crate::log::find::table::SegmentTable;
use crate::log::find::table_file;
use crate::log::find::tail::{self, Tail, missing_segment};
use crate::log::write::recover;
use crate::log::{Log, Note};
use crate::model::{Offset, Position, Timestamp};
use crate::segment::{Index, SegmentWriter, header_at};

/// What a writer knows while nobody else has written.
#[derive(Debug)]
pub(crate) struct WriterState {
    pub(crate) end: SlotFile<EndState>,
    pub(crate) segment: SegmentWriter,
    pub(crate) first_time: Option<Timestamp>,
    pub(crate) index: Option<Index>,
    /// The size of all sealed segments, where a limit makes it matter.
    pub(crate) sealed_bytes: u64,
}

impl WriterState {
    /// Finds the end of the log, mends it, and opens what an append needs.
    pub(crate) fn prepare(log: &Log) -> Result<WriterState> {
        let table = SegmentTable::load_locked(log)?;
        if let Some(damage) = &table.damage {
            return Err(damage.clone().into());
        }
        log.keep_start()?;
        let mut end = open_end(log)?;
        let boot = log.home.disk().boot_id().unwrap_or_default();
        let tail = tail::find(log, end.as_ref().map(SlotFile::state), &boot)?;
        let base = tail.mark.segment;
        if table.active > base {
            return Err(missing_segment(&log.home, tail.mark.offset, tail.mark.offset));
        }
        let segment = open_or_create_segment(log, &tail.mark)?;
        if tail.torn > 0 {
            recover::cut_torn_tail(&log.home, segment.as_ref(), &tail)?;
        }
        let suspect = end.as_ref().is_some_and(|end| end.state().suspect);
        if suspect {
            let from = tail.durable;
            let file = log.home.open_segment(from.segment, Access::ReadWrite)?;
            recover::rewrite_from(&log.home, log.id, file, &from)?;
        }
        let end = match end.take() {
            Some(end) if tail.as_written && !suspect => end,
            old => settle(log, old, segment.as_ref(), &tail, boot)?,
        };
        let place = Place { log: log.id, segment: base, position: Position::ZERO };
        let first = header_at(segment.as_ref(), &place)
            .map_err(Error::io("read", log.home.segment_path(base)))?;
        let sealed_bytes = match log.settings.max_log_size {
            Some(_) => sealed_bytes(log)?,
            None => 0,
        };
        let index = index_upkeep::for_writer(log, base, tail.mark.position);
        if table_file::current(log)?.is_none() {
            // Some file was made just now. The table is derived: failing here costs time only.
            let _ = table_file::refresh(log);
        }
        Ok(WriterState {
            end,
            index,
            segment: SegmentWriter::new(segment, log.id, base, tail.mark.position),
            first_time: first.map(|header| header.append_time),
            sealed_bytes,
        })
    }
}

pub(crate) fn sealed_bytes(log: &Log) -> Result<u64> {
    let rows = SegmentTable::load_locked(log)?.all(log, log.start()?)?;
    Ok(rows.iter().map(|facts| facts.bytes).sum())
}

/// `end` for writing, to be made anew if there is none.
fn open_end(log: &Log) -> Result<Option<SlotFile<EndState>>> {
    let opened = log.open_end(Access::ReadWrite)?;
    if opened.is_none() {
        log.home.tell(&Note::Rebuilt(log.home.path(file_name::END)));
    }
    Ok(opened)
}

/// After a walk: syncs what was found and writes it down as the end.
fn settle(
    log: &Log,
    end: Option<SlotFile<EndState>>,
    segment: &dyn DiskFile,
    tail: &Tail,
    boot: String,
) -> Result<SlotFile<EndState>> {
    let path = log.home.segment_path(tail.mark.segment);
    segment.sync_data().map_err(Error::io("sync", path))?;
    if tail.durable.segment != tail.mark.segment {
        let old = log.home.open_segment(tail.durable.segment, Access::ReadWrite)?;
        let path = log.home.segment_path(tail.durable.segment);
        old.sync_data().map_err(Error::io("sync", path))?;
    }
    log.home.sync_dir(log.home.dir())?;
    let state = EndState {
        log: log.id,
        boot,
        written: tail.mark,
        last_batch: tail.last_batch,
        durable: tail.mark,
        time: tail.time,
        suspect: false,
    };
    let path = log.home.path(file_name::END);
    match end {
        Some(mut end) => {
            end.store(state)?;
            Ok(end)
        }
        None => {
            SlotFile::create(&log.home, &path, &state)?;
            SlotFile::open(&log.home, &path, Access::ReadWrite)
        }
    }
}

/// The active segment, its name durable: a process may have been killed between
/// making a name and syncing it, of `log.json` too.
fn open_or_create_segment(log: &Log, end: &Mark) -> Result<Box<dyn DiskFile>> {
    if end.position == Position::ZERO {
        log.home.sync_dir(log.home.dir())?;
    }
    match log.home.open_segment(end.segment, Access::ReadWrite) {
        Err(error) if error.is_not_found() => create_segment(log, end.segment),
        opened => opened,
    }
}

/// A new, empty segment whose name is durable.
pub(crate) fn create_segment(log: &Log, base: Offset) -> Result<Box<dyn DiskFile>> {
    let path = log.home.segment_path(base);
    let file = log.home.disk().create_new(&path).map_err(Error::io("create", &path))?;
    log.home.sync_dir(log.home.dir())?;
    Ok(file)
}
