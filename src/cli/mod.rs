//! Words in, words out.

pub mod duration;
pub mod escapes;
pub mod range;
pub mod record_json;
pub mod size;
pub mod template;
pub mod when;
