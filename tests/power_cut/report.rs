//! What the power cuts came to: how many different states, and what went wrong.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use tapelog::disk::simulated::SimulatedDisk;

use crate::model::Expected;

/// What was found.
#[derive(Default)]
pub struct Report {
    /// The crash states: what was on the disk, together with what had been promised.
    pub states: HashSet<u64>,
    /// Those of them that a cut during a recovery left.
    pub second: u64,
    /// The recoveries that were cut at every step, by what they did.
    pub recoveries: HashSet<u64>,
    pub kills: u64,
    pub rotten: u64,
    pub failures: Vec<String>,
    /// States together with all that was allowed then: the same again proves nothing new.
    checked: HashSet<u64>,
}

impl Report {
    /// Notes a state; says whether it is one that was not checked yet.
    pub fn is_new(&mut self, disk: &SimulatedDisk, expected: &Expected) -> bool {
        let print = disk.fingerprint();
        self.states.insert(hash(&(print, expected.promise())));
        self.checked.insert(hash(&(print, expected)))
    }

    /// Notes what a recovery did; says whether it is of a new kind.
    pub fn is_new_recovery(&mut self, disk: &SimulatedDisk) -> bool {
        let steps = (0..).map_while(|step| disk.describe_step(step));
        self.recoveries.insert(hash(&steps.map(|step| kind(&step)).collect::<Vec<_>>()))
    }

    pub fn add(&mut self, other: Report) {
        self.states.extend(other.states);
        self.second += other.second;
        self.recoveries.extend(other.recoveries);
        self.kills += other.kills;
        self.rotten += other.rotten;
        self.failures.extend(other.failures);
    }
}

/// A step without its numbers, but for those that name a slot of a two-slot file.
fn kind(step: &str) -> String {
    let word = |word: &str| match word {
        "0" | "4096" => word.to_owned(),
        _ => word.replace(|c: char| c.is_ascii_digit(), ""),
    };
    step.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}
