//! Records on their way in and out of the process: cutting input, writing output,
//! what a reader has taken, waiting, signals, progress.

pub mod follow;
pub mod framing;
pub mod hand_over;
pub mod output;
pub mod progress;
pub mod signals;
