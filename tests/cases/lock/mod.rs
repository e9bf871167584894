//! LOCK: locks, process ids, several writers.
//!
//! H054 (a handler inherits no handle) waits for `--exec`.

mod holders;
mod left_behind;
mod readers;
mod writers;

use std::time::{Duration, Instant};

/// Runs this and says how long it took.
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    (work(), start.elapsed())
}
