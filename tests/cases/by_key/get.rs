//! `get`: the newest record of each key.

use std::process::Command as StdCommand;

use serde_json::json;

use crate::sandbox::{Expect, Sandbox, binary, flip, foreground, position_of, status};

/// anna 1, ben 2, an empty key 3, anna 4, no key 5, carl deleted, -x 6.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.produce("-K :", "anna:1\nben:2\n:3\nanna:4\n");
    sandbox.produce("", "5\n");
    sandbox.produce("-K : -Z", "carl:0\ncarl:\n-x:6\n");
    sandbox
}

#[test]
fn the_newest_record_of_each_key_in_the_order_asked_for() {
    let sandbox = sandbox();
    sandbox.tapelog("get anna").prints("4\n");
    sandbox.tapelog("get ben anna ben").prints("2\n4\n2\n");
    sandbox.tapelog("get ben anna -K =").prints("ben=2\nanna=4\n");
    sandbox.tapelog("get anna ben -0").prints("4\x002\0");
    sandbox.tapelog("get anna ben -D ;").prints("4;2;");
    sandbox.tapelog("get ben anna -F %o,%k;").prints("1,ben;3,anna;");
    sandbox.tapelog("get anna").arg("").prints("4\n3\n");
    sandbox.tapelog("get anna -- -x").prints("4\n6\n");
    let record = &sandbox.tapelog("get anna -J").json()[0];
    let fields = ["offset", "key", "payload"].map(|name| record[name].clone());
    assert_eq!(fields, [json!(3), json!("anna"), json!("4")]);
}

#[test]
fn a_key_that_is_missing_or_deleted_is_said_after_the_others_were_printed() {
    let sandbox = sandbox();
    sandbox.tapelog("get dora").fails(status::NOT_THERE, &["no record of key dora"]);
    sandbox.tapelog("get carl").fails(status::NOT_THERE, &["key carl was deleted", "offset 6"]);
    for key in ["ann", "annaa", "Anna", "5"] {
        sandbox.tapelog(&format!("get {key}")).fails(status::NOT_THERE, &["no record"]);
    }
    let outcome = sandbox.tapelog("get dora ben carl anna").outcome();
    let outcome = outcome.ended(status::NOT_THERE).with_words(&["key dora", "key carl"]);
    assert_eq!(outcome.errors().len(), 2, "{outcome}");
    outcome.printed("2\n4\n");
    sandbox.tapelog("get").outcome().ended(status::USAGE);
    let missing = sandbox.command_on(sandbox.path("none"), "get a");
    foreground(missing).fails(status::NOT_THERE, &["no log"]);
}

#[test]
fn all_versions_tombstones_too() {
    let sandbox = sandbox();
    sandbox.tapelog("get anna ben --all").prints("1\n4\n2\n");
    let records = sandbox.tapelog("get carl --all -J").json();
    let payloads: Vec<_> = records.iter().map(|record| record["payload"].clone()).collect();
    assert_eq!(payloads, [json!("0"), json!(null)]);
    let outcome = sandbox.tapelog("get dora anna --all").outcome();
    outcome.ended(status::NOT_THERE).said(&["dora"]).printed("1\n4\n");
}

#[test]
fn as_of_an_offset_only_what_lies_up_to_it_counts() {
    let sandbox = sandbox();
    sandbox.tapelog("get anna -o 3").prints("4\n");
    sandbox.tapelog("get anna --offset 2").prints("1\n");
    sandbox.tapelog("get carl -o 5").prints("0\n");
    sandbox.tapelog("get ben -o 0").fails(status::NOT_THERE, &["ben"]);
    sandbox.tapelog("get anna --all -o 2").prints("1\n");
    sandbox.tapelog("get anna -o 8").prints("4\n");
    sandbox.tapelog("get anna -o 9").fails(status::RANGE, &["9", "log end 8"]);
}

#[test]
fn keys_need_not_be_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let sandbox = Sandbox::new();
    sandbox.produce("-K :", &b"\xff\x01:v\n"[..]);
    sandbox.tapelog("get").arg(OsStr::from_bytes(b"\xff\x01")).prints("v\n");
    sandbox.tapelog("get").arg(OsStr::from_bytes(b"\xff")).outcome().ended(status::NOT_THERE);
}

#[test]
fn many_keys_at_once_are_printed_in_their_order() {
    let sandbox = Sandbox::with_config("segment-size=1M");
    let input: String =
        (0..20_000).map(|n| format!("k{n}:{n} {}\n", "x".repeat(n % 300))).collect();
    sandbox.produce("-K :", input);
    let numbers: Vec<usize> = (0..5_000).map(|n| n * 7919 % 20_000).collect();
    let mut get = sandbox.tapelog("get");
    get.args(numbers.iter().map(|n| format!("k{n}")));
    let want: String = numbers.iter().map(|n| format!("{n} {}\n", "x".repeat(n % 300))).collect();
    get.prints(want);
}

#[test]
fn large_records_are_printed_in_order_within_a_budget_of_memory() {
    let sandbox = Sandbox::new();
    let input: String = (0..60).map(|n| format!("k{n}:{n}{}\n", "x".repeat(1 << 20))).collect();
    sandbox.produce("-K :", input);
    let keys = (0..60).rev().map(|n| format!("k{n}")).collect::<Vec<_>>().join(" ");
    let script = format!("ulimit -v 131072; exec \"$0\" get \"$1\" {keys}");
    let mut command = StdCommand::new("/bin/bash");
    command.arg("-c").arg(script).arg(binary()).arg(sandbox.log());
    let want: String = (0..60).rev().map(|n| format!("{n}{}\n", "x".repeat(1 << 20))).collect();
    foreground(command).prints(want);
}

#[test]
fn a_record_that_is_damaged_is_damage_and_never_another_version() {
    let sandbox = Sandbox::new();
    sandbox.produce("-K : --batch-records 1", "a:first\nb:second\na:third\n");
    let file = sandbox.active();
    flip(&file, position_of("third", &file));
    let outcome = sandbox.tapelog("get b a").outcome().ended(status::DAMAGE);
    assert_eq!(outcome.errors().len(), 1, "{outcome}");
    outcome.with_words(&["is damaged", "offset 2"]);
}
