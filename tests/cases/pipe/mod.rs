//! PIPE: pipes, buffering, signals, follow mode.

mod closed_streams;
mod follow;
mod head;
mod own_log;
mod signals;
mod stuck;
