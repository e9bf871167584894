//! The commands, one file each: its arguments, its help, and what it does. A new
//! one is a file here, a line in this list and a line in the dispatch.

pub mod commit;
pub mod config;
pub mod consume;
pub mod gc;
pub mod get;
pub mod groups;
pub mod produce;
pub mod seek;
pub mod segments;
pub mod verify;
