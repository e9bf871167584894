//! How records look on stdout: their bytes with a delimiter, JSON, or a template.

use anyhow::{Result, bail};
use clap::Args;

use super::delimiter::Delimiter;
use super::failure::Usage;
use crate::cli::text::record_json::write_record;
use crate::cli::text::template::Template;
use crate::format::batch::Layout;
use crate::format::body::{BodyError, lines_len};
use crate::format::record::RecordView;
use crate::log::Piece;
use crate::model::Offset;

/// The options for what is printed of each record.
#[derive(Args, Clone, Debug)]
pub struct Format {
    #[command(flatten)]
    delimiter: Delimiter,

    /// Print each record as one line of JSON
    #[arg(short = 'J', long, conflicts_with_all = ["format", "delimiter", "null"])]
    json: bool,

    /// Print by a template: %o offset, %v value, %V its length, %T time in ms
    #[arg(short = 'F', long, value_name = "FORMAT", conflicts_with_all = ["delimiter", "null"], allow_hyphen_values = true)]
    format: Option<String>,
}

/// Prints records.
#[derive(Clone, Debug)]
pub enum Printer {
    /// The value and this after it.
    Values(Vec<u8>),
    /// A line of JSON.
    Json,
    /// By a template.
    Template(Template),
}

impl Format {
    /// The printer that the options ask for.
    ///
    /// # Errors
    /// [`Usage`] for a delimiter or a template that can't be read.
    pub fn printer(&self) -> Result<Printer> {
        if self.json {
            return Ok(Printer::Json);
        }
        match &self.format {
            None => Ok(Printer::Values(self.delimiter.bytes()?)),
            Some(text) => match Template::parse(text) {
                Ok(template) => Ok(Printer::Template(template)),
                Err(error) => bail!(Usage(format!("--format: {error}"))),
            },
        }
    }
}

impl Printer {
    /// The records of `piece` from `from` to before `until` as they are printed:
    /// straight from the piece where that is possible, else put into `scratch`.
    ///
    /// # Errors
    /// [`BodyError`] if the piece can't be read as its layout.
    pub fn print<'a>(
        &self,
        piece: &Piece<'a>,
        from: Offset,
        until: Offset,
        scratch: &'a mut Vec<u8>,
    ) -> std::result::Result<&'a [u8], BodyError> {
        let plain = matches!(self, Printer::Values(delimiter) if delimiter == b"\n");
        if plain && piece.header.layout == Layout::Lines {
            // Reads the last byte: a body that does not end its last line is refused.
            piece.records()?;
            return Ok(lines_between(piece, from, until));
        }
        scratch.clear();
        for record in records(piece, from, until)? {
            self.print_one(&record, scratch);
        }
        Ok(scratch)
    }

    /// How many of the records of `piece` from `from` on are whole in `bytes` printed bytes.
    ///
    /// # Errors
    /// As [`print`](Self::print).
    pub fn whole_in(
        &self,
        piece: &Piece<'_>,
        from: Offset,
        mut bytes: u64,
    ) -> std::result::Result<u64, BodyError> {
        let mut scratch = Vec::new();
        let mut whole = 0;
        for record in records(piece, from, piece.header.next)? {
            scratch.clear();
            self.print_one(&record, &mut scratch);
            match bytes.checked_sub(scratch.len() as u64) {
                Some(left) => bytes = left,
                None => break,
            }
            whole += 1;
        }
        Ok(whole)
    }

    fn print_one(&self, record: &RecordView<'_>, out: &mut Vec<u8>) {
        match self {
            Printer::Values(delimiter) => {
                out.extend_from_slice(record.content.value.unwrap_or_default());
                out.extend_from_slice(delimiter);
            }
            Printer::Json => write_record(record, out),
            Printer::Template(template) => template.render(record, out),
        }
    }
}

/// The bytes of a *lines* body that hold the records from `from` to before `until`.
fn lines_between<'a>(piece: &Piece<'a>, from: Offset, until: Offset) -> &'a [u8] {
    let body = &piece.body[lines_len(piece.body, from.since(piece.header.base))..];
    match until >= piece.header.next {
        true => body,
        false => &body[..lines_len(body, until.since(from))],
    }
}

/// The records of `piece` from `from` to before `until`.
fn records<'a>(
    piece: &Piece<'a>,
    from: Offset,
    until: Offset,
) -> std::result::Result<impl Iterator<Item = RecordView<'a>> + use<'a>, BodyError> {
    let wanted = move |record: &RecordView<'_>| record.offset < until;
    Ok(piece.records()?.skip_while(move |record| record.offset < from).take_while(wanted))
}
