//! Checking a log: every header and body, every index, the state files, the names and
//! their sequence. Nothing is changed here, and writers go on meanwhile;
//! [`crate::log::repair`] mends what is found.

pub(crate) mod chain;
pub(crate) mod derived;
pub(crate) mod finding;
pub(crate) mod identity;
pub(crate) mod state;
pub(crate) mod stretch;

use super::error::Result;
use super::find::tail::Tail;
use super::{Bounds, Log};
use crate::format::file_name;
use crate::model::Offset;
use chain::{Chain, Ending};
use finding::{Finding, Kind};
use identity::Votes;

/// How often the segments are listed again while new ones are made.
const TRIES: usize = 100;

/// What a check of a whole log came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// What was found, in the order of the log.
    pub findings: Vec<Finding>,
    /// How many segments there are.
    pub segments: u64,
    /// How many records are good.
    pub records: u64,
    /// How many damaged places there are beyond one a finding: many of one segment are
    /// told as one.
    pub untold: usize,
}

impl Verification {
    /// How many places are damaged.
    pub fn damaged(&self) -> usize {
        self.untold + self.findings.iter().filter(|finding| finding.kind.is_damage()).count()
    }

    /// How many files can't be read.
    pub fn unread(&self) -> usize {
        self.findings.iter().filter(|finding| finding.kind == Kind::Unread).count()
    }
}

impl Log {
    /// Checks every byte of the log. A file that can't be read is a finding too. `watch`
    /// is told how many bytes more were read.
    ///
    /// # Errors
    /// [`Error::Newer`](super::Error::Newer) for what a later version wrote; what the disk says.
    pub fn verify(&self, watch: &mut dyn FnMut(u64)) -> Result<Verification> {
        if let Some(stranger) = self.is_misplaced()? {
            let findings = vec![stranger];
            return Ok(Verification { findings, ..Verification::default() });
        }
        let (chain, mut found) = self.examine(|| self.tail(), watch)?;
        // Groups have gone on since the chain was looked at, and so has the log.
        let end = self.bounds().map_or(chain.end, |bounds| bounds.end.max(chain.end));
        let bounds = Bounds { start: chain.start, end, durable: end, damage: None };
        found.findings.extend(state::of_the_groups(self, &bounds)?);
        Ok(found)
    }

    /// What is to be told of a `log.json` that is another log's: then every good batch
    /// would look like none.
    fn is_misplaced(&self) -> Result<Option<Finding>> {
        if !Votes::of(&self.home)?.are_against(self.id) {
            return Ok(None);
        }
        let file = self.home.path(file_name::SETTINGS);
        Ok(Some(Finding::of_file(file, Kind::State, "it is another log's")))
    }

    /// The same of all but the groups, and the chain itself for whoever mends it. `tail`
    /// finds the end of the log. Takes no lock, so that whoever holds one may call it.
    pub(crate) fn examine(
        &self,
        tail: impl Fn() -> Result<Tail>,
        watch: &mut dyn FnMut(u64),
    ) -> Result<(Chain, Verification)> {
        let state = state::of_the_log(self)?;
        let is_bad = |name| {
            let path = self.home.path(name);
            state
                .iter()
                .any(|found| matches!(found.kind, Kind::State | Kind::Unread) && found.file == path)
        };
        let end = if is_bad(file_name::END) { None } else { self.end_state()? };
        let (bases, ending) = self.bases_and_end(tail)?;
        let start = match is_bad(file_name::START) {
            true => bases.first().copied().unwrap_or_default(),
            false => self.start()?,
        };
        let chain = Chain::check(self, start, &bases, &ending, end.as_ref(), watch)?;
        let mut findings = chain.findings(self);
        for stretch in chain.stretches.iter().filter(|stretch| stretch.is_there) {
            findings.extend(derived::of_index(self, stretch));
        }
        findings.extend(derived::of_key_tables(self));
        if !findings.iter().any(|found| found.kind.is_damage() || found.kind == Kind::Unread) {
            findings.extend(derived::of_table(self, &chain.stretches)?);
        }
        findings.extend(state);
        let segments = chain.stretches.iter().filter(|stretch| stretch.is_there).count() as u64;
        let records = chain.stretches.iter().map(|stretch| stretch.facts.records).sum();
        let untold = chain.untold();
        Ok((chain, Verification { findings, segments, records, untold }))
    }

    /// The segments, and the end of the log as it was found after they were listed.
    fn bases_and_end(&self, tail: impl Fn() -> Result<Tail>) -> Result<(Vec<Offset>, Ending)> {
        let mut found = (self.home.list_segments()?, Ending::of(tail())?);
        for _ in 0..TRIES {
            match &found {
                (bases, Ending::Found(tail))
                    if bases.last().is_some_and(|&last| last < tail.mark.segment)
                        && self.home.exists(&self.home.segment_path(tail.mark.segment))? => {}
                _ => break,
            }
            found = (self.home.list_segments()?, Ending::of(tail())?);
        }
        Ok(found)
    }
}
