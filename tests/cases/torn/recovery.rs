//! H005 to H008: what writers, readers and followers do about it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use super::unclosed_100;
use crate::sandbox::{
    Expect, Outcome, SECOND, Sandbox, Unclosed, append_bytes, batch_of, copy_tree, cut, lines,
    offsets, rounds, same_bytes, status, want,
};

#[test]
fn h005_the_end_of_the_log_does_not_count_a_torn_record() {
    let sandbox = unclosed_100();
    cut(&sandbox.active(), 3);
    assert_eq!(shown_end(sandbox.tapelog("segments -J").outcome().succeeded()), 99);
    let at_end = sandbox.tapelog("consume -o 99").outcome().succeeded().printed("");
    assert!(at_end.errors().is_empty(), "{at_end}");
    let beyond = sandbox.tapelog("consume -o 100").outcome().ended(status::RANGE).printed("");
    assert_eq!(beyond.errors().len(), 1, "{beyond}");
}

/// The next offset of the last segment in a listing.
fn shown_end(listing: Outcome) -> u64 {
    let text = listing.text();
    let last: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    last["next"].as_u64().unwrap()
}

#[test]
fn h006_writers_never_append_behind_a_torn_record() {
    let sandbox = Sandbox::new();
    sandbox.mkx(10);
    cut(&sandbox.active(), 3);
    let first = lines("n", 1, 100);
    sandbox.tapelog("produce").write_stdin(first).notes("", &["quarantine"]);
    for run in 1..10 {
        sandbox.produce("", lines("n", run * 100 + 1, run * 100 + 100));
    }
    sandbox.delete_indexes();
    sandbox.all().prints(want(1, 9) + &lines("n", 1, 1000));
    let numbers = sandbox.tapelog(r"consume -F %o\n").text();
    assert!(offsets(&numbers).into_iter().eq(0..1009));
}

#[test]
fn h006_each_recovery_is_told_once_and_keeps_its_own_bytes() {
    let sandbox = unclosed_100();
    for n in 1..=3 {
        append_bytes(&sandbox.active(), format!("garbage {n}").as_bytes());
        sandbox.tapelog("produce").write_stdin("x\n").notes("", &["quarantine"]);
        sandbox.produce("", "y\n");
        assert_eq!(sandbox.quarantine().len(), n, "nothing set aside is replaced");
    }
    sandbox.all().prints(want(1, 100) + "x\ny\nx\ny\nx\ny\n");
}

#[test]
fn h006_readers_change_nothing_about_a_torn_tail() {
    let sandbox = unclosed_100();
    cut(&sandbox.active(), 3);
    let before = fs::read(sandbox.active()).unwrap();
    for line in ["consume", "consume -o -1", "segments", "gc --dry-run", "groups"] {
        let outcome = sandbox.tapelog(line).outcome().succeeded();
        assert!(outcome.errors().is_empty(), "{outcome}");
    }
    assert!(before == fs::read(sandbox.active()).unwrap());
    assert!(sandbox.quarantine().is_empty());
}

#[test]
fn h006_a_group_that_syncs_the_log_before_its_commit_keeps_the_torn_bytes_too() {
    let sandbox = unclosed_100();
    let active = sandbox.active();
    cut(&active, 3);
    let torn = fs::read(&active).unwrap()[batch_of("m-000099", &active).end as usize..].to_vec();
    let consumed = sandbox.tapelog("consume -g g").outcome().succeeded().printed(want(1, 99));
    assert!(consumed.errors().is_empty(), "{consumed}");
    assert_eq!(sandbox.position("g"), 99);
    let kept = fs::read(&active).unwrap().ends_with(&torn) || sandbox.quarantine() == [torn];
    assert!(kept, "nothing is destroyed");
    sandbox.tapelog("produce").write_stdin("x\n").outcome().succeeded().printed("");
    sandbox.tapelog("consume -g g").prints("x\n");
}

#[test]
fn h007_a_follower_waits_quietly_at_a_torn_tail() {
    let sandbox = unclosed_100();
    cut(&sandbox.active(), 5);
    let mut follower = sandbox.spawn("follower", sandbox.command("consume -f -o earliest"));
    follower.prints_within(SECOND, want(1, 99));
    std::thread::sleep(rounds(SECOND, 5 * SECOND));
    let used = follower.cpu_time();
    assert!(used < Duration::from_millis(200), "it used {used:?} while it waited");
    follower.signal(Signal::INT);
    let end = follower.ends_within(SECOND);
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&end), Some(2), "{end}");
    same_bytes(&follower.out(), want(1, 99).as_bytes(), "the follower");
    assert!(follower.err().lines().count() <= 1, "{}", follower.err());
}

#[test]
fn h007_a_follower_at_a_torn_tail_goes_on_once_a_writer_has_cut_it() {
    let sandbox = unclosed_100();
    cut(&sandbox.active(), 5);
    let mut follower = sandbox.spawn("follower", sandbox.command("consume -f -o earliest"));
    follower.prints_within(SECOND, want(1, 99));
    sandbox.tapelog("produce").write_stdin("x\n").notes("", &["quarantine"]);
    follower.prints_within(SECOND, want(1, 99) + "x\n");
    sandbox.produce("", "y\n");
    follower.prints_within(SECOND, want(1, 99) + "x\ny\n");
    assert!(follower.runs());
}

#[test]
fn h008_a_group_beyond_a_log_that_lost_its_tail_is_out_of_range() {
    let sandbox = Sandbox::new();
    let mut unclosed = Unclosed::start(&sandbox, "");
    unclosed.append(&want(1, 90), 90);
    let active = |log: &Path| log.join("00000000000000000000.log");
    let after_90 = fs::read(active(unclosed.log())).unwrap();
    unclosed.append(&want(91, 100), 100);
    copy_tree(unclosed.log(), sandbox.log());
    sandbox.tapelog("commit -g g 95").notes("", &["new group g at 95"]);
    fs::write(active(sandbox.log()), after_90).unwrap();
    let checkpoint = || fs::read(sandbox.log().join("groups/g.checkpoint")).unwrap();
    let before = checkpoint();

    let consumed = sandbox.tapelog("consume -g g").outcome().ended(status::RANGE).printed("");
    assert_eq!(consumed.errors().len(), 1, "{consumed}");
    consumed.with_words(&["95", "90"]);
    assert_eq!(shown_end(sandbox.tapelog("segments -J").outcome()), 90);
    assert!(checkpoint() == before, "the group stays where it was");
    // The commit made the log durable up to 100: a writer must not go on at 90.
    sandbox.tapelog("produce").write_stdin("x\n").fails(status::DAMAGE, &[]);
}
