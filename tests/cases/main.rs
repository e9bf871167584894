//! The failure cases: each is made from public bug reports of tools that do this
//! job, and keeps its id in its name. They run the real binary.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on panics")]

#[path = "../sandbox/mod.rs"]
mod sandbox;

mod by_key;
mod calls;
mod command_line;
mod commit;
mod compaction;
mod delivery;
mod disk;
mod fsync;
mod gc;
mod index;
mod input;
mod lock;
mod long_run;
mod much_damage;
mod path;
mod pipe;
mod range;
mod records;
mod rot;
mod scale;
mod segment;
mod system_calls;
mod time;
mod torn;
mod unread;
