//! What can go wrong with a log, typed: the file, the place, the offsets. The
//! command layer turns each into one line and an exit status.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::format::batch::HeaderError;
use crate::format::body::BodyError;
use crate::model::{GroupName, Offset, Position, Timestamp};
use crate::segment::{Bad, BadReason};

/// The result of the rules of a log.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something could not be done.
#[derive(Debug, Error)]
pub enum Error {
    /// The disk refused.
    #[error("can't {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the disk said.
        source: io::Error,
    },
    /// There is nothing at the log's path.
    #[error("there is no log at {}: produce makes one", .0.display())]
    NoLog(PathBuf),
    /// A log can't be made where its directory would have no parent.
    #[error("can't make a log at {}: make the directory that is to hold it first", .0.display())]
    NoParent(PathBuf),
    /// There is something else at the log's path.
    #[error("{} is not a log: {why}", path.display())]
    NotALog {
        /// The path.
        path: PathBuf,
        /// What it is.
        why: &'static str,
    },
    /// Nothing is written where locks may fail and a sync may lie.
    #[error(
        "{} is on the network file system {name}, whose locks and syncs can't be relied on: \
         write to a log in a local directory, such as a copy made with cp -a", path.display()
    )]
    NetworkFileSystem {
        /// The log's directory.
        path: PathBuf,
        /// What its file system is called.
        name: String,
    },
    /// A file that a later version wrote.
    #[error("{} needs a newer tapelog: {what}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// What is unknown.
        what: String,
    },
    /// Something safe is lost or changed.
    #[error(transparent)]
    Damage(#[from] Damage),
    /// A file with the log's state that is damaged or not there.
    #[error("{} is damaged: {what}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what mends it.
        what: String,
    },
    /// Somebody else has it.
    #[error("{what} is held by {holder}: try again when it has ended")]
    Busy {
        /// What.
        what: String,
        /// Who, as far as is known.
        holder: String,
    },
    /// A checkpoint that its consumer moves by itself.
    #[error(
        "group {group} is held by {holder}, which commits by itself: \
         run it with --commit manual, or try again when it has ended"
    )]
    CommitsItself {
        /// The group.
        group: GroupName,
        /// Who consumes it.
        holder: String,
    },
    /// An offset that the log does not hold.
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    /// A record larger than the log takes.
    #[error("a record of {bytes} bytes is larger than max-record-size, {limit} bytes")]
    TooBig {
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// A batch that claims more than any batch may have.
    #[error("{}: {}", .0.path.display(), .0.what)]
    BatchTooLarge(Damage),
    /// No group of that name.
    #[error("there is no group {0}: consume, commit or seek makes one")]
    NoGroup(GroupName),
    /// The log is as large as it may be.
    #[error("the log is full: max-log-size is {limit} bytes; gc makes room, config raises it")]
    Full {
        /// The limit.
        limit: u64,
    },
    /// A sync failed before: what was written may never reach the disk.
    #[error(
        "a sync of {} failed, so its last records may not be on the disk: \
         run produce again, which writes them anew", .0.display()
    )]
    Suspect(PathBuf),
    /// This writer failed before and stores nothing more.
    #[error("this writer failed before and stores nothing more")]
    Failed,
    /// No seek is left to take back.
    #[error("group {0} has no seek to take back")]
    NothingToUndo(GroupName),
}

/// Damage: never taken for the end of the log.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{} is damaged at byte {position}, offset {offset}: {what}", path.display())]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Where in it.
    pub position: Position,
    /// The first offset that can't be read.
    pub offset: Offset,
    /// What is wrong.
    pub what: String,
}

