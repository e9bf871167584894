//! `tapelog produce`: append records from stdin or files.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::FileType;

use crate::cli::delimiter::Delimiter;
use crate::cli::failure::{Ended, Status};
use crate::cli::session::{LogArgument, Session};
use crate::cli::stream::framing::{BatchLimits, Framer, Oversize};
use crate::cli::stream::output::wait;
use crate::cli::stream::progress::Progress;
use crate::cli::stream::signals::{Signalled, Signals};
use crate::cli::text::duration::parse_duration;
use crate::format::settings::Settings;
use crate::log::{Appended, Appender, Log};
use crate::model::LogId;

/// How far a record that is too large is read to tell its size.
const LONGEST_MEASURED: u64 = 1 << 30;

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

/// When what was appended is synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SyncPolicy {
    Every(Duration),
    Each,
    Never,
}

impl FromStr for SyncPolicy {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "each" => Ok(SyncPolicy::Each),
            "none" => Ok(SyncPolicy::Never),
            _ => parse_duration(text).map(SyncPolicy::Every),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// Whatever ends it early; what was read as whole records before is stored.
pub fn run(args: &Produce, session: &Session) -> Result<()> {
    let delimiter = args.delimiter.bytes()?;
    session.now()?;
    // Before the log is made: a name mistyped makes no log.
    let inputs = open_inputs(&args.files)?;
    let signals = Signals::watch().context("can't watch for signals")?;
    let home = session.home(&args.log)?;
    let log = Log::open_or_create(&home, new_id()?, &Settings::default())?;
    let appender = Appender::open(&log)?;
    let limits = BatchLimits {
        bytes: appender.batch_room(),
        records: args.batch_records.map_or(usize::MAX, |records| records as usize),
        record: log.settings().max_record_size() as usize,
    };
    let total = inputs.iter().map(Input::size).sum();
    let producer = Producer {
        session,
        appender,
        framer: Framer::new(&delimiter, limits),
        signals,
        sync: args.sync,
        receipts: args.receipt.then(Receipts::default),
        unsynced_since: None,
        stored: 0,
        progress: Progress::of_bytes("appending", total, !is_terminal(&inputs)),
    };
    producer.run(&inputs)
}

/// A random number for a log that may be made.
pub(super) fn new_id() -> Result<LogId> {
    let mut bits = [0; 8];
    rustix::rand::getrandom(&mut bits, rustix::rand::GetRandomFlags::empty())
        .context("can't get a random number")?;
    Ok(LogId::new(u64::from_le_bytes(bits)))
}

fn is_terminal(inputs: &[Input]) -> bool {
    inputs.iter().any(|input| rustix::termios::isatty(&input.file))
}

/// An open input and the name it has in messages.
struct Input {
    name: String,
    file: File,
    /// A regular file never has to be waited for.
    is_regular: bool,
}

impl Input {
    fn open(name: &OsString) -> Result<Input> {
        let (shown, file) = if name == "-" {
            let stdin = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3);
            ("standard input".to_owned(), stdin.context("can't read standard input")?.into())
        } else {
            let shown = name.to_string_lossy().into_owned();
            (shown, File::open(name).with_context(|| format!("can't open {}", name.display()))?)
        };
        let stat = rustix::fs::fstat(&file).with_context(|| format!("can't read {shown}"))?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind == FileType::Directory {
            bail!("can't read {shown}: it is a directory; give files");
        }
        Ok(Input { name: shown, file, is_regular: kind == FileType::RegularFile })
    }

    fn size(&self) -> u64 {
        self.file.metadata().map_or(0, |data| if self.is_regular { data.len() } else { 0 })
    }

    /// Whether there is something to read within `limit`, or a signal came first.
    fn is_ready(&self, signals: &Signals, limit: Option<Duration>) -> Result<bool> {
        if self.is_regular {
            return Ok(true);
        }
        let mut fds = [
            PollFd::from_borrowed_fd(self.file.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(signals.handle(), PollFlags::IN),
        ];
        wait(&mut fds, limit)?;
        Ok(!fds[0].revents().is_empty())
    }

    fn read(&self, room: &mut [u8]) -> Result<usize> {
        loop {
            match (&self.file).read(room) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read.with_context(|| format!("can't read {}", self.name)),
            }
        }
    }
}

fn open_inputs(files: &[OsString]) -> Result<Vec<Input>> {
    match files.is_empty() {
        true => Ok(vec![Input::open(&OsString::from("-"))?]),
        false => files.iter().map(Input::open).collect(),
    }
}

/// The loop from input to log.
struct Producer<'a> {
    session: &'a Session,
    appender: Appender,
    framer: Framer,
    signals: Signals,
    sync: SyncPolicy,
    receipts: Option<Receipts>,
    /// Since when something is appended that is not synced.
    unsynced_since: Option<Instant>,
    stored: u64,
    progress: Progress,
}

