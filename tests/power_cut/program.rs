//! A random program: one life of a log on a simulated disk, through the public
//! calls of the core, with everything asked and promised noted in the model.

use std::path::Path;
use std::sync::Arc;

use tapelog::disk::Disk;
use tapelog::disk::simulated::{Seeded, SimulatedDisk};
use tapelog::format::body::{self, Body};
use tapelog::format::codec::Compression;
use tapelog::format::record::Content;
use tapelog::format::settings::Settings;
use tapelog::log::{Appender, Claim, Collection, Consumer, Error, Home, Log, Note, SeekTarget};
use tapelog::model::{GroupName, LogId, Offset, Start, Timestamp};

use crate::model::{Ending, Found, Model};
use crate::reading::{append_time, check_keys, compare, groups, read_all, words};

/// Where the log lives on the disk.
pub const DIR: &str = "/log";
const GROUPS: [&str; 4] = ["a", "b", "c", "d"];

type Verb = fn(&mut Program) -> Result<(), String>;

/// What a program does and how often, in a hundred calls. A verb that changes
/// something of a log has a line here and notes what it promises in the model.
const VERBS: [(u64, Verb); 18] = [
    (33, Program::append),
    (7, Program::append_and_sync),
    (12, Program::sync),
    (4, Program::claim),
    (8, Program::consumer_commit),
    (4, Program::consumer_sync),
    (2, Program::leave),
    (4, Program::commit),
    (5, Program::seek),
    (2, Program::delete_group),
    (4, Program::gc),
    (5, Program::cover_keys),
    (2, Program::seal),
    (2, Program::change_settings),
    (2, Program::read),
    (2, Program::change_writers),
    (2, Program::delete_derived),
    (1, Program::repair),
];

/// A program under way.
pub struct Program {
    pub disk: Arc<SimulatedDisk>,
    pub model: Model,
    random: Seeded,
    log: Option<Log>,
    writers: Vec<Appender>,
    /// With whether they commit.
    consumers: Vec<(Consumer, bool)>,
    values: u64,
    now: i64,
    /// What the last call was, for whoever reads of a failure.
    pub doing: String,
}

/// The log of a disk, told to nobody.
pub fn home(disk: &Arc<SimulatedDisk>, tell: impl Fn(&Note) + Send + Sync + 'static) -> Home {
    Home::new(disk.clone(), DIR, tell)
}

pub fn settings(size: u64) -> Settings {
    Settings { segment_size: Some(size), segment_age: Some(2_000), ..Settings::default() }
}

impl Program {
    /// A program on an empty disk, or on what a power cut left of an earlier one.
    pub fn new(seed: u64, disk: Arc<SimulatedDisk>, model: Model) -> Program {
        let random = Seeded::new(seed);
        let (values, now) = (random.clone().next_u64() >> 20, 1_000_000);
        let (writers, consumers) = (Vec::new(), Vec::new());
        let doing = String::new();
        Program { disk, model, random, log: None, writers, consumers, values, now, doing }
    }

    /// Does so many things. Sometimes the process is killed in the midst of one.
    pub fn run(&mut self, calls: usize) -> Result<(), String> {
        self.open(Ending::PowerCut)?;
        for _ in 0..calls {
            let before = self.disk.steps();
            self.call().map_err(|what| format!("{}: {what}", self.doing))?;
            // The calls with many steps are those with something to leave half done.
            let often = if self.disk.steps() - before > 6 { 2 } else { 12 };
            if self.random.one_in(often) {
                let at = self.random.between(before as u64, self.disk.steps() as u64);
                self.kill(at as usize).map_err(|what| format!("after a kill: {what}"))?;
            }
        }
        Ok(())
    }

    fn create(&mut self) -> Result<(), String> {
        self.doing = "create".to_owned();
        let size = *self.pick(&[512, 700, 1024, 4096]);
        self.model.begin_creation(self.disk.steps());
        let home = home(&self.disk, |_| ());
        let log = Log::open_or_create(&home, LogId::new(1), &settings(size));
        let log = log.map_err(words("create"))?;
        self.model.created(self.disk.steps());
        self.log = Some(log);
        Ok(())
    }

