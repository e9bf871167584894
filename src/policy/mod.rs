//! Decisions without deeds: facts and the time in, a verdict or a plan out. No
//! file is touched, no clock is read.

pub mod compaction;
pub mod merging;
pub mod retention;
pub mod rolling;
pub mod verdict;
