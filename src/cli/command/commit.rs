//! `tapelog commit`: store a checkpoint by hand.

use anyhow::Result;
use clap::Args;

use crate::cli::group::GroupArgument;
use crate::cli::session::{LogArgument, Session};
use crate::cli::text::range::parse_offset;
use crate::model::Offset;

/// Store a group's checkpoint by hand
///
/// OFFSET is the next offset to read: one more than the last record done with, or
/// "next" in the JSON of consume. commit never goes back; seek does. A group that is
/// new is made. While another process stores the same checkpoint, commit waits five
/// seconds, then exits with 5.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  tapelog commit demo -g me 100
  tapelog consume demo -g me --commit manual -J | while read -r record; do
    work \"$record\" && tapelog commit demo -g me \"$(jq .next <<< \"$record\")\"
  done
")]
pub struct Commit {
    #[command(flatten)]
    log: LogArgument,

    #[command(flatten)]
    group: GroupArgument,

    /// The next offset to read
    #[arg(value_name = "OFFSET", value_parser = parse_offset)]
    offset: Offset,
}

/// Runs the command.
///
/// # Errors
/// What [`crate::log::Log::commit`] says.
pub fn run(args: &Commit, session: &Session) -> Result<()> {
    let log = session.open(&args.log)?;
    Ok(log.commit(&args.group.group, args.offset, session.now()?)?)
}