    /// Opens what is there after a crash, and sees what is left of what was not promised.
    pub fn open(&mut self, ending: Ending) -> Result<(), String> {
        let log = match Log::open(&home(&self.disk, |_| ())) {
            Err(Error::NoLog(_) | Error::NotALog { .. }) => return Ok(()),
            opened => opened.map_err(words("open"))?,
        };
        self.writers = vec![Appender::open(&log).map_err(words("open a writer"))?];
        let bounds = log.bounds().map_err(words("bounds"))?;
        let found = Found { end: bounds.end.get(), groups: groups(&log)? };
        self.model.reopened(self.disk.steps(), &found, ending);
        self.log = Some(log);
        Ok(())
    }

    /// The process is killed when the journal has this length, and another one comes.
    pub fn kill(&mut self, at: usize) -> Result<(), String> {
        self.die(at);
        self.open(Ending::Killed)
    }

    /// The same, but nobody comes yet.
    pub fn die(&mut self, at: usize) {
        self.writers.clear();
        self.consumers.clear();
        self.log = None;
        let mut player = self.disk.crash_player();
        player.go_to(at);
        self.disk = Arc::new(player.killed());
        self.model.killed_at(at);
    }

    /// Does one thing; the first is to make a log where there is none.
    pub fn call(&mut self) -> Result<(), String> {
        if self.log.is_none() {
            return self.create();
        }
        self.now += self.random.below(60) as i64;
        if self.random.one_in(30) {
            self.now -= 500;
        }
        let mut drawn = self.random.below(VERBS.iter().map(|(often, _)| often).sum());
        for (often, verb) in VERBS {
            if drawn < often {
                return verb(self);
            }
            drawn -= often;
        }
        Ok(())
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.random.below(from.len() as u64) as usize]
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now)
    }

    fn log(&self) -> Result<Log, String> {
        self.log.clone().ok_or_else(|| "no log".to_owned())
    }

    fn writer(&mut self) -> Result<usize, String> {
        if self.writers.is_empty() {
            let writer = Appender::open(&self.log()?).map_err(words("open a writer"))?;
            self.writers.push(writer);
        }
        Ok(self.random.below(self.writers.len() as u64) as usize)
    }

    fn values(&mut self) -> Vec<Vec<u8>> {
        let count = self.random.between(1, 4);
        let longest = *self.pick(&[4, 60, 300]);
        // Now and then with a newline, which needs columns.
        let first = if self.random.one_in(8) { b'\n' } else { b' ' };
        let value = |_| {
            self.values += 1;
            let length = self.random.below(longest) as usize;
            let filler = self.random.bytes(length).into_iter().map(|byte| byte % 64 + first);
            format!("v{} ", self.values).into_bytes().into_iter().chain(filler).collect()
        };
        (0..count).map(value).collect()
    }

    fn append(&mut self) -> Result<(), String> {
        let number = self.writer()?;
        let values = self.values();
        self.doing = format!("append {} records by writer {number}", values.len());
        let keys: [Option<&[u8]>; 6] = [Some(b"key"), Some(b"other"), Some(b""), None, None, None];
        let key = *self.pick(&keys);
        let values_to_give = values.clone();
        let content = |value| Content { key, ..Content::of_value(value) };
        let contents: Vec<_> = values_to_give.iter().map(|value| content(value)).collect();
        let mut bytes = Vec::new();
        let layout = body::encode(&contents, &mut bytes);
        let body = Body::plain(layout, values.len() as u32, &bytes);
        let codec = match self.random.below(16) {
            0 => Compression::Zstd(1),
            1..6 => Compression::Lz4,
            _ => Compression::None,
        };
        self.writers[number].compress(codec);
        self.model.begin_append(self.disk.steps(), values);
        let base = self.model.end;
        let now = self.now();
        let appended = self.writers[number].append(&body, now).map_err(words("append"))?;
        self.model.appended(self.disk.steps());
        let got = (appended.base.get(), appended.next.get());
        match got == (base, self.model.end) {
            true => Ok(()),
            false => Err(format!("appended at {got:?}, not at {:?}", (base, self.model.end))),
        }
    }

    fn append_and_sync(&mut self) -> Result<(), String> {
        self.append()?;
        self.sync()
    }

    fn sync(&mut self) -> Result<(), String> {
        let number = self.writer()?;
        self.doing = format!("sync by writer {number}");
        let end = self.writers[number].sync().map_err(words("sync"))?;
        self.model.synced(self.disk.steps(), end.get());
        Ok(())
    }

    /// A group that no consumer of this program has.
    fn free_group(&mut self) -> Option<GroupName> {
        let name: GroupName = self.pick(&GROUPS).parse().ok()?;
        self.consumers.iter().all(|(consumer, _)| *consumer.group() != name).then_some(name)
    }

    fn start(&mut self) -> Start {
        match self.random.below(5) {
            0 => Start::Latest,
            1 => Start::Last(self.random.below(9)),
            2 => Start::AfterStart(self.random.below(9)),
            3 => Start::Time(Timestamp::from_millis(self.now - self.random.below(3000) as i64)),
            _ => Start::Earliest,
        }
    }

    fn claim(&mut self) -> Result<(), String> {
        let Some(group) = self.free_group().filter(|_| self.consumers.len() < 2) else {
            return Ok(());
        };
        self.doing = format!("claim {group}");
        let log = self.log()?;
        let mut claim = Claim {
            start: self.start(),
            out_of_range: None,
            commits: !self.random.one_in(6),
            holder: "power_cut".to_owned(),
        };
        let known = log.group_position(&group).map_err(words("group_position"))?;
        if known.is_none() {
            let Ok(next) = log.resolve(claim.start) else { return Ok(()) };
            claim.start = Start::At(next);
            self.model.begin_placing(self.disk.steps(), &group, Some(next.get()));
        }
        let consumer = Consumer::claim(&log, &group, &claim, self.now()).map_err(words("claim"))?;
        if known.is_none() {
            self.model.kept(self.disk.steps(), &group);
        }
        self.consumers.push((consumer, claim.commits));
        Ok(())
    }

    fn consumer_commit(&mut self) -> Result<(), String> {
        let (log, now, end) = (self.log()?, self.now(), self.model.end);
        let start = log.start().map_err(words("start"))?.get();
        let Some((consumer, commits)) = self.consumers.last_mut() else { return Ok(()) };
        let position = consumer.position().get();
        let next = self.random.between(position, end);
        if next <= start || next == position {
            return Ok(());
        }
        let group = consumer.group().clone();
        self.doing = format!("commit {group} at {next} by its consumer");
        let before = append_time(&log, next - 1)?;
        if *commits {
            self.model.begin_placing(self.disk.steps(), &group, Some(next));
        }
        consumer.commit(Offset::new(next), before, now).map_err(words("commit"))?;
        if *commits {
            self.model.placed(self.disk.steps(), &group);
        }
        Ok(())
    }

    fn consumer_sync(&mut self) -> Result<(), String> {
        let Some((consumer, commits)) = self.consumers.last_mut() else { return Ok(()) };
        let group = consumer.group().clone();
        self.doing = format!("sync the checkpoint of {group}");
        consumer.sync().map_err(words("sync"))?;
        if *commits {
            self.model.kept(self.disk.steps(), &group);
        }
        Ok(())
    }

    fn leave(&mut self) -> Result<(), String> {
        if !self.consumers.is_empty() {
            self.consumers.remove(0);
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), String> {
        let Some(group) = self.free_group() else { return Ok(()) };
        let log = self.log()?;
        let start = log.start().map_err(words("start"))?.get();
        let known = log.group_position(&group).map_err(words("group_position"))?;
        let least = known.map_or(start, |next| next.get());
        let next = self.random.between(least, self.model.end);
        self.doing = format!("commit {group} at {next}");
        self.model.begin_placing(self.disk.steps(), &group, Some(next));
        log.commit(&group, Offset::new(next), self.now()).map_err(words("commit"))?;
        self.model.kept(self.disk.steps(), &group);
        Ok(())
    }

    fn seek(&mut self) -> Result<(), String> {
        let Some(group) = self.free_group() else { return Ok(()) };
        let target = match self.random.below(6) {
            0 => SeekTarget::Current,
            1 | 2 => SeekTarget::Undo,
            3 => SeekTarget::By(self.random.between(0, 40) as i64 - 20),
            4 => SeekTarget::Group(self.pick(&GROUPS).parse().map_err(|_| "name")?),
            _ => SeekTarget::To(self.start()),
        };
        self.doing = format!("seek {group} to {target:?}");
        let log = self.log()?;
        let plan = match log.plan_seek(&group, &target) {
            Err(Error::OutOfRange(_) | Error::NoGroup(_) | Error::NothingToUndo(_)) => {
                return Ok(());
            }
            plan => plan.map_err(words("plan_seek"))?,
        };
        self.model.begin_placing(self.disk.steps(), &group, Some(plan.to.get()));
        let moved = log.seek(&group, &target, self.now()).map_err(words("seek"))?;
        self.model.kept(self.disk.steps(), &group);
        if moved == plan { Ok(()) } else { Err(format!("{moved:?}, planned {plan:?}")) }
    }

    fn delete_group(&mut self) -> Result<(), String> {
        let Some(group) = self.free_group() else { return Ok(()) };
        self.doing = format!("delete {group}");
        let log = self.log()?;
        if log.group_position(&group).map_err(words("group_position"))?.is_none() {
            return Ok(());
        }
        self.model.begin_placing(self.disk.steps(), &group, None);
        log.delete_group(&group).map_err(words("delete_group"))?;
        self.model.kept(self.disk.steps(), &group);
        Ok(())
    }

    fn gc(&mut self) -> Result<(), String> {
        self.doing = "gc".to_owned();
        let log = self.log()?;
        let before = log.start().map_err(words("start"))?;
        let start = |collection: &Collection| {
            let stays = collection.fates.iter().find(|fate| !fate.reason.deletes());
            stays.map_or(before, |fate| fate.segment.base)
        };
        let planned = start(&log.plan_collection().map_err(words("plan_collection"))?);
        self.model.begin_gc(self.disk.steps(), planned.get());
        // Of a checkpoint that is held, gc itself may count an older line than the plan does.
        let went = start(&log.collect().map_err(words("collect"))?);
        self.model.collected(self.disk.steps(), went.get());
        let now = log.start().map_err(words("start"))?;
        let as_said = now == went && went <= planned;
        if as_said { Ok(()) } else { Err(format!("log start is {now}, planned {planned}")) }
    }

    fn seal(&mut self) -> Result<(), String> {
        let roll = self.random.coin();
        self.doing = format!("seal, roll {roll}");
        self.log()?.seal_active(roll, self.now()).map_err(words("seal"))
    }

    /// Builds tables of the key index, and merges them.
    fn cover_keys(&mut self) -> Result<(), String> {
        self.doing = "cover keys".to_owned();
        let log = self.log()?;
        log.cover_keys().map_err(words("cover_keys"))?;
        check_keys(&log)
    }

    fn change_settings(&mut self) -> Result<(), String> {
        self.doing = "change settings".to_owned();
        let mut log = self.log()?;
        let size = *self.pick(&[512, 700, 1024, 4096]);
        let change = |settings: &mut Settings| -> Result<(), Error> {
            settings.segment_size = Some(size);
            settings.segment_age = Some(u64::from(size > 512) * 1_000 + 1_000);
            Ok(())
        };
        log.change_settings(change).map_err(words("change_settings"))?;
        self.log = Some(log);
        Ok(())
    }

    /// Nothing is damaged, so there is little to mend; but it does what a writer does.
    fn repair(&mut self) -> Result<(), String> {
        self.doing = "verify --repair".to_owned();
        let repair = self.log()?.repair(self.now(), &mut |_| ()).map_err(words("repair"))?;
        match repair.before.damaged() + repair.after.damaged() {
            0 => Ok(()),
            _ => Err(format!("damage found: {repair:?}")),
        }
    }

    fn read(&mut self) -> Result<(), String> {
        self.doing = "read".to_owned();
        let read = read_all(&self.log()?)?;
        let expected = self.model.at(usize::MAX, Ending::Killed);
        let end = read.start + read.values.len() as u64;
        if end != self.model.end {
            return Err(format!("read up to {end}, not {}", self.model.end));
        }
        compare(&read, &expected.values)
    }

    fn change_writers(&mut self) -> Result<(), String> {
        if self.writers.len() > 2 || (!self.writers.is_empty() && self.random.one_in(3)) {
            self.writers.remove(0);
            return Ok(());
        }
        self.doing = "open a writer".to_owned();
        let writer = Appender::open(&self.log()?).map_err(words("open a writer"))?;
        self.writers.push(writer);
        Ok(())
    }

    /// Files that anyone may remove at any time: the table of segments, and indexes.
    fn delete_derived(&mut self) -> Result<(), String> {
        let dir = Path::new(DIR);
        let names = |dir: &Path, suffix| {
            let mut names = self.disk.names(dir).unwrap_or_default();
            names.retain(|name: &String| name.ends_with(suffix));
            names.into_iter().map(|name| dir.join(name)).collect::<Vec<_>>()
        };
        let files = [names(dir, ".index"), names(&dir.join("keys"), ".table")].concat();
        if files.is_empty() {
            return Ok(());
        }
        let file = self.pick(&files).clone();
        self.doing = format!("delete {}", file.display());
        // A disk that refuses is as good: what is there may stay.
        let _ = self.disk.remove_file(&file);
        Ok(())
    }
}
