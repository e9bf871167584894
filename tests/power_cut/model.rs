//! What was asked of a log and what was promised, each with the length of the
//! disk's journal at that moment; and what a log must be like at any other length.

use std::collections::{BTreeMap, BTreeSet};

use tapelog::model::GroupName;

/// What ended the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The power went: only what was synced is promised.
    PowerCut,
    /// The process was killed: all that a call returned from is there.
    Killed,
}

/// The moments of one change, as lengths of the journal.
#[derive(Clone, Copy, Debug)]
pub struct When {
    /// From here on something of it may be there.
    from: usize,
    /// The call had returned.
    done: Option<usize>,
    /// It was promised to survive.
    safe: Option<usize>,
}

impl When {
    /// A change that begins when the journal has this length.
    pub fn begins(steps: usize) -> When {
        When { from: steps + 1, done: None, safe: None }
    }

    /// A change that is durable on the disk that the journal starts from.
    pub fn always() -> When {
        When { from: 0, done: Some(0), safe: Some(0) }
    }

    pub fn done(&mut self, steps: usize) {
        self.done.get_or_insert(steps);
    }

    pub fn safe(&mut self, steps: usize) {
        self.done(steps);
        self.safe.get_or_insert(steps);
    }

    fn may_show(&self, steps: usize) -> bool {
        self.from <= steps
    }

    fn must_show(&self, steps: usize, ending: Ending) -> bool {
        let since = match ending {
            Ending::PowerCut => self.safe,
            Ending::Killed => self.done,
        };
        since.is_some_and(|since| since <= steps)
    }

    /// The journal goes on from `steps`: what was promised later never was.
    fn cut_back(&mut self, steps: usize) {
        self.done = self.done.filter(|&done| done <= steps);
        self.safe = self.safe.filter(|&safe| safe <= steps);
    }

    /// A new journal begins with what a power cut left.
    fn begin_anew(&mut self, steps: usize) {
        self.cut_back(steps);
        self.from = 0;
        self.safe = self.safe.map(|_| 0);
        self.done = self.safe;
    }
}

/// One append.
#[derive(Clone, Debug)]
pub struct Append {
    pub when: When,
    pub base: u64,
    pub values: Vec<Vec<u8>>,
    /// From here on it is known not to be there.
    dead: Option<usize>,
}

impl Append {
    fn next(&self) -> u64 {
        self.base + self.values.len() as u64
    }
}

/// One change of a group's checkpoint; `None` deletes the group.
#[derive(Clone, Debug)]
struct Placed {
    when: When,
    to: Option<u64>,
}

/// Everything that was asked and promised.
#[derive(Clone, Debug, Default)]
pub struct Model {
    created: Option<When>,
    appends: Vec<Append>,
    starts: Vec<(When, u64)>,
    groups: BTreeMap<GroupName, Vec<Placed>>,
    /// The log end, while nothing was cut.
    pub end: u64,
}

/// What a log must be like at one place of the journal.
#[derive(Clone, Debug, Default, Hash)]
pub struct Expected {
    /// The log was made.
    pub made: bool,
    /// What each offset holds, if it is there.
    pub values: Vec<Vec<u8>>,
    /// All before this offset is there.
    pub safe: u64,
    /// The log start is at least this.
    pub least_start: u64,
    /// The log start is at most this.
    pub most_start: u64,
    /// Where each group may be; `None` is no such group.
    pub groups: BTreeMap<GroupName, BTreeSet<Option<u64>>>,
}

impl Expected {
    /// What must hold, without what may be there besides.
    pub fn promise(&self) -> impl std::hash::Hash {
        let places = self.groups.values().map(|places| places.first().copied().flatten());
        (self.made, self.safe, self.least_start, places.collect::<Vec<_>>())
    }
}

/// What was found on a disk when its log was opened.
#[derive(Clone, Debug, Default)]
pub struct Found {
    pub end: u64,
    pub groups: BTreeMap<GroupName, u64>,
}

impl Model {
    pub fn begin_creation(&mut self, steps: usize) {
        self.created.get_or_insert(When::begins(steps));
    }

    pub fn created(&mut self, steps: usize) {
        if let Some(when) = &mut self.created {
            when.safe(steps);
        }
    }

    pub fn begin_append(&mut self, steps: usize, values: Vec<Vec<u8>>) {
        let when = When::begins(steps);
        self.appends.push(Append { when, base: self.end, values, dead: None });
    }

    pub fn appended(&mut self, steps: usize) {
        if let Some(append) = self.appends.last_mut() {
            append.when.done(steps);
            self.end = append.next();
        }
    }

    /// All before `end` was acknowledged.
    pub fn synced(&mut self, steps: usize, end: u64) {
        for append in &mut self.appends {
            if append.dead.is_none() && append.next() <= end {
                append.when.safe(steps);
            }
        }
    }

