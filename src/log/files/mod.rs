//! How a log's small files and its locks behave on the disk: born or replaced
//! whole, two slots that one power cut can't take both, kernel locks.

pub(crate) mod lock;
pub(crate) mod quarantine;
pub(crate) mod slot_file;
pub(crate) mod whole_file;
