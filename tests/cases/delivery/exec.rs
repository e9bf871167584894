//! A command for each record: what it is given, and what it is not.

use std::fs;
use std::io::{Read, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;

use crate::sandbox::{
    Expect, Outcome, Random, SECOND, Sandbox, find_program, handles_of, skip, status, wait_until,
    want,
};

/// Group g at the beginning of so many records.
fn g_at_0(records: u64) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.mk(records);
    sandbox.commit("g", 0);
    sandbox
}

#[test]
fn h101_a_command_does_not_eat_the_input_of_consume() {
    let sandbox = g_at_0(1000);
    let input = sandbox.file("input", "1\n2\n3\n4\n5\n");
    let mut stdin = fs::File::open(&input).unwrap();
    let mut consume = sandbox.exec_command("-g g", "cat > /dev/null; echo done >> done");
    let status = consume.stdin(stdin.try_clone().unwrap()).status().unwrap();
    assert!(status.success(), "{status}");
    assert_eq!(fs::read_to_string(sandbox.path("done")).unwrap(), "done\n".repeat(1000));
    assert_eq!(stdin.stream_position().unwrap(), 0, "the outer input is untouched");
    let mut rest = String::new();
    stdin.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "1\n2\n3\n4\n5\n");
}

#[test]
fn h102_a_command_that_fails_keeps_the_position_before_its_record() {
    let sandbox = g_at_0(10);
    sandbox
        .exec("-g g", "test \"$(cat)\" != m-000005")
        .fails(status::HANDLER, &["offset 4", "status 1", "g goes on at 4"]);
    assert_eq!(sandbox.position("g"), 4);
    sandbox.exec("-g g", "cat; echo").prints(want(5, 10));
    assert_eq!(sandbox.position("g"), 10);
}

#[test]
fn h103_a_program_that_cant_be_run_stops_at_once_and_uses_up_no_attempt() {
    let sandbox = g_at_0(10);
    let script = sandbox.file("script", "echo x\n");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o644)).unwrap();
    // Whatever is to be done about failures: this is none of the record's.
    let options = "-g g --retry 5 --backoff 1h --on-failure skip";
    for (line, end) in [("nosuch 2> /dev/null", "127"), ("./script 2> /dev/null", "126")] {
        sandbox.exec(options, line).fails(status::HANDLER, &["offset 0", end]);
    }
    for program in ["nosuch", "./script"] {
        let line = format!("consume {options} -- {program}");
        sandbox.tapelog(&line).fails(status::HANDLER, &["offset 0", "can't run", program]);
    }
    assert_eq!(sandbox.position("g"), 0);
}

#[test]
fn h103_a_command_that_a_signal_ends_has_failed() {
    let sandbox = g_at_0(10);
    sandbox.exec("-g g --retry 2 --backoff 1ms", "echo \"$TAPELOG_ATTEMPT\"; kill -9 $$").ends(
        status::HANDLER,
        "1\n2\n3\n",
        &["offset 0", "signal 9", "3 attempts"],
    );
    assert_eq!(sandbox.position("g"), 0);
}

#[test]
fn h104_a_body_of_any_size_and_kind_is_given_as_it_is() {
    let Some(sum) = find_program("sha256sum") else {
        return skip("h104", "there is no sha256sum");
    };
    let sandbox = Sandbox::new();
    let mut body = Random(104).bytes(3 << 20);
    body.extend(b"\0\xff\n\n");
    sandbox.produce("--whole", body.clone());
    sandbox.commit("g", 0);
    let mut direct = std::process::Command::new(&sum)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    direct.stdin.take().unwrap().write_all(&body).unwrap();
    let want = direct.wait_with_output().unwrap().stdout;
    sandbox.tapelog(&format!("consume -g g -- {}", sum.display())).prints(want);
}

#[test]
fn h054_a_child_that_outlives_the_command_has_no_handle_of_ours() {
    let sandbox = g_at_0(1);
    let line = "sleep 300 > /dev/null 2>&1 & echo $!";
    let child = sandbox.exec("-g g", line).text();
    let handles = handles_of(child.trim().parse().unwrap());
    assert_eq!(handles, ["/dev/null"; 3].map(PathBuf::from));
    sandbox.tapelog("consume -g g").prints("");
    assert_eq!(sandbox.append("x"), 1);
    sandbox.tapelog("consume -g g").prints("x\n");
    let kill = format!("kill {}", child.trim());
    std::process::Command::new("/bin/sh").args(["-c", &kill]).status().unwrap();
}

