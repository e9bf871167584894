//! Tables for people and JSON lines for programs: two views of the same rows.

use anyhow::Result;
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use super::stream::output::Output;
use crate::model::Timestamp;

/// A listing to be printed.
#[derive(Debug)]
pub struct Listing {
    table: Table,
}

impl Listing {
    /// A table with these columns; those that begin with `>` hold numbers.
    pub fn new(columns: &[&str]) -> Listing {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(columns.iter().map(|column| column.trim_start_matches('>')));
        for (at, column) in columns.iter().enumerate() {
            if let Some(cells) = table.column_mut(at) {
                cells.set_padding((0, 2));
                if column.starts_with('>') {
                    cells.set_cell_alignment(CellAlignment::Right);
                }
            }
        }
        Listing { table }
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.table.add_row(cells);
    }

    /// Prints the table: without trailing blanks, every value whole.
    ///
    /// # Errors
    /// [`OutputClosed`](super::failure::OutputClosed), or what the system says.
    pub fn print(&self) -> Result<()> {
        print_lines(self.table.lines().map(|line| line.trim_end().to_owned()))
    }
}

/// Prints each row as one line of JSON.
///
/// # Errors
/// [`OutputClosed`](super::failure::OutputClosed), or what the system says.
pub fn print_json<T: Serialize>(rows: impl IntoIterator<Item = T>) -> Result<()> {
    print_lines(rows.into_iter().map(|row| serde_json::to_string(&row).unwrap_or_default()))
}

/// Lines are gathered to about so many bytes.
const PIECE: usize = 64 << 10;

/// Prints lines on stdout.
///
/// # Errors
/// [`OutputClosed`](super::failure::OutputClosed), or what the system says.
pub fn print_lines(lines: impl IntoIterator<Item = String>) -> Result<()> {
    let mut output = Output::standard()?;
    let mut text = Vec::new();
    for line in lines {
        text.extend_from_slice(line.as_bytes());
        text.push(b'\n');
        if text.len() >= PIECE {
            output.write_unwatched(&text)?;
            text.clear();
        }
    }
    output.write_unwatched(&text)
}

/// A moment in a table: RFC 3339 to the second, or a dash.
pub fn show_time(time: Option<Timestamp>) -> String {
    let shown = time.map(|time| time.to_string());
    // Without the milliseconds, so that a table fits a terminal; JSON has them.
    let short = |text: String| match text.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => text,
    };
    shown.map_or_else(|| "-".to_owned(), short)
}
