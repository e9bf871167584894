//! Bytes and their meaning, without a file in sight: encoding is pure, decoding
//! bounds every length and says exactly what is wrong.

pub mod batch;
pub mod body;
pub mod checked_json;
pub mod codec;
pub mod columns;
pub mod file_name;
pub mod index_entry;
pub mod key_hash;
pub mod key_table;
pub mod record;
pub mod segment_row;
pub mod settings;
pub mod slots;
pub mod state;
pub mod varint;
