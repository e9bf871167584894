//! The records that are handed over together: one, or as many as a batch may have.

use super::environment::Environment;
use crate::cli::printer::Printer;
use crate::format::record::RecordView;
use crate::model::{Offset, Timestamp};

/// A lot is handed over when it has so many bytes, whatever its records are, so that
/// memory stays flat.
const MOST_BYTES: usize = 4 << 20;

/// Records on their way to one run of a command, and what lies between them that is
/// not wanted.
#[derive(Debug)]
pub struct Lot {
    most: u64,
    /// Whether key, time and headers are told: those of one record only.
    tells: bool,
    /// What is handed over.
    pub bytes: Vec<u8>,
    /// How many records that is.
    pub count: u64,
    /// The first of them.
    pub first: Offset,
    /// All before this is in here or was settled before.
    pub next: Offset,
    /// When the last of it was appended.
    pub time: Timestamp,
    environment: Environment,
}

impl Lot {
    /// An empty one that begins at `from`; of one record, unless it may be `batch`.
    pub fn new(batch: Option<u64>, from: Offset) -> Lot {
        Lot {
            most: batch.unwrap_or(1).max(1),
            tells: batch.is_none(),
            bytes: Vec::new(),
            count: 0,
            first: from,
            next: from,
            time: Timestamp::default(),
            environment: Environment::default(),
        }
    }

    /// Adds a record as `printer` prints it, if it is wanted; says whether it is.
    pub fn add(&mut self, record: &RecordView<'_>, printer: &Printer) -> bool {
        let wanted = printer.print_one(record, &mut self.bytes);
        if wanted {
            if self.count == 0 {
                self.first = record.offset;
            }
            if self.tells {
                self.environment.set("TAPELOG_TIME", record.time().as_millis());
                self.environment.describe(&record.content);
            }
            self.count += 1;
        }
        self.reach(record.next, record.append_time);
        wanted
    }

    /// It reaches to `next`, whose last record was appended at `time`.
    pub fn reach(&mut self, next: Offset, time: Timestamp) {
        (self.next, self.time) = (next, time);
    }

    /// Whether no more may be added.
    pub fn is_full(&self) -> bool {
        self.count >= self.most || self.bytes.len() >= MOST_BYTES
    }

    /// Whether there is nothing to hand over.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// What the command is told at this attempt.
    pub fn environment(&self, group: &str, attempt: u64) -> Environment {
        // First, so that no large header is in the way.
        let mut environment = Environment::default();
        environment.set("TAPELOG_OFFSET", self.first);
        environment.set("TAPELOG_NEXT", self.next);
        environment.set("TAPELOG_COUNT", self.count);
        environment.set("TAPELOG_ATTEMPT", attempt);
        environment.set("TAPELOG_GROUP", group);
        environment.add(&self.environment);
        environment
    }

    /// What it is called in messages.
    pub fn name(&self) -> String {
        match self.count {
            1 => format!("offset {}", self.first),
            count => format!("offsets {} to {}, {count} records,", self.first, self.next.back(1)),
        }
    }

    /// Begins the next one where this one ends.
    pub fn clear(&mut self) {
        self.bytes.clear();
        // Of one large record nothing is kept.
        self.bytes.shrink_to(MOST_BYTES);
        self.environment = Environment::default();
        (self.count, self.first) = (0, self.next);
    }
}