#[test]
fn a_command_is_told_of_its_record_and_the_bytes_are_never_code() {
    let sandbox = Sandbox::new();
    let odd = r#"{"key":"$(touch harm)","payload":"`touch harm`; touch harm","headers":["source","a b","empty",""],"ts":1700000000000}"#;
    sandbox.produce("-J", format!("{odd}\n"));
    sandbox.produce("", "plain\n");
    sandbox.commit("g", 0);
    let line = r#"echo "$TAPELOG_OFFSET|$TAPELOG_NEXT|$TAPELOG_COUNT|$TAPELOG_GROUP|$TAPELOG_ATTEMPT"
        echo "${TAPELOG_KEY-none}|${TAPELOG_HEADER_source-none}|${TAPELOG_HEADER_empty-none}"
        test $TAPELOG_OFFSET = 1 || echo $TAPELOG_TIME; cat; echo"#;
    sandbox.exec("-g g", line).prints(
        "0|1|1|g|1\n$(touch harm)|a b|\n1700000000000\n`touch harm`; touch harm\n\
         1|2|1|g|1\nnone|none|none\nplain\n",
    );
    assert!(!sandbox.path("harm").exists());
}

#[test]
fn what_an_environment_cant_hold_is_left_out() {
    let sandbox = Sandbox::new();
    let large = "x".repeat(200_000);
    sandbox.produce("-J", format!("{{\"key\":\"{large}\",\"payload\":\"v\"}}\n"));
    sandbox.produce("-J", "{\"key\":\"a\\u0000b\",\"payload\":\"w\"}\n");
    sandbox.commit("g", 0);
    sandbox.exec("-g g", "echo $(cat) ${TAPELOG_KEY-none}").prints("v none\nw none\n");
}

#[test]
fn a_handler_that_consumes_too_sees_nothing_of_the_outer_record() {
    let sandbox = Sandbox::new();
    sandbox.produce("-K :", "outer:1\n");
    let inner = sandbox.path("inner");
    let produce = sandbox.command_on(&inner, "produce -q");
    crate::sandbox::foreground(produce).write_stdin("x\n").prints("");
    sandbox.commit("g", 0);
    let tapelog = crate::sandbox::binary().display();
    let line = format!("{tapelog} consume inner -q -g h --exec 'echo ${{TAPELOG_KEY-none}}'");
    sandbox.exec("-g g", &line).prints("none\n");
}

#[test]
fn a_batch_is_given_whole_each_record_with_its_delimiter() {
    let sandbox = g_at_0(10);
    let line = "cat; echo \"$TAPELOG_OFFSET $TAPELOG_NEXT $TAPELOG_COUNT ${TAPELOG_KEY-none}\"";
    let text = |a, b, told: &str| want(a, b) + told + "\n";
    let all = [text(1, 4, "0 4 4 none"), text(5, 8, "4 8 4 none"), text(9, 10, "8 10 2 none")];
    sandbox.exec("-g g --batch 4", line).prints(all.concat());
    // Batches of the log do not matter.
    let sandbox = Sandbox::new();
    sandbox.mk1(10);
    sandbox.commit("g", 0);
    sandbox.exec("-g g --batch 4", line).prints(all.concat());
}

#[test]
fn records_are_formatted_as_they_would_be_printed() {
    let sandbox = Sandbox::new();
    sandbox.produce("-K :", "a:1\nb:2\n");
    sandbox.commit("g", 0);
    for (options, printed) in [
        ("", "1|2|"),
        ("-K =", "a=1\n|b=2\n|"),
        ("-F %k-%v", "a-1|b-2|"),
        ("--batch 2 -D ;", "1;2;|"),
        ("--key b", "2|"),
    ] {
        sandbox.exec(&format!("-g g {options}"), "cat; printf '|'").prints(printed);
        sandbox.seek("g", "earliest");
    }
}

#[test]
fn what_a_filter_drops_counts_as_handed_over() {
    let sandbox = g_at_0(100);
    let outcome = sandbox.exec("-g g --grep 7$", "test $TAPELOG_OFFSET -lt 50").outcome();
    outcome.ended(status::HANDLER).said(&["offset 56", "g goes on at 56"]);
    assert_eq!(sandbox.position("g"), 56, "what was dropped before it is done with");
    sandbox.exec("-g g --grep nothing", "exit 1").prints("");
    assert_eq!(sandbox.position("g"), 100);
}

