//! The rules of a log.

mod whole_file;
