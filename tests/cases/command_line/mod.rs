//! The command line from end to end: every option of the verbs that print, move
//! and show; bad input, which everywhere gets one clear line on stderr and the
//! right exit status, and loses nothing.

mod bad_checkpoints;
mod bad_input;
mod bounds;
mod checkpoints;
mod config;
mod damage_or_newer;
mod follow;
mod groups;
mod output;
mod seek;
mod segments;
mod starts;
mod state_files;
