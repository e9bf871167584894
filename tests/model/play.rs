//! Plays calls on a log and on the model, and holds one against the other.

use std::path::Path;
use std::sync::Arc;

use tapelog::disk::Disk;
use tapelog::disk::simulated::SimulatedDisk;
use tapelog::format::batch::Layout;
use tapelog::format::body::{self, Body};
use tapelog::format::codec::Compression;
use tapelog::format::record::{Content, Headers, push_header};
use tapelog::format::settings::Settings;
use tapelog::log::{Appender, Consumer, Error, Home, Log, OutOfRange};
use tapelog::model::{LogId, Offset, Start, Timestamp};

use crate::call::{Call, Given, Number, Packed, Place, Share, Value, WRITERS};
use crate::plain::{Kept, Plain, Record};
use crate::reading::{compare, read, read_back, words};

const DIR: &str = "/log";

/// A log under way, and the model of it.
pub struct Play {
    pub disk: Arc<SimulatedDisk>,
    pub plain: Plain,
    /// The model before the last call that changed something, and the length of the
    /// disk's journal then.
    pub before: (Plain, usize),
    pub now: Timestamp,
    log: Option<Log>,
    writers: [Option<Appender>; WRITERS],
    /// With whether it commits.
    pub consumer: Option<(Consumer, bool)>,
    values: u64,
}

impl Play {
    pub fn new() -> Play {
        let plain = Plain::new(512);
        Play {
            disk: Arc::new(SimulatedDisk::new()),
            before: (plain.clone(), 0),
            plain,
            now: Timestamp::from_millis(1_000_000),
            log: None,
            writers: [None, None],
            consumer: None,
            values: 0,
        }
    }

    /// Does what `call` says and compares.
    pub fn call(&mut self, call: &Call) -> Result<(), String> {
        match call {
            Call::Kill(at) => return self.kill(*at),
            Call::PowerCut { at, seed, style } => return self.cut_power(*at, *seed, *style),
            _ => self.before = (self.plain.clone(), self.disk.steps()),
        }
        self.pass(10);
        match call {
            Call::Append { writer, records, packed } => self.append(*writer, records, *packed),
            Call::AppendIfEnd { writer, right } => self.append_if_end(*writer, *right),
            Call::Sync(writer) => self.sync(*writer),
            Call::CloseWriter(writer) => self.close_writer(*writer),
            Call::Reopen => self.reopen(),
            Call::Read(place) => self.read(self.start(*place)),
            Call::ReadBack { from, until } => self.read_back(*from, *until),
            Call::Claim { group, new_at, commits } => self.claim(*group, *new_at, *commits),
            Call::Consume(share) => self.consume(*share),
            Call::SyncCheckpoint => self.sync_checkpoint(),
            Call::Leave => self.leave(),
            Call::Commit { group, to } => self.commit(*group, *to),
            Call::Seek { group, target } => self.seek(*group, *target),
            Call::Delete(group) => self.delete(*group),
            Call::Gc => self.gc(),
            Call::Seal { roll } => self.seal(*roll),
            Call::Settings { segment_size, packed } => self.settings(*segment_size, *packed),
            Call::List => self.list(),
            Call::DeleteDerived(share) => self.delete_derived(*share),
            Call::ClockSteps(millis) => self.clock_steps(*millis),
            Call::Kill(_) | Call::PowerCut { .. } => Ok(()),
        }
    }

    fn pass(&mut self, millis: i64) {
        self.now = Timestamp::from_millis(self.now.as_millis() + millis);
    }

    fn clock_steps(&mut self, millis: i16) -> Result<(), String> {
        self.pass(i64::from(millis));
        Ok(())
    }

    pub fn home(&self) -> Home {
        Home::new(self.disk.clone(), DIR, |_| ())
    }

    /// The log; made now if there is none.
    pub fn log(&mut self) -> Result<Log, String> {
        if let Some(log) = &self.log {
            return Ok(log.clone());
        }
        let home = self.home();
        let is_new = Log::open(&home).is_err();
        let size = Some(self.plain.segment_size);
        let settings =
            Settings { segment_size: size, segment_age: Some(2_000), ..Settings::default() };
        let log = Log::open_or_create(&home, LogId::new(1), &settings).map_err(words("create"))?;
        self.plain.made |= is_new;
        self.log = Some(log.clone());
        Ok(log)
    }

