//! How records look on stdout: their bytes with a delimiter, JSON, or a template; and
//! which of them are printed.

use anyhow::{Result, bail};
use clap::Args;

use super::delimiter::Delimiter;
use super::failure::Usage;
use super::text::escapes::unescape;
use super::text::filter::Filter;
use super::text::record_json::{write_embedded, write_record};
use super::text::template::Template;
use crate::format::batch::Layout;
use crate::format::body::{BodyError, Records, lines_len};
use crate::format::record::RecordView;
use crate::log::{Piece, Stored};
use crate::model::Offset;

/// The options for what is printed of each record.
#[derive(Args, Clone, Debug)]
pub struct Format {
    #[command(flatten)]
    delimiter: Delimiter,

    /// Print keys too, with SEP between key and value; escapes as for -D
    #[arg(short = 'K', long, value_name = "SEP", allow_hyphen_values = true)]
    key_separator: Option<String>,

    /// Print each record as a line of JSON
    #[arg(short = 'J', long, conflicts_with_all = ["format", "delimiter", "null", "key_separator"])]
    json: bool,

    /// As -J, but values that are JSON stand under json as they are
    #[arg(long, hide_short_help = true, conflicts_with_all = ["json", "format", "delimiter", "null", "key_separator"])]
    json_payload: bool,

    /// Print each record by a template, such as '%o %k %v\n'
    #[arg(
        short = 'F',
        long,
        value_name = "FORMAT",
        conflicts_with_all = ["delimiter", "null", "key_separator"],
        allow_hyphen_values = true
    )]
    format: Option<String>,
}

impl Format {
    /// The printer that the options ask for, of the records that pass `filter`.
    ///
    /// # Errors
    /// [`Usage`] for a delimiter or a template that can't be read.
    pub fn printer(&self, filter: Filter) -> Result<Printer> {
        Ok(Printer { form: self.form()?, filter })
    }

    fn form(&self) -> Result<Form> {
        if self.json || self.json_payload {
            return Ok(Form::Json { embed: self.json_payload });
        }
        if let Some(text) = &self.format {
            return match Template::parse(text) {
                Ok(template) => Ok(Form::Template(template)),
                Err(error) => bail!(Usage(format!("--format: {error}"))),
            };
        }
        let unescaped =
            |text: &String| unescape(text).map_err(|why| Usage(format!("--key-separator: {why}")));
        let key_separator = self.key_separator.as_ref().map(unescaped).transpose()?;
        if key_separator.as_ref().is_some_and(Vec::is_empty) {
            bail!(Usage("--key-separator is empty: give at least one character".to_owned()));
        }
        Ok(Form::Values { key_separator, delimiter: self.delimiter.bytes()? })
    }
}

/// What of a record is printed.
#[derive(Clone, Debug)]
enum Form {
    /// The value and the delimiter; before that, if asked for, the key and a separator.
    Values { key_separator: Option<Vec<u8>>, delimiter: Vec<u8> },
    /// A line of JSON.
    Json { embed: bool },
    /// By a template.
    Template(Template),
}

/// Prints records.
#[derive(Clone, Debug)]
pub struct Printer {
    form: Form,
    filter: Filter,
}

/// How much one slice may hold.
#[derive(Clone, Copy, Debug)]
pub struct SliceLimits {
    /// Before this offset.
    pub until: Offset,
    /// So many records, printed or not.
    pub records: u64,
    /// So many printed ones.
    pub printed: u64,
}

/// Some records of a piece, printed.
#[derive(Clone, Copy, Debug)]
pub struct Slice<'a> {
    /// The offset to go on from.
    pub next: Offset,
    /// How many were printed.
    pub printed: u64,
    /// The offset behind the last one printed; of no meaning if there is none.
    pub printed_to: Offset,
    /// What was printed.
    pub bytes: &'a [u8],
    /// Where the same bytes lie in a file, if they do.
    pub stored: Option<Stored<'a>>,
}

/// A slice that is put together ends when it has so many bytes.
const SLICE_BYTES: usize = 256 << 10;

impl Printer {
    /// Begins to print `piece`.
    ///
    /// # Errors
    /// [`BodyError`] if the piece can't be read as its layout.
    pub fn begin<'p>(&'p self, piece: &Piece<'p>) -> std::result::Result<Cutter<'p>, BodyError> {
        let records = piece.records()?;
        let source = match piece.header.layout {
            Layout::Lines if self.prints_lines_as_they_are() => {
                let skipped = lines_len(piece.body, piece.from.since(piece.header.base));
                let stored = piece.stored.map(|stored| behind(stored, skipped));
                Source::Lines(&piece.body[skipped..], stored)
            }
            _ => Source::Records(records),
        };
        Ok(Cutter { printer: self, source, next: piece.from, end: piece.header.next })
    }

