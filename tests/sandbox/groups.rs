//! Logs with groups at known places, and segments of a hundred records.

use serde_json::Value;

use super::{Expect, Sandbox, want};

impl Sandbox {
    /// A log of `segments` segments with 100 records each, the last one active.
    pub fn hundreds(segments: u64) -> Sandbox {
        // A batch of 100 lines of 9 bytes takes 964 bytes: one fits, two don't.
        let sandbox = Sandbox::with_config("segment-size=1500");
        sandbox.produce("--batch-records 100", want(1, 100 * segments));
        sandbox
    }

    /// Like [`Sandbox::hundreds`], with the segments below `start` collected.
    pub fn hundreds_from(start: u64, segments: u64) -> Sandbox {
        let sandbox = Sandbox::hundreds(segments);
        sandbox.commit("collector", start);
        sandbox.tapelog("gc").outcome().succeeded();
        sandbox
    }

    /// Stores a checkpoint by hand, whatever is said about a new group.
    pub fn commit(&self, group: &str, offset: u64) {
        self.tapelog(&format!("commit -g {group} {offset}")).outcome().succeeded().printed("");
    }

    /// Moves a checkpoint to any target, whatever it prints.
    pub fn seek(&self, group: &str, to: &str) {
        self.tapelog(&format!("seek -g {group} --to {to}")).outcome().succeeded();
    }

    /// A group as `groups -J` shows it.
    pub fn group(&self, group: &str) -> Value {
        self.tapelog(&format!("groups -g {group} -J")).json().remove(0)
    }

    /// The log as `segments --summary -J` shows it.
    pub fn summary(&self) -> Value {
        self.tapelog("segments --summary -J").json().remove(0)
    }

    /// The first offset of every segment, as `segments -J` shows them.
    pub fn bases(&self) -> Vec<u64> {
        numbers(&self.tapelog("segments -J").json(), "first")
    }
}

/// One number of each object.
pub fn numbers(objects: &[Value], name: &str) -> Vec<u64> {
    objects.iter().map(|object| object[name].as_u64().unwrap()).collect()
}
