//! The parsers of the command line, as they stand in tapelog, and their properties.

#[path = "../../../src/cli/text/properties.rs"]
pub mod properties;
#[allow(dead_code, unused_imports, reason = "the properties need the parsers alone")]
#[path = "../../../src/cli/text/mod.rs"]
pub mod text;