    /// All that a process has goes with it.
    pub fn forget(&mut self) {
        self.log = None;
        self.writers = [None, None];
        self.consumer = None;
    }

    fn reopen(&mut self) -> Result<(), String> {
        self.forget();
        self.log().map(drop)
    }

    /// Everything at once: used at the end, and after a crash.
    pub fn compare_all(&mut self) -> Result<(), String> {
        self.read(Start::Earliest)?;
        self.read_back(0, Share::MAX)?;
        self.list()
    }

    pub fn start(&self, place: Place) -> Start {
        let back = |millis: i16| Timestamp::from_millis(self.now.as_millis() - i64::from(millis));
        match place {
            Place::Earliest => Start::Earliest,
            Place::Latest => Start::Latest,
            Place::At(share) => Start::At(Offset::new(share_of(share, self.plain.end() + 3))),
            Place::Last(count) => Start::Last(count.into()),
            Place::AfterStart(count) => Start::AfterStart(count.into()),
            Place::Ago(millis) => Start::Time(back(millis)),
        }
    }

    fn read(&mut self, start: Start) -> Result<(), String> {
        let log = self.log()?;
        let (found, expected) = (read(&log, start)?, self.plain.resolve(start));
        match (found, expected) {
            (Ok((first, records)), Some(from)) if first == from => {
                compare(&records, &self.plain.slice(from, self.plain.end()), from)
            }
            (Err(Error::OutOfRange(_)), None) => Ok(()),
            (Ok((first, _)), expected) => {
                Err(format!("{start:?} begins at {first}, not {expected:?}"))
            }
            (Err(error), _) => {
                Err(format!("{start:?}, which is {expected:?}: {error} [{error:?}]"))
            }
        }
    }

    fn read_back(&mut self, from: Share, until: Share) -> Result<(), String> {
        let log = self.log()?;
        let (start, end) = (self.plain.start, self.plain.end());
        let place = |share| start + share_of(share, end - start);
        let (from, until) = (place(from.min(until)), place(from.max(until)));
        compare(&read_back(&log, from, until)?, &self.plain.slice(from, until), from)
    }

    fn writer(&mut self, number: Number) -> Result<&mut Appender, String> {
        let log = self.log()?;
        let slot = &mut self.writers[number];
        match slot {
            Some(writer) => Ok(writer),
            None => Ok(slot.insert(Appender::open(&log).map_err(words("open a writer"))?)),
        }
    }

    fn close_writer(&mut self, number: Number) -> Result<(), String> {
        self.writers[number] = None;
        Ok(())
    }

    fn append(&mut self, writer: Number, given: &[Given], packed: Packed) -> Result<(), String> {
        let records: Vec<Record> = given.iter().map(|given| self.record(*given)).collect();
        let contents: Vec<Content<'_>> = records.iter().map(content).collect();
        let mut bytes = Vec::new();
        let layout = body::encode(&contents, &mut bytes);
        let body = Body::plain(layout, records.len() as u32, &bytes);
        let now = self.now;
        let writer = self.writer(writer)?;
        writer.compress(compression(packed));
        let appended = writer.append(&body, now).map_err(words("append"))?;
        let base = self.plain.end();
        let got = (appended.base.get(), appended.next.get());
        if got != (base, base + records.len() as u64) {
            return Err(format!("appended at {got:?}, the end was {base}"));
        }
        self.note_appended(records)
    }

    /// The time of a batch is the clock's, unless an earlier one is later.
    fn note_appended(&mut self, mut records: Vec<Record>) -> Result<(), String> {
        let (log, batch) = (self.log()?, self.plain.end());
        let last = read(&log, Start::At(Offset::new(batch)))?.map_err(words("read it"))?.1;
        let time = last.last().ok_or("what was appended is not there")?.append_time;
        let (least, most) = self.plain.time;
        if time < self.now.max(least) || time > self.now.max(most) {
            return Err(format!("appended at {time:?}, now {:?}, {least:?}, {most:?}", self.now));
        }
        self.plain.time = (time, time);
        for mut record in records.drain(..) {
            record.append_time = time;
            self.plain.records.push(Kept { record: Arc::new(record), batch });
        }
        Ok(())
    }

