//! `consume -r`: the newest record first, from the end of what was asked for.

use super::{field, of_json};
use crate::sandbox::{Expect, Sandbox, cut, flip, position_of, status};

/// `m-00000B` down to `m-00000A`.
fn down(b: u64, a: u64) -> String {
    (a..=b).rev().map(|n| format!("m-{n:06}\n")).collect()
}

#[test]
fn the_newest_record_comes_first() {
    let sandbox = Sandbox::new();
    sandbox.mk(1000);
    sandbox.tapelog("consume -r").prints(down(1000, 1));
    sandbox.tapelog("consume --reverse -n 3").prints(down(1000, 998));
    sandbox.tapelog("consume -r -n 0").prints("");
    sandbox.tapelog("consume -r -n 5000").prints(down(1000, 1));
}

#[test]
fn a_range_is_read_from_its_end() {
    for sandbox in [Sandbox::hundreds(10), Sandbox::with_config("segment-size=1G")] {
        if !sandbox.log().join("00000000000000000000.log").exists() {
            sandbox.mk(1000);
        }
        for (range, want) in [
            ("250:450", down(450, 251)),
            (":3", down(3, 1)),
            ("997:", down(1000, 998)),
            ("990", down(1000, 991)),
            ("-5", down(1000, 996)),
            ("+995", down(1000, 996)),
            ("200:201", down(201, 201)),
            ("199:200", down(200, 200)),
            ("99:101", down(101, 100)),
            ("500:500", String::new()),
            ("earliest", down(1000, 1)),
            ("latest", String::new()),
            ("1000", String::new()),
            (":2000", down(1000, 1)),
        ] {
            sandbox.tapelog(&format!("consume -r -o {range}")).prints(&want);
        }
        sandbox.tapelog("consume -r -o 250:450 -n 60").prints(down(450, 391));
        sandbox.tapelog("consume -r --tail 7").prints(down(1000, 994));
        sandbox.tapelog("consume -r -o 1001").fails(status::RANGE, &["1001"]);
    }
}

#[test]
fn times_bound_it_as_they_do_forwards() {
    let sandbox = Sandbox::new();
    sandbox.produce_at("2026-01-01T10:00:00Z", "a\nb\n");
    sandbox.produce_at("2026-01-01T11:00:00Z", "c\n");
    sandbox.produce_at("2026-01-01T12:00:00Z", "d\ne\n");
    sandbox.tapelog("consume -r --since 2026-01-01T11:00:00Z").prints("e\nd\nc\n");
    sandbox.tapelog("consume -r --until 2026-01-01T12:00:00Z").prints("c\nb\na\n");
    sandbox
        .tapelog("consume -r -o @2026-01-01T10:30:00Z --until 2026-01-01T11:30:00Z")
        .prints("c\n");
}

#[test]
fn it_goes_across_segments_layouts_and_codecs() {
    let sandbox = Sandbox::with_config("segment-size=1K");
    let mut values = Vec::new();
    for round in 0..30_u64 {
        let codec = ["none", "lz4", "zstd"][round as usize % 3];
        let (one, two) = (format!("plain-{round}"), format!("keyed\n-{round}"));
        sandbox.produce(&format!("-z {codec}"), format!("{one}\n\n"));
        sandbox.produce(&format!("-0 -k k{round} -z {codec}"), format!("{two}\0"));
        values.extend([one, String::new(), two]);
    }
    let want: String = values.iter().rev().map(|value| format!("{value};")).collect();
    sandbox.tapelog("consume -r -D ;").prints(want);
    sandbox.delete_indexes();
    let part: String = values[20..71].iter().rev().map(|value| format!("{value};")).collect();
    sandbox.tapelog("consume -r -D ; -o 20:71").prints(part);
    sandbox.tapelog("consume -r -D ; --key k7 --key k8").prints("keyed\n-8;keyed\n-7;");
}

#[test]
fn every_form_of_output_can_be_reversed() {
    let sandbox = of_json(
        "{\"key\":\"a\",\"payload\":\"1\"}\n{\"key\":\"b\",\"payload\":null}\n{\"payload\":\"3\"}\n",
    );
    sandbox.tapelog("consume -r -F %o%k%V;").prints("21;1b-1;0a1;");
    sandbox.tapelog("consume -r -0").prints("3\0\x001\0");
    sandbox.tapelog("consume -r -K =").prints("=3\nb=\na=1\n");
    let records = sandbox.tapelog("consume -r -J").json();
    assert_eq!(field(&records, "offset"), [2, 1, 0]);
    let forwards = sandbox.tapelog("consume -J").json();
    assert!(records.iter().eq(forwards.iter().rev()));
    assert_eq!(sandbox.tapelog("consume -r --json-payload").json()[0]["json"], 3);
}

#[test]
fn the_start_of_a_log_that_was_cut_is_the_last_one_read() {
    let sandbox = Sandbox::hundreds_from(300, 5);
    sandbox.tapelog("consume -r").prints(down(500, 301));
    sandbox.tapelog("consume -r -o 100").fails(status::RANGE, &["100", "300"]);
    sandbox.tapelog("consume -r -o :400").prints(down(400, 301));
}

#[test]
fn an_empty_log_has_no_newest_record() {
    let sandbox = Sandbox::with_config("segment-size=1K");
    sandbox.tapelog("consume -r").prints("");
    sandbox.tapelog("consume -r --fail-empty").outcome().ended(status::NOT_THERE).printed("");
}

#[test]
fn what_has_no_end_or_keeps_a_place_is_not_reversed() {
    let sandbox = Sandbox::new();
    sandbox.mk(3);
    for beside in ["-f", "-g g", "--timeout 1s"] {
        let mut consume = sandbox.tapelog(&format!("consume -r {beside}"));
        consume.fails(status::USAGE, &["--reverse"]);
    }
    sandbox.tapelog("groups -g g").outcome().ended(status::NOT_THERE);
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let sandbox = Sandbox::new();
    sandbox.mk(300_000);
    let mut reader = crate::sandbox::Piped::start(&sandbox, "consume -r");
    assert_eq!(reader.line(), "m-300000\n");
    reader.close();
    reader.ends_quietly();
}

#[test]
fn it_ends_at_damage_after_what_is_newer_was_printed() {
    let sandbox = Sandbox::hundreds(4);
    let file = sandbox.sealed(2);
    flip(&file, position_of("m-000150", &file));
    let name = file.file_name().unwrap().to_str().unwrap().to_owned();
    sandbox.tapelog("consume -r").ends(status::DAMAGE, down(400, 201), &[&name]);
    sandbox.tapelog("consume -r -n 150").prints(down(400, 251));
    sandbox.tapelog("consume -r -o :100").prints(down(100, 1));
}

#[test]
fn a_torn_tail_is_no_record() {
    let sandbox = Sandbox::new();
    sandbox.mkx(100);
    cut(&sandbox.active(), 3);
    sandbox.tapelog("consume -r").notes(down(99, 1), &["unfinished"]);
    sandbox.tapelog("consume -r -n 2").notes(down(99, 98), &["unfinished"]);
}
