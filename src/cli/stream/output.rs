//! Standard output as a place that records are handed over to. On a pipe, what the
//! reader has not taken is not handed over yet; a reader that is stuck must not keep
//! a signal from being heard, whatever the output is; and one that has gone must be
//! noticed.

use std::io::{self, IoSlice};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::{Errno, ReadWriteFlags};
use rustix::net::{AddressFamily, SendFlags, sockopt};

use super::signals::Signals;
use crate::cli::failure::OutputClosed;
use crate::log::Stored;

/// The process's standard output.
#[derive(Debug)]
pub struct Output {
    file: BorrowedFd<'static>,
    kind: Kind,
    /// A terminal opened once more, so that writes to it need not sleep and nobody
    /// else who has it notices.
    terminal: Option<OwnedFd>,
    sent: u64,
    /// Whether bytes that lie in a file can come from there, without being copied.
    splices: bool,
    /// Whether a pipe was asked to hold more.
    is_wide: bool,
}

/// What differs in writing without sleeping, and in noticing that the reader has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Pipe,
    /// A socket, and what tells besides errors that its peer has gone.
    Socket(PollFlags),
    /// A terminal or its like: it can be full, and has no such write.
    Device,
    /// A file, or a null device: never full.
    File,
}

/// From this many bytes on they are moved from the file instead of being copied.
const WORTH_SPLICING: usize = 16 << 10;
/// What a pipe is asked to hold: pipe(7) lets everyone have this.
pub const WIDE_PIPE: usize = 1 << 20;
/// The most that is written at once to a device that may sleep, after a poll that
/// found room: most often it has room for this then.
const DEVICE_PIECE: usize = 4096;
/// The pause before the next try where room was found but not enough.
const STALL: Duration = Duration::from_millis(2);
const SELF: &str = "/proc/self/fd/1";
const UNSLEEPING: OFlags =
    OFlags::WRONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
/// The devices that live in memory, such as null; linux/major.h.
const MEM_MAJOR: u32 = 1;

