//! EXEC and what goes with it: a command for each record, what its end means, other
//! programs that acknowledge, checkpoints that go ahead, consumers that stand by.

mod acks;
mod ahead;
mod dead_letters;
mod each_step;
mod exec;
mod failures;
mod killed;
mod standby;

use crate::sandbox::Sandbox;

/// Ten records, group g before them.
fn ten() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.mk(10);
    sandbox.commit("g", 0);
    sandbox
}
