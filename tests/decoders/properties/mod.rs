//! What must hold of each decoder, whatever the input: a function from bytes that
//! panics where it does not. `tests/decoders` and `tests/fuzz` run the same ones.

mod batch;
mod draw;
mod key_tables;
mod names;
mod slots;
mod tables;

pub use batch::{batch_header, body, headers, inflate, records};
pub use key_tables::{key_page, key_table};
pub use names::{log_json, names};
pub use slots::{checkpoint_file, end_file, start_file};
pub use tables::{index_entry, index_file, segment_table};

/// The name of its fuzz target, and what panics where it does not hold.
type Property = (&'static str, fn(&[u8]));

/// All of them, by the names of their fuzz targets.
#[allow(dead_code, reason = "a fuzz target names the one that it runs")]
pub const ALL: [Property; 15] = [
    ("batch_header", batch_header),
    ("body", body),
    ("records", records),
    ("headers", headers),
    ("inflate", inflate),
    ("end_file", end_file),
    ("start_file", start_file),
    ("checkpoint_file", checkpoint_file),
    ("log_json", log_json),
    ("index_entry", index_entry),
    ("index_file", index_file),
    ("segment_table", segment_table),
    ("key_table", key_table),
    ("key_page", key_page),
    ("names", names),
];
