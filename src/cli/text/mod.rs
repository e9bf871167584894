//! Values as text and back: times, durations, sizes, places in a log, records, and
//! the conditions that pick records. Pure; what can't be read is told in one line.

pub mod count;
pub mod duration;
mod encode;
pub mod escapes;
pub mod filter;
#[cfg(test)]
mod properties;
pub mod range;
pub mod record_json;
pub mod size;
pub mod template;
pub mod when;
