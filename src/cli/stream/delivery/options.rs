//! The options for how records are delivered: when a group's checkpoint moves, which
//! command handles the records, and what becomes of those that it can't handle.

use std::ffi::OsString;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use super::acks::Acks;
use super::dead_letters::DeadLetters;
use super::handler::{Handler, OnFailure, Orders};
use super::program::Program;
use super::retry::Backoff;
use super::standby::claim_when_free;
use crate::cli::failure::Usage;
use crate::cli::session::{LogArgument, Session};
use crate::cli::stream::hand_over::{CommitInterval, HandOver};
use crate::cli::stream::signals::Signals;
use crate::cli::text::count::parse_count;
use crate::cli::text::duration::parse_duration;
use crate::log::{Claim, Consumer, Log};
use crate::model::GroupName;

/// The options.
#[derive(Args, Clone, Debug)]
pub struct Delivery {
    /// Commit before hand-over, after it, or manual
    ///
    /// After, the default: a crash repeats at most one commit interval, and loses nothing.
    /// Before: the checkpoint is synced first, so that nothing ever comes again, and a
    /// crash loses what was on its way. Manual: it is left to commit.
    #[arg(
        long,
        value_name = "WHEN",
        requires = "group",
        default_value = "after",
        hide_possible_values = true,
        hide_default_value = true
    )]
    commit: Commit,

    /// Commit after N records or each DUR [default: whichever is first of 10000, 1s]
    #[arg(long, value_name = "N|DUR", requires = "group", hide_short_help = true)]
    commit_every: Option<CommitEvery>,

    /// Stand by while another process has the group
    ///
    /// Instead of exit 5. Once that one has ended, however it did, this one goes on from
    /// the checkpoint.
    #[arg(long, requires = "group")]
    wait: bool,

    /// Run CMD for each record, given on its stdin
    ///
    /// In a shell. If it ends with 0, the record is done with.
    #[arg(long, value_name = "CMD", requires = "group", group = "handler")]
    exec: Option<String>,

    /// As --exec, but a program and its arguments, without a shell
    #[arg(value_name = "CMD", group = "handler", hide_short_help = true)]
    program: Vec<OsString>,

    /// Give the command up to N records at once, each with its delimiter: all or none
    #[arg(
        long,
        value_name = "N",
        requires = "handler",
        value_parser = parse_count,
        hide_short_help = true
    )]
    batch: Option<u64>,

    /// If the command fails, run it again for the same record, up to N times
    #[arg(
        long,
        value_name = "N",
        requires = "handler",
        value_parser = parse_count,
        hide_short_help = true
    )]
    retry: Option<u64>,

    /// The pause before that, doubled each time, up to MAX [default: 100ms..1m]
    #[arg(long, value_name = "DUR[..MAX]", requires = "retry", hide_short_help = true)]
    backoff: Option<Backoff>,

    /// And if it fails for good: stop, skip, or dead-letter [default: stop]
    ///
    /// Stop ends with 8, before the record. Skip goes on, and ends with 9. Dead-letter
    /// keeps the record in another log, and goes on.
    #[arg(
        long,
        value_name = "WHAT",
        requires = "handler",
        hide_possible_values = true,
        hide_short_help = true
    )]
    on_failure: Option<Failed>,

    /// Keep dead letters in this log [default: LOG/groups/GROUP.dead]
    #[arg(
        long,
        value_name = "LOG",
        requires = "handler",
        value_hint = clap::ValueHint::DirPath,
        hide_short_help = true
    )]
    dead_letter: Option<OsString>,

    /// Commit what the reader acknowledges on this pipe
    ///
    /// The reader of the output writes offsets to go on from, a line each, to this file,
    /// or into the handle of that number.
    #[arg(
        long,
        value_name = "FILE|FD",
        requires = "group",
        conflicts_with_all = ["handler", "commit", "commit_every"]
    )]
    ack_from: Option<OsString>,
}

