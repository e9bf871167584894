//! What a log is, without files: a list of records, a map of groups, and how much of
//! that was promised to survive a power cut.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use tapelog::model::{Start, Timestamp};

use crate::call::GROUPS;

/// A record as it must be read.
#[derive(Clone, PartialEq, Eq)]
pub struct Record {
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<u8>,
    pub own_time: Option<Timestamp>,
    pub append_time: Timestamp,
}

/// A record, and the offset at which its batch begins.
#[derive(Clone)]
pub struct Kept {
    pub record: Arc<Record>,
    pub batch: u64,
}

/// A group: where it is, if it exists.
#[derive(Clone, Default)]
pub struct Group {
    pub at: Option<u64>,
    /// Where a power cut may leave it.
    pub may_be: BTreeSet<Option<u64>>,
    /// Where each of its seeks came from; `None` if a crash in the midst of one made
    /// that uncertain.
    pub seeks: Option<Vec<Option<u64>>>,
}

/// The log.
#[derive(Clone)]
pub struct Plain {
    /// Whether it was made.
    pub made: bool,
    /// Every record ever appended; those before `start` are not to be read.
    pub records: Vec<Kept>,
    pub start: u64,
    /// Where a power cut may leave it.
    pub start_may_be: BTreeSet<u64>,
    /// All before this survives a power cut.
    pub safe: u64,
    pub groups: BTreeMap<&'static str, Group>,
    /// The last append time is known to lie between these.
    pub time: (Timestamp, Timestamp),
    pub segment_size: u64,
}

const NO_TIME: Timestamp = Timestamp::from_millis(i64::MIN);

impl Plain {
    pub fn new(segment_size: u64) -> Plain {
        let group = Group { may_be: [None].into(), seeks: Some(Vec::new()), at: None };
        Plain {
            made: false,
            records: Vec::new(),
            start: 0,
            start_may_be: [0].into(),
            safe: 0,
            groups: GROUPS.iter().map(|name| (*name, group.clone())).collect(),
            time: (NO_TIME, NO_TIME),
            segment_size,
        }
    }

    pub fn end(&self) -> u64 {
        self.records.len() as u64
    }

    pub fn group(&self, name: &str) -> &Group {
        &self.groups[name]
    }

    /// Changes a group's place, durably.
    pub fn place(&mut self, name: &'static str, at: Option<u64>) {
        let group = self.groups.entry(name).or_default();
        group.at = at;
        group.may_be = [at].into();
        self.promise(at.unwrap_or_default());
    }

    /// Changes a group's place, though a power cut may take it back.
    pub fn move_loosely(&mut self, name: &'static str, at: u64) {
        let group = self.groups.entry(name).or_default();
        group.at = Some(at);
        group.may_be.insert(Some(at));
        self.promise(at);
    }

    /// Notes a seek, with what an undo of it goes back to.
    pub fn sought(&mut self, name: &'static str, to: u64, is_undo: bool) {
        let group = self.groups.entry(name).or_default();
        let from = group.at;
        if let Some(seeks) = &mut group.seeks {
            if is_undo {
                seeks.pop();
            } else if from != Some(to) {
                seeks.push(from);
            }
        }
        self.place(name, Some(to));
    }

    /// A group goes, and its history with it.
    pub fn deleted(&mut self, name: &'static str) {
        self.place(name, None);
        self.groups.entry(name).or_default().seeks = Some(Vec::new());
    }

    pub fn promise(&mut self, before: u64) {
        self.safe = self.safe.max(before);
    }

    pub fn append_time(&self, offset: u64) -> Timestamp {
        self.records[offset as usize].record.append_time
    }

    /// The records from `from` to before `until`.
    pub fn slice(&self, from: u64, until: u64) -> Vec<Arc<Record>> {
        let kept = &self.records[from as usize..until as usize];
        kept.iter().map(|kept| Arc::clone(&kept.record)).collect()
    }

    /// The offset that `start` means; `None` if the log does not hold it.
    pub fn resolve(&self, start: Start) -> Option<u64> {
        let end = self.end();
        let offset = match start {
            Start::Earliest => self.start,
            Start::Latest => end,
            Start::At(offset) => offset.get(),
            Start::Last(count) => end.saturating_sub(count).max(self.start),
            Start::AfterStart(count) => self.start + count,
            Start::Time(time) => {
                (self.start..end).find(|&offset| self.append_time(offset) >= time).unwrap_or(end)
            }
        };
        self.holds(offset).then_some(offset)
    }

    pub fn holds(&self, offset: u64) -> bool {
        (self.start..=self.end()).contains(&offset)
    }

    /// Whether a power cut leaves a log at all.
    pub fn must_exist(&self) -> bool {
        let exists = |group: &Group| !group.may_be.contains(&None);
        self.made || self.safe > 0 || self.groups.values().any(exists)
    }

    /// Where gc must put the log start, given the segments' first and next offsets, the
    /// active one last, and the group whose consumer may yet write over what is stored.
    pub fn start_after_gc(&self, segments: &[(u64, u64)], held: Option<&str>) -> u64 {
        let place = |(name, group): (&&str, &Group)| match held == Some(*name) {
            true => group.may_be.iter().flatten().min().copied(),
            false => group.at,
        };
        let Some(least) = self.groups.iter().filter_map(place).min() else {
            return self.start;
        };
        let sealed = &segments[..segments.len().saturating_sub(1)];
        sealed.iter().take_while(|(_, next)| *next <= least).last().map_or(self.start, |s| s.1)
    }

    /// What there may be after a crash in the midst of the call that led here from
    /// `before`: anything between the two.
    pub fn or(mut self, before: &Plain) -> Plain {
        self.made &= before.made;
        self.safe = before.safe;
        self.start_may_be.extend(&before.start_may_be);
        for (name, old) in &before.groups {
            let group = self.groups.entry(name).or_default();
            group.may_be.extend(&old.may_be);
            if group.at != old.at || group.seeks != old.seeks {
                group.seeks = None;
            }
        }
        self
    }
}

/// Short enough for a failure's message.
impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: &Option<Vec<u8>>| {
            let begin = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).chars().take(20).collect();
            bytes.as_ref().map_or("null".to_owned(), begin)
        };
        let (key, value, headers) = (text(&self.key), text(&self.value), self.headers.len());
        let (own, at) = (self.own_time.map(Timestamp::as_millis), self.append_time.as_millis());
        write!(f, "key {key:?}, value {value:?}, {headers} bytes of headers, own {own:?}, at {at}")
    }
}
