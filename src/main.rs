//! The command `tapelog`.

fn main() {}
