//! SIZE: the largest record, with all that counts towards it.

use crate::sandbox::{Expect, Sandbox, len, long, rounds, skip, status, want};

/// 50 short lines, a long one of 20 MiB, 25 short lines.
fn h035_input() -> String {
    format!("{}{}\n{}", want(1, 50), "x".repeat(20_971_520), want(51, 75))
}

#[test]
fn h035_a_line_beyond_the_limit_is_named_and_what_came_before_is_stored() {
    for options in ["", "-k key", "-H a=b", "-D \\n --batch-records 7"] {
        let sandbox = Sandbox::with_config("max-record-size=16777216");
        let mut produce = sandbox.tapelog(&format!("produce {options}"));
        produce.write_stdin(h035_input());
        produce.fails(status::TOO_BIG, &["record 51 ", "20971520", "max-record-size"]);
        sandbox.all().prints(want(1, 50));
    }
}

#[test]
fn h035_skip_leaves_it_out_and_tells_once() {
    for options in ["", "-Z"] {
        let sandbox = Sandbox::with_config("max-record-size=16777216");
        let mut produce = sandbox.tapelog(&format!("produce --oversize skip {options}"));
        produce.write_stdin(h035_input()).fails(status::PARTIAL, &["1 ", "max-record-size", "75"]);
        sandbox.all().prints(want(1, 75));
    }
}

#[test]
fn h035_skip_counts_several_and_ends_well_if_there_was_none() {
    let sandbox = Sandbox::with_config("max-record-size=5");
    let mut produce = sandbox.tapelog("produce --oversize skip --receipt");
    produce.write_stdin("123456\nok\n1234567\n\n123456\nlast!\n123456");
    produce.ends(status::PARTIAL, "0\n1\n2\n", &["4 "]);
    sandbox.all().prints("ok\n\nlast!\n");
    sandbox.produce("--oversize skip", "fits\n");
    sandbox.tapelog("produce --oversize keep").write_stdin("").fails(status::USAGE, &["keep"]);
}

#[test]
fn h035_files_after_the_long_line_are_stored_under_skip() {
    let sandbox = Sandbox::with_config("max-record-size=1000");
    let long = sandbox.file("long", format!("a\n{}\nb", "x".repeat(700_000)));
    let next = sandbox.file("next", "c\n");
    let mut produce = sandbox.tapelog("produce --oversize skip");
    produce.arg(&long).arg(&next).fails(status::PARTIAL, &["1 "]);
    sandbox.all().prints("a\nb\nc\n");
    let mut produce = sandbox.tapelog("produce");
    produce.arg(&next).arg(&long).fails(status::TOO_BIG, &["long", "700000"]);
    sandbox.all().prints("a\nb\nc\nc\na\n");
}

#[test]
fn h035_an_input_that_ends_inside_the_long_record_is_told_and_left() {
    for options in ["", "-0", "-k key", "-D ab"] {
        for size in [1001, 1002, 600_000] {
            let end = if options.contains("-0") { "\0" } else { "\n" };
            let end = if options.contains("-D") { "ab" } else { end };
            let input = format!("a{end}{}", "x".repeat(size));
            let sandbox = Sandbox::with_config("max-record-size=1000");
            let mut produce = sandbox.tapelog(&format!("produce {options}"));
            produce.write_stdin(input.clone());
            produce.fails(status::TOO_BIG, &["record 2 ", &size.to_string()]);
            let mut produce = sandbox.tapelog(&format!("produce --oversize skip {options}"));
            produce.write_stdin(input).fails(status::PARTIAL, &["1 "]);
            sandbox.all().prints("a\na\n");
        }
    }
}

#[test]
fn h036_exactly_the_limit_is_stored_and_one_byte_more_is_not() {
    for (options, end) in
        [("", "\n"), ("-0", "\0"), ("-D ;;", ";;"), ("-Z", "\n"), ("-z zstd", "\n")]
    {
        let sandbox = Sandbox::with_config("max-record-size=1000");
        let line = |size: usize| format!("{}{end}", "x".repeat(size));
        sandbox.produce(options, [line(999), line(1000)].concat());
        let mut produce = sandbox.tapelog(&format!("produce {options}"));
        produce.write_stdin(line(1001) + &line(1)).fails(status::TOO_BIG, &["record 1 ", "1001"]);
        sandbox.tapelog(r"consume -F %V\n").prints("999\n1000\n");
    }
}

#[test]
fn h036_the_limit_holds_for_whole_files() {
    let sandbox = Sandbox::with_config("max-record-size=1000");
    sandbox.produce("--whole", "x".repeat(1000));
    let mut produce = sandbox.tapelog("produce --whole");
    produce.write_stdin("x\n".repeat(501)).fails(status::TOO_BIG, &["1002", "max-record-size"]);
    for lines in [501, 500_000] {
        let mut produce = sandbox.tapelog("produce --whole --oversize skip");
        produce.write_stdin("x\n".repeat(lines)).fails(status::PARTIAL, &["1 "]);
        assert_eq!(sandbox.end(), 1);
    }
}

