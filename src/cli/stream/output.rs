//! Standard output as a place that records are handed over to. On a pipe, what the
//! reader has not taken is not handed over yet, a full pipe must not keep a signal
//! from being heard, and a reader that has gone must be noticed.

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::io::{Errno, ReadWriteFlags};

use super::signals::Signals;
use crate::cli::failure::OutputClosed;

/// The process's standard output.
#[derive(Debug)]
pub struct Output {
    file: BorrowedFd<'static>,
    is_pipe: bool,
    sent: u64,
}

impl Output {
    /// Standard output.
    ///
    /// # Errors
    /// What the system says.
    pub fn standard() -> Result<Output> {
        let file = rustix::stdio::stdout();
        let kind = FileType::from_raw_mode(rustix::fs::fstat(file).context(NAME)?.st_mode);
        Ok(Output { file, is_pipe: kind == FileType::Fifo, sent: 0 })
    }

    /// How many bytes were given to the output.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// How many of those bytes were handed over: on a pipe, taken out by the reader.
    pub fn taken(&self) -> u64 {
        let waiting = match self.is_pipe {
            true => rustix::io::ioctl_fionread(self.file).unwrap_or(u64::MAX),
            false => 0,
        };
        // Somebody else's bytes may lie in the same pipe: then this is less than the truth.
        self.sent.saturating_sub(waiting)
    }

    /// Whether the reader of the pipe has gone.
    pub fn is_closed(&self) -> bool {
        let mut fds = [PollFd::new(&self.file, PollFlags::empty())];
        let ready = poll(&mut fds, Some(&Timespec::default()));
        self.is_pipe && ready.is_ok() && fds[0].revents().contains(PollFlags::ERR)
    }

    /// For polling: reports an error once the reader has gone.
    pub fn handle(&self) -> BorrowedFd<'_> {
        self.file
    }

    /// Whether it makes sense to poll for that.
    pub fn can_close(&self) -> bool {
        self.is_pipe
    }

    /// Writes all of `bytes`.
    ///
    /// # Errors
    /// [`OutputClosed`] if the reader has gone, the signal if one came while the
    /// pipe was full, what the system says. [`sent`](Self::sent) tells how far it got.
    pub fn write(&mut self, mut bytes: &[u8], signals: &Signals) -> Result<()> {
        while !bytes.is_empty() {
            match self.write_some(bytes) {
                Ok(count) => {
                    self.sent += count as u64;
                    bytes = &bytes[count..];
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait_for_room(signals)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => bail!(OutputClosed),
                Err(error) => return Err(error).context(NAME),
            }
        }
        Ok(())
    }

    /// Writes without ever sleeping in a full pipe, where a signal would not be heard.
    fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_pipe {
            return Ok(rustix::io::write(self.file, bytes)?);
        }
        // An offset of -1 means the file's own place, which a pipe has none of.
        let flags = ReadWriteFlags::NOWAIT;
        match rustix::io::pwritev2(self.file, &[IoSlice::new(bytes)], u64::MAX, flags) {
            // An old kernel: write as everyone does.
            Err(Errno::NOTSUP | Errno::NOSYS | Errno::SPIPE) => {
                Ok(rustix::io::write(self.file, bytes)?)
            }
            written => Ok(written?),
        }
    }

    fn wait_for_room(&self, signals: &Signals) -> Result<()> {
        if let Some(signal) = signals.caught() {
            bail!(signal);
        }
        let mut fds = [
            PollFd::new(&self.file, PollFlags::OUT),
            PollFd::from_borrowed_fd(signals.handle(), PollFlags::IN),
        ];
        wait(&mut fds, None)
    }
}

const NAME: &str = "can't write to standard output";

/// Waits until one of `fds` is ready or `limit` has passed; being interrupted counts as ready.
///
/// # Errors
/// What the system says.
pub fn wait(fds: &mut [PollFd<'_>], limit: Option<Duration>) -> Result<()> {
    let limit = limit.map(|limit| Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(limit.subsec_nanos()),
    });
    match poll(fds, limit.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error).context("can't wait for input"),
    }
}
