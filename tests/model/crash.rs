//! What a crash leaves, held against what was promised; the model then goes on with it.

use std::collections::BTreeSet;
use std::sync::Arc;

use tapelog::disk::simulated::{CrashPlayer, CrashStyle, SimulatedDisk};
use tapelog::log::{Error, Log};
use tapelog::model::{Offset, Start, Timestamp};

use crate::call::Share;
use crate::groups::name;
use crate::plain::{Kept, Plain};
use crate::play::{Play, share_of};
use crate::reading::{compare, read, words};

/// What ended the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// Only what was synced is promised.
    PowerCut,
    /// All that a call returned from is there.
    Killed,
}

impl Play {
    pub fn kill(&mut self, at: Share) -> Result<(), String> {
        let player = self.player(at);
        let killed = Arc::new(player.killed());
        self.recover(killed, player.at(), Ending::Killed)
    }

    pub fn cut_power(&mut self, at: Share, seed: u8, style: CrashStyle) -> Result<(), String> {
        let player = self.player(at);
        let image = Arc::new(player.image(seed.into(), style));
        self.recover(image, player.at(), Ending::PowerCut)
    }

    /// So far into the last call that changed something.
    fn player(&self, at: Share) -> CrashPlayer {
        let mut player = self.disk.crash_player();
        let begun = self.before.1;
        player.go_to(begun + share_of(at, (self.disk.steps() - begun) as u64) as usize);
        player
    }

    /// Goes on with `disk`, which a crash left when the journal had `steps` steps.
    fn recover(
        &mut self,
        disk: Arc<SimulatedDisk>,
        steps: usize,
        ending: Ending,
    ) -> Result<(), String> {
        self.forget();
        let is_whole = steps == self.disk.steps();
        let before = if is_whole { self.plain.clone() } else { self.before.0.clone() };
        let mut allowed = self.plain.clone();
        if !is_whole {
            allowed = allowed.or(&before);
        }
        self.disk = disk;
        self.plain = match Log::open(&self.home()) {
            Err(Error::NoLog(_) | Error::NotALog { .. }) if !must_exist(&before, ending) => {
                Plain { made: false, ..Plain::new(self.plain.segment_size) }
            }
            opened => {
                let log = opened.map_err(words("open"))?;
                adopt(&log, allowed, &before, ending)
                    .map_err(|what| format!("{ending:?}: {what}"))?
            }
        };
        self.before = (self.plain.clone(), self.disk.steps());
        match Log::open(&self.home()) {
            Ok(_) => self.compare_all(),
            Err(_) => Ok(()),
        }
    }
}

fn must_exist(before: &Plain, ending: Ending) -> bool {
    before.must_exist() || (ending == Ending::Killed && before.end() > 0)
}

/// What the model is after a crash, if what `log` holds is allowed.
fn adopt(log: &Log, mut plain: Plain, before: &Plain, ending: Ending) -> Result<Plain, String> {
    let cut = ending == Ending::PowerCut;
    let (start, records) = read(log, Start::Earliest)?.map_err(words("read"))?;
    let end = start + records.len() as u64;
    let least = if cut { plain.safe } else { before.end() };
    let is_whole_batches = |kept: &Kept| kept.batch == end;
    if end < least || end > plain.end() {
        return Err(format!("the log ends at {end}, not from {least} to {}", plain.end()));
    }
    if !plain.records.get(end as usize).is_none_or(is_whole_batches) {
        return Err(format!("a batch was cut at {end}"));
    }
    compare(&records, &plain.slice(start, end), start)?;
    let starts: BTreeSet<u64> =
        if cut { plain.start_may_be.clone() } else { [before.start, plain.start].into() };
    if !starts.contains(&start) {
        return Err(format!("log start {start}, not one of {starts:?}"));
    }
    plain.records.truncate(end as usize);
    plain.start = start;
    for (group, model) in &mut plain.groups {
        let at = log.group_position(&name(group)?).map_err(words("group position"))?;
        let at = at.map(Offset::get);
        let places =
            if cut { model.may_be.clone() } else { [before.group(group).at, model.at].into() };
        if !places.contains(&at) {
            return Err(format!("group {group} is at {at:?}, not at one of {places:?}"));
        }
        model.at = at;
        if cut {
            model.may_be = [at].into();
        }
    }
    if cut {
        // What is there now was durable.
        (plain.made, plain.safe, plain.start_may_be) = (true, end, [start].into());
    }
    let last = plain.records.last().map(|kept| kept.record.append_time);
    plain.time.0 = last.unwrap_or(Timestamp::from_millis(i64::MIN));
    Ok(plain)
}
