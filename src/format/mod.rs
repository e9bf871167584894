//! Bytes and their meaning, without a file in sight: encoding is pure, decoding
//! says exactly what is wrong.

pub mod file_name;
