//! A disk that is full soon: a tmpfs in a user namespace of its own, so that no
//! rights are needed and nothing is left behind.

use std::fs;
use std::process::Command;

use super::{Sandbox, binary, find_program, skip};

/// Runs a shell script in a directory on a disk of `size`, with the sandbox's
/// directory in `$OUT`, the binary in `$T`, and `disk SIZE` to make it larger.
/// Gives what the script printed, or `None`, said loudly, where the system does
/// not allow such disks.
pub fn on_a_small_disk(sandbox: &Sandbox, case: &str, size: &str, script: &str) -> Option<String> {
    let Some(unshare) = find_program("unshare") else {
        skip(case, "there is no unshare");
        return None;
    };
    let mount = fs::create_dir(sandbox.path("disk")).map(|()| sandbox.path("disk")).unwrap();
    let prepare = format!(
        r#"mount -t tmpfs -o size={size} none "$DISK" || exit 99
        disk() {{ mount -o remount,size="$1" "$DISK"; }}
        cd "$DISK"
        {script}"#
    );
    let output = Command::new(unshare)
        .args(["-Urm", "sh", "-c", &prepare])
        .env("DISK", mount)
        .env("OUT", sandbox.path(""))
        .env("T", binary())
        .output()
        .unwrap();
    if matches!(output.status.code(), Some(1 | 99)) && output.stdout.is_empty() {
        skip(case, &String::from_utf8_lossy(&output.stderr));
        return None;
    }
    assert!(output.status.success(), "the script: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}
