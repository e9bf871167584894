//! Where records come from: files and standard input.

use std::cell::Cell;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::FileType;

use super::output::{WIDE_PIPE, wait};
use super::signals::Signals;

/// What a pipe holds unless it is asked to hold more.
const COMMON_PIPE: usize = 64 << 10;

/// An open input and the name it has in messages.
#[derive(Debug)]
pub struct Input {
    name: String,
    file: File,
    /// A regular file never has to be waited for.
    is_regular: bool,
    /// Whether a pipe was asked to hold more.
    is_wide: Cell<bool>,
}

impl Input {
    /// Opens the file `name`, or standard input for `-`.
    ///
    /// # Errors
    /// What the system says; a directory.
    pub fn open(name: &OsString) -> Result<Input> {
        let (shown, file) = if name == "-" {
            let stdin = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3);
            ("standard input".to_owned(), stdin.context("can't read standard input")?.into())
        } else {
            let shown = name.to_string_lossy().into_owned();
            (shown, File::open(name).with_context(|| format!("can't open {}", name.display()))?)
        };
        let stat = rustix::fs::fstat(&file).with_context(|| format!("can't read {shown}"))?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind == FileType::Directory {
            bail!("can't read {shown}: it is a directory; give files");
        }
        let (is_regular, is_wide) = (kind == FileType::RegularFile, kind != FileType::Fifo);
        Ok(Input { name: shown, file, is_regular, is_wide: Cell::new(is_wide) })
    }

    /// The name it has in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is a file of the log in `dir`, however it was opened: appending to that
    /// log could make it grow for ever.
    pub fn is_file_of(&self, dir: &Path) -> bool {
        let place = fs::canonicalize(format!("/proc/self/fd/{}", self.file.as_raw_fd()));
        let parent = place.ok().and_then(|path| rustix::fs::stat(path.parent()?).ok());
        let Some((parent, log)) = parent.zip(rustix::fs::stat(dir).ok()) else { return false };
        self.is_regular && (parent.st_dev, parent.st_ino) == (log.st_dev, log.st_ino)
    }

    /// Whether somebody types it.
    pub fn is_terminal(&self) -> bool {
        rustix::termios::isatty(&self.file)
    }

    /// Its size, as far as that is known before it is read.
    pub fn size(&self) -> u64 {
        self.file.metadata().map_or(0, |data| if self.is_regular { data.len() } else { 0 })
    }

    /// Whether there is something to read within `limit`, or a signal came first.
    ///
    /// # Errors
    /// What the system says.
    pub fn is_ready(&self, signals: &Signals, limit: Option<Duration>) -> Result<bool> {
        if self.is_regular {
            return Ok(true);
        }
        let mut fds = [
            PollFd::from_borrowed_fd(self.file.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(signals.handle(), PollFlags::IN),
        ];
        wait(&mut fds, limit)?;
        Ok(!fds[0].revents().is_empty())
    }

    /// Reads some bytes; 0 at the end.
    ///
    /// # Errors
    /// What the system says.
    pub fn read(&self, room: &mut [u8]) -> Result<usize> {
        loop {
            match (&self.file).read(room) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(count) => {
                    self.widen_if_full(count);
                    return Ok(count);
                }
                read => return read.with_context(|| format!("can't read {}", self.name)),
            }
        }
    }

    /// Lets a pipe that comes full hold more, so that its writer and we change places
    /// less often.
    fn widen_if_full(&self, count: usize) {
        if count >= COMMON_PIPE && !self.is_wide.replace(true) {
            let _ = rustix::pipe::fcntl_setpipe_size(&self.file, WIDE_PIPE);
        }
    }
}
