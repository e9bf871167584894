//! What a check of a log has found.

use std::path::PathBuf;

use crate::log::error::Error;
use crate::model::{Offset, Position};

/// Something in a log's files that is not as it should be, or is worth telling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file.
    pub file: PathBuf,
    /// Where in it; `None` for all of it.
    pub position: Option<Position>,
    /// The offsets that are lost, from the first to before the second.
    pub offsets: Option<(Offset, Offset)>,
    /// What it is.
    pub kind: Kind,
    /// The same in words.
    pub what: String,
}

impl Finding {
    /// What is to be told of a whole file.
    pub fn of_file(file: PathBuf, kind: Kind, what: impl Into<String>) -> Finding {
        Finding { file, position: None, offsets: None, kind, what: what.into() }
    }

    /// What is to be told of `file`, which could not be opened or read: damage if it is no
    /// file at all.
    ///
    /// # Errors
    /// `error`, if it is another one.
    pub(crate) fn unread(file: PathBuf, no_file: Kind, error: Error) -> Result<Finding, Error> {
        let (kind, what) = match &error {
            error if error.is_no_file() => {
                (no_file, "it is a link or a directory, where a file belongs".to_owned())
            }
            Error::Io { action, source, .. } => {
                (Kind::Unread, format!("can't {action} it: {source}"))
            }
            _ => return Err(error),
        };
        Ok(Finding::of_file(file, kind, what))
    }
}

/// The kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bytes of a segment that were safe and have changed.
    Damaged,
    /// Records that were safe and are gone: cut off, or their segment is.
    Missing,
    /// A file with a segment's name that is no part of the log.
    Stranger,
    /// A file with the log's own state that is no good.
    State,
    /// A checkpoint that is no good, or does not fit the log.
    Checkpoint,
    /// A file that the system won't let be read: nothing is known of it.
    Unread,
    /// An unfinished or unsynced end, as a crash leaves it.
    Torn,
    /// Records that were damaged, and passed by an earlier repair.
    Gap,
    /// One line of a two-slot file is bad, the other one counts.
    Slot,
    /// An index or table that is of no use; nothing depends on it.
    Derived,
}

impl Kind {
    /// Its name in listings.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Damaged => "damaged",
            Kind::Missing => "missing",
            Kind::Stranger => "stranger",
            Kind::State => "state",
            Kind::Checkpoint => "checkpoint",
            Kind::Unread => "unread",
            Kind::Torn => "torn",
            Kind::Gap => "gap",
            Kind::Slot => "slot",
            Kind::Derived => "derived",
        }
    }

    /// Whether a log with it is damaged.
    pub fn is_damage(self) -> bool {
        match self {
            Kind::Damaged | Kind::Missing | Kind::Stranger | Kind::State | Kind::Checkpoint => true,
            Kind::Unread | Kind::Torn | Kind::Gap | Kind::Slot | Kind::Derived => false,
        }
    }

    /// What repair does about it.
    pub fn action(self) -> Action {
        match self {
            Kind::Damaged | Kind::Torn | Kind::Stranger => Action::SetAside,
            Kind::Missing => Action::Gap,
            Kind::State | Kind::Derived | Kind::Slot => Action::Rebuild,
            Kind::Checkpoint => Action::Seek,
            Kind::Gap | Kind::Unread => Action::None,
        }
    }
}

/// What mends a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Repair moves the bytes to `quarantine/` and leaves a gap for lost offsets.
    SetAside,
    /// Repair leaves a gap.
    Gap,
    /// Repair makes it anew from the rest of the log.
    Rebuild,
    /// Only the user knows where the group is to go on: seek.
    Seek,
    /// Nothing needs to be done.
    None,
}

impl Action {
    /// Its name in listings.
    pub fn name(self) -> &'static str {
        match self {
            Action::SetAside => "set-aside",
            Action::Gap => "gap",
            Action::Rebuild => "rebuild",
            Action::Seek => "seek",
            Action::None => "none",
        }
    }
}
