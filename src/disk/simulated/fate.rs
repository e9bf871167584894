//! What a power cut leaves of one file's unsynced changes, and which changes of
//! names it keeps. The draw is made in several ways, because each alone would
//! hardly ever give what another gives often: all but the last write, say, or a
//! file with one sector missing.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Seeded;
use super::tree::overwrite;

/// What a power cut does to that which was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashStyle {
    /// Everything is there, as after a kill of the process.
    KeepAll,
    /// Nothing is there.
    DropAll,
    /// The names are there, the bytes and lengths are not: files that were made or
    /// renamed and not synced are empty or old.
    NamesOnly,
    /// The bytes are there, the names are not.
    BytesOnly,
    /// Each part as the seed has it; the last write may also end at any byte.
    Random {
        /// The number of bytes, counted from the file's start, that the device
        /// writes whole or not at all: 512 or 4096.
        sector: u64,
    },
    /// The same on a file system that does not clear what it gives to a file: what a
    /// length covers without bytes reads as another file's bytes, or any.
    Stale {
        /// As above.
        sector: u64,
    },
}

impl CrashStyle {
    /// The sector, where each part is drawn alone.
    pub(super) fn sector(self) -> Option<u64> {
        match self {
            Self::Random { sector } | Self::Stale { sector } => Some(sector.max(1)),
            _ => None,
        }
    }
}

/// A change of a file that was not synced, or that a sync failed over.
#[derive(Clone, Debug)]
pub(super) struct Unsynced {
    pub change: FileChange,
    pub standing: Standing,
}

#[derive(Clone, Debug)]
pub(super) enum FileChange {
    Write { position: u64, bytes: Arc<[u8]> },
    SetLen(u64),
}

/// How a change stands to the syncs since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// None came yet.
    Waiting,
    /// One failed: no later one makes this durable.
    Doubtful,
    /// One went well, so this is durable, but it lies over doubtful changes.
    Settled,
}

/// The way in which the changes of one file are drawn.
enum Draw {
    /// The first so many.
    First(usize),
    /// Each whole or not.
    Changes,
    /// Each sector of each.
    Sectors,
    /// Each sector of the file as it was after so many.
    Moments(BTreeMap<u64, usize>),
}

impl Draw {
    fn new(style: CrashStyle, changes: usize, seeded: &mut Seeded) -> Self {
        match style {
            CrashStyle::KeepAll | CrashStyle::BytesOnly => Self::First(changes),
            CrashStyle::DropAll | CrashStyle::NamesOnly => Self::First(0),
            CrashStyle::Random { .. } | CrashStyle::Stale { .. } => match seeded.below(6) {
                0 => Self::First(0),
                1 => Self::First(changes),
                2 => Self::First(seeded.below(changes as u64 + 1) as usize),
                3 => Self::Changes,
                4 => Self::Sectors,
                _ => Self::Moments(BTreeMap::new()),
            },
        }
    }

    /// Whether a change is kept as a whole; `None` if its sectors are drawn alone.
    fn whole(&self, index: usize, seeded: &mut Seeded) -> Option<bool> {
        match self {
            Self::First(count) => Some(index < *count),
            Self::Changes => Some(seeded.coin()),
            Self::Sectors | Self::Moments(_) => None,
        }
    }

    /// Whether one sector of a change is kept.
    fn sector(&mut self, index: usize, sector: u64, of: usize, seeded: &mut Seeded) -> bool {
        match self {
            Self::Moments(moments) => {
                let moment = moments.entry(sector);
                index < *moment.or_insert_with(|| seeded.below(of as u64 + 1) as usize)
            }
            _ => seeded.coin(),
        }
    }

    /// How far the file reaches by a write to `position..end` that is not kept
    /// whole; 0 if its length is lost.
    fn reach(&self, position: u64, end: u64, sector: u64, seeded: &mut Seeded) -> u64 {
        match (self, seeded.below(4)) {
            (Self::First(_), _) | (_, 0 | 1) => 0,
            (_, 2) => end,
            _ => end.min((seeded.between(position, end) / sector) * sector),
        }
    }
}

