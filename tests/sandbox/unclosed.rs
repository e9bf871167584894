//! A log whose producer still runs, so that nothing in it has been promised.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Background, Expect, Sandbox, foreground, wait_until};

/// An unsynced producer of one-record batches with its stdin open; killed by
/// `kill -9` on drop.
pub struct Unclosed<'s> {
    sandbox: &'s Sandbox,
    log: PathBuf,
    producer: Background,
}

impl<'s> Unclosed<'s> {
    /// Starts it on a log of its own, with these settings if there are any.
    pub fn start(sandbox: &'s Sandbox, settings: &str) -> Unclosed<'s> {
        let log = sandbox.path("unclosed");
        if !settings.is_empty() {
            let config = sandbox.command_on(&log, &format!("config {settings}"));
            foreground(config).outcome().succeeded();
        }
        let command = sandbox.command_on(&log, "produce --batch-records 1 --sync none");
        Unclosed { sandbox, log, producer: sandbox.spawn("unclosed", command) }
    }

    /// Feeds it lines and waits until the log holds so many in all.
    pub fn append(&mut self, lines: &str, in_all: u64) {
        self.producer.feed(lines);
        wait_until(Duration::from_secs(20), "all lines are appended", || self.count() == in_all);
    }

    /// Its log.
    pub fn log(&self) -> &Path {
        &self.log
    }

    fn count(&self) -> u64 {
        let read = foreground(self.sandbox.command_on(&self.log, "consume")).outcome();
        memchr::memchr_iter(b'\n', &read.stdout).count() as u64
    }
}
