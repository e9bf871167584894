//! Consumer groups: their checkpoints, who holds them, where they stand, and how
//! they are moved by hand.

pub(crate) mod checkpoint;
pub(crate) mod consumer;
pub(crate) mod holder;
pub(crate) mod seek;
pub(crate) mod status;
