//! What the log has to tell beside its answers. Whoever opens a log says who is told.

use std::fmt;
use std::path::PathBuf;

use super::error::Damage;
use crate::model::{GroupName, Offset};

/// Something worth a line, which is no failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A reader met a torn tail.
    TornTail {
        /// The segment.
        path: PathBuf,
        /// How many bytes are no good batch.
        bytes: u64,
        /// The log end before them.
        end: Offset,
    },
    /// Records that were written but never synced are gone.
    LostTail {
        /// The segment.
        path: PathBuf,
        /// The log end now.
        end: Offset,
        /// The log end as it was written down.
        written: Offset,
        /// How many bytes are missing, if they were all in this segment.
        bytes: u64,
    },
    /// A writer cut a torn tail off.
    CutTail {
        /// The segment.
        path: PathBuf,
        /// How many bytes.
        bytes: u64,
        /// Where they are kept.
        kept: PathBuf,
    },
    /// A reader passed records that are missing because they were damaged.
    Gap {
        /// The segment.
        path: PathBuf,
        /// The first offset that is missing.
        from: Offset,
        /// The offset after the last one.
        next: Offset,
    },
    /// A reader that may pass damage did so.
    SkippedDamage {
        /// The damage.
        damage: Damage,
        /// The offset where it goes on; `None` if nothing good follows.
        to: Option<Offset>,
    },
    /// One slot of a two-slot file is bad, the other one counts.
    BadSlot(PathBuf),
    /// A file with the log's state was missing and is worked out anew.
    Rebuilt(PathBuf),
    /// An index is of no use and is worked out anew.
    IndexRebuilt(PathBuf),
    /// An index or the table of segments can't be read; the segments are read instead.
    IndexUnreadable {
        /// The index.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Another writer has the log since a second.
    WaitingForLock(PathBuf),
    /// A group was made.
    NewGroup {
        /// Its name.
        group: GroupName,
        /// Its first checkpoint.
        next: Offset,
    },
    /// A target outside the log was brought to its nearest end.
    Clamped {
        /// The offset taken.
        to: Offset,
    },
    /// A group's checkpoint was outside the log, and it goes on elsewhere as was asked.
    Moved {
        /// Its name.
        group: GroupName,
        /// Where it was.
        from: Offset,
        /// Where it goes on.
        to: Offset,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::TornTail { path, bytes, end } => write!(
                f,
                "{}: {bytes} bytes after offset {end} are an unfinished append; the log ends there",
                path.display()
            ),
            Note::LostTail { path, end, written, bytes } => write!(
                f,
                "{}: {bytes} bytes that were written but never synced are gone; \
                 the log ends at offset {end}, not {written}",
                path.display()
            ),
            Note::CutTail { path, bytes, kept } => write!(
                f,
                "{}: cut {bytes} bytes of an unfinished append, kept in {}",
                path.display(),
                kept.display()
            ),
            Note::Gap { path, from, next } => write!(
                f,
                "{}: offsets {from} to {next} are missing: their records were damaged or lost \
                 before a repair",
                path.display()
            ),
            Note::SkippedDamage { damage, to: Some(to) } => {
                write!(f, "{damage}; going on at offset {to}")
            }
            Note::SkippedDamage { damage, to: None } => {
                write!(f, "{damage}; nothing good follows")
            }
            Note::BadSlot(path) => write!(
                f,
                "{}: one of its two lines is bad (a torn write), the other one counts",
                path.display()
            ),
            Note::Rebuilt(path) => {
                write!(f, "{} was missing and is worked out from the segments", path.display())
            }
            Note::IndexRebuilt(path) => {
                write!(f, "{} was of no use and is made anew", path.display())
            }
            Note::IndexUnreadable { path, why } => {
                write!(f, "{}: {why}; going on without it, which is slower", path.display())
            }
            Note::WaitingForLock(path) => {
                write!(f, "{}: another writer has it, waiting", path.display())
            }
            Note::NewGroup { group, next } => write!(f, "new group {group} at {next}"),
            Note::Clamped { to } => write!(f, "that is outside the log; taking {to}"),
            Note::Moved { group, from, to } => write!(
                f,
                "group {group} was at {from}, outside the log; going on at {to}{}",
                match to.since(*from) {
                    0 => String::new(),
                    missing => format!(", {missing} records are gone"),
                }
            ),
        }
    }
}
