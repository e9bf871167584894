//! The properties of all decoders, for cargo-fuzz. They are those of `tests/decoders`
//! and of the parsers of the command line, whose files are taken in as they stand:
//! what is private in tapelog stays so.

mod cli;
#[path = "../../decoders/properties/mod.rs"]
pub mod decoders;

pub use cli::properties as text;

// What the files of the command line find under `crate`.
use tapelog::{format, model};
