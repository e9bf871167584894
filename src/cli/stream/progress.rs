//! A progress line on stderr for work that takes longer than a second, and only
//! where stderr is a terminal.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Shorter work shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// Progress in bytes.
#[derive(Debug)]
pub struct Progress {
    what: &'static str,
    total: u64,
    done: u64,
    begun: Instant,
    shows: bool,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Progress of `what` towards `total` bytes, or without an end if that is 0.
    /// `wanted` is false where a line would disturb what is on the terminal.
    pub fn of_bytes(what: &'static str, total: u64, wanted: bool) -> Progress {
        let shows = wanted && rustix::termios::isatty(rustix::stdio::stderr());
        Progress { what, total, done: 0, begun: Instant::now(), shows, bar: None }
    }

    /// So many bytes more are done.
    pub fn add(&mut self, bytes: u64) {
        self.done += bytes;
        if !self.shows {
            return;
        }
        if self.bar.is_none() && self.begun.elapsed() >= PATIENCE {
            self.bar = Some(self.new_bar());
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.done);
        }
    }

    /// Takes the line away.
    pub fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn new_bar(&self) -> ProgressBar {
        let (bar, template) = match self.total {
            0 => (ProgressBar::no_length(), "{msg} {bytes} ({bytes_per_sec})"),
            total => (ProgressBar::new(total), "{msg} {bytes}/{total_bytes} {wide_bar} {eta}"),
        };
        let style = ProgressStyle::with_template(template);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.with_style(style).with_message(self.what)
    }
}
