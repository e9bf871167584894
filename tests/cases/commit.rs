//! COMMIT: damaged checkpoints, commits that go back, a position that runs ahead
//! of the output, two consumers of one group. The half of H047 that is about
//! `--commit before` is in delivery/ahead.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::sandbox::{
    Background, Expect, Piped, Random, Sandbox, lines, rounds, status, wait_until, want,
};

const SOON: Duration = Duration::from_secs(10);
/// A commit is due after so many records.
const COMMIT_INTERVAL: u64 = 10_000;
/// What an enlarged pipe holds.
const PIPE: u64 = 1 << 20;
/// One of the two slots of a checkpoint.
const SLOT: usize = 4096;

/// 1000 records and group g at 500, its slots saying 400 and 500.
fn g_at_500() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.mk(1000);
    for offset in [300, 400, 500] {
        sandbox.commit("g", offset);
    }
    sandbox
}

fn checkpoint(sandbox: &Sandbox) -> PathBuf {
    sandbox.log().join("groups/g.checkpoint")
}

/// How many whole lines there are.
fn whole_lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// The ways in which a checkpoint is damaged, by name.
fn damaged(good: &[u8]) -> [(&'static str, Vec<u8>); 5] {
    let text = String::from_utf8(good.to_vec()).unwrap();
    let other_numbers = text.replace("500", "600").replace("400", "300");
    [
        ("no bytes", Vec::new()),
        ("zeros", vec![0; good.len()]),
        ("the first half", good[..good.len() / 2].to_vec()),
        ("random bytes", Random(7).bytes(good.len())),
        ("another number in every slot", other_numbers.into_bytes()),
    ]
}

#[test]
fn h044_a_damaged_checkpoint_is_an_error_with_its_path_and_seek_repairs_it() {
    let sandbox = g_at_500();
    let file = checkpoint(&sandbox);
    for (what, bytes) in damaged(&fs::read(&file).unwrap()) {
        println!("with {what}");
        fs::write(&file, bytes).unwrap();
        sandbox.tapelog("consume -g g").fails(status::DAMAGE, &["groups/g.checkpoint"]);
        sandbox.tapelog("seek -g g --to-offset 500").outcome().succeeded();
        sandbox.tapelog("consume -g g -n 3").prints(want(501, 503));
    }
}

#[test]
fn h044_a_damaged_checkpoint_is_not_replaced_by_a_commit() {
    let sandbox = g_at_500();
    fs::write(checkpoint(&sandbox), vec![0; 2 * SLOT]).unwrap();
    sandbox.tapelog("commit -g g 600").fails(status::DAMAGE, &["groups/g.checkpoint"]);
    assert_eq!(fs::read(checkpoint(&sandbox)).unwrap(), vec![0; 2 * SLOT]);
}

#[test]
fn h044_one_bad_slot_is_a_note_and_the_other_one_counts() {
    let good = fs::read(checkpoint(&g_at_500())).unwrap();
    let newest_first = memchr::memmem::find(&good[..SLOT], b":500").is_some();
    for slot in [0, 1] {
        let sandbox = g_at_500();
        let mut bytes = fs::read(checkpoint(&sandbox)).unwrap();
        bytes[slot * SLOT..(slot + 1) * SLOT].fill(0);
        fs::write(checkpoint(&sandbox), bytes).unwrap();
        let first = if newest_first == (slot == 0) { 401 } else { 501 };
        sandbox
            .tapelog("consume -g g --commit manual")
            .notes(want(first, 1000), &["groups/g.checkpoint"]);
    }
}

#[test]
fn h045_a_commit_never_goes_back_and_a_seek_does() {
    let sandbox = Sandbox::new();
    sandbox.mk(100);
    sandbox.commit("g", 50);
    sandbox.tapelog("commit -g g 20").fails(status::RANGE, &["20", "50", "seek"]);
    assert_eq!(sandbox.position("g"), 50);
    sandbox.tapelog("seek -g g --to-offset 20").prints("g: 50 -> 20\n");
    assert_eq!(sandbox.position("g"), 20);
}

#[test]
fn h046_a_bounded_read_commits_what_it_printed_and_no_more() {
    let sandbox = Sandbox::new();
    sandbox.mk(100);
    sandbox.tapelog("consume -g g -n 1").notes(want(1, 1), &["new group g at 0"]);
    for n in 2..=5 {
        sandbox.tapelog("consume -g g -n 1").prints(want(n, n));
    }
    assert_eq!(sandbox.position("g"), 5);
    sandbox.tapelog("consume -g g -n 3").prints(want(6, 8));
    assert_eq!(sandbox.position("g"), 8);
}

#[test]
fn h047_sigterm_on_a_slow_pipe_loses_nothing_and_commits_no_more_than_was_taken() {
    let sandbox = Sandbox::new();
    sandbox.mk(100_000);
    let mut consume = Piped::start(&sandbox, "consume -g g");
    let mut out = consume.take(20_000);
    consume.signal(Signal::TERM);
    // Whatever the pipe still holds may be taken or not; the promise is the same.
    assert_eq!(consume.ends_within(SOON).signal(), Some(Signal::TERM.as_raw()));
    assert!(sandbox.position("g") <= whole_lines(&out), "{} committed", sandbox.position("g"));
    out.extend(consume.rest());
    assert!(want(1, 100_000).as_bytes().starts_with(&out));
    let next = sandbox.position("g") + 1;
    sandbox.tapelog("consume -g g").prints(want(next, 100_000));
}

/// Records of 200 bytes: long enough that a pipe holds fewer than one commit interval.
fn wide(a: u64, b: u64) -> String {
    let filler = "x".repeat(200 - 10);
    (a..=b).map(|n| format!("{n:09}{filler}\n")).collect()
}

#[test]
fn h048_a_killed_reader_left_a_commit_behind_and_repeats_one_interval_at_most() {
    let count = rounds(100_000, 1_000_000);
    let sandbox = Sandbox::new();
    sandbox.produce("", wide(1, count));
    let mut consume = Piped::start(&sandbox, "consume -g g");
    let printed = whole_lines(&consume.take(200 * count as usize / 2));
    consume.kill();
    let position = sandbox.position("g");
    let at_least = printed - COMMIT_INTERVAL - PIPE / 200;
    assert!((at_least..=printed).contains(&position), "{position} of {printed} printed");
    sandbox.tapelog("consume -g g").prints(wide(position + 1, count));
}

#[test]
fn h048_while_its_reader_pauses_the_position_catches_up() {
    let sandbox = Sandbox::new();
    sandbox.produce("", wide(1, 50_000));
    let mut consume = Piped::start(&sandbox, "consume -g g");
    let printed = whole_lines(&consume.take(200 * 25_000));
    let due = printed - COMMIT_INTERVAL;
    wait_until(Duration::from_secs(3), "a commit", || sandbox.position("g") >= due);
    assert!(sandbox.position("g") <= printed);
}

#[test]
fn h048_a_commit_each_record_is_kept_by_request() {
    let sandbox = Sandbox::new();
    sandbox.mk(100);
    let mut follower =
        sandbox.spawn("follower", sandbox.command("consume -g g -f --commit-every 1"));
    follower.prints_within(SOON, want(1, 100));
    wait_until(SOON, "all is committed", || sandbox.position("g") == 100);
    follower.kill();
    sandbox.tapelog("consume -g g").prints("");
}

#[test]
fn h049_output_that_fails_does_not_move_the_position() {
    let sandbox = Sandbox::new();
    sandbox.mk(1000);
    sandbox.commit("g", 0);
    let mut consume = sandbox.command("consume -g g");
    let output = consume.stdout(File::create("/dev/full").unwrap()).output().unwrap();
    assert_eq!(output.status.code(), Some(status::FAILED));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("tapelog: ") && said.contains("o space left"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(sandbox.position("g"), 0);
    sandbox.tapelog("consume -g g").prints(want(1, 1000));
}

/// A follower of group g that holds it.
fn holder_of_g(sandbox: &Sandbox) -> Background {
    let holder = sandbox.spawn("holder", sandbox.command("consume -g g -f"));
    wait_until(SOON, "g is held", || !sandbox.group("g")["holder"].is_null());
    holder
}

#[test]
fn h050_a_second_consumer_of_a_group_is_refused_at_once_and_told_by_whom() {
    let sandbox = Sandbox::with_config("segment-size=64M");
    sandbox.commit("g", 0);
    let first = holder_of_g(&sandbox);
    let begun = Instant::now();
    let process = first.id().to_string();
    sandbox.tapelog("consume -g g -f").fails(status::HELD, &["g", &process]);
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    sandbox.mk(10_000);
    first.prints_within(SOON, want(1, 10_000));
}

#[test]
fn h050_a_held_group_is_neither_moved_nor_deleted() {
    let sandbox = Sandbox::new();
    sandbox.mk(100);
    sandbox.commit("g", 0);
    let holder = holder_of_g(&sandbox);
    holder.prints_within(SOON, want(1, 100));
    let process = holder.id().to_string();
    sandbox.tapelog("seek -g g --to earliest").fails(status::HELD, &["g", &process]);
    sandbox.tapelog("groups -g g --delete").fails(status::HELD, &["g", &process]);
}

#[test]
fn h050_a_group_is_free_as_soon_as_its_holder_is_killed() {
    let sandbox = Sandbox::new();
    sandbox.produce("", lines("m", 1, 10));
    sandbox.commit("g", 0);
    holder_of_g(&sandbox).kill();
    assert!(sandbox.group("g")["holder"].is_null());
    sandbox.tapelog("seek -g g --to-offset 4").outcome().succeeded();
    sandbox.tapelog("consume -g g").prints(want(5, 10));
}