impl Producer<'_> {
    fn run(mut self, inputs: &[Input]) -> Result<()> {
        let taken = inputs.iter().try_for_each(|input| self.take(input));
        let dropped = self.framer.pending();
        // Whatever ended it: what was appended is made safe, and only then spoken of.
        let synced = if self.sync == SyncPolicy::Never { Ok(()) } else { self.sync_now() };
        self.progress.finish();
        match taken {
            Ok(()) => synced,
            Err(error) if error.is::<Signalled>() => {
                if dropped > 0 {
                    self.session.note(&format!("dropped {dropped} bytes of an unfinished record"));
                }
                synced.and(Err(error))
            }
            Err(error) if error.is::<Ended>() => synced.and(Err(error)),
            Err(error) => {
                Err(error.context(format!("{} records are stored, but then", self.stored)))
            }
        }
    }

    /// Appends everything from one input.
    fn take(&mut self, input: &Input) -> Result<()> {
        let mut more = false;
        loop {
            if let Some(signal) = self.signals.caught() {
                self.append_waiting(input)?;
                bail!(signal);
            }
            // Go on reading only while there is more at once and room for it.
            more = more
                && !self.framer.is_full()
                && input.is_ready(&self.signals, Some(Duration::ZERO))?;
            if !more {
                self.append_waiting(input)?;
                self.sync_if_due()?;
                if !input.is_ready(&self.signals, self.until_sync())? {
                    continue;
                }
            }
            let read = input.read(self.framer.room())?;
            if read == 0 {
                self.framer.end_input();
                return self.append_waiting(input);
            }
            self.framer.filled(read);
            self.progress.add(read as u64);
            more = true;
        }
    }

    /// Appends all whole records that wait.
    fn append_waiting(&mut self, input: &Input) -> Result<()> {
        loop {
            let appended = match self.framer.batch() {
                Ok(None) => return Ok(()),
                Ok(Some(body)) => self.appender.append(&body, self.session.now()?)?,
                Err(oversize) => bail!(self.too_big(&oversize, input)?),
            };
            self.stored += appended.next.since(appended.base);
            if let Some(receipts) = &mut self.receipts {
                receipts.waiting.push(appended);
            }
            match self.sync {
                SyncPolicy::Each => self.sync_now()?,
                SyncPolicy::Never => self.print_receipts()?,
                SyncPolicy::Every(_) => {
                    self.unsynced_since.get_or_insert_with(Instant::now);
                    self.sync_if_due()?;
                }
            }
        }
    }

    fn too_big(&mut self, oversize: &Oversize, input: &Input) -> Result<Ended> {
        let (limit, line) = (self.framer.record_limit(), oversize.line);
        let size = match self.measure(oversize, input)? {
            Some(size) => format!("has {size} bytes"),
            None => format!("has more than {limit} bytes"),
        };
        let line = format!(
            "record {line} of the input, in {}, {size}, but max-record-size is {limit}: \
             the {} before it are stored; config raises the limit",
            input.name,
            line - 1
        );
        Ok(Ended { status: Status::TooBig, line: Some(line) })
    }

    /// The size of a record that is too large: reads on to its end, within reason.
    fn measure(&mut self, oversize: &Oversize, input: &Input) -> Result<Option<u64>> {
        if oversize.whole {
            return Ok(Some(oversize.seen));
        }
        let mut left = LONGEST_MEASURED;
        while left > 0 && self.signals.caught().is_none() {
            if let Some(size) = self.framer.skip_oversize() {
                return Ok(Some(size));
            }
            if !input.is_ready(&self.signals, None)? {
                break;
            }
            let read = input.read(self.framer.room())?;
            self.framer.filled(read);
            if read == 0 {
                self.framer.end_input();
                return Ok(self.framer.skip_oversize().or(Some(oversize.seen)));
            }
            left = left.saturating_sub(read as u64);
        }
        Ok(None)
    }

    fn until_sync(&self) -> Option<Duration> {
        match (self.sync, self.unsynced_since) {
            (SyncPolicy::Every(interval), Some(since)) => {
                Some(interval.saturating_sub(since.elapsed()))
            }
            _ => None,
        }
    }

    fn sync_if_due(&mut self) -> Result<()> {
        if self.until_sync() == Some(Duration::ZERO) { self.sync_now() } else { Ok(()) }
    }

    fn sync_now(&mut self) -> Result<()> {
        self.appender.sync()?;
        self.unsynced_since = None;
        self.print_receipts()
    }

    fn print_receipts(&mut self) -> Result<()> {
        match &mut self.receipts {
            Some(receipts) => receipts.print().context("can't print receipts to standard output"),
            None => Ok(()),
        }
    }
}

/// Appended records whose offsets are not printed yet.
#[derive(Debug, Default)]
struct Receipts {
    waiting: Vec<Appended>,
}

impl Receipts {
    fn print(&mut self) -> io::Result<()> {
        let mut out = io::BufWriter::new(io::stdout().lock());
        for appended in self.waiting.drain(..) {
            for offset in appended.base.get()..appended.next.get() {
                writeln!(out, "{offset}")?;
            }
        }
        out.flush()
    }
}
