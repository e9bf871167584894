//! Standing by for a group: whoever waits takes over when its consumer is gone, however
//! that one ended.

use std::time::Duration;

use anyhow::{Result, bail};

use crate::cli::session::Session;
use crate::cli::stream::signals::Signals;
use crate::log::{Claim, Consumer, Error as LogError, Log};
use crate::model::GroupName;

/// How often it is looked whether the group is free. The kernel lets go of a dead
/// process's lock, and tells nobody.
const LOOK: Duration = Duration::from_millis(50);

/// Takes the group as soon as nobody has it. Says once for whom it waits.
///
/// # Errors
/// The signal that came; what [`Consumer::claim`] says beside [`LogError::Busy`].
pub fn claim_when_free(
    log: &Log,
    group: &GroupName,
    claim: impl Fn() -> Result<Claim>,
    session: &Session,
    signals: &Signals,
) -> Result<Consumer> {
    let mut told = false;
    loop {
        let holder = match Consumer::claim(log, group, &claim()?, session.now()?) {
            Err(LogError::Busy { holder, .. }) => holder,
            claimed => return Ok(claimed?),
        };
        if !std::mem::replace(&mut told, true) {
            session.note(&format!("group {group} is held by {holder}, waiting"));
        }
        loop {
            signals.rest(LOOK)?;
            if let Some(signal) = signals.caught() {
                bail!(signal);
            }
            if log.group_holder(group).is_none() {
                break;
            }
        }
    }
}
