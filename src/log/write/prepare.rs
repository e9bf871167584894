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
    /// A sync of the segment failed, so that no later one proves anything.
    pub(crate) sync_failed: bool,
}

impl WriterState {
    /// Finds the end of the log, mends it, and opens what an append needs.
    pub(crate) fn prepare(log: &Log) -> Result<WriterState> {
        let table = SegmentTable::load_locked(log)?;
        if let Some(damage) = &table.damage {
            return Err(damage.clone().into());
        }
        log.keep_start()?;
        let end = open_end(log)?;
        let boot = log.home.disk().boot_id().unwrap_or_default();
        let tail = tail::find(log, end.as_ref().map(SlotFile::state), &boot)?;
        let base = tail.mark.segment;
        if table.active > base {
            return Err(missing_segment(&log.home, tail.mark.offset, tail.mark.offset));
        }
        let segment = open_or_create_segment(log, &tail.mark)?;
        let end = settle(log, end, segment.as_ref(), &tail, boot)?;
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
            sync_failed: false,
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

/// `end` as it is, if that is what was found; else mends the log's end, makes it durable
/// and writes it down.
fn settle(
    log: &Log,
    end: Option<SlotFile<EndState>>,
    segment: &dyn DiskFile,
    tail: &Tail,
    boot: String,
) -> Result<SlotFile<EndState>> {
    let old = end.as_ref().map(|end| end.state().clone());
    // Without `end` nothing is known of syncs that failed.
    let suspect = old.as_ref().is_none_or(|old| old.suspect);
    let mut end = match end {
        Some(end) if tail.as_written && !suspect => return Ok(end),
        end => end,
    };
    mend(log, end.as_mut(), segment, tail, suspect)?;
    // Derived, and compared with the records again when they are opened.
    let _ = log.forget_keys_beyond(tail.mark.offset);
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
    let end = match end {
        Some(mut end) => {
            end.store(state)?;
            end
        }
        None => {
            SlotFile::create(&log.home, &path, &state)?;
            SlotFile::open(&log.home, &path, Access::ReadWrite)?
        }
    };
    if let Some(lost) = old.and_then(|old| tail.lost(&log.home, &old)) {
        log.home.tell(&lost);
    }
    Ok(end)
}

/// Mends the end of the log and makes durable what is left. If that sync fails, `end`
/// says so: a later one would prove nothing.
fn mend(
    log: &Log,
    end: Option<&mut SlotFile<EndState>>,
    segment: &dyn DiskFile,
    tail: &Tail,
    suspect: bool,
) -> Result<()> {
    let base = tail.mark.segment;
    if tail.torn > 0 {
        recover::cut_torn_tail(&log.home, segment, tail)?;
    }
    if suspect {
        let file = log.home.open_segment(base, Access::ReadWrite)?;
        recover::rewrite(&log.home, log.id, file, tail)?;
    }
    if let Err(error) = segment.sync_data() {
        end.into_iter().for_each(recover::mark_suspect);
        return Err(Error::io("sync", log.home.segment_path(base))(error));
    }
    log.home.sync_dir(log.home.dir())
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
