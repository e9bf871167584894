//! SCALE: what must cost the same however large the log is.

use std::fs;
use std::time::{Duration, Instant};

use tapelog::disk::Disk;
use tapelog::disk::real::RealDisk;
use tapelog::format::batch::Layout;
use tapelog::format::body::Body;
use tapelog::model::{LogId, Offset, Position, Timestamp};
use tapelog::segment::{NewBatch, SegmentWriter};

use crate::sandbox::{Background, Expect, SECOND, Sandbox, peak_memory, rounds, wait_until, want};

const SOON: Duration = Duration::from_secs(5);
const LATE: Duration = Duration::from_secs(300);

/// A log of so many segments, one record each. Made without the binary, which syncs each.
fn many_segments(count: u64) -> Sandbox {
    let sandbox = Sandbox::with_config("segment-size=512");
    let settings = fs::read(sandbox.log().join("log.json")).unwrap();
    let settings: serde_json::Value = serde_json::from_slice(&settings).unwrap();
    let id: LogId = settings["id"].as_str().unwrap().parse().unwrap();
    for number in 0..count {
        let base = Offset::new(number);
        let path = sandbox.log().join(tapelog::format::file_name::segment(base));
        let file = RealDisk.create_new(&path).unwrap();
        let mut writer = SegmentWriter::new(file, id, base, Position::ZERO);
        let line = want(number + 1, number + 1);
        let batch = NewBatch {
            base,
            next: Offset::new(number + 1),
            synced: base,
            time: Timestamp::from_millis(1_767_268_800_000 + number as i64),
            body: Body::plain(Layout::Lines, 1, line.as_bytes()),
        };
        writer.append(&batch).unwrap();
    }
    // The next writer finds out where the log ends.
    fs::remove_file(sandbox.log().join("end")).unwrap();
    let mut produce = sandbox.tapelog("produce");
    produce.write_stdin(want(count + 1, count + 1)).notes("", &["end was missing"]);
    sandbox
}

/// Runs it, and states that it took less than a second.
fn is_quick(sandbox: &Sandbox, line: &str, printed: &str) {
    let begun = Instant::now();
    sandbox.tapelog(line).write_stdin("x\n").outcome().succeeded().silent().printed(printed);
    let took = begun.elapsed();
    assert!(took < SECOND, "{line} took {took:?}");
}

#[test]
fn h076_ten_thousand_segments_cost_no_time_and_no_handles() {
    let count = 10_000;
    let sandbox = many_segments(count);
    sandbox.commit("g", 5000);
    is_quick(&sandbox, "consume -o -1", &want(count + 1, count + 1));
    is_quick(&sandbox, "consume -o 5000 -n 1", &want(5001, 5001));
    is_quick(&sandbox, "consume -o @2026-01-01T12:00:05Z -n 1", &want(5001, 5001));
    is_quick(&sandbox, "consume -g g -n 1", &want(5001, 5001));
    is_quick(&sandbox, "produce", "");
    let begun = Instant::now();
    assert_eq!(sandbox.group("g")["lag"], count + 2 - 5001);
    assert!(begun.elapsed() < SECOND, "groups took {:?}", begun.elapsed());

    let follower = sandbox.spawn("follower", sandbox.command("consume -f -g g -q"));
    let lines = count + 2 - 5001;
    wait_until(LATE, "it is at the end", || {
        memchr::memchr_iter(b'\n', &follower.out()).count() as u64 == lines
    });
    let mut producer = sandbox.spawn("producer", sandbox.command("produce"));
    producer.feed("y\n");
    wait_until(SOON, "it is appended", || follower.out().ends_with(b"x\ny\n"));
    for process in [&follower, &producer] {
        assert!(process.handles().len() <= 32, "{:?}", process.handles());
    }
}

#[test]
fn h077_idle_followers_use_no_processor() {
    let sandbox = Sandbox::new();
    sandbox.mk(10);
    let followers: Vec<Background> = (0..rounds(20, 50))
        .map(|n| sandbox.spawn(&format!("follower-{n}"), sandbox.command("consume -f")))
        .collect();
    followers.iter().for_each(|follower| follower.prints_within(SOON, want(1, 10)));
    let used = || followers.iter().map(Background::cpu_time).collect::<Vec<_>>();
    let before = used();
    let seconds = rounds(3, 30);
    std::thread::sleep(Duration::from_secs(seconds));
    // A hundredth of a processor each; the clock ticks in hundredths of a second.
    let most = Duration::from_millis(10 * seconds);
    for (before, after) in before.into_iter().zip(used()) {
        assert!(after - before <= most, "{:?} in {seconds} s", after - before);
    }
}

#[test]
fn h078_a_few_records_at_the_end_of_millions_are_found_in_little_memory() {
    let count = rounds(300_000, 3_000_000);
    let sandbox = Sandbox::new();
    let mut input: String = (0..count - 10).map(|n| format!("k{n}:v{n}\n")).collect();
    input.extend((0..10).map(|n| format!("wanted:{n}\n")));
    sandbox.produce("-K :", input);
    let found: String = (0..10).map(|n| format!("{n}\n")).collect();
    for indexes in ["there", "deleted"] {
        let begun = Instant::now();
        let follower = sandbox.spawn("follower", sandbox.command("consume -f --key wanted"));
        wait_until(LATE, "all ten are found", || follower.out() == found.as_bytes());
        let peak = peak_memory(follower.id());
        println!("{count} records, indexes {indexes}: {:?}, {peak} bytes", begun.elapsed());
        assert!(peak <= 64 << 20, "{peak} bytes");
        let begun = Instant::now();
        sandbox.tapelog("get wanted").prints("9\n");
        println!("get, indexes {indexes}: {:?}", begun.elapsed());
        sandbox.tapelog("get wanted --all").prints(&found);
        sandbox.delete_indexes();
    }
}

#[test]
fn h079_a_follower_keeps_as_many_handles_over_rolls_and_commits() {
    let count = rounds(200, 2000);
    let sandbox = Sandbox::with_config("segment-size=512");
    let mut producer =
        sandbox.spawn("producer", sandbox.command("produce --sync none --batch-records 1"));
    let consume = sandbox.command("consume -f -g g -q --commit-every 1");
    let follower = sandbox.spawn("follower", consume);
    // Two of these begin a segment, as one does then.
    let line = "x".repeat(400) + "\n";
    let mut feed = |lines: usize| {
        producer.feed(&line);
        wait_until(LATE, "it is shown", || follower.out().len() == lines * line.len());
        follower.handles().len()
    };
    let settled = (1..=10).map(&mut feed).max().unwrap();
    for lines in 11..=count {
        feed(lines);
        // What is open only for a roll or a commit is closed again at once.
        wait_until(SOON, "it has closed what it opened", || follower.handles().len() <= settled);
    }
    assert!(sandbox.segments().len() >= count - 1, "it rolled");
    wait_until(SOON, "all is committed", || sandbox.position("g") == count as u64);
}
