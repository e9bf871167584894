//! SIGINT, SIGTERM and SIGHUP: the first one asks the command to stop taking and save what
//! it has, the second one ends the process at once.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use rustix::event::{PollFd, PollFlags};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;
use signal_hook::{flag, low_level};
use thiserror::Error;

use super::output::wait;

/// A signal came; what was to be saved is saved.
#[derive(Debug, Error)]
#[error("ended by signal {0}")]
pub struct Signalled(pub i32);

/// Watches for signals. Its handle becomes readable when one came.
#[derive(Debug)]
pub struct Signals {
    last: Arc<AtomicUsize>,
    /// Never emptied, so that it stays readable once a signal came.
    delivery: SignalDelivery<UnixStream, SignalOnly>,
}

impl Signals {
    /// Begins to watch.
    ///
    /// # Errors
    /// What the system says.
    pub fn watch() -> io::Result<Signals> {
        let (last, second) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let hang_up = (!ignores(SIGHUP)).then_some(SIGHUP);
        let signals: Vec<i32> = [SIGINT, SIGTERM].into_iter().chain(hang_up).collect();
        for &signal in &signals {
            // In this order: the first signal only sets the flag that the second one finds.
            flag::register_conditional_default(signal, Arc::clone(&second))?;
            flag::register(signal, Arc::clone(&second))?;
            flag::register_usize(signal, Arc::clone(&last), signal as usize)?;
        }
        let (wake, sender) = UnixStream::pair()?;
        let delivery = SignalDelivery::with_pipe(wake, sender, SignalOnly, &signals)?;
        Ok(Signals { last, delivery })
    }

    /// The signal that came, if one did.
    pub fn caught(&self) -> Option<Signalled> {
        match self.last.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(Signalled(i32::try_from(signal).unwrap_or(SIGTERM))),
        }
    }

    /// A pause that a signal cuts short.
    ///
    /// # Errors
    /// What the system says.
    pub fn rest(&self, pause: Duration) -> Result<()> {
        wait(&mut [PollFd::from_borrowed_fd(self.handle(), PollFlags::IN)], Some(pause))
    }

    /// Readable once a signal came.
    pub fn handle(&self) -> BorrowedFd<'_> {
        self.delivery.get_read().as_fd()
    }
}

/// Whether the process was started with `signal` ignored, as nohup does; proc(5)
/// has the mask. Such a signal stays ignored.
fn ignores(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Ends the process by `signal`, so that its parent sees that.
pub fn end_by(signal: i32) {
    let _ = low_level::emulate_default_handler(signal);
}
