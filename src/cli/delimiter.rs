//! `-D` and `-0`: what stands between records, for produce and consume alike.

use anyhow::{Result, bail};
use clap::Args;

use super::failure::Usage;
use crate::cli::text::escapes::unescape;

/// The options for another delimiter than the newline.
#[derive(Args, Clone, Debug)]
pub struct Delimiter {
    /// What ends a record instead of a newline; knows \n \r \t \0 \e \xHH \\
    #[arg(
        short = 'D',
        long,
        value_name = "STR",
        conflicts_with = "null",
        allow_hyphen_values = true
    )]
    delimiter: Option<String>,

    /// NUL ends a record instead of a newline, as for xargs -0
    #[arg(short = '0', long)]
    null: bool,
}

impl Delimiter {
    /// The delimiter's bytes.
    ///
    /// # Errors
    /// [`Usage`] if it is empty or its escapes can't be read.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        if self.null {
            return Ok(vec![0]);
        }
        let Some(text) = &self.delimiter else { return Ok(vec![b'\n']) };
        let bytes = unescape(text).map_err(|why| Usage(format!("--delimiter: {why}")))?;
        if bytes.is_empty() {
            bail!(Usage("--delimiter is empty: give at least one character".to_owned()));
        }
        Ok(bytes)
    }
}
