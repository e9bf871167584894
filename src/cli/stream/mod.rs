//! Records on their way in and out of the process: cutting input, writing output,
//! what a reader has taken, how far a log reaches, waiting, signals, progress.

pub mod answers;
pub mod consumption;
pub mod delivery;
pub mod follow;
pub mod framing;
pub mod gather;
pub mod hand_over;
pub mod input;
pub mod jumps;
pub mod output;
pub mod producer;
pub mod progress;
pub mod promise;
pub mod reach;
pub mod receipts;
pub mod shape;
pub mod signals;
pub mod unique;
