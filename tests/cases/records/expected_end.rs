//! `produce --expect-end N`: appended if the log ends at N, and else not at all.

use std::process::Stdio;
use std::time::Duration;

use crate::sandbox::{Expect, Sandbox, binary, status, tree, want};

#[test]
fn it_is_appended_where_the_log_ends_there() {
    let sandbox = Sandbox::new();
    sandbox.produce("--expect-end 0", "a\nb\n");
    sandbox.produce("--expect-end 2", "c\n");
    sandbox.tapelog("produce --expect-end 3 --receipt").write_stdin("d\n").prints("3\n");
    sandbox.produce("--expect-end 4 -K : -z zstd", "k:e\n");
    sandbox.produce("--expect-end 5 -J", "{\"payload\":\"f\"}\n");
    sandbox.produce("--expect-end 6 --sync each", "g\n");
    sandbox.all().prints("a\nb\nc\nd\ne\nf\ng\n");
}

#[test]
fn nothing_is_appended_where_it_does_not() {
    let sandbox = Sandbox::new();
    sandbox.mk(5);
    let before = tree(sandbox.log());
    for wrong in ["0", "4", "6", "9223372036854775807"] {
        for options in ["", "-k key", "-J", "--receipt", "-T", "--whole", "--batch-records 1"] {
            let mut produce = sandbox.tapelog(&format!("produce --expect-end {wrong} {options}"));
            produce.write_stdin("{\"payload\":\"x\"}\n").fails(status::RANGE, &[wrong, "5"]);
        }
    }
    assert!(tree(sandbox.log()) == before, "no byte of the log changed");
    sandbox.all().prints(want(1, 5));
}

#[test]
fn an_end_that_is_no_number_is_a_usage_error() {
    let sandbox = Sandbox::new();
    for wrong in ["", "x", "latest", "1.0", "99999999999999999999"] {
        let mut produce = sandbox.tapelog("produce --expect-end");
        produce.arg(wrong).write_stdin("a\n").fails(status::USAGE, &["expect-end"]);
    }
    sandbox.tapelog("produce --expect-end -1").outcome().ended(status::USAGE).printed("");
    assert!(!sandbox.log().exists());
}

#[test]
fn nothing_to_append_is_no_reason_not_to_look() {
    let sandbox = Sandbox::new();
    sandbox.mk(5);
    let mut produce = sandbox.tapelog("produce --expect-end 4");
    produce.write_stdin("").fails(status::RANGE, &["4", "5"]);
    sandbox.produce("--expect-end 5", "");
}

#[test]
fn several_batches_follow_each_other() {
    let sandbox = Sandbox::with_config("segment-size=20K");
    sandbox.produce("--expect-end 0 --batch-records 100", want(1, 5000));
    sandbox
        .tapelog("produce --expect-end 4999")
        .write_stdin("x\n")
        .fails(status::RANGE, &["4999", "5000"]);
    sandbox.produce("--expect-end 5000", want(5001, 9000));
    sandbox.all().prints(want(1, 9000));
}

#[test]
fn it_goes_by_the_numbers_and_not_by_what_is_left() {
    let sandbox = Sandbox::hundreds_from(200, 4);
    sandbox.tapelog("produce --expect-end 200").write_stdin("x\n").fails(status::RANGE, &["400"]);
    sandbox.produce("--expect-end 400", want(401, 401));
    sandbox.all().prints(want(201, 401));
}

#[test]
fn of_ten_who_expect_the_same_end_exactly_one_wins() {
    let sandbox = Sandbox::new();
    sandbox.mk(3);
    for round in 0..5 {
        let end = 3 + round;
        let start = |n: u64| {
            let command = sandbox.command(&format!("produce --expect-end {end}"));
            sandbox.spawn(&format!("racer-{n}"), command)
        };
        let mut racers: Vec<_> = (0..10).map(start).collect();
        for (n, racer) in racers.iter_mut().enumerate() {
            racer.feed(format!("{round}-{n}\n"));
            racer.close_stdin();
        }
        let limit = Duration::from_secs(20);
        let ends: Vec<_> = racers.iter_mut().map(|racer| racer.ends_within(limit).code()).collect();
        let winners: Vec<_> = (0..10).filter(|&n| ends[n] == Some(status::DONE)).collect();
        assert_eq!(winners.len(), 1, "{ends:?}");
        assert!(
            ends.iter().all(|end| [Some(status::DONE), Some(status::RANGE)].contains(end)),
            "{ends:?}"
        );
        sandbox.tapelog(&format!("consume -o {end}")).prints(format!("{round}-{}\n", winners[0]));
    }
}

#[test]
fn a_counter_that_several_shells_raise_reaches_the_right_sum() {
    const SHELLS: u64 = 4;
    const EACH: u64 = 12;
    let sandbox = Sandbox::new();
    sandbox.produce("", "0\n");
    // Reads the newest number and its offset, appends the next: again if somebody was faster.
    let script = format!(
        "done=0
         while [ $done -lt {EACH} ]; do
             read -r end number <<END
$(\"$0\" consume \"$1\" -r -n 1 -F '%o %v')
END
             echo $((number + 1)) | \"$0\" produce \"$1\" --expect-end $((end + 1)) --sync none 2>\"$2\"
             case $? in 0) done=$((done + 1)) ;; 6) ;; *) cat \"$2\" >&2; exit 1 ;; esac
         done"
    );
    let start = |n: u64| {
        let mut shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", &script]).arg(binary()).arg(sandbox.log());
        shell.arg(sandbox.path(format!("said-{n}")));
        shell.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let shells: Vec<_> = (0..SHELLS).map(start).collect();
    for shell in shells {
        let output = shell.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let numbers: String = (0..=SHELLS * EACH).map(|number| format!("{number}\n")).collect();
    sandbox.all().prints(numbers);
}

#[test]
fn who_loses_midway_is_told_how_much_is_stored() {
    let sandbox = Sandbox::new();
    let mut slow = sandbox.spawn("slow", sandbox.command("produce --expect-end 0"));
    slow.feed("one\n");
    let limit = Duration::from_secs(5);
    crate::sandbox::wait_until(limit, "the first line is stored", || {
        sandbox.all().outcome().stdout == b"one\n"
    });
    sandbox.produce("", "other\n");
    slow.feed("two\n");
    slow.close_stdin();
    let end = slow.ends_within(limit).code();
    assert!([Some(status::RANGE), Some(status::PARTIAL)].contains(&end), "{end:?}");
    assert!(slow.err().contains("1 record stored"), "{}", slow.err());
    sandbox.all().prints("one\nother\n");
}
