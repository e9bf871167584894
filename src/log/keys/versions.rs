//! All records of one key, from either end, a page at a time.

use std::collections::VecDeque;

use super::KeyIndex;
use crate::format::key_hash::KeyHash;
use crate::log::Result;
use crate::model::Offset;

/// Where the records of one key may be, the oldest first.
#[derive(Debug)]
pub(super) struct Versions<'a> {
    index: &'a KeyIndex,
    key: KeyHash,
    /// All before it are given, or in `front`.
    low: Offset,
    /// All from it on are given, or in `back`.
    high: Offset,
    /// Growing, like `back`.
    front: VecDeque<Offset>,
    back: VecDeque<Offset>,
    failed: bool,
}

impl<'a> Versions<'a> {
    pub(super) fn of(index: &'a KeyIndex, key: KeyHash) -> Versions<'a> {
        let (front, back) = (VecDeque::new(), VecDeque::new());
        let (low, high) = (index.start, index.end());
        Versions { index, key, low, high, front, back, failed: false }
    }

    fn fill_front(&mut self) -> Result<()> {
        while self.front.is_empty() && self.low < self.high {
            let (some, reached) = self.index.some_from(self.key, self.low)?;
            let high = self.high;
            self.front.extend(some.into_iter().filter(|&offset| offset < high));
            self.low = reached;
        }
        Ok(())
    }

    fn fill_back(&mut self) -> Result<()> {
        while self.back.is_empty() && self.low < self.high {
            let (some, reached) = self.index.some_before(self.key, self.high)?;
            let low = self.low;
            self.back.extend(some.into_iter().rev().filter(|&offset| offset >= low));
            self.high = reached;
        }
        Ok(())
    }

    /// What comes next, or the error that ends it.
    fn after(
        &mut self,
        filled: Result<()>,
        take: impl FnOnce(&mut Self) -> Option<Offset>,
    ) -> Option<Result<Offset>> {
        match filled {
            Ok(()) => take(self).map(Ok),
            Err(error) => {
                self.failed = true;
                Some(Err(error))
            }
        }
    }
}

impl Iterator for Versions<'_> {
    type Item = Result<Offset>;

    fn next(&mut self) -> Option<Result<Offset>> {
        if self.failed {
            return None;
        }
        let filled = self.fill_front();
        self.after(filled, |all| all.front.pop_front().or_else(|| all.back.pop_front()))
    }
}

impl DoubleEndedIterator for Versions<'_> {
    fn next_back(&mut self) -> Option<Result<Offset>> {
        if self.failed {
            return None;
        }
        let filled = self.fill_back();
        self.after(filled, |all| all.back.pop_back().or_else(|| all.front.pop_back()))
    }
}
