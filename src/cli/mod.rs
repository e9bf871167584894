//! Words in, words out: the command line, one file a command. Only this layer
//! prints, reads the clock and the environment, and decides how the process ends.

mod command;
mod deferred;
mod delimiter;
mod failure;
mod group;
mod hints;
mod listing;
mod printer;
mod session;
mod stream;
mod text;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::CompleteEnv;

use command::{commit, config, consume, gc, get, groups, produce, seek, segments, verify};
use deferred::Deferred;
use session::Session;

/// A durable, replayable message log in a plain directory
///
/// Lines go in with produce and come out with consume. Each has an offset: its number,
/// from 0. Nothing is deleted because it was read. A group is a named reader; its
/// checkpoint is the next offset to read, and can be moved anywhere. The directory is
/// all there is: no server.
#[derive(Debug, Parser)]
#[command(name = "tapelog", version, max_term_width = 100)]
#[command(after_long_help = "\
Examples:
  seq 5 | tapelog produce demo           five records into the log demo
  tapelog consume demo                   all of them, any number of times
  tapelog consume demo -g me -n 3        the first three, as the group me
  tapelog consume demo -g me             the rest
  tapelog seek demo -g me --to earliest  let me begin again

Exit status:
  0  done
  1  failed
  2  the command line is wrong
  3  not there: the log, the group, a key, or under --fail-empty a record
  4  damage in the log's files
  5  held by another process
  6  an offset is out of range
  7  a record is too big
  8  a command that got records failed, or they were not acknowledged
  9  done in part
  11 a deadline has passed
  After SIGINT or SIGTERM what is done is saved, then the signal ends it.

Files:
  A log is a directory:
    log.json             its id, format version and settings
    lock                 taken by whoever appends
    start                the log start
    end                  how far the log is written, and how far synced
    N.log                a segment, named by its first offset: the records
    N.index              where in it offsets and times are
    segments.index       the segments, a row each
    keys/                where the keys are
    groups/G.checkpoint  where group G goes on
    groups/G.holder      who consumes it, for people
    groups/G.history     its seeks
    groups/G.dead        a log: what its command could not handle
    keys/                derived; gc --compact makes its files there
    quarantine/          what recovery and repair took out
    N.tmp                being made; gc removes what a crash left of it
  It has to be on a local file system. On NFS, SMB, sshfs and the like,
  whose locks and syncs can't be relied on, it can only be read, and that
  without a group.
  Indexes are derived: without them reading is slower once, and the same.
  rm -r LOG deletes a log, once nobody reads or writes it any more.

Damage:
  Exit status 4 says that bytes which were safe have changed or are gone: a
  failing disk, or another program. The line names file, byte and offset.
  An append that a crash left unfinished is no damage: the next produce
  sets it aside. Readers print what comes before damage, a writer that
  meets it refuses, and nothing is repaired by itself. What to do:
  - Copy the directory as it is, cp -a LOG COPY, before anything else.
  - See what it is: tapelog verify LOG checks every byte.
  - Read on behind it: tapelog consume LOG --skip-damage.
  - Mend it: tapelog verify LOG --repair keeps every good record, sets the
    damaged bytes aside and leaves a gap in their place.
  - A checkpoint: tapelog seek LOG -g GROUP --to PLACE places it anew, and
    tapelog groups LOG -g GROUP --delete forgets the group.
")]
struct Cli {
    #[command(flatten)]
    session: Session,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one, made once")]
enum Command {
    // In the order of the help: as one meets them. Each line here is the first of the
    // command's own help, which is not read before the command is called.
    /// Append records from stdin or files
    Produce(Deferred<produce::Produce>),
    /// Print records
    Consume(Deferred<consume::Consume>),
    /// Print the newest record of each key
    Get(Deferred<get::Get>),
    /// Store a group's checkpoint by hand
    Commit(Deferred<commit::Commit>),
    /// Move a group's checkpoint anywhere
    Seek(Deferred<seek::Seek>),
    /// Show where the groups are
    Groups(Deferred<groups::Groups>),
    /// Show the segments, and which groups still need them
    Segments(Deferred<segments::Segments>),
    /// Delete the segments that every group is done with, or compact them
    Gc(Deferred<gc::Gc>),
    /// Check every byte of the log
    Verify(Deferred<verify::Verify>),
    /// Show or change a log's settings
    Config(Deferred<config::Config>),
}

/// Runs the program: from the process's arguments to its exit code.
pub fn main() -> ExitCode {
    CompleteEnv::with_factory(Cli::command).complete();
    let Cli { session, command } = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let called = hints::called_command(std::env::args_os(), &Cli::command());
            return failure::report_usage(&error, called.as_deref());
        }
    };
    failure::report(match &command {
        Command::Commit(Deferred(args)) => commit::run(args, &session),
        Command::Config(Deferred(args)) => config::run(args, &session),
        Command::Consume(Deferred(args)) => consume::run(args, &session),
        Command::Gc(Deferred(args)) => gc::run(args, &session),
        Command::Get(Deferred(args)) => get::run(args, &session),
        Command::Groups(Deferred(args)) => groups::run(args, &session),
        Command::Produce(Deferred(args)) => produce::run(args, &session),
        Command::Seek(Deferred(args)) => seek::run(args, &session),
        Command::Segments(Deferred(args)) => segments::run(args, &session),
        Command::Verify(Deferred(args)) => verify::run(args, &session),
    })
}

/// The definition of the command line, for manual pages and completions.
pub fn command() -> clap::Command {
    Cli::command()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_commands_says_what_each_ones_help_begins_with() {
        let listed = command();
        let mut called = command();
        called.build();
        for sub in listed.get_subcommands() {
            let own = called.find_subcommand(sub.get_name()).and_then(clap::Command::get_about);
            let texts = (sub.get_about().map(ToString::to_string), own.map(ToString::to_string));
            assert!(texts.0.is_some() && texts.0 == texts.1, "{}: {texts:?}", sub.get_name());
        }
    }
}