#[test]
fn the_usual_ends_hold() {
    let sandbox = g_at_0(10);
    sandbox.exec("-g g -n 3", "cat; echo").prints(want(1, 3));
    assert_eq!(sandbox.position("g"), 3);
    sandbox
        .exec("-g g -n 3 --batch 2", "cat; echo -")
        .prints(want(4, 5) + "-\n" + &want(6, 6) + "-\n");
    sandbox.exec("-g g -o :8", "cat; echo").prints(want(7, 8));
    sandbox.exec("-g g --timeout 10ms", "cat; echo").prints(want(9, 10));
    sandbox.exec("-g g --fail-empty", "cat").outcome().ended(status::NOT_THERE).silent();
    sandbox.exec("", "cat").fails(status::USAGE, &["--group"]);
    sandbox.tapelog("consume -g g --batch 2").fails(status::USAGE, &["--exec"]);
}

#[test]
fn a_command_stands_behind_two_hyphens_and_so_may_an_odd_log() {
    let sandbox = g_at_0(2);
    sandbox.tapelog("consume -g g -- cat -n").prints("     1\tm-000001     1\tm-000002");
    sandbox.tapelog("consume -g g rm -- cat").fails(status::USAGE, &["rm", "behind --"]);
    sandbox.tapelog("consume rm").fails(status::USAGE, &["rm"]);
    sandbox.tapelog("consume -- cat").fails(status::USAGE, &["cat", "--group"]);
    sandbox.tapelog("consume -g g --exec true -- cat").fails(status::USAGE, &["--exec"]);
    let odd = |words: &[&str]| {
        let mut command = sandbox.bare();
        command.args(words);
        crate::sandbox::foreground(command)
    };
    odd(&["produce", "--", "-x"]).write_stdin("1\n2\n").prints("");
    odd(&["consume", "-q", "-g", "g", "--", "-x", "cat", "-"]).prints("12");
    odd(&["consume", "-g", "g", "-o", "0", "--", "-x"]).outcome().ended(status::USAGE);
}

#[test]
fn records_before_damage_are_handed_over_before_it_is_told() {
    let sandbox = Sandbox::new();
    sandbox.mk1(10);
    sandbox.commit("g", 0);
    let active = sandbox.active();
    crate::sandbox::flip(&active, crate::sandbox::position_of("m-000008", &active));
    let outcome: Outcome = sandbox.exec("-g g --batch 5", "cat; echo -").outcome();
    outcome
        .ended(status::DAMAGE)
        .said(&["offset 7"])
        .printed(want(1, 5) + "-\n" + &want(6, 7) + "-\n");
    assert_eq!(sandbox.position("g"), 7);
}

#[test]
fn a_follower_hands_over_what_comes_and_does_not_wait_for_a_full_batch() {
    let sandbox = g_at_0(3);
    let follower =
        sandbox.spawn("follower", sandbox.exec_command("-g g -f --batch 100", "cat; echo -"));
    follower.prints_within(5 * SECOND, want(1, 3) + "-\n");
    sandbox.append("x");
    follower.prints_within(5 * SECOND, want(1, 3) + "-\nx\n-\n");
    wait_until(5 * SECOND, "all is committed", || sandbox.position("g") == 4);
}

#[test]
fn a_closed_output_is_the_commands_matter() {
    let sandbox = g_at_0(100);
    let mut consume = sandbox.exec_command("-g g", "cat > /dev/null");
    consume.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = consume.spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
    assert_eq!(sandbox.position("g"), 100);
}

#[test]
fn a_command_that_commits_itself_is_let() {
    let sandbox = g_at_0(10);
    let tapelog = crate::sandbox::binary().display();
    let line = format!("test $TAPELOG_OFFSET -ge 5 || {tapelog} commit log -g g $TAPELOG_NEXT");
    sandbox.exec("-g g --commit manual", &line).prints("");
    assert_eq!(sandbox.position("g"), 5);
}

#[test]
fn handles_are_where_they_were_after_many_runs() {
    let sandbox = g_at_0(200);
    let line = "ls /proc/$PPID/fd | wc -l";
    let counts = sandbox.exec("-g g", line).text();
    let counts: Vec<u64> = counts.lines().map(|line| line.trim().parse().unwrap()).collect();
    // The pipe to it may be closed already when it looks, or not yet.
    let (fewest, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
    assert!(most - fewest <= 1, "{counts:?}");
}
