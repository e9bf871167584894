//! `tapelog produce`: append records from stdin or files.

use std::ffi::OsString;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::cli::delimiter::Delimiter;
use crate::cli::failure::Usage;
use crate::cli::session::{LogArgument, Session, new_log_id};
use crate::cli::stream::framing::{BatchLimits, Framer};
use crate::cli::stream::input::Input;
use crate::cli::stream::producer::Producer;
use crate::cli::stream::progress::Progress;
use crate::cli::stream::promise::{Oversized, Policy, SyncPolicy};
use crate::cli::stream::shape::{Keys, Shape};
use crate::cli::stream::signals::Signals;
use crate::cli::stream::unique::Unique;
use crate::cli::text::escapes::unescape;
use crate::cli::text::filter::parse_header;
use crate::cli::text::range::parse_offset;
use crate::format::batch::MAX_BATCH;
use crate::format::codec::Compression;
use crate::format::record::push_header;
use crate::format::settings::Settings;
use crate::log::{Appender, Log};
use crate::model::Offset;

/// Append records from stdin or files
///
/// Every line of the input becomes a record: the bytes between newlines, nothing
/// trimmed, nothing split. A line that arrives alone is appended at once. The log is
/// made if there is nothing at its path. produce ends with 0 only once every record
/// is safe: synced to the disk (with --sync none, only written).
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  seq 5 | tapelog produce demo              append five records
  tapelog produce demo access.log -         a file, then stdin
  find . -print0 | tapelog produce demo -0  file names, newlines and all
  tapelog produce demo --receipt <orders    each offset once it is safe
  tapelog produce demo -K : -z zstd <pairs  keys before the first colon
  tapelog consume a -J | tapelog produce b -J   whole records, as JSON
  tapelog produce demo --whole photo.jpg    a file as one record
  echo 1 | tapelog produce demo --expect-end 7  only if nobody was faster
  tapelog produce demo -K : --unique <orders    each id once, however often

With --unique:
  A key is new if the log holds no record of it, not even a tombstone. What
  equals a record that is there, headers and own time too, is not stored
  again, and a note counts it. Other content for a key that is there is not
  stored, and produce ends with 9. So an input that was cut off, or is sent
  by several at once, may be sent again: each key is stored once.
  --receipt prints the offset of the record that is there, --tee nothing.
  A record without a key, or with an empty one, ends it with 2.

JSON names:
  key, headers, payload, ts  as consume -J prints them; or key_base64,
                             headers_base64, payload_base64
  offset, next, append_ts    ignored

What a power cut can lose:
  --sync 1s    the last second before the cut, while produce still ran
  --sync each  the batch that was being appended
  --sync none  whatever the system had not written by itself yet
  A produce that is killed loses only what it had not appended.
")]
pub struct Produce {
    #[command(flatten)]
    log: LogArgument,

    /// Files to append, one after the other; - is stdin, as is no FILE
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    files: Vec<OsString>,

    #[command(flatten)]
    delimiter: Delimiter,

    /// The key of every record
    #[arg(
        short,
        long,
        value_name = "KEY",
        conflicts_with = "key_separator",
        allow_hyphen_values = true
    )]
    key: Option<String>,

    /// Split each record into key and value at the first SEP; escapes as for -D
    #[arg(
        short = 'K',
        long,
        value_name = "SEP",
        conflicts_with = "json",
        allow_hyphen_values = true
    )]
    key_separator: Option<String>,

    /// With -K: what becomes of a record without SEP, instead of an error
    #[arg(long, value_name = "WHAT", requires = "key_separator")]
    no_key: Option<Kept>,

    /// A header of every record; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME=VALUE", allow_hyphen_values = true)]
    headers: Vec<String>,

    /// An empty value is a tombstone: null
    #[arg(short = 'Z', long)]
    tombstone: bool,

    /// All of stdin, or each file, is one record
    #[arg(long, conflicts_with_all = ["delimiter", "null", "json"])]
    whole: bool,

    /// Each line is a record in JSON, as consume -J prints it
    #[arg(short = 'J', long, conflicts_with_all = ["delimiter", "null"])]
    json: bool,

    /// Compress with none, lz4, zstd or zstd:LEVEL [default: the log's setting]
    #[arg(short = 'z', long, value_name = "CODEC")]
    compression: Option<Compression>,

    /// What becomes of a record that is too big, instead of an error: ends with 9
    #[arg(long, value_name = "WHAT")]
    oversize: Option<Skipped>,

    /// Store a record only if its key has none yet; its key with other content: 9
    #[arg(short, long)]
    unique: bool,

    /// Append only if the log end is N, else end with 6
    #[arg(long, value_name = "N", value_parser = parse_offset)]
    expect_end: Option<Offset>,

    /// Print each record's value once it is stored
    #[arg(short = 'T', long, conflicts_with = "receipt")]
    tee: bool,

    /// Sync every DUR and at the end, or after each batch, or never
    #[arg(long, value_name = "DUR|each|none", default_value = "1s")]
    sync: SyncPolicy,

    /// Print each record's offset once it is safe
    #[arg(long)]
    receipt: bool,

    /// At most so many records a batch, for tests
    #[arg(long, hide = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    batch_records: Option<u32>,
}