/// An offset outside of what the log holds.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OutOfRange {
    /// Before the log start.
    #[error(
        "offset {offset} is gone: {missing} records before log start {start} were deleted; the log holds {start} to {end}"
    )]
    BeforeStart {
        /// What was asked for.
        offset: Offset,
        /// The log start.
        start: Offset,
        /// The log end.
        end: Offset,
        /// How many offsets lie between.
        missing: u64,
    },
    /// Beyond the log end.
    #[error("offset {offset} is beyond log end {end}; the log holds {start} to {end}")]
    BeyondEnd {
        /// What was asked for.
        offset: Offset,
        /// The log start.
        start: Offset,
        /// The log end.
        end: Offset,
    },
    /// A group whose checkpoint is outside.
    #[error(
        "group {group} is at {next}, but the log holds {start} to {end}{}: \
         seek moves it, --out-of-range chooses a place once", gone(*next, *start)
    )]
    Checkpoint {
        /// The group.
        group: GroupName,
        /// Its checkpoint.
        next: Offset,
        /// The log start.
        start: Offset,
        /// The log end.
        end: Offset,
    },
    /// A group whose log was rewritten beneath it.
    #[error(
        "group {group} is at {next}, but the record before that was appended at {found}, \
         not at {stored}: the log was rewritten; seek moves the group"
    )]
    Rewritten {
        /// The group.
        group: GroupName,
        /// Its checkpoint.
        next: Offset,
        /// The append time that the checkpoint names.
        stored: Timestamp,
        /// The one in the log.
        found: Timestamp,
    },
    /// A group of another log.
    #[error(
        "{} belongs to another log: {}", checkpoint.display(), ways_out(log, group)
    )]
    OtherLog {
        /// The log's directory.
        log: PathBuf,
        /// The group.
        group: GroupName,
        /// The checkpoint's file.
        checkpoint: PathBuf,
    },
    /// The log end is not where a writer wanted it.
    #[error("the log ends at {end}, not at {expected}: somebody else appended; look and try again")]
    EndMoved {
        /// Where it was to be.
        expected: Offset,
        /// Where it is.
        end: Offset,
    },
    /// A commit that would go back.
    #[error("group {group} is at {next}, commit does not go back to {offset}: seek does")]
    CommitBack {
        /// The group.
        group: GroupName,
        /// Its checkpoint.
        next: Offset,
        /// What was to be committed.
        offset: Offset,
    },
}

impl OutOfRange {
    /// For an offset before the log start.
    pub(crate) fn before_start(offset: Offset, start: Offset, end: Offset) -> OutOfRange {
        OutOfRange::BeforeStart { offset, start, end, missing: start.since(offset) }
    }
}

/// What mends a checkpoint that is of no use.
pub(crate) fn ways_out(log: &Path, group: &GroupName) -> String {
    let log = log.display();
    format!(
        "run tapelog seek {log} -g {group} --to PLACE, \
         or tapelog groups {log} -g {group} --delete"
    )
}

fn gone(next: Offset, start: Offset) -> String {
    match start.since(next) {
        0 => String::new(),
        count => format!(", {count} records are gone"),
    }
}

impl Error {
    /// For `map_err`: what was tried on what.
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io { action, path, source }
    }

    /// Whether an append that ends so has changed nothing, and the next one may succeed.
    pub(crate) fn leaves_the_log_as_it_was(&self) -> bool {
        matches!(self, Error::Full { .. } | Error::TooBig { .. } | Error::OutOfRange(_))
    }

    /// Whether a file was missing.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Whether something that is no file has its name: a link, a directory.
    pub(crate) fn is_no_file(&self) -> bool {
        matches!(self, Error::Io { source, .. } if source.kind() == io::ErrorKind::InvalidInput)
    }

    /// Bad bytes of the file at `path`, known to be no torn tail.
    pub(crate) fn bad(path: PathBuf, bad: &Bad) -> Error {
        if let BadReason::Header(newer @ HeaderError::Newer { .. }) = &bad.reason {
            return Error::Newer { path, what: newer.to_string() };
        }
        if bad.reason == BadReason::Body(BodyError::Newer) {
            return Error::Newer { path, what: BodyError::Newer.to_string() };
        }
        let what = bad.reason.to_string();
        let damage = Damage { path, position: bad.position, offset: bad.offset, what };
        match &bad.reason {
            BadReason::Header(HeaderError::TooLarge { .. }) => Error::BatchTooLarge(damage),
            _ => Error::Damage(damage),
        }
    }
}
