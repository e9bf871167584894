//! The offsets that `produce --receipt` prints once their records are safe.

use std::io::Write;

use anyhow::Result;

use crate::log::Appended;
use crate::model::Offset;

/// So many rows wait at most; a row is several offsets that follow each other.
const MOST: usize = 64 << 10;
/// What is put together is printed when it has so many bytes.
const FLUSH: usize = 64 << 10;

/// Offsets that are not printed yet.
#[derive(Debug, Default)]
pub struct Receipts {
    rows: Vec<Appended>,
}

impl Receipts {
    /// Adds the offsets of an append.
    pub fn add(&mut self, row: Appended) {
        match self.rows.last_mut() {
            Some(last) if last.next == row.base => last.next = row.next,
            _ => self.rows.push(row),
        }
    }

    /// Adds one offset.
    pub fn add_one(&mut self, offset: Offset) {
        self.add(Appended { base: offset, next: offset.forward(1).unwrap_or(Offset::MAX) });
    }

    /// Whether no more are to be gathered before they are printed.
    pub fn are_many(&self) -> bool {
        self.rows.len() >= MOST
    }

    /// Prints them, a line each, and forgets them.
    ///
    /// # Errors
    /// What `print` says.
    pub fn print(&mut self, mut print: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut text = Vec::new();
        for row in self.rows.drain(..) {
            for offset in row.base.get()..row.next.get() {
                // Writing to a Vec can't fail.
                let _ = writeln!(text, "{offset}");
                if text.len() >= FLUSH {
                    print(&text)?;
                    text.clear();
                }
            }
        }
        print(&text)
    }
}