/// Who takes what is read for a group, and says what is done with.
#[derive(Debug, Default)]
pub struct Takers {
    /// Follows what is handed over.
    pub hand_over: Option<HandOver>,
    /// The command that it is handed to.
    pub handler: Option<Handler>,
    /// Or the acknowledgements of whoever reads the output.
    pub acks: Option<Acks>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Commit {
    Before,
    After,
    Manual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Failed {
    Stop,
    Skip,
    DeadLetter,
}

#[derive(Clone, Copy, Debug)]
enum CommitEvery {
    Records(u64),
    Time(Duration),
}

impl FromStr for CommitEvery {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text.parse::<u64>() {
            Ok(0) => Err("0 is no interval: give a number of records from 1, or a duration".into()),
            Ok(records) => Ok(CommitEvery::Records(records)),
            Err(_) => parse_duration(text).map(CommitEvery::Time),
        }
    }
}

impl Delivery {
    /// Refuses what contradicts itself, or has no `group`.
    ///
    /// # Errors
    /// [`Usage`].
    pub fn check(&self, group: Option<&GroupName>) -> Result<()> {
        // For the parser LOG may stand behind -- as well, and so a command before it.
        let behind = std::env::args_os().skip_while(|word| word != "--").skip(1).count();
        if let Some(first) = self.program.first() {
            let first = first.display();
            if self.program.len() > behind {
                bail!(Usage(format!("unexpected argument '{first}': a command stands behind --")));
            }
            if group.is_none() {
                bail!(Usage(format!("the command '{first}' needs a group: give --group GROUP")));
            }
        }
        if self.commit == Commit::Before && self.retry.is_some() {
            bail!(Usage(
                "--retry and --commit before: what is handed over at most once is not tried again"
                    .to_owned()
            ));
        }
        if self.dead_letter.is_some()
            && matches!(self.on_failure, Some(Failed::Stop | Failed::Skip))
        {
            bail!(Usage(
                "--dead-letter: give --on-failure dead-letter, or leave that out".to_owned()
            ));
        }
        if self.batch == Some(0) {
            bail!(Usage("--batch 0: give a number of records from 1".to_owned()));
        }
        Ok(())
    }

    /// Whether consume moves the checkpoint.
    pub fn commits(&self) -> bool {
        self.commit != Commit::Manual
    }

    /// Takes the group for a reading, or waits for it, if that is wanted.
    ///
    /// # Errors
    /// What [`Consumer::claim`] says; a signal that came while waiting.
    pub fn claim(
        &self,
        log: &Log,
        group: &GroupName,
        claim: impl Fn() -> Result<Claim>,
        session: &Session,
        signals: &Signals,
    ) -> Result<Consumer> {
        match self.wait {
            true => claim_when_free(log, group, claim, session, signals),
            false => Ok(Consumer::claim(log, group, &claim()?, session.now()?)?),
        }
    }

    /// Whether records go to a command.
    pub fn runs_a_command(&self) -> bool {
        self.program().is_some()
    }

    /// Whether what is handed over are the bytes of one value and nothing else.
    pub fn hands_over_one_by_one(&self) -> bool {
        self.runs_a_command() && self.batch.is_none()
    }

    /// Who takes what `consumer` reads.
    ///
    /// # Errors
    /// What the system says of the pipe that acknowledgements come from; what is wrong
    /// with the log for dead letters.
    pub fn takers(
        &self,
        consumer: Option<Consumer>,
        log: &Log,
        session: &Session,
    ) -> Result<Takers> {
        let Some(consumer) = consumer else { return Ok(Takers::default()) };
        if let Some(name) = &self.ack_from {
            let acks = Some(Acks::open(name, consumer)?);
            return Ok(Takers { acks, ..Takers::default() });
        }
        let handler = self.handler(&consumer, log, session)?;
        let ahead = self.commit == Commit::Before;
        let hand_over = Some(HandOver::new(consumer, self.interval(), ahead));
        Ok(Takers { hand_over, handler, acks: None })
    }

    fn handler(
        &self,
        consumer: &Consumer,
        log: &Log,
        session: &Session,
    ) -> Result<Option<Handler>> {
        let Some(program) = self.program() else { return Ok(None) };
        let orders = Orders {
            program,
            retries: self.retry.unwrap_or(0),
            backoff: self.backoff.unwrap_or_default(),
            on_failure: self.on_failure(consumer, log, session)?,
        };
        Ok(Some(Handler::new(orders, self.batch, consumer.position())))
    }

    fn on_failure(&self, consumer: &Consumer, log: &Log, session: &Session) -> Result<OnFailure> {
        let home = match (&self.dead_letter, self.on_failure) {
            (Some(name), _) => session.home(&LogArgument::named(name.clone()))?,
            (None, Some(Failed::DeadLetter)) => {
                session.home_at(log.dead_letters_dir(consumer.group()))
            }
            (None, Some(Failed::Skip)) => return Ok(OnFailure::Skip),
            (None, Some(Failed::Stop) | None) => return Ok(OnFailure::Stop),
        };
        let (group, stored) = (consumer.group(), consumer.found_stored());
        let letters = DeadLetters::at(home, log, group, stored)?;
        Ok(OnFailure::DeadLetter(Box::new(letters)))
    }

    fn program(&self) -> Option<Program> {
        match &self.exec {
            Some(line) => Some(Program::shell(line)),
            None => Program::direct(&self.program),
        }
    }

    fn interval(&self) -> CommitInterval {
        let mut interval = CommitInterval { records: 10_000, time: Duration::from_secs(1) };
        match self.commit_every {
            Some(CommitEvery::Records(records)) => interval.records = records,
            Some(CommitEvery::Time(time)) => {
                interval = CommitInterval { records: u64::MAX, time };
            }
            None => {}
        }
        interval
    }
}
