//! `consume --key`: by the index it jumps over what holds no such key, and prints what
//! reading all of it prints.

use std::time::Duration;

use crate::sandbox::{Expect, Sandbox, status, wait_until, want};

const SOON: Duration = Duration::from_secs(20);
const FILLER: usize = 8000;

/// What has the key `wanted`, every thousand records, and `rare`, twice.
const COUNT: u64 = 6000;

fn key(n: u64) -> String {
    match n {
        1500 | 4700 => "rare".to_owned(),
        n if n % 1000 == 999 => "wanted".to_owned(),
        n => format!("k{n}"),
    }
}

/// Some 48 MB in segments of 4 MB: far enough from one to the next to be jumped over.
fn far_apart() -> Sandbox {
    let sandbox = Sandbox::with_config("segment-size=4M");
    let line = |n| format!("{}:{n} {}\n", key(n), "x".repeat(FILLER));
    let (early, late) = (0..COUNT / 2, COUNT / 2..COUNT);
    let of = |range: std::ops::Range<u64>| range.map(line).collect::<String>();
    sandbox.produce("-K : --sync none --now 2026-01-01T12:00:00Z", of(early));
    sandbox.produce("-K : --now 2026-01-01T12:00:01Z", of(late));
    sandbox
}

const ALL: [u64; 6] = [999, 1999, 2999, 3999, 4999, 5999];

/// What `-F %o;` prints of these.
fn shown(offsets: &[u64]) -> String {
    offsets.iter().map(|offset| format!("{offset};")).collect()
}

#[test]
fn whatever_else_is_asked_for_the_same_records_are_printed() {
    let sandbox = far_apart();
    let both = [999, 1500, 1999, 2999, 3999, 4700, 4999, 5999];
    let asked: [(&str, &[u64]); 16] = [
        ("--key wanted", &ALL),
        ("--key wanted --key rare", &both),
        ("--key none", &[]),
        ("--key wanted -n 2", &ALL[..2]),
        ("--key wanted -o 1000", &ALL[1..]),
        ("--key wanted -o 1999:3999", &ALL[1..3]),
        ("--key wanted -o :4000", &ALL[..4]),
        ("--key wanted -o 2000:2999", &[]),
        ("--key wanted -o @2026-01-01T12:00:01Z", &ALL[3..]),
        ("--key wanted --until 2026-01-01T12:00:01Z", &ALL[..3]),
        ("--key wanted --tail 1", &ALL[5..]),
        ("--key wanted --grep ^3", &[3999]),
        ("--key wanted --timeout 1ms", &ALL),
        ("--key wanted --skip-damage", &ALL),
        ("--key rare -H none=1", &[]),
        ("--key k0 --key wanted -n 2", &[0, 999]),
    ];
    for (options, offsets) in asked {
        let line = format!("consume -F %o; {options}");
        sandbox.tapelog(&line).prints(shown(offsets));
        if !options.contains("--timeout") && !options.contains("-n") {
            let newest_first: Vec<u64> = offsets.iter().rev().copied().collect();
            sandbox.tapelog(&format!("{line} -r")).prints(shown(&newest_first));
        }
    }
    sandbox.tapelog("consume -F %o; --key wanted -r -n 2").prints("5999;4999;");
    sandbox.tapelog("consume -F %o; --key rare -r -o 1000:4000").prints("1500;");
    sandbox.tapelog("consume --key none --fail-empty").outcome().ended(status::NOT_THERE);
}

#[test]
fn a_group_s_checkpoint_moves_over_what_is_jumped_over() {
    let sandbox = far_apart();
    for (options, printed, position) in [
        ("-n 2", &ALL[..2], 2000),
        ("-o :3500", &ALL[2..3], 3500),
        ("--until 2026-01-01T12:00:01Z", &[], 3500),
        ("--commit-every 1 -n 1", &ALL[3..4], 4000),
        ("", &ALL[4..], COUNT),
        ("", &[], COUNT),
    ] {
        let line = format!("consume -g g -q -F %o; --key wanted {options}");
        sandbox.tapelog(&line).prints(shown(printed));
        let group = sandbox.group("g");
        assert_eq!(
            (&group["position"], &group["lag"]),
            (&position.into(), &(COUNT - position).into())
        );
    }
    // The checkpoint holds: the append time that goes with it is the right one.
    sandbox.tapelog("consume -g none -q --key none").prints("");
    assert_eq!(sandbox.position("none"), COUNT);
    sandbox.mk(3);
    sandbox.tapelog("consume -g none -q").prints(want(1, 3));
    sandbox.tapelog("consume -g time -q --key none --until 2026-01-01T12:00:01Z").prints("");
    assert_eq!(sandbox.position("time"), COUNT / 2);
    sandbox.tapelog("consume -g time -q -n 1 -F %o").prints("3000");
}

#[test]
fn a_follower_jumps_to_the_end_and_reads_on_there() {
    let sandbox = far_apart();
    let line = "consume -f -g g -q -F %o; --key wanted";
    let mut follower = sandbox.spawn("follower", sandbox.command(line));
    follower.prints_within(SOON, shown(&ALL));
    wait_until(SOON, "all is committed", || sandbox.position("g") == COUNT);
    sandbox.produce("-K :", "a:1\nwanted:2\nb:3\n");
    follower.prints_within(SOON, shown(&ALL) + "6001;");
    wait_until(SOON, "all is committed", || sandbox.position("g") == COUNT + 3);
    assert!(follower.runs());
}
