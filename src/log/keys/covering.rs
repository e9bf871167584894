//! What an appender does for the key index: once much of what it appended has no table,
//! it has some built, by itself or by a thread beside it.

use std::thread::{self, JoinHandle};

use super::directory::KeysLock;
use super::upkeep::{Sizes, bytes_uncovered, cover};
use crate::format::batch::Layout;
use crate::format::body::Body;
use crate::format::columns;
use crate::log::Log;
use crate::log::error::Result;
use crate::model::Offset;

/// What an appender knows of the keys that no table covers.
#[derive(Debug, Default)]
pub(crate) struct Covering {
    /// Whether it appended a key since it looked last.
    has_keys: bool,
    /// How many bytes it appended since then.
    appended: u64,
    /// How many bytes were uncovered then, once it has looked.
    before: Option<u64>,
    /// Who builds.
    builder: Builder,
}

#[derive(Debug, Default)]
enum Builder {
    /// The appender itself, which waits for it.
    #[default]
    Itself,
    /// A thread, once there was something to build.
    Beside(Option<JoinHandle<()>>),
}

impl Covering {
    /// From now on tables are built while appending goes on. Whoever says so ends with
    /// [`finish`](Self::finish).
    pub(crate) fn go_on_beside(&mut self) {
        self.builder = Builder::Beside(None);
    }

    /// Says that `bodies` are appended, as they are before they are compressed.
    pub(crate) fn appended(&mut self, bodies: &[Body<'_>]) {
        for body in bodies {
            self.appended += body.bytes.len() as u64;
            self.has_keys |= body.layout == Layout::Columns && columns::has_keys(body.bytes);
        }
    }

    /// The same of so many bytes of records with keys.
    pub(crate) fn appended_keys(&mut self, bytes: u64) {
        self.appended += bytes;
        self.has_keys |= bytes > 0;
    }

    /// Covers what is uncovered, if that is much and some of it was appended here, once
    /// all before `durable` is. Derived: failing costs look-ups time only.
    pub(crate) fn synced(&mut self, log: &Log, durable: Offset) {
        let is_busy = |thread: &JoinHandle<()>| !thread.is_finished();
        if matches!(&self.builder, Builder::Beside(Some(thread)) if is_busy(thread)) {
            return;
        }
        if !std::mem::take(&mut self.has_keys) || !self.is_due(log, durable) {
            return;
        }
        self.before = Some(0);
        match &mut self.builder {
            Builder::Itself => drop(cover_if_free(log, durable)),
            Builder::Beside(thread) => {
                let log = log.clone();
                let build = move || drop(cover_if_free(&log, durable));
                *thread = thread::Builder::new().name("keys".to_owned()).spawn(build).ok();
            }
        }
    }

    /// Waits until what was begun is built, and builds the rest, if that is much.
    pub(crate) fn finish(&mut self, log: &Log, durable: Offset) {
        if let Builder::Beside(Some(thread)) = std::mem::take(&mut self.builder) {
            let _ = thread.join();
        }
        self.synced(log, durable);
    }

    /// Whether so much is uncovered that it is time for a table.
    fn is_due(&mut self, log: &Log, durable: Offset) -> bool {
        let enough = Sizes::USUAL.uncovered;
        let look = || bytes_uncovered(log, &(log.start()?..durable), enough);
        let before = match self.before {
            Some(before) => before + self.appended,
            None => look().unwrap_or(0),
        };
        (self.before, self.appended) = (Some(before), 0);
        before >= enough
    }
}

/// Builds tables of all that has none, up to `durable`, unless somebody else is at it.
fn cover_if_free(log: &Log, durable: Offset) -> Result<()> {
    let Some(lock) = KeysLock::try_take(log) else { return Ok(()) };
    cover(log, &lock, &(log.start()?..durable), &Sizes::USUAL)
}
