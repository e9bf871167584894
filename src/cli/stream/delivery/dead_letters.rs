//! Where records go that a command can't handle: a log of their own, with headers that
//! say what happened. They are synced there before the group's checkpoint passes them,
//! and the checkpoint is stored right after that. To be killed in between leaves dead
//! letters that the next run would add again: it knows them by their headers, at the end
//! of that log.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use anyhow::{Context, Result, bail};

use crate::cli::failure::Usage;
use crate::cli::session::new_log_id;
use crate::cli::stream::gather::Gathered;
use crate::format::body::Body;
use crate::format::record::{Content, Headers, RecordView, push_header};
use crate::format::settings::Settings;
use crate::log::{Appender, BackReader, Home, Log};
use crate::model::{GroupName, Timestamp};

const REASON: &[u8] = b"tapelog-reason";
const ATTEMPTS: &[u8] = b"tapelog-attempts";
const OFFSET: &[u8] = b"tapelog-offset";
const GROUP: &[u8] = b"tapelog-group";

/// Gathered records are appended when they have so many bytes.
const ROOM: usize = 1 << 20;

/// The log of one group's dead letters.
#[derive(Debug)]
pub struct DeadLetters {
    home: Home,
    group: GroupName,
    /// When the group's checkpoint was stored last before this run.
    stored: Timestamp,
    /// Once the first came: the writer, and those that were there already.
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    appender: Appender,
    /// What a run that was killed has added already.
    known: HashSet<Identity>,
    /// What is to be appended.
    gathered: Gathered,
}

/// Why a record could not be handled.
#[derive(Clone, Debug)]
pub struct Reason {
    /// How the last attempt ended.
    pub how: String,
    /// How many there were.
    pub attempts: u64,
}

/// Tells dead letters apart: the record's offset, and a hash of what it is.
type Identity = (u64, u64);

impl DeadLetters {
    /// Those of `group`, a reader of `log` whose checkpoint was stored at `stored`, in the
    /// log at `home`, which is made when it is needed.
    ///
    /// # Errors
    /// [`Usage`] if that is `log` itself.
    pub fn at(home: Home, log: &Log, group: &GroupName, stored: Timestamp) -> Result<DeadLetters> {
        // What can't be opened now may be one that a killed run began to make.
        if Log::open(&home).is_ok_and(|letters| letters.id() == log.id()) {
            bail!(Usage("--dead-letter is LOG itself: give another log".to_owned()));
        }
        Ok(DeadLetters { home, group: group.clone(), stored, open: None })
    }

    /// Adds `record`: its key, value and time, its headers and ours. It is safe only after
    /// [`sync`](Self::sync).
    ///
    /// # Errors
    /// What the disk says.
    pub fn add(&mut self, record: &RecordView<'_>, reason: &Reason, now: Timestamp) -> Result<()> {
        if self.open.is_none() {
            self.open = Some(self.begin()?);
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        let mut headers = record.content.headers.block().to_vec();
        for (name, value) in [
            (REASON, &reason.how),
            (ATTEMPTS, &reason.attempts.to_string()),
            (OFFSET, &record.offset.to_string()),
            (GROUP, &self.group.to_string()),
        ] {
            push_header(name, Some(value.as_bytes()), &mut headers);
        }
        let headers = Headers::in_block(&headers);
        let letter = Content { headers, own_time: Some(record.time()), ..record.content };
        if open.known.contains(&identity(record.offset.get(), &letter)) {
            return Ok(());
        }
        if open.gathered.size() + letter.size() > ROOM {
            open.append(now)?;
        }
        open.gathered.push(&letter);
        Ok(())
    }

    /// Makes safe what was added.
    ///
    /// # Errors
    /// What the disk says.
    pub fn sync(&mut self, now: Timestamp) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        open.append(now)?;
        // What was known already may not be synced yet either.
        open.appender.sync()?;
        Ok(())
    }

    fn begin(&self) -> Result<Open> {
        let log = Log::open_or_create(&self.home, new_log_id()?, &Settings::default())?;
        let appender = Appender::open(&log)?;
        let (known, gathered) = (self.left_by_a_killed_run(&log)?, Gathered::default());
        Ok(Open { appender, known, gathered })
    }

    /// The dead letters that were added since the group's checkpoint was stored.
    fn left_by_a_killed_run(&self, log: &Log) -> Result<HashSet<Identity>> {
        let bounds = log.bounds()?;
        let mut known = HashSet::new();
        let mut reader = BackReader::open(log, bounds.start, bounds.end);
        while let Some(block) = reader.read()? {
            for piece in block.pieces().rev() {
                if piece.header.append_time < self.stored {
                    return Ok(known);
                }
                let records = piece.records();
                let records =
                    records.with_context(|| format!("offset {} can't be read", piece.from))?;
                known.extend(records.filter_map(|record| self.identity_of(&record.content)));
            }
        }
        Ok(known)
    }

    /// Which record a dead letter was, if it is one of this group.
    fn identity_of(&self, letter: &Content<'_>) -> Option<Identity> {
        let group = last_header(letter.headers, GROUP)?;
        let offset = std::str::from_utf8(last_header(letter.headers, OFFSET)?).ok()?;
        let ours = group == self.group.as_str().as_bytes();
        offset.parse().ok().filter(|_| ours).map(|offset| identity(offset, letter))
    }
}

impl Open {
    fn append(&mut self, now: Timestamp) -> Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let records = u32::try_from(self.gathered.len()).unwrap_or(u32::MAX);
        let (layout, bytes) = self.gathered.body();
        self.appender.append(&Body::plain(layout, records, bytes), now)?;
        self.gathered.clear();
        Ok(())
    }
}

fn identity(offset: u64, letter: &Content<'_>) -> Identity {
    let mut hasher = DefaultHasher::new();
    (letter.key, letter.value, letter.own_time).hash(&mut hasher);
    (offset, hasher.finish())
}

/// The value of the last header of this name: a dead letter that died again has more.
fn last_header<'a>(headers: Headers<'a>, name: &[u8]) -> Option<&'a [u8]> {
    headers.filter(|(found, _)| *found == name).last()?.1
}
