//! tapelog: a durable, replayable message log in a plain directory.
//!
//! The layers, each using only those below it: [`cli`] turns words into calls
//! and values into words; [`log`] holds the rules of a log; [`segment`] reads and
//! writes one segment file and [`policy`] decides without touching one; [`mod@format`]
//! gives bytes their meaning and [`disk`] keeps them; [`model`] names things.

pub mod cli;
pub mod disk;
pub mod format;
pub mod log;
pub mod model;
pub mod policy;
pub mod segment;
