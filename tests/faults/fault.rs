//! The faults that a program can meet, and a sample of them.

use std::sync::Arc;

use tapelog::disk::simulated::{Class, Lasts, Seeded, SimulatedDisk, Trouble};

use crate::model::Model;
use crate::program::Program;
use crate::{life, recovery};

const CLASSES: [Class; 13] = Class::ALL;

/// Which process meets the fault first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meets {
    /// One that makes a log and works with it.
    Program,
    /// The next one, after that was killed in the midst of something.
    Recovery,
}

/// When the disk is well again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// At once.
    NextCall,
    /// When the process has ended; until then every second call fails.
    ProcessEndsOnAndOff,
    /// When the process has ended.
    ProcessEnds,
    /// When the process after it has ended too.
    NextProcessEnds,
}

const UNTIL: [Until; 4] =
    [Until::NextCall, Until::ProcessEndsOnAndOff, Until::ProcessEnds, Until::NextProcessEnds];

/// One fault in one program.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    pub seed: u64,
    pub meets: Meets,
    pub class: Class,
    pub nth: u64,
    pub trouble: Trouble,
    pub until: Until,
}

impl Fault {
    /// Whether nobody should notice.
    pub fn is_harmless(&self) -> bool {
        let moves = matches!(self.class, Class::Read | Class::Write);
        moves && (self.trouble == Trouble::EINTR || matches!(self.trouble, Trouble::Short(_)))
    }

    /// Whether the whole disk fails, so that not even a mark can be left on it.
    pub fn is_of_the_whole_disk(&self) -> bool {
        self.class == Class::Any
    }

    /// Lets the disk fail from its next call on.
    pub fn begin(&self, disk: &SimulatedDisk) {
        let lasts = match self.until {
            Until::NextCall => Lasts::Once,
            Until::ProcessEndsOnAndOff => Lasts::OnAndOff,
            Until::ProcessEnds | Until::NextProcessEnds => Lasts::ForEver,
        };
        disk.fail_at(self.class, self.nth, self.trouble, lasts);
    }

    /// Whether there is such a thing.
    fn can_be(&self) -> bool {
        let moves = matches!(self.class, Class::Read | Class::Write);
        let passes = matches!(self.until, Until::NextCall | Until::ProcessEndsOnAndOff);
        match self.trouble {
            // A byte at a time for ever takes long, and tells no more than some bytes do.
            Trouble::Short(bytes) => moves && (passes || bytes > 1),
            _ if self.is_of_the_whole_disk() => !passes && self.trouble != Trouble::EINTR,
            // Nobody is interrupted for ever, and going on is what is promised.
            Trouble::EINTR if moves => passes,
            _ => true,
        }
    }
}

/// A sample of the faults that one program can meet, and how many there are.
#[derive(Default)]
pub struct Faults {
    pub taken: Vec<Fault>,
    pub all: u64,
}

impl Faults {
    /// Of each kind, `each` spread over its calls.
    pub fn add_program(&mut self, seed: u64, each: u64) {
        for meets in [Meets::Program, Meets::Recovery] {
            let calls = calls_of(seed, meets);
            for class in CLASSES {
                self.add_class(seed, meets, class, calls[class as usize], each);
            }
        }
    }

    fn add_class(&mut self, seed: u64, meets: Meets, class: Class, calls: u64, each: u64) {
        let short = [Trouble::Short(1), Trouble::Short(100)];
        let errors = [Trouble::EIO, Trouble::ENOSPC, Trouble::EINTR];
        for trouble in errors.into_iter().chain(short) {
            for until in UNTIL {
                let fault = Fault { seed, meets, class, nth: 1, trouble, until };
                if fault.can_be() {
                    self.all += calls;
                    let kind = self.all;
                    self.taken
                        .extend(spread(calls, each, seed ^ kind).map(|nth| Fault { nth, ..fault }));
                }
            }
        }
    }
}

/// At most `count` of the numbers from 1 to `last`, at equal distances.
fn spread(last: u64, count: u64, seed: u64) -> impl Iterator<Item = u64> {
    let count = count.min(last);
    let shift = Seeded::new(seed).below(last.max(1));
    (0..count).map(move |number| 1 + (shift + number * last / count) % last)
}

/// How many calls of each class come where a fault may be met.
fn calls_of(seed: u64, meets: Meets) -> [u64; CLASSES.len()] {
    let mut program = new_program(seed);
    let mut before = [0; CLASSES.len()];
    if meets == Meets::Recovery {
        recovery(&mut program);
        before = CLASSES.map(|class| program.disk.calls(class));
    }
    let lived = life(&mut program, meets);
    assert_eq!(lived, Ok(()), "without a fault nothing fails");
    CLASSES.map(|class| program.disk.calls(class) - before[class as usize])
}

/// A program at its very beginning.
pub fn new_program(seed: u64) -> Program {
    Program::new(seed, Arc::new(SimulatedDisk::new()), Model::default())
}