/// More open files than the log and the process need beside the inputs.
const OWN_HANDLES: u64 = 64;

/// So many keys are looked up together at most: what is known of each takes memory.
const KEYS_AT_ONCE: usize = 32 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kept {
    Keep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Skipped {
    Skip,
}

impl Produce {
    fn shape(&self, limit: usize) -> Result<Shape> {
        let keyless = self.key_separator.is_none() && self.key.as_deref().unwrap_or("").is_empty();
        if self.unique && keyless && (!self.json || self.key.is_some()) {
            bail!(Usage("--unique goes by the keys: give them with -k, -K or -J".to_owned()));
        }
        let keys = match (&self.key, &self.key_separator) {
            (Some(key), _) => Keys::Fixed(key.as_bytes().to_vec()),
            (None, Some(text)) => {
                let separator =
                    unescape(text).map_err(|why| Usage(format!("--key-separator: {why}")))?;
                if separator.is_empty() {
                    bail!(Usage("--key-separator is empty: give at least one character".into()));
                }
                Keys::Split { separator, keep: self.no_key.is_some() }
            }
            (None, None) => Keys::None,
        };
        let mut headers = Vec::new();
        for text in &self.headers {
            let parsed = parse_header(text).map_err(|why| Usage(format!("--header: {why}")));
            let (name, value) = parsed?;
            push_header(&name, Some(&value), &mut headers);
        }
        let (json, needs_key, tombstones) = (self.json, self.unique, self.tombstone);
        Ok(Shape { json, keys, needs_key, headers, tombstones, limit })
    }

    /// The delimiter; empty makes each input one record.
    fn delimiter(&self) -> Result<Vec<u8>> {
        if self.whole { Ok(Vec::new()) } else { self.delimiter.bytes() }
    }

    fn limits(&self, appender: &Appender, record: usize) -> BatchLimits {
        // Without others' records in between; and many keys are looked up at less cost.
        let at_once = self.expect_end.is_some() || (self.unique && self.sync != SyncPolicy::Each);
        let bytes = if at_once { MAX_BATCH / 2 } else { appender.batch_room() };
        let most = if self.unique { KEYS_AT_ONCE } else { usize::MAX };
        let records = self.batch_records.map_or(most, |records| most.min(records as usize));
        BatchLimits { bytes, records, record }
    }
}

/// Runs the command.
///
/// # Errors
/// Whatever ends it early; what was read as whole records before is stored.
pub fn run(args: &Produce, session: &Session) -> Result<()> {
    let delimiter = args.delimiter()?;
    // Checks what was typed; the log's own limit is not known yet.
    args.shape(usize::MAX)?;
    session.now()?;
    // Before the log is made: a name mistyped makes no log.
    let inputs = open_inputs(&args.files)?;
    let signals = Signals::watch().context("can't watch for signals")?;
    let home = session.home(&args.log)?;
    if let Some(input) = inputs.iter().find(|input| input.is_file_of(home.dir())) {
        let (name, dir) = (input.name(), home.dir().display());
        bail!("can't append {name}: it lies in the directory of the log {dir} itself, which grows");
    }
    let log = Log::open_or_create(&home, new_log_id()?, &Settings::default())?;
    let mut appender = Appender::open(&log)?;
    appender.cover_keys_beside();
    if let Some(compression) = args.compression {
        appender.compress(compression);
    }
    let limit = log.settings().max_record_size() as usize;
    let total = inputs.iter().map(Input::size).sum();
    let is_typed = inputs.iter().any(Input::is_terminal);
    let policy = Policy {
        sync: args.sync,
        receipts: args.receipt,
        tee: args.tee.then_some(delimiter.clone()),
        oversized: args.oversize.map_or(Oversized::Refuse, |Skipped::Skip| Oversized::Skip),
        expected_end: args.expect_end,
    };
    let shape = args.shape(limit)?;
    let limits = args.limits(&appender, shape.longest_piece());
    let framer = Framer::new(&delimiter, limits);
    let progress = Progress::of_bytes("appending", total, !is_typed);
    let mut producer = Producer::new(session, appender, framer, shape, policy, signals, progress)?;
    if args.unique {
        producer.append_only_new(Unique::of(&log)?);
    }
    producer.run(&inputs)
}

fn open_inputs(files: &[OsString]) -> Result<Vec<Input>> {
    allow_handles(files.len() as u64);
    match files.is_empty() {
        true => Ok(vec![Input::open(&OsString::from("-"))?]),
        false => files.iter().map(Input::open).collect(),
    }
}

/// Asks the system for as many open files as it grants, if so many inputs need it.
/// Should it refuse, opening them says what is wrong.
fn allow_handles(inputs: u64) {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < inputs.saturating_add(OWN_HANDLES)) {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }
}
