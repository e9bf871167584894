//! Waiting at the log end: woken by the system when a file of the log changes, or
//! by asking again and again where that does not work.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags};

use super::output::{Output, wait};
use super::signals::Signals;
use crate::disk::HeldDirectory;
use crate::disk::watch::Watch;
use crate::log::Home;

/// How often the log is looked at without file events.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How often it is looked at with them: some file systems lose events without a word.
const WATCHED_INTERVAL: Duration = Duration::from_secs(5);
/// How soon an append that was met half done is looked at again, at first and at most.
const FIRST_LOOK: Duration = Duration::from_millis(1);

/// Waits for a log to grow.
#[derive(Debug)]
pub struct Follower {
    home: Home,
    /// The directory that is followed, whatever comes to its path.
    directory: Box<dyn HeldDirectory>,
    watch: Option<Watch>,
    idle_limit: Option<Duration>,
    /// Set when the last wait ended by an event: the append may not be whole yet.
    next_look: Option<Duration>,
}

impl Follower {
    /// Follows the log at `home`, until nothing came for `idle_limit`.
    ///
    /// # Errors
    /// What the system says of its directory.
    pub fn of(home: Home, idle_limit: Option<Duration>) -> Result<Follower> {
        let dir = home.dir();
        let directory = home.disk().hold_dir(dir);
        let directory = directory.with_context(|| format!("can't look at {}", dir.display()))?;
        let watch = Watch::on(dir).ok();
        Ok(Follower { home, directory, watch, idle_limit, next_look: None })
    }

    /// Waits until the log may have grown, `limit` has passed or `also` has something;
    /// false once it has been idle for too long.
    ///
    /// # Errors
    /// The signal that came; the log's directory is there no more; what the system says.
    pub fn wait(
        &mut self,
        signals: &Signals,
        output: &Output,
        also: Option<PollFd<'_>>,
        last_print: Instant,
        limit: Option<Duration>,
    ) -> Result<bool> {
        let idle_left = self.idle_limit.map(|limit| limit.saturating_sub(last_print.elapsed()));
        if idle_left == Some(Duration::ZERO) {
            return Ok(false);
        }
        let poll = if self.watch.is_some() { WATCHED_INTERVAL } else { POLL_INTERVAL };
        let look = self.next_look.take();
        let limit = [idle_left, limit, Some(poll), look].into_iter().flatten().min();
        let heard = self.sleep(signals, output, also, limit)?;
        if let Some(signal) = signals.caught() {
            bail!(signal);
        }
        self.check_directory()?;
        if heard {
            self.next_look = Some(FIRST_LOOK);
        } else {
            self.next_look = look.map(|look| look * 2).filter(|&look| look < POLL_INTERVAL);
        }
        Ok(true)
    }

    /// Whether a file of the log changed before `limit` had passed.
    fn sleep(
        &self,
        signals: &Signals,
        output: &Output,
        also: Option<PollFd<'_>>,
        limit: Option<Duration>,
    ) -> Result<bool> {
        let mut fds = vec![PollFd::from_borrowed_fd(signals.handle(), PollFlags::IN)];
        fds.extend(output.closing());
        fds.extend(also);
        if let Some(watch) = &self.watch {
            fds.push(PollFd::from_borrowed_fd(watch.handle(), PollFlags::IN));
        }
        wait(&mut fds, limit)?;
        let Some(watch) = &self.watch else { return Ok(false) };
        let heard = fds.last().is_some_and(|fd| fd.revents().contains(PollFlags::IN));
        watch.drain();
        Ok(heard)
    }

    fn check_directory(&self) -> Result<()> {
        let dir = self.home.dir();
        match self.directory.is_at(dir) {
            Ok(true) => Ok(()),
            _ => bail!("{} was removed or replaced while it was followed", dir.display()),
        }
    }
}
