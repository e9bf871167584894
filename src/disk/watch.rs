//! Hearing of changes in a directory instead of asking for them again and again.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::retry_on_intr;

/// Becomes readable whenever a file in the directory is written, made or removed.
#[derive(Debug)]
pub struct Watch {
    fd: OwnedFd,
}

impl Watch {
    /// Watches `dir`.
    ///
    /// # Errors
    /// What the system says: there may be too many watches, or none at all here.
    pub fn on(dir: &Path) -> io::Result<Watch> {
        let fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let events = WatchFlags::MODIFY
            | WatchFlags::CREATE
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF;
        retry_on_intr(|| inotify::add_watch(&fd, dir, events))?;
        Ok(Watch { fd })
    }

    /// For polling.
    pub fn handle(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Forgets what was reported so far.
    pub fn drain(&self) {
        let mut events = [0; 4096];
        while retry_on_intr(|| rustix::io::read(&self.fd, &mut events)).is_ok_and(|read| read > 0) {
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::real::RealDisk;
    use crate::disk::{Disk, write_all};
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    fn is_ready(watch: &Watch) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(watch.handle(), PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).unwrap() > 0
    }

    #[test]
    fn a_write_and_a_new_file_are_heard_of_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = RealDisk.create_new(&dir.path().join("a")).unwrap();
        let watch = Watch::on(dir.path()).unwrap();
        assert!(!is_ready(&watch));
        write_all(file.as_ref(), &[b"x"], 0).unwrap();
        assert!(is_ready(&watch));
        watch.drain();
        assert!(!is_ready(&watch));
        RealDisk.create_new(&dir.path().join("b")).unwrap();
        assert!(is_ready(&watch));
    }
}
