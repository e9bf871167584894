//! `-g`: the group's name, and its completion in the shell.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use clap::Args;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};

use crate::disk::real::RealDisk;
use crate::log::{Home, Log};
use crate::model::GroupName;

/// The group that a command needs.
#[derive(Args, Clone, Debug)]
pub struct GroupArgument {
    /// The consumer group
    #[arg(short, long, value_name = "GROUP", add = complete_group())]
    pub group: GroupName,
}

/// Completes the names of the groups of the log on the same command line.
pub fn complete_group() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let typed = typed.to_string_lossy();
        let logs = std::env::args_os().filter_map(|word| groups_of(Path::new(&word)));
        let names = logs.flatten().filter(|name| name.as_str().starts_with(&*typed));
        names.map(|name| CompletionCandidate::new(name.as_str())).collect()
    })
}

/// The groups of the log at `path`, if there is one.
fn groups_of(path: &Path) -> Option<Vec<GroupName>> {
    let home = Home::new(Arc::new(RealDisk), path, |_| {});
    Log::open(&home).ok()?.group_names().ok()
}