    /// A gc begins that moves the log start to `start` at most.
    pub fn begin_gc(&mut self, steps: usize, start: u64) {
        self.starts.push((When::begins(steps), start));
    }

    /// It is done, and has moved the log start to there.
    pub fn collected(&mut self, steps: usize, to: u64) {
        if let Some((when, start)) = self.starts.last_mut() {
            *start = to;
            when.safe(steps);
        }
    }

    pub fn begin_placing(&mut self, steps: usize, group: &GroupName, to: Option<u64>) {
        let placed = Placed { when: When::begins(steps), to };
        self.groups.entry(group.clone()).or_default().push(placed);
    }

    /// The last change of a group was done, but not promised to survive.
    pub fn placed(&mut self, steps: usize, group: &GroupName) {
        if let Some(placed) = self.groups.get_mut(group).and_then(|all| all.last_mut()) {
            placed.when.done(steps);
        }
    }

    /// All changes of a group so far were promised to survive.
    pub fn kept(&mut self, steps: usize, group: &GroupName) {
        self.groups.entry(group.clone()).or_default().iter_mut().for_each(|p| p.when.safe(steps));
    }

    /// The process was killed after `steps`; the disk goes on from there.
    pub fn killed_at(&mut self, steps: usize) {
        self.each(&mut |when| when.cut_back(steps));
        self.forget(&|when| when.may_show(steps));
    }

    /// The power was cut after `steps`, and what it left is a new disk.
    pub fn cut_at(&mut self, steps: usize) {
        self.forget(&|when| when.may_show(steps));
        self.each(&mut |when| when.begin_anew(steps));
        self.appends.retain(|append| append.dead.is_none_or(|dead| dead > steps));
        self.appends.iter_mut().for_each(|append| append.dead = None);
    }

    /// The log was opened again, and this is what is there.
    pub fn reopened(&mut self, steps: usize, found: &Found, ending: Ending) {
        self.end = found.end;
        for append in &mut self.appends {
            match append.next() <= found.end {
                true if append.dead.is_none() => append.when.done(steps),
                true => {}
                false => drop(append.dead.get_or_insert(steps)),
            }
        }
        for group in self.groups.keys().chain(found.groups.keys()).cloned().collect::<Vec<_>>() {
            let to = found.groups.get(&group).copied();
            let mut when = When::always();
            if ending == Ending::Killed {
                when = When { from: steps, done: Some(steps), safe: None };
            }
            self.groups.entry(group).or_default().push(Placed { when, to });
        }
    }

    fn each(&mut self, change: &mut dyn FnMut(&mut When)) {
        self.created.iter_mut().for_each(&mut *change);
        self.appends.iter_mut().for_each(|append| change(&mut append.when));
        self.starts.iter_mut().for_each(|(when, _)| change(when));
        self.groups.values_mut().flatten().for_each(|placed| change(&mut placed.when));
    }

    fn forget(&mut self, keep: &dyn Fn(&When) -> bool) {
        self.created = self.created.filter(keep);
        self.appends.retain(|append| keep(&append.when));
        self.starts.retain(|(when, _)| keep(when));
        self.groups.values_mut().for_each(|all| all.retain(|placed| keep(&placed.when)));
    }

    /// What the log must be like after the first `steps` steps.
    pub fn at(&self, steps: usize, ending: Ending) -> Expected {
        let mut expected = Expected {
            made: self.created.is_some_and(|when| when.must_show(steps, ending)),
            ..Expected::default()
        };
        for append in self.appends.iter().filter(|append| append.when.may_show(steps)) {
            if append.dead.is_some_and(|dead| dead <= steps) {
                continue;
            }
            // A later append at the same offset: what stood there was cut off, durably.
            expected.values.truncate(append.base as usize);
            expected.values.extend(append.values.iter().cloned());
            if append.when.must_show(steps, ending) {
                expected.safe = expected.safe.max(append.next());
            }
        }
        for (when, start) in self.starts.iter().filter(|(when, _)| when.may_show(steps)) {
            expected.most_start = expected.most_start.max(*start);
            if when.must_show(steps, ending) {
                expected.least_start = expected.least_start.max(*start);
            }
        }
        for (group, all) in &self.groups {
            expected.groups.insert(group.clone(), places(all, steps, ending));
        }
        let a_group = expected.groups.values().any(|places| !places.contains(&None));
        expected.made |= expected.safe > 0 || a_group;
        expected
    }
}

/// The last promised place, and every one that was asked for since.
fn places(all: &[Placed], steps: usize, ending: Ending) -> BTreeSet<Option<u64>> {
    let mut places = BTreeSet::from([None]);
    for placed in all.iter().filter(|placed| placed.when.may_show(steps)) {
        if placed.when.must_show(steps, ending) {
            places.clear();
        }
        places.insert(placed.to);
    }
    places
}
