//! A progress line on stderr for work that takes longer than a second, and only
//! where stderr is a terminal.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shorter work shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// Progress in bytes.
#[derive(Debug)]
pub struct Progress {
    begun: Instant,
    /// Counts from the beginning, so that its rate is right, and is drawn only later.
    bar: Option<ProgressBar>,
    is_drawn: bool,
}

impl Progress {
    /// Progress of `what` towards `total` bytes, or without an end if that is 0.
    /// `wanted` is false where a line would disturb what is on the terminal.
    pub fn of_bytes(what: &'static str, total: u64, wanted: bool) -> Progress {
        let shows = wanted && rustix::termios::isatty(rustix::stdio::stderr());
        let bar = shows.then(|| hidden_bar(what, total));
        Progress { begun: Instant::now(), bar, is_drawn: false }
    }

    /// So many bytes more are done.
    pub fn add(&mut self, bytes: u64) {
        let Some(bar) = &self.bar else { return };
        bar.inc(bytes);
        if !self.is_drawn && self.begun.elapsed() >= PATIENCE {
            self.is_drawn = true;
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// Takes the line away.
    pub fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

fn hidden_bar(what: &'static str, total: u64) -> ProgressBar {
    let (length, template) = match total {
        0 => (None, "{msg} {bytes} ({bytes_per_sec})"),
        total => (Some(total), "{msg} {bytes}/{total_bytes} {wide_bar} {eta}"),
    };
    let style = ProgressStyle::with_template(template);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::hidden());
    bar.with_style(style).with_message(what)
}