    fn append_if_end(&mut self, writer: Number, right: bool) -> Result<(), String> {
        let value = Given { value: Value::Short, has_key: false, headers: 0, own_time: None };
        let record = self.record(value);
        let bytes = [record.value.as_deref().unwrap_or_default(), b"\n"].concat();
        let body = Body::plain(Layout::Lines, 1, &bytes);
        let expected = Offset::new(self.plain.end() + u64::from(!right));
        let now = self.now;
        match (self.writer(writer)?.append_if_end(expected, &[body], now), right) {
            (Ok(_), true) => self.note_appended(vec![record]),
            (Err(Error::OutOfRange(OutOfRange::EndMoved { .. })), false) => Ok(()),
            (other, _) => Err(format!("append if the end is {expected}: {other:?}")),
        }
    }

    fn sync(&mut self, number: Number) -> Result<(), String> {
        let end = self.plain.end();
        let synced = self.writer(number)?.sync().map_err(words("sync"))?.get();
        self.plain.promise(synced);
        if synced <= end { Ok(()) } else { Err(format!("synced up to {synced} of {end}")) }
    }

    fn seal(&mut self, roll: bool) -> Result<(), String> {
        self.log()?.seal_active(roll, self.now).map_err(words("seal"))?;
        if roll {
            self.plain.promise(self.plain.end());
        }
        Ok(())
    }

    fn settings(&mut self, size: u64, packed: Packed) -> Result<(), String> {
        let mut log = self.log()?;
        let change = |settings: &mut Settings| -> Result<(), Error> {
            settings.segment_size = Some(size);
            settings.compression = Some(compression(packed));
            Ok(())
        };
        log.change_settings(change).map_err(words("change settings"))?;
        let stored = Log::open(&self.home()).map_err(words("open"))?;
        let same = stored.settings() == log.settings() && stored.settings().segment_size() == size;
        self.plain.segment_size = size;
        self.log = Some(log);
        if same { Ok(()) } else { Err(format!("the settings are {:?}", stored.settings())) }
    }

    fn delete_derived(&mut self, share: Share) -> Result<(), String> {
        self.log()?;
        let mut names = self.disk.names(Path::new(DIR)).unwrap_or_default();
        names.retain(|name| name.ends_with(".index"));
        let number = share_of(share, names.len().saturating_sub(1) as u64) as usize;
        let Some(name) = names.get(number) else { return Ok(()) };
        self.disk.remove_file(&Path::new(DIR).join(name)).map_err(|error| error.to_string())
    }

    fn record(&mut self, given: Given) -> Record {
        self.values += 1;
        let text = format!("v{}", self.values);
        let mut headers = Vec::new();
        for header in 0..given.headers {
            push_header(b"name", (header == 0).then_some(&b"value"[..]), &mut headers);
        }
        Record {
            key: given.has_key.then(|| format!("k{}", self.values % 3).into_bytes()),
            value: match given.value {
                Value::Null => None,
                Value::Empty => Some(Vec::new()),
                Value::Short => Some(text.into_bytes()),
                Value::WithNewlines => Some(format!("\n{text}\n\n").into_bytes()),
                Value::Long(kib) => Some(text.repeat(usize::from(kib) * 1024 / text.len()).into()),
            },
            headers,
            own_time: given.own_time.map(|millis| Timestamp::from_millis(millis.into())),
            append_time: Timestamp::default(),
        }
    }
}

fn content(record: &Record) -> Content<'_> {
    Content {
        key: record.key.as_deref(),
        value: record.value.as_deref(),
        headers: Headers::in_block(&record.headers),
        own_time: record.own_time,
    }
}

fn compression(packed: Packed) -> Compression {
    match packed {
        Packed::No => Compression::None,
        Packed::Lz4 => Compression::Lz4,
        Packed::Zstd => Compression::Zstd(1),
    }
}

/// That share of `whole`; all of it for the largest.
pub fn share_of(share: Share, whole: u64) -> u64 {
    whole * u64::from(share) / u64::from(Share::MAX)
}
