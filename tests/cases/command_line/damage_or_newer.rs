//! Files of a later version are called that, and never damage; a log without its
//! `log.json` is damage, and never a place for a new one.

use std::fs;

use tapelog::format::checked_json;

use crate::sandbox::{Expect, Sandbox, flip, status, tree, want};

/// Every verb that looks into the log, and one that writes.
const VERBS: [&str; 6] =
    ["consume", "produce", "groups", "segments", "gc", "config segment-size=4096"];

/// Changes one byte of the header of the log's first batch and makes its checksum
/// right again, as a later version would have written it.
fn forge_first_header(sandbox: &Sandbox, at: usize, value: u8) {
    let file = sandbox.active();
    let mut bytes = fs::read(&file).unwrap();
    bytes[at] = value;
    let mut covered = bytes[..60].to_vec();
    // The segment's base offset and the batch's position, both 0 here.
    covered.extend([0; 16]);
    bytes[60..64].copy_from_slice(&crc32fast::hash(&covered).to_le_bytes());
    fs::write(file, bytes).unwrap();
}

#[test]
fn a_newer_format_version_in_log_json_is_refused_by_every_verb() {
    let sandbox = Sandbox::new();
    sandbox.mk(3);
    let file = sandbox.log().join("log.json");
    let mut settings: serde_json::Value =
        serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    settings["format"] = 99.into();
    settings.as_object_mut().unwrap().remove("crc");
    let line = checked_json::encode(&settings).unwrap();
    fs::write(&file, format!("{line}\n")).unwrap();
    let before = tree(sandbox.log());
    for verb in VERBS {
        let mut command = sandbox.tapelog(verb);
        command.write_stdin("x\n").fails(status::FAILED, &["log.json", "99", "newer"]);
    }
    assert!(tree(sandbox.log()) == before);
}

#[test]
fn a_newer_batch_is_refused_and_not_called_damage() {
    for (at, field) in [(4, "version"), (5, "layout"), (6, "codec"), (7, "flag")] {
        let sandbox = Sandbox::new();
        sandbox.mk(3);
        forge_first_header(&sandbox, at, 99);
        let before = fs::read(sandbox.active()).unwrap();
        for verb in ["consume", "consume -o 1", "produce"] {
            let mut command = sandbox.tapelog(verb);
            command.write_stdin("x\n").fails(status::FAILED, &[field, "99", "newer"]);
        }
        assert!(fs::read(sandbox.active()).unwrap() == before);
    }
}

#[test]
fn a_writer_refuses_a_damaged_last_batch_and_changes_nothing() {
    // The magic, an offset, the header's checksum, a record.
    for position in [0, 10, 60, 65] {
        let sandbox = Sandbox::new();
        sandbox.mk(3);
        flip(&sandbox.active(), position);
        let before = fs::read(sandbox.active()).unwrap();
        let words = ["damaged", "00000000000000000000.log"];
        sandbox.tapelog("produce").write_stdin("x\n").fails(status::DAMAGE, &words);
        assert!(fs::read(sandbox.active()).unwrap() == before, "after a flip at {position}");
    }
}

#[test]
fn a_forged_header_that_changes_nothing_is_read_as_ever() {
    let sandbox = Sandbox::new();
    sandbox.mk(3);
    let before = fs::read(sandbox.active()).unwrap();
    forge_first_header(&sandbox, 4, 1);
    assert!(fs::read(sandbox.active()).unwrap() == before);
    sandbox.all().prints(want(1, 3));
}

#[test]
fn segments_without_log_json_are_damage_and_no_new_log_is_made_over_them() {
    let sandbox = Sandbox::new();
    sandbox.mk(3);
    fs::remove_file(sandbox.log().join("log.json")).unwrap();
    let before = tree(sandbox.log());
    for verb in VERBS {
        let mut command = sandbox.tapelog(verb);
        command.write_stdin("x\n").fails(status::DAMAGE, &["log.json"]);
    }
    assert!(tree(sandbox.log()) == before);
}

#[test]
fn a_log_json_that_is_nonsense_is_damage() {
    let sandbox = Sandbox::new();
    sandbox.mk(3);
    for nonsense in ["", "{}", "[1,2]", "not json at all", r#"{"format":"one"}"#] {
        fs::write(sandbox.log().join("log.json"), nonsense).unwrap();
        for verb in VERBS {
            let mut command = sandbox.tapelog(verb);
            command.write_stdin("x\n").fails(status::DAMAGE, &["log.json"]);
        }
    }
}
