//! Where things are: the log end, the segment of an offset or a moment, the batch in
//! it. Tables and indexes are hints; what they find is checked against the segments.

pub(crate) mod index_upkeep;
pub(crate) mod last;
pub(crate) mod locate;
pub(crate) mod table;
pub(crate) mod table_file;
mod table_list;
pub(crate) mod tail;