impl Output {
    /// Standard output.
    ///
    /// # Errors
    /// What the system says.
    pub fn standard() -> Result<Output> {
        let file = rustix::stdio::stdout();
        let stat = rustix::fs::fstat(file).context(NAME)?;
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Fifo => Kind::Pipe,
            FileType::Socket => Kind::Socket(peer_gone(file)),
            FileType::CharacterDevice if rustix::fs::major(stat.st_rdev) != MEM_MAJOR => {
                Kind::Device
            }
            _ => Kind::File,
        };
        let terminal = (kind == Kind::Device && rustix::termios::isatty(file))
            .then(|| rustix::fs::open(SELF, UNSLEEPING, Mode::empty()).ok());
        let (terminal, splices) = (terminal.flatten(), kind == Kind::Pipe);
        Ok(Output { file, kind, terminal, sent: 0, splices, is_wide: kind != Kind::Pipe })
    }

    /// Standard output where only others write to it: nothing of it is looked at.
    pub fn of_others() -> Output {
        let (file, kind) = (rustix::stdio::stdout(), Kind::File);
        Output { file, kind, terminal: None, sent: 0, splices: false, is_wide: true }
    }

    /// How many bytes were given to the output.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// How many of those bytes were handed over: on a pipe, taken out by the reader.
    /// What the peer of a socket has not read yet, nothing here can tell.
    pub fn taken(&self) -> u64 {
        let waiting = match self.kind {
            Kind::Pipe => rustix::io::ioctl_fionread(self.file).unwrap_or(u64::MAX),
            _ => 0,
        };
        // Somebody else's bytes may lie in the same pipe: then this is less than the truth.
        self.sent.saturating_sub(waiting)
    }

    /// Whether whoever read the pipe or the socket has gone.
    pub fn is_closed(&self) -> bool {
        let Some(closing) = self.closing() else { return false };
        let mut fds = [closing];
        // Whatever is reported is an end: nothing else was asked for.
        poll(&mut fds, Some(&Timespec::default())).is_ok() && !fds[0].revents().is_empty()
    }

    /// For polling: reports something once the reader has gone; `None` where nobody can go.
    pub fn closing(&self) -> Option<PollFd<'_>> {
        match self.kind {
            Kind::Pipe => Some(PollFd::new(&self.file, PollFlags::empty())),
            Kind::Socket(flags) => Some(PollFd::new(&self.file, flags)),
            Kind::Device | Kind::File => None,
        }
    }

    /// Whether somebody looks at it.
    pub fn is_terminal(&self) -> bool {
        rustix::termios::isatty(self.file)
    }

    /// Writes all of `bytes`.
    ///
    /// # Errors
    /// [`OutputClosed`] if the reader has gone, the signal if one came while the
    /// output was full, what the system says. [`sent`](Self::sent) tells how far it got.
    pub fn write(&mut self, bytes: &[u8], signals: &Signals) -> Result<()> {
        self.write_heeding(bytes, Some(signals))
    }

    /// Writes some of `bytes`, without waiting; 0 if there is no room.
    ///
    /// # Errors
    /// [`OutputClosed`] if the reader has gone, what the system says.
    pub fn try_write(&mut self, bytes: &[u8]) -> Result<usize> {
        match self.write_some(bytes) {
            Ok(count) => {
                self.sent += count as u64;
                Ok(count)
            }
            Err(error) if is_not_now(&error) => Ok(0),
            Err(error) if is_end(&error) => bail!(OutputClosed),
            Err(error) => Err(error).context(NAME),
        }
    }

    /// For polling: reports something when there is room.
    pub fn room(&self) -> PollFd<'_> {
        PollFd::new(&self.file, PollFlags::OUT)
    }

    /// Lets the reader see the end, before this process has one.
    ///
    /// # Errors
    /// What the system says.
    pub fn close(&mut self) -> Result<()> {
        let null = rustix::fs::open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
        rustix::stdio::dup2_stdout(null.context(NAME)?).context(NAME)?;
        (self.kind, self.terminal) = (Kind::File, None);
        Ok(())
    }

    /// The same of bytes that may lie in a file too: a pipe takes many of them from there.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_stored(
        &mut self,
        bytes: &[u8],
        stored: Option<Stored<'_>>,
        signals: &Signals,
    ) -> Result<()> {
        let Some(stored) = stored.filter(|_| self.splices && bytes.len() >= WORTH_SPLICING) else {
            return self.write(bytes, signals);
        };
        self.widen();
        let mut done = 0;
        while done < bytes.len() && self.splices {
            let position = stored.position.get() + done as u64;
            match stored.file.splice_to(position, bytes.len() - done, self.file) {
                Ok(count) if count > 0 => {
                    self.sent += count as u64;
                    done += count;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait_for_room(Some(signals), false)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_end(&error) => bail!(OutputClosed),
                // What was read and checked is at hand, whatever the file is like now.
                Ok(_) | Err(_) => self.splices = false,
            }
        }
        self.write(&bytes[done..], signals)
    }

    /// Asks the system once to let the pipe hold more, so that writer and reader change
    /// places less often. As much as anyone may ask for; less is fine.
    fn widen(&mut self) {
        if !std::mem::replace(&mut self.is_wide, true) {
            let _ = rustix::pipe::fcntl_setpipe_size(self.file, WIDE_PIPE);
        }
    }

    /// The same where nobody watches for signals: they end the process.
    ///
    /// # Errors
    /// [`OutputClosed`] if the reader has gone, what the system says.
    pub fn write_unwatched(&mut self, bytes: &[u8]) -> Result<()> {
        self.write_heeding(bytes, None)
    }

    fn write_heeding(&mut self, mut bytes: &[u8], signals: Option<&Signals>) -> Result<()> {
        let mut stalls = false;
        while !bytes.is_empty() {
            match self.write_some(bytes) {
                Ok(count) => {
                    stalls = false;
                    self.sent += count as u64;
                    bytes = &bytes[count..];
                }
                // The parent may have made any output one that never sleeps.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait_for_room(signals, stalls)?;
                    stalls = true;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_end(&error) => bail!(OutputClosed),
                Err(error) => return Err(error).context(NAME),
            }
        }
        Ok(())
    }

    /// Writes without ever sleeping in a full output, where a signal would not be heard.
    fn write_some(&self, bytes: &[u8]) -> io::Result<usize> {
        match self.kind {
            Kind::Pipe => self.write_pipe(bytes),
            Kind::Socket(_) => {
                let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                Ok(rustix::net::send(self.file, bytes, flags)?)
            }
            Kind::Device => {
                if let Some(terminal) = &self.terminal {
                    return Ok(rustix::io::write(terminal, bytes)?);
                }
                if !self.has_room()? {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                let piece = &bytes[..bytes.len().min(DEVICE_PIECE)];
                Ok(rustix::io::write(self.file, piece)?)
            }
            Kind::File => Ok(rustix::io::write(self.file, bytes)?),
        }
    }

    fn write_pipe(&self, bytes: &[u8]) -> io::Result<usize> {
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

    fn has_room(&self) -> io::Result<bool> {
        let mut fds = [PollFd::new(&self.file, PollFlags::OUT)];
        Ok(poll(&mut fds, Some(&Timespec::default()))? > 0)
    }

    /// Waits for room. If the last wait found some that was not enough, as a terminal
    /// that makes two characters of a newline may, then it only waits a little.
    fn wait_for_room(&self, signals: Option<&Signals>, stalls: bool) -> Result<()> {
        let mut fds = Vec::new();
        if !stalls {
            fds.push(PollFd::new(&self.file, PollFlags::OUT));
        }
        if let Some(signals) = signals {
            if let Some(signal) = signals.caught() {
                bail!(signal);
            }
            fds.push(PollFd::from_borrowed_fd(signals.handle(), PollFlags::IN));
        }
        wait(&mut fds, stalls.then_some(STALL))
    }
}

/// What a poll must ask for to hear that the peer of `socket` has gone. A unix
/// socket reports that unasked, and apart from a peer that only ended its own
/// writing; of others nothing but that end can be seen.
fn peer_gone(socket: BorrowedFd<'_>) -> PollFlags {
    match sockopt::socket_domain(socket) {
        Ok(AddressFamily::UNIX) => PollFlags::empty(),
        _ => PollFlags::RDHUP,
    }
}

/// Whether an error of writing says that the reader has gone.
fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// Whether it may go well later.
fn is_not_now(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// What stands before errors of writing.
pub const NAME: &str = "can't write to standard output";

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
