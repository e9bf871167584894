//! Writing: what a writer mends before its first append, appending, syncing, and
//! beginning a new segment. All under the append lock.

pub(crate) mod append;
pub(crate) mod prepare;
pub(crate) mod recover;
pub(crate) mod unique;
pub(crate) mod writer;
