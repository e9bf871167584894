//! Where acknowledgements come from: a pipe, by its name or by the number of a handle
//! that the shell opened, read without ever sleeping in it.
//!
//! What is read is copied first and taken out of the pipe only once it is stored: to be
//! killed at any moment repeats nothing that was taken.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, tee};

use crate::model::Offset;

/// No offset has more digits.
const LONGEST_LINE: usize = 20;
/// So many bytes are read at once.
const CHUNK: usize = 4096;
const UNSLEEPING: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// A source of offsets, a line each.
#[derive(Debug)]
pub struct AckSource {
    name: String,
    file: OwnedFd,
    /// A pipe to copy through; of anything but a pipe, bytes are taken at once.
    copy: Option<(OwnedFd, OwnedFd)>,
    /// How many of the bytes are still in the pipe.
    copied: usize,
    /// What was read and is no line yet.
    bytes: Vec<u8>,
    /// How many lines were read.
    lines: u64,
    has_ended: bool,
}

impl AckSource {
    /// Opens the file `name`; a number is the handle of that number. A pipe whose writer
    /// has not come yet is waited for later.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(name: &OsStr) -> Result<AckSource> {
        let is_number = |text: &&str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let (shown, path) = match name.to_str().filter(is_number) {
            Some(number) => {
                (format!("handle {number}"), OsString::from(format!("/dev/fd/{number}")))
            }
            None => (name.to_string_lossy().into_owned(), name.to_owned()),
        };
        let file = rustix::fs::open(path, UNSLEEPING, Mode::empty());
        let file = file.with_context(|| format!("can't read acknowledgements from {shown}"))?;
        let copy = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok();
        let (bytes, has_ended) = (Vec::new(), false);
        Ok(AckSource { name: shown, file, copy, copied: 0, bytes, lines: 0, has_ended })
    }

    /// For polling: readable when there is something, or the end. A pipe that nobody has
    /// written to yet has not ended.
    pub fn handle(&self) -> Option<PollFd<'_>> {
        (!self.has_ended).then(|| PollFd::new(&self.file, PollFlags::IN))
    }

    /// Whether nobody can acknowledge any more.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Reads what is there; false if that is nothing. To be called again once that is
    /// [taken](Self::take).
    ///
    /// # Errors
    /// What the system says.
    pub fn fill(&mut self) -> Result<bool> {
        let Some(handle) = self.handle() else { return Ok(false) };
        let mut fds = [handle];
        // Read only when there is something: before the first writer comes, a read would
        // look like the end.
        if !poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0) {
            return Ok(false);
        }
        let mut room = [0; CHUNK];
        match self.read(&mut room) {
            Ok(0) => {
                self.has_ended = true;
                Ok(false)
            }
            Ok(count) => {
                self.bytes.extend_from_slice(&room[..count]);
                Ok(true)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(error) => Err(error).with_context(|| self.name_it()),
        }
    }

    /// Copies what is there, or takes it where it can't be copied.
    fn read(&mut self, room: &mut [u8]) -> rustix::io::Result<usize> {
        let Some((out, into)) = &self.copy else { return rustix::io::read(&self.file, room) };
        match tee(&self.file, into, room.len(), SpliceFlags::NONBLOCK) {
            Ok(0) => Ok(0),
            Ok(_) => {
                self.copied = rustix::io::read(out, room)?;
                Ok(self.copied)
            }
            Err(Errno::INVAL) => {
                self.copy = None;
                rustix::io::read(&self.file, room)
            }
            Err(error) => Err(error),
        }
    }

    /// Takes what was read out of the pipe.
    ///
    /// # Errors
    /// What the system says.
    pub fn take(&mut self) -> Result<()> {
        let mut room = [0; CHUNK];
        while self.copied > 0 {
            match rustix::io::read(&self.file, &mut room[..self.copied]) {
                // Somebody else took it: a pipe has one reader.
                Ok(0) | Err(Errno::AGAIN) => self.copied = 0,
                Ok(count) => self.copied -= count,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error).with_context(|| self.name_it()),
            }
        }
        Ok(())
    }

    fn name_it(&self) -> String {
        format!("can't read acknowledgements from {}", self.name)
    }

    /// The next whole line of what was read.
    ///
    /// # Errors
    /// One that is no offset.
    pub fn next_line(&mut self) -> Result<Option<Offset>> {
        let end = memchr::memchr(b'\n', &self.bytes);
        if end.is_none() && self.bytes.len() <= LONGEST_LINE {
            return Ok(None);
        }
        let length = end.unwrap_or(self.bytes.len());
        let line = &self.bytes[..length];
        self.lines += 1;
        let is_number = !line.is_empty() && line.iter().all(u8::is_ascii_digit);
        let text = String::from_utf8_lossy(line);
        let Some(number) = text.parse().ok().filter(|_| is_number) else {
            let text = text.chars().take(LONGEST_LINE).collect::<String>();
            bail!("{}: {text:?} is no offset: write the next one of a record", self.place());
        };
        self.bytes.drain(..=length);
        Ok(Some(Offset::new(number)))
    }

    /// The line that was read last, in messages.
    pub fn place(&self) -> String {
        format!("line {} of {}", self.lines, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> Vec<Result<Option<u64>, String>> {
        let mut source = AckSource::open("/dev/null".as_ref()).unwrap();
        source.bytes = bytes.to_vec();
        let mut found = Vec::new();
        loop {
            let next = source.next_line();
            let next = next.map(|line| line.map(Offset::get)).map_err(|error| error.to_string());
            let ends = !matches!(next, Ok(Some(_)));
            found.push(next);
            if ends {
                return found;
            }
        }
    }

    #[test]
    fn whole_lines_of_digits_and_nothing_else() {
        assert_eq!(lines(b""), [Ok(None)]);
        assert_eq!(lines(b"12"), [Ok(None)], "not whole yet");
        assert_eq!(lines(b"0\n12\n3"), [Ok(Some(0)), Ok(Some(12)), Ok(None)]);
        for bad in ["\n", "-1\n", "+1\n", "1 \n", "x\n", "1\r\n", "99999999999999999999\n"] {
            let found = lines(format!("7\n{bad}").as_bytes());
            let told = found[1].as_ref().unwrap_err();
            assert!(
                told.starts_with("line 2 of /dev/null: ") && told.contains("no offset"),
                "{told}"
            );
        }
        let endless = lines(&[b'1'; 21]);
        assert!(endless[0].is_err(), "no line that long can be an offset");
    }

    #[test]
    fn a_pipe_that_nobody_has_opened_has_not_ended() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("acks");
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
        let mut source = AckSource::open(path.as_os_str()).unwrap();
        assert!(!source.fill().unwrap() && !source.has_ended());
        std::fs::write(&path, "5\n").unwrap();
        assert!(source.fill().unwrap());
        assert_eq!(source.next_line().unwrap(), Some(Offset::new(5)));
        assert_eq!(rustix::io::ioctl_fionread(&source.file).unwrap(), 2, "there until taken");
        source.take().unwrap();
        assert!(!source.fill().unwrap() && source.has_ended());
    }
}
