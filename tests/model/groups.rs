//! What is done with groups, with gc and the listings, which ask where they are.

use tapelog::log::{Claim, Consumer, Error, OutOfRange, SeekTarget};
use tapelog::model::{GroupName, Offset, SegmentState, Start};

use crate::call::{GROUPS, Number, Place, Share, Target};
use crate::plain::Plain;
use crate::play::{Play, share_of};
use crate::reading::words;

/// Why a place can't be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    OutOfRange,
    Back,
    NoGroup,
    NothingToUndo,
}

/// A refusal that the model may expect; anything else is a failure.
fn refusal<T>(result: Result<T, Error>) -> Result<Result<T, Refusal>, String> {
    Ok(Err(match result {
        Ok(value) => return Ok(Ok(value)),
        Err(Error::OutOfRange(OutOfRange::CommitBack { .. })) => Refusal::Back,
        Err(Error::OutOfRange(_)) => Refusal::OutOfRange,
        Err(Error::NoGroup(_)) => Refusal::NoGroup,
        Err(Error::NothingToUndo(_)) => Refusal::NothingToUndo,
        Err(error) => return Err(format!("{error} [{error:?}]")),
    }))
}

pub fn name(group: &str) -> Result<GroupName, String> {
    group.parse().map_err(|error| format!("{group}: {error}"))
}

impl Play {
    pub fn claim(&mut self, group: Number, place: Place, commits: bool) -> Result<(), String> {
        self.consumer = None;
        let (log, group) = (self.log()?, GROUPS[group]);
        let start = self.start(place);
        let claim = Claim { start, out_of_range: None, commits, holder: "model".to_owned() };
        let known = self.plain.group(group).at;
        let expected = known.or_else(|| self.plain.resolve(start)).ok_or(Refusal::OutOfRange);
        let claimed = refusal(Consumer::claim(&log, &name(group)?, &claim, self.now))?;
        let found = claimed.as_ref().map(|consumer| consumer.position().get());
        agree("claim", found.map_err(|refusal| *refusal), expected)?;
        if let Ok(at) = expected {
            // Whoever takes a checkpoint syncs it.
            self.plain.place(group, Some(at));
        }
        self.consumer = claimed.ok().map(|consumer| (consumer, commits));
        Ok(())
    }

    pub fn consume(&mut self, share: Share) -> Result<(), String> {
        let (now, end) = (self.now, self.plain.end());
        let Some((consumer, commits)) = &mut self.consumer else { return Ok(()) };
        let position = consumer.position().get();
        let next = position + share_of(share, end - position);
        if next == position {
            return Ok(());
        }
        let before = self.plain.append_time(next - 1);
        consumer.commit(Offset::new(next), before, now).map_err(words("commit"))?;
        if *commits {
            let group = known(consumer.group());
            self.plain.move_loosely(group, next);
        }
        Ok(())
    }

    pub fn sync_checkpoint(&mut self) -> Result<(), String> {
        let Some((consumer, commits)) = &mut self.consumer else { return Ok(()) };
        consumer.sync().map_err(words("sync the checkpoint"))?;
        if *commits {
            let group = known(consumer.group());
            self.plain.place(group, self.plain.group(group).at);
        }
        Ok(())
    }

    pub fn leave(&mut self) -> Result<(), String> {
        self.consumer = None;
        Ok(())
    }

    /// Whether a consumer keeps others from changing the group: then nothing is tried.
    fn is_held(&self, group: &str) -> bool {
        self.consumer.as_ref().is_some_and(|(consumer, _)| known(consumer.group()) == group)
    }

    pub fn commit(&mut self, group: Number, to: Share) -> Result<(), String> {
        let group = GROUPS[group];
        if self.is_held(group) {
            return Ok(());
        }
        let next = share_of(to, self.plain.end() + 3);
        let expected = match self.plain.group(group).at {
            Some(at) if next < at => Err(Refusal::Back),
            _ if !self.plain.holds(next) => Err(Refusal::OutOfRange),
            _ => Ok(()),
        };
        let (log, now) = (self.log()?, self.now);
        let done = refusal(log.commit(&name(group)?, Offset::new(next), now))?;
        agree(&format!("commit {group} at {next}"), done, expected)?;
        if done.is_ok() {
            self.plain.place(group, Some(next));
        }
        Ok(())
    }

    pub fn seek(&mut self, group: Number, target: Target) -> Result<(), String> {
        let group = GROUPS[group];
        if self.is_held(group) {
            return Ok(());
        }
        let (log, now) = (self.log()?, self.now);
        let to = match target {
            Target::To(place) => SeekTarget::To(self.start(place)),
            Target::By(records) => SeekTarget::By(records.into()),
            Target::Current => SeekTarget::Current,
            Target::Group(other) => SeekTarget::Group(name(GROUPS[other])?),
            Target::Undo => SeekTarget::Undo,
        };
        let planned = refusal(log.plan_seek(&name(group)?, &to))?.map(|plan| plan.to.get());
        let done = refusal(log.seek(&name(group)?, &to, now))?;
        let from = self.plain.group(group).at;
        let found = done.as_ref().map(|moved| moved.to.get()).map_err(|refusal| *refusal);
        agree("what was planned", found, planned)?;
        if let Some(expected) = target_in(&self.plain, from, group, &to) {
            agree(&format!("seek {group} to {to:?}"), found, expected)?;
        }
        let Ok(moved) = done else { return Ok(()) };
        if moved.from.map(Offset::get) != from {
            return Err(format!("seek {group} from {:?}, it was at {from:?}", moved.from));
        }
        self.plain.sought(group, moved.to.get(), to == SeekTarget::Undo);
        Ok(())
    }

