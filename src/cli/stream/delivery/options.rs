//! The options for how records are delivered: when a group's checkpoint moves, which
//! command handles the records, and what becomes of those that it can't handle.

use std::ffi::OsString;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use super::handler::{Handler, OnFailure, Orders};
use super::program::Program;
use super::retry::Backoff;
use super::standby::claim_when_free;
use crate::cli::failure::Usage;
use crate::cli::session::Session;
use crate::cli::stream::hand_over::{CommitInterval, HandOver};
use crate::cli::stream::signals::Signals;
use crate::cli::text::count::parse_count;
use crate::cli::text::duration::parse_duration;
use crate::log::{Claim, Consumer, Log};
use crate::model::GroupName;

/// The options.
#[derive(Args, Clone, Debug)]
pub struct Delivery {
    /// Move the checkpoint after hand-over, before it, or leave it to commit: manual
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

    /// While another process has the group, stand by; take over when it ends
    #[arg(long, requires = "group")]
    wait: bool,

    /// Run CMD in a shell for each record, which is its input; 0 acknowledges
    #[arg(long, value_name = "CMD", requires = "group", group = "handler")]
    exec: Option<String>,

    /// The same without a shell
    #[arg(last = true, value_name = "CMD", requires = "group", group = "handler")]
    program: Vec<OsString>,

    /// Up to N records a run, all or none acknowledged
    #[arg(long, value_name = "N", requires = "handler", value_parser = parse_count, hide_short_help = true)]
    batch: Option<u64>,

    /// Run it again for a record, N times at most, if it fails
    #[arg(long, value_name = "N", requires = "handler", value_parser = parse_count, hide_short_help = true)]
    retry: Option<u64>,

    /// The pause before that, doubled each time up to MAX [default: 100ms..1m]
    #[arg(long, value_name = "DUR[..MAX]", requires = "retry", hide_short_help = true)]
    backoff: Option<Backoff>,

    /// If that fails too: stop, or skip the record [default: stop]
    #[arg(
        long,
        value_name = "WHAT",
        requires = "handler",
        hide_possible_values = true,
        hide_short_help = true
    )]
    on_failure: Option<Failed>,
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
    /// Refuses what contradicts itself.
    ///
    /// # Errors
    /// [`Usage`].
    pub fn check(&self) -> Result<()> {
        if self.commit == Commit::Before && self.retry.is_some() {
            bail!(Usage(
                "--retry and --commit before: what is handed over at most once is not tried again"
                    .to_owned()
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

    /// Follows what `consumer` hands over.
    pub fn hand_over(&self, consumer: Consumer) -> HandOver {
        HandOver::new(consumer, self.interval(), self.commit == Commit::Before)
    }

    /// Hands records to the command, if there is one, for `hand_over`'s group.
    pub fn handler(&self, hand_over: &HandOver) -> Option<Handler> {
        let orders = Orders {
            program: self.program()?,
            retries: self.retry.unwrap_or(0),
            backoff: self.backoff.unwrap_or_default(),
            on_failure: match self.on_failure {
                None | Some(Failed::Stop) => OnFailure::Stop,
                Some(Failed::Skip) => OnFailure::Skip,
            },
        };
        Some(Handler::new(orders, self.batch, hand_over.consumer().position()))
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
