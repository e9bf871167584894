//! Running as somebody who may not do everything.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use super::Sandbox;

/// `nobody`, and its group.
const NOBODY: u32 = 65534;

/// Whether permissions mean nothing to this process.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Takes the right to write from everybody, for a path and all below it.
pub fn deny_writing(path: &Path) {
    let mode = fs::symlink_metadata(path).unwrap().permissions().mode();
    fs::set_permissions(path, Permissions::from_mode(mode & !0o222)).unwrap();
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| deny_writing(&entry.unwrap().path()));
    }
}

/// Gives the right to write back to the owner, so that the sandbox can be removed.
pub fn allow_writing(path: &Path) {
    let mode = fs::symlink_metadata(path).unwrap().permissions().mode();
    fs::set_permissions(path, Permissions::from_mode(mode | 0o200)).unwrap();
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| allow_writing(&entry.unwrap().path()));
    }
}

impl Sandbox {
    /// `tapelog VERB LOG ARGUMENTS` as a user whom permissions bind: as `nobody`
    /// when the tests run as root, else as they run. `nobody` gets a copy of the
    /// binary, whose own directory may be closed to it.
    pub fn as_nobody(&self, line: &str) -> Command {
        self.as_nobody_on(self.log(), line)
    }

    /// The same on another LOG.
    pub fn as_nobody_on(&self, log: &Path, line: &str) -> Command {
        let mut command = self.command_on(log, line);
        if is_root() {
            let open = || Permissions::from_mode(0o755);
            let binary = self.path("tapelog");
            if !binary.exists() {
                // By another process: while this one writes a program, a child that it
                // starts meanwhile holds that open too, and nobody can run it.
                let copy = Command::new("cp").arg(super::binary()).arg(&binary).status();
                assert!(copy.unwrap().success());
            }
            fs::set_permissions(self.path(""), open()).unwrap();
            let mut other = Command::new(binary);
            other.args(command.get_args()).env_clear().current_dir(self.path(""));
            other.uid(NOBODY).gid(NOBODY);
            command = other;
        }
        command
    }
}
