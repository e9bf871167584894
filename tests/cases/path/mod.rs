//! PATH: names, permissions, links, read-only.

mod group_names;
mod permissions;
mod places;
mod strangers;

use crate::sandbox::{Expect, Sandbox};

/// A log of ten records with one group.
fn log_with_a_group() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.mk(10);
    sandbox.tapelog("commit -g good 5").outcome().succeeded();
    sandbox
}