/// The bytes that are left of a file. What its length covers without bytes reads as
/// zeros, or, where the file system never cleared it, as `stale` bytes.
pub(super) fn surviving_bytes(
    durable: &Arc<Vec<u8>>,
    changes: &[Unsynced],
    stale: &[u8],
    style: CrashStyle,
    seeded: &mut Seeded,
) -> Arc<Vec<u8>> {
    let mut draw = Draw::new(style, changes.len(), seeded);
    let settled = |unsynced: &Unsynced| unsynced.standing == Standing::Settled;
    if matches!(draw, Draw::First(0)) && !changes.iter().any(settled) {
        return Arc::clone(durable);
    }
    let sector = style.sector().unwrap_or(u64::MAX);
    let mut left = Left { bytes: durable.to_vec(), length: durable.len() as u64, stale };
    for (index, unsynced) in changes.iter().enumerate() {
        let whole = if settled(unsynced) { Some(true) } else { draw.whole(index, seeded) };
        match &unsynced.change {
            FileChange::SetLen(length) => {
                if whole.unwrap_or_else(|| seeded.coin()) {
                    left.set_len(*length);
                }
            }
            FileChange::Write { position, bytes } => {
                let end = position + bytes.len() as u64;
                for (from, to) in sectors(*position, end, sector) {
                    let keep = whole.unwrap_or_else(|| {
                        draw.sector(index, from / sector, changes.len(), seeded)
                    });
                    if keep {
                        let piece = (from - position) as usize..(to - position) as usize;
                        left.write(from as usize, &bytes[piece]);
                    }
                }
                let reach = match whole {
                    Some(true) => end,
                    _ => draw.reach(*position, end, sector, seeded),
                };
                left.length = left.length.max(reach);
            }
        }
    }
    left.into_bytes()
}

/// A file in the making: its bytes may go beyond its length, because a later
/// change may still bring the length that an earlier one lost.
struct Left<'a> {
    bytes: Vec<u8>,
    length: u64,
    stale: &'a [u8],
}

impl Left<'_> {
    fn write(&mut self, position: usize, bytes: &[u8]) {
        self.uncover(position);
        overwrite(&mut self.bytes, position, bytes);
    }

    /// Lets the file reach to `length`, with whatever lies there.
    fn uncover(&mut self, length: usize) {
        let from = self.bytes.len();
        let stale = self.stale.get(from..length.min(self.stale.len())).unwrap_or_default();
        self.bytes.extend_from_slice(stale);
        self.bytes.resize(length.max(self.bytes.len()), 0);
    }

    /// What this adds is zeros, whatever lay there.
    fn set_len(&mut self, length: u64) {
        self.bytes.resize(length as usize, 0);
        self.length = length;
    }

    fn into_bytes(mut self) -> Arc<Vec<u8>> {
        self.uncover(self.length as usize);
        self.bytes.truncate(self.length as usize);
        Arc::new(self.bytes)
    }
}

/// The parts of `from..to` that lie in one sector each.
fn sectors(from: u64, to: u64, sector: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut next = from;
    std::iter::from_fn(move || {
        let start = next;
        next = to.min((start / sector + 1).saturating_mul(sector));
        (start < to).then_some((start, next))
    })
}

/// Which of so many changes of names are kept.
pub(super) fn surviving_names(count: usize, style: CrashStyle, seeded: &mut Seeded) -> Vec<bool> {
    let draw = match style {
        CrashStyle::KeepAll | CrashStyle::NamesOnly => Draw::First(count),
        CrashStyle::DropAll | CrashStyle::BytesOnly => Draw::First(0),
        CrashStyle::Random { .. } | CrashStyle::Stale { .. } if seeded.coin() => Draw::Changes,
        CrashStyle::Random { .. } | CrashStyle::Stale { .. } => {
            Draw::First(match seeded.below(4) {
                0 => 0,
                1 => count,
                _ => seeded.below(count as u64 + 1) as usize,
            })
        }
    };
    (0..count).map(|index| draw.whole(index, seeded) == Some(true)).collect()
}
