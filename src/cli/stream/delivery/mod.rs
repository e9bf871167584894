//! Who is done with a record, and when: a command that is run for it, another program
//! that acknowledges it, or nobody, where the checkpoint goes ahead. And what becomes of
//! records that a command can't handle.

mod ack_source;
pub mod acks;
pub mod dead_letters;
pub mod drained;
mod environment;
pub mod handler;
mod lot;
pub mod options;
mod program;
mod retry;
pub mod standby;
