//! The two numbers that must never mix: an [`Offset`] counts records, a
//! [`Position`] counts bytes in one file.

use std::fmt;
use std::ops::Add;

use serde::{Deserialize, Serialize};

/// The number of a record: the first one is 0, each next one is one more, and
/// none is used twice.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Offset(u64);

impl Offset {
    /// The offset of the first record a log ever holds.
    pub const ZERO: Offset = Offset(0);
    /// Larger offsets are refused, so that Kafka's signed 64 bits can hold every one.
    pub const MAX: Offset = Offset(i64::MAX as u64);

    /// The offset `number`.
    pub const fn new(number: u64) -> Self {
        Offset(number)
    }

    /// The bare number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// How many offsets lie from `earlier` up to here; 0 if `earlier` is later.
    pub const fn since(self, earlier: Offset) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The offset `records` further back, or zero.
    pub const fn back(self, records: u64) -> Offset {
        Offset(self.0.saturating_sub(records))
    }

    /// The offset `records` further on; `None` beyond [`Offset::MAX`].
    pub fn forward(self, records: u64) -> Option<Offset> {
        let sum = self.0.checked_add(records)?;
        (sum <= Offset::MAX.0).then_some(Offset(sum))
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A place in one file, in bytes from its beginning.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Position(u64);

impl Position {
    /// The beginning of a file.
    pub const ZERO: Position = Position(0);

    /// The position `bytes` from the beginning.
    pub const fn new(bytes: u64) -> Self {
        Position(bytes)
    }

    /// The bare number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// How many bytes lie from `earlier` up to here; 0 if `earlier` is later.
    pub const fn since(self, earlier: Position) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<u64> for Position {
    type Output = Position;

    fn add(self, bytes: u64) -> Position {
        Position(self.0.saturating_add(bytes))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_stop_at_kafkas_largest() {
        assert_eq!(Offset::MAX.forward(0), Some(Offset::MAX));
        assert_eq!(Offset::MAX.forward(1), None);
        assert_eq!(Offset::new(7).forward(u64::MAX), None);
    }

    #[test]
    fn distances_never_go_below_zero() {
        assert_eq!(Offset::new(3).since(Offset::new(5)), 0);
        assert_eq!(Offset::new(5).back(9), Offset::ZERO);
        assert_eq!(Position::new(3).since(Position::new(5)), 0);
    }
}
