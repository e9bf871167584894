//! Waiting until a group has read everything: for scripts that stop or go on then.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rustix::event::{PollFd, PollFlags};

use crate::cli::failure::{Ended, Status};
use crate::cli::stream::output::wait;
use crate::cli::text::duration::show_duration;
use crate::disk::watch::Watch;
use crate::log::{Bounds, Error as LogError, Log};
use crate::model::GroupName;

/// How often the checkpoint is looked at without file events.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How often with them: some file systems lose events without a word.
const WATCHED_INTERVAL: Duration = Duration::from_secs(5);

/// Waits until the checkpoint of `group` is at the log end.
///
/// # Errors
/// An [`Ended`] with [`Status::Deadline`] if it is not after `limit`; [`LogError::NoGroup`];
/// damage at the log's end; what the disk says.
pub fn wait_until_drained(log: &Log, group: &GroupName, limit: Option<Duration>) -> Result<()> {
    let begun = Instant::now();
    // Watched before it is looked at, so that no change in between is missed.
    let watch = Watch::on(&log.groups_dir()).ok();
    loop {
        let Some(position) = log.group_position(group)? else {
            return Err(LogError::NoGroup(group.clone()).into());
        };
        let Bounds { end, damage, .. } = log.bounds()?;
        if let Some(damage) = damage {
            return Err(LogError::from(damage).into());
        }
        let lag = end.since(position);
        if lag == 0 {
            return Ok(());
        }
        let left = limit.map(|limit| limit.saturating_sub(begun.elapsed()));
        if let (Some(Duration::ZERO), Some(limit)) = (left, limit) {
            let noun = if lag == 1 { "record" } else { "records" };
            let line =
                format!("group {group} is {lag} {noun} behind after {}", show_duration(limit));
            bail!(Ended { status: Status::Deadline, line: Some(line) });
        }
        sleep(watch.as_ref(), left)?;
    }
}

/// Sleeps until a file beside the checkpoint changes, or `left` has passed.
fn sleep(watch: Option<&Watch>, left: Option<Duration>) -> Result<()> {
    let poll = if watch.is_some() { WATCHED_INTERVAL } else { POLL_INTERVAL };
    let limit = left.map_or(poll, |left| left.min(poll));
    let handle = watch.map(|watch| PollFd::from_borrowed_fd(watch.handle(), PollFlags::IN));
    wait(&mut handle.into_iter().collect::<Vec<_>>(), Some(limit))?;
    if let Some(watch) = watch {
        watch.drain();
    }
    Ok(())
}