#[test]
fn h036_the_key_counts() {
    let sandbox = Sandbox::with_config("max-record-size=1000");
    let key = "k".repeat(400);
    sandbox.produce(&format!("-k {key}"), "x".repeat(600));
    let mut produce = sandbox.tapelog(&format!("produce -k {key}"));
    produce.write_stdin("x\n".to_owned() + &"x".repeat(601));
    produce.fails(status::TOO_BIG, &["record 2 ", "1001"]);
    sandbox.tapelog(r"consume -F %K+%V\n").prints("400+600\n400+1\n");
    let mut produce = sandbox.tapelog(&format!("produce --oversize skip -k {key}"));
    produce.write_stdin("x".repeat(601) + "\ny\n").fails(status::PARTIAL, &["1 "]);
    assert_eq!(sandbox.end(), 3);
}

#[test]
fn h036_the_separator_does_not_count() {
    let sandbox = Sandbox::with_config("max-record-size=1000");
    let line = |key: usize, value: usize| format!("{}<=>{}\n", "k".repeat(key), "v".repeat(value));
    sandbox.produce("-K <=>", line(1, 999) + &line(999, 1) + &line(500, 500) + &line(1000, 0));
    let mut produce = sandbox.tapelog("produce -K <=>");
    produce
        .write_stdin(line(1, 1) + &line(500, 501))
        .fails(status::TOO_BIG, &["record 2 ", "max-record-size"]);
    sandbox.tapelog("consume -F %K+%V;").prints("1+999;999+1;500+500;1000+0;1+1;");
}

#[test]
fn h036_headers_count() {
    let sandbox = Sandbox::with_config("max-record-size=1000");
    let header = format!("-H name={}", "h".repeat(100));
    sandbox.produce(&header, "x".repeat(880));
    let mut produce = sandbox.tapelog(&format!("produce {header}"));
    produce.write_stdin("x".repeat(897)).fails(status::TOO_BIG, &["record 1 ", "max-record-size"]);
    let mut produce = sandbox.tapelog(&format!("produce -H name={}", "h".repeat(1000)));
    produce.write_stdin("").prints("");
    produce.write_stdin("\n").fails(status::TOO_BIG, &["record 1 "]);
    assert_eq!(sandbox.end(), 1);
}

#[test]
fn h036_in_json_the_record_counts_and_not_its_line() {
    let sandbox = Sandbox::with_config("max-record-size=1000");
    // Each byte takes six characters in the first, four thirds in the second.
    sandbox.produce("-J", format!("{{\"payload\":\"{}\"}}\n", "\\u0001".repeat(1000)));
    let base64 = format!("{}AA==", "AAAA".repeat(333));
    sandbox.produce("-J", format!("{{\"payload_base64\":\"{base64}\"}}\n"));
    sandbox.tapelog("consume -F %V;").prints("1000;1000;");
    for line in [
        format!("{{\"payload\":\"{}\"}}", "x".repeat(1001)),
        format!("{{\"payload\":\"{}\"}}", "\\u0001".repeat(1001)),
        format!("{{\"payload_base64\":\"{}\"}}", "AAAA".repeat(334)),
        format!("{{\"key\":\"{}\",\"payload\":\"y\"}}", "x".repeat(1000)),
        format!("{{\"headers\":[\"a\",\"{}\"],\"payload\":\"y\"}}", "x".repeat(1000)),
    ] {
        let input = format!("{{\"payload\":\"before\"}}\n{line}\n");
        sandbox
            .tapelog("produce -J")
            .write_stdin(input.clone())
            .fails(status::TOO_BIG, &["record 2 ", "max-record-size"]);
        let mut skipping = sandbox.tapelog("produce -J --oversize skip");
        skipping.write_stdin(input + "{\"payload\":\"after\"}\n").fails(status::PARTIAL, &["1 "]);
    }
    assert_eq!(sandbox.end(), 2 + 5 * 3);
}

#[test]
fn h036_records_at_the_default_limit_go_through_json() {
    if !long() {
        return skip("h036 at the default limit", "TAPELOG_LONG=1 runs it");
    }
    let (from, into) = (Sandbox::with_config("segment-size=1G"), Sandbox::new());
    let limit = 64 << 20;
    from.produce("--whole", vec![0xff; limit]);
    from.tapelog("produce --whole").write_stdin(vec![0xff; limit + 1]).fails(status::TOO_BIG, &[]);
    super::pipe(&from, "-J", &into, "-J");
    into.tapelog("consume -F %v").prints(vec![0xff; limit]);
}

#[test]
fn h037_a_big_batch_asks_whether_the_segment_is_full() {
    let lines = rounds(50_000, 1_000_000);
    let sandbox = Sandbox::with_config("segment-size=65536");
    let input = format!("{:049}\n", 7).repeat(lines);
    sandbox.produce("", input.clone());
    let segments = sandbox.segments();
    assert!(segments.len() > lines / 1_000_000 * 700 + lines % 1_000_000 / 1500);
    let largest = segments.iter().map(|file| len(file)).max().unwrap();
    assert!(largest <= 65_536, "{largest}");
    sandbox.all().prints(input);
}
