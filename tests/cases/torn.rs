//! TORN: torn writes, cut or zero-filled tails, recovery after a crash.