    pub fn delete(&mut self, group: Number) -> Result<(), String> {
        let group = GROUPS[group];
        if self.is_held(group) {
            return Ok(());
        }
        let exists = self.plain.group(group).at.is_some();
        let done = refusal(self.log()?.delete_group(&name(group)?))?;
        agree(&format!("delete {group}"), done, exists.then_some(()).ok_or(Refusal::NoGroup))?;
        if exists {
            self.plain.deleted(group);
        }
        Ok(())
    }

    pub fn gc(&mut self) -> Result<(), String> {
        let log = self.log()?;
        let (facts, _) = log.segments().map_err(words("segments"))?;
        let segments: Vec<_> = facts.iter().map(|s| (s.base.get(), s.next.get())).collect();
        let holder = self.consumer.as_ref().filter(|(_, commits)| *commits);
        let held = holder.map(|(consumer, _)| known(consumer.group()));
        let expected = self.plain.start_after_gc(&segments, held);
        log.collect().map_err(words("gc"))?;
        self.plain.start = expected;
        self.plain.start_may_be = [expected].into();
        let start = log.start().map_err(words("start"))?.get();
        match start == expected {
            true => Ok(()),
            false => Err(format!("log start {start} after gc, not {expected}, of {segments:?}")),
        }
    }

    /// Bounds, segments and groups.
    pub fn list(&mut self) -> Result<(), String> {
        let log = self.log()?;
        let bounds = log.bounds().map_err(words("bounds"))?;
        let (start, end) = (self.plain.start, self.plain.end());
        if (bounds.start.get(), bounds.end.get(), &bounds.damage) != (start, end, &None) {
            return Err(format!("{bounds:?}, not {start} to {end}"));
        }
        self.list_segments()?;
        for (group, expected) in &self.plain.groups {
            let found = log.group_position(&name(group)?).map_err(words("group position"))?;
            if found.map(Offset::get) != expected.at {
                return Err(format!("group {group} is at {found:?}, not {:?}", expected.at));
            }
        }
        let listing = log.group_listing(self.now).map_err(words("group listing"))?;
        for status in &listing.good {
            let at = status.position.get();
            let waiting = (at < end).then(|| self.now.since(self.plain.append_time(at)));
            if status.lag != end - at || status.lag_time != waiting.unwrap_or_default() {
                return Err(format!("{status:?}, the log ends at {end}, it waits {waiting:?}"));
            }
        }
        let count = self.plain.groups.values().filter(|group| group.at.is_some()).count();
        match (listing.good.len(), listing.bad.len()) == (count, 0) {
            true => Ok(()),
            false => Err(format!("{listing:?}, there are {count} groups")),
        }
    }

    fn list_segments(&mut self) -> Result<(), String> {
        let (facts, damage) = self.log()?.segments().map_err(words("segments"))?;
        let mut next = self.plain.start;
        for (number, segment) in (1..).zip(&facts) {
            let (base, end) = (segment.base.get(), segment.next.get());
            let time = |offset: u64| (end > base).then(|| self.plain.append_time(offset));
            let is_last = number == facts.len();
            let state = if is_last { SegmentState::Active } else { SegmentState::Sealed };
            // The last record may be lost while `end` still tells of its time.
            let last = segment.last_time >= time(end.saturating_sub(1))
                && segment.last_time <= (end > base).then_some(self.plain.time.1);
            let as_it_must = base == next
                && end <= self.plain.end()
                && segment.records == end - base
                && segment.first_time == time(base)
                && last
                && segment.state == state;
            if !as_it_must {
                return Err(format!("segment {segment:?} does not follow on {next}"));
            }
            next = end;
        }
        match damage.is_none() && (next == self.plain.end() || facts.is_empty()) {
            true => Ok(()),
            false => Err(format!("segments {facts:?}, damage {damage:?}")),
        }
    }
}

/// Where a seek of `group` must go; `None` if a crash made that uncertain.
fn target_in(
    plain: &Plain,
    from: Option<u64>,
    group: &str,
    target: &SeekTarget,
) -> Option<Result<u64, Refusal>> {
    let within = |start| plain.resolve(start).ok_or(Refusal::OutOfRange);
    let at = |offset| within(Start::At(Offset::new(offset)));
    Some(match target {
        SeekTarget::To(start) => within(*start),
        SeekTarget::Current => from.ok_or(Refusal::NoGroup).and_then(at),
        SeekTarget::By(records) => from.ok_or(Refusal::NoGroup).map(|from| {
            let wanted = from.saturating_add_signed(*records);
            wanted.clamp(plain.start, plain.end())
        }),
        SeekTarget::Group(other) => {
            plain.group(other.as_str()).at.ok_or(Refusal::NoGroup).and_then(at)
        }
        SeekTarget::Undo if from.is_none() => Err(Refusal::NoGroup),
        SeekTarget::Undo => {
            let last = plain.group(group).seeks.as_ref()?.last().copied().flatten();
            last.ok_or(Refusal::NothingToUndo).and_then(at)
        }
    })
}

fn known(group: &GroupName) -> &'static str {
    GROUPS.iter().find(|name| **name == group.as_str()).copied().unwrap_or_default()
}

fn agree<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), String> {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{what}: {found:?}, not {expected:?}")),
    }
}