    /// The same, but of a value that is printed alone only its own bytes, with nothing
    /// behind them.
    pub fn without_delimiter(mut self) -> Printer {
        if let Form::Values { key_separator: None, delimiter } = &mut self.form {
            delimiter.clear();
        }
        self
    }

    /// Whether a record is printed.
    pub fn wants(&self, record: &RecordView<'_>) -> bool {
        self.filter.passes(record)
    }

    fn prints_lines_as_they_are(&self) -> bool {
        let plain = matches!(&self.form, Form::Values { key_separator: None, delimiter }
            if delimiter == b"\n");
        plain && self.filter.is_empty()
    }

    /// The offset before which all records of `piece` from `from` on are whole in
    /// `bytes` printed bytes.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    pub fn whole_in(
        &self,
        piece: &Piece<'_>,
        from: Offset,
        mut bytes: u64,
    ) -> std::result::Result<Offset, BodyError> {
        let (mut scratch, mut next) = (Vec::new(), from);
        for record in piece.records()?.skip_while(|record| record.offset < from) {
            scratch.clear();
            self.print_one(&record, &mut scratch);
            match bytes.checked_sub(scratch.len() as u64) {
                Some(left) => bytes = left,
                None => break,
            }
            next = record.next;
        }
        Ok(next)
    }

    /// Prints a record, if it is wanted; says whether it is.
    pub fn print_one(&self, record: &RecordView<'_>, out: &mut Vec<u8>) -> bool {
        if !self.filter.passes(record) {
            return false;
        }
        match &self.form {
            Form::Values { key_separator, delimiter } => {
                if let Some(separator) = key_separator {
                    out.extend_from_slice(record.content.key.unwrap_or_default());
                    out.extend_from_slice(separator);
                }
                out.extend_from_slice(record.content.value.unwrap_or_default());
                out.extend_from_slice(delimiter);
            }
            Form::Json { embed: false } => write_record(record, out),
            Form::Json { embed: true } => write_embedded(record, out),
            Form::Template(template) => template.render(record, out),
        }
        true
    }
}

/// Prints a piece slice by slice.
#[derive(Debug)]
pub struct Cutter<'p> {
    printer: &'p Printer,
    source: Source<'p>,
    next: Offset,
    end: Offset,
}

#[derive(Debug)]
enum Source<'p> {
    /// Lines that are printed as they are.
    Lines(&'p [u8], Option<Stored<'p>>),
    Records(Records<'p>),
}

impl<'p> Cutter<'p> {
    /// The offset of the next record.
    pub fn next_offset(&self) -> Offset {
        self.next
    }

    /// The next slice; put into `scratch` where it can't come straight from the piece.
    pub fn slice<'s>(&mut self, limits: &SliceLimits, scratch: &'s mut Vec<u8>) -> Slice<'s>
    where
        'p: 's,
    {
        match &mut self.source {
            Source::Lines(rest, stored) => {
                let all = limits.until.min(self.end).since(self.next);
                let wanted = all.min(limits.records).min(limits.printed);
                let next = self.next.forward(wanted).unwrap_or(self.end);
                let length = if next == self.end { rest.len() } else { lines_len(rest, wanted) };
                let (bytes, after) = rest.split_at(length);
                *rest = after;
                self.next = next;
                let here = *stored;
                *stored = here.map(|stored| behind(stored, length));
                Slice { next, printed: wanted, printed_to: next, bytes, stored: here }
            }
            Source::Records(records) => {
                scratch.clear();
                let (mut seen, mut printed, mut printed_to) = (0, 0, self.next);
                while seen < limits.records
                    && printed < limits.printed
                    && scratch.len() < SLICE_BYTES
                    && self.next < limits.until
                {
                    let Some(record) = records.next() else {
                        self.next = self.end;
                        break;
                    };
                    if record.offset < self.next {
                        continue;
                    }
                    if record.offset >= limits.until {
                        self.next = limits.until;
                        break;
                    }
                    seen += 1;
                    if self.printer.print_one(&record, scratch) {
                        printed += 1;
                        printed_to = record.next;
                    }
                    self.next = record.next;
                }
                Slice { next: self.next, printed, printed_to, bytes: scratch, stored: None }
            }
        }
    }
}

/// The place `bytes` bytes later.
fn behind(stored: Stored<'_>, bytes: usize) -> Stored<'_> {
    Stored { position: stored.position + bytes as u64, ..stored }
}
