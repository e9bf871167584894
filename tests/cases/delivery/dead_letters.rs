//! Records that a command can't handle go to a log of their own.

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use serde_json::Value;

use crate::sandbox::{Expect, Sandbox, foreground, numbers, status, want};

/// Ten records, group g before them.
fn ten() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.mk(10);
    sandbox.commit("g", 0);
    sandbox
}

const DEAD: &str = "log/groups/g.dead";

/// `tapelog VERB` on the dead letters of g.
fn dead(sandbox: &Sandbox, line: &str) -> assert_cmd::Command {
    foreground(sandbox.command_on(DEAD, line))
}

/// The offsets that the dead letters were at.
fn buried(sandbox: &Sandbox) -> Vec<u64> {
    let text = dead(sandbox, "consume -J").text();
    let letters = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    letters.map(|letter| header(&letter, "tapelog-offset").parse().unwrap()).collect()
}

fn header(letter: &Value, name: &str) -> String {
    let headers = letter["headers"].as_array().unwrap();
    let pair = headers.chunks(2).find(|pair| pair[0] == name).unwrap();
    pair[1].as_str().unwrap().to_owned()
}

#[test]
fn a_dead_letter_is_the_record_and_what_happened() {
    let sandbox = Sandbox::new();
    sandbox.produce(
        "-J",
        concat!(
            r#"{"key":"a","payload":"1","headers":["source","till"],"ts":1700000000000}"#,
            "\n",
            r#"{"key":"b","payload":null}"#,
            "\n"
        ),
    );
    sandbox.commit("g", 0);
    let options = "-g g --on-failure dead-letter --retry 2 --backoff 1ms";
    sandbox
        .exec(options, "test $TAPELOG_OFFSET = 1 || exit 3; kill -9 $$")
        .outcome()
        .succeeded()
        .with_words(&["note: offset 0 to the dead letters", "note: offset 1 to the dead letters"]);
    assert_eq!(sandbox.position("g"), 2);
    let letters = dead(&sandbox, "consume -J").json();
    let [first, second] = &letters[..] else { panic!("{letters:?}") };
    assert_eq!((&first["key"], &first["payload"]), (&"a".into(), &"1".into()));
    assert_eq!(first["ts"], 1_700_000_000_000u64);
    assert_eq!(header(first, "source"), "till");
    assert_eq!(header(first, "tapelog-reason"), "status 3");
    assert_eq!(header(first, "tapelog-attempts"), "3");
    assert_eq!(header(first, "tapelog-offset"), "0");
    assert_eq!(header(first, "tapelog-group"), "g");
    assert!(second["payload"].is_null());
    assert_eq!(header(second, "tapelog-reason"), "signal 9");
    // The time that it had without one of its own was when it was appended.
    let record = sandbox.tapelog("consume -o 1 -J").json().remove(0);
    assert_eq!(second["ts"], record["ts"]);
}

#[test]
fn every_verb_reads_dead_letters_and_takes_them_for_no_group() {
    let sandbox = ten();
    sandbox.exec("-q -g g --on-failure dead-letter", "test $TAPELOG_OFFSET -ge 3").prints("");
    dead(&sandbox, "consume").prints(want(1, 3));
    dead(&sandbox, "verify").outcome().succeeded();
    dead(&sandbox, "segments -J").outcome().succeeded();
    dead(&sandbox, "consume -q -g again -n 2").prints(want(1, 2));
    dead(&sandbox, "groups -g again").outcome().succeeded();
    dead(&sandbox, "gc").outcome().succeeded();
    assert_eq!(numbers(&sandbox.tapelog("groups -J").json(), "position"), [10]);
    sandbox.tapelog("verify").outcome().succeeded();
    sandbox.tapelog("gc --roll").outcome().succeeded();
    dead(&sandbox, "consume").prints(want(1, 3));
}

#[test]
fn deleting_a_group_keeps_its_dead_letters_and_says_so() {
    let sandbox = ten();
    sandbox.exec("-q -g g --on-failure dead-letter", "test $TAPELOG_OFFSET != 3").prints("");
    sandbox.tapelog("groups -g g --delete").notes("", &["kept its dead letters", "g.dead"]);
    dead(&sandbox, "consume").prints(want(4, 4));
    sandbox.tapelog("groups -g g").outcome().ended(status::NOT_THERE);
    let ten = ten();
    ten.tapelog("groups -g g --delete").prints("");
}

#[test]
fn they_go_where_they_are_told_to() {
    let sandbox = ten();
    sandbox.exec("-q -g g --dead-letter dead", "test $TAPELOG_OFFSET != 3").prints("");
    foreground(sandbox.command_on("dead", "consume")).prints(want(4, 4));
    assert!(!sandbox.path(DEAD).exists());
    sandbox
        .exec("-g g --dead-letter log", "true")
        .fails(status::USAGE, &["--dead-letter", "another log"]);
    sandbox
        .exec("-g g --dead-letter dead --on-failure skip", "true")
        .fails(status::USAGE, &["--dead-letter"]);
    sandbox.seek("g", "earliest");
    let nowhere = sandbox.exec("-g g --dead-letter none/dead", "test $TAPELOG_OFFSET != 3");
    let mut nowhere = nowhere;
    nowhere.outcome().ended(status::FAILED).said(&["none/dead"]);
    assert_eq!(sandbox.position("g"), 3, "what can't be kept is not passed");
}

#[test]
fn a_batch_dies_whole_and_only_what_the_filter_wants_of_it() {
    let sandbox = ten();
    let line = "! grep -q m-000005";
    let options = "-q -g g --batch 3 --on-failure dead-letter --grep [13579]$";
    sandbox.exec(options, line).prints("");
    assert_eq!(buried(&sandbox), [0, 2, 4], "the batch of the odd numbers 1, 3, 5");
}

#[test]
fn a_record_that_dies_again_after_a_seek_is_kept_again() {
    let sandbox = ten();
    let options = "-q -g g --on-failure dead-letter";
    for _ in 0..2 {
        sandbox.exec(options, "test $TAPELOG_OFFSET != 3").prints("");
        // The clock is to have gone on.
        std::thread::sleep(std::time::Duration::from_millis(2));
        sandbox.seek("g", "earliest");
    }
    assert_eq!(buried(&sandbox), [3, 3]);
}

#[test]
fn to_be_killed_at_any_step_loses_no_dead_letter_and_repeats_none() {
    let Some(strace) = crate::sandbox::Strace::find("dead letters") else { return };
    let begin = || {
        let sandbox = ten();
        let options = "-g g -q --batch 2 --on-failure dead-letter";
        let command = sandbox.exec_command(options, "! grep -q m-000005");
        (sandbox, command)
    };
    let (alone, command) = begin();
    foreground(strace.of(&alone, &["-e", "trace=!wait4"], &command)).outcome().succeeded();
    let calls = crate::sandbox::calls(&alone);
    let mut killed = 0;
    for call in calls.iter().filter(|call| call.changes()) {
        let (sandbox, command) = begin();
        let fault = format!("{}:signal=KILL:when={}", call.name, call.nth);
        let mut doomed = strace.inject(&sandbox, &fault, &command);
        let ended = doomed.stdin(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        killed += u64::from(ended.signal() == Some(9));
        let mut again = foreground(command);
        again.outcome().succeeded();
        assert_eq!(sandbox.position("g"), 10, "{fault}");
        assert_eq!(buried(&sandbox), [4, 5], "{fault}");
    }
    println!("{killed} of {} kills", calls.iter().filter(|call| call.changes()).count());
    assert!(killed > 10, "{killed}");
}
