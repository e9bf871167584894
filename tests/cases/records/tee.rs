//! `produce -T`: what was stored, and nothing else, goes on to stdout.

use crate::sandbox::{Expect, Sandbox, status};

/// Each way to produce, its input, and what it stores as `-T` prints it.
const WAYS: [(&str, &str, &str); 16] = [
    ("", "a\n\n b\r\n", "a\n\n b\r\n"),
    ("", "a\nno newline", "a\nno newline\n"),
    ("", "", ""),
    ("-k key", "a\nb\n", "a\nb\n"),
    ("-H n=v -z zstd", "a\nb", "a\nb\n"),
    ("-K :", "k:a\n:b\nk:c:d\n", "a\nb\nc:d\n"),
    ("-K : --no-key keep", "k:a\nb\n", "a\nb\n"),
    ("-0", "a\nb\0c\0", "a\nb\0c\0"),
    ("-0", "a\0c", "a\0c\0"),
    ("-D ;", "a;b\nc", "a;b\nc;"),
    ("-D aa", "xaaa", "xaaaaa"),
    ("-D aa", "xaaaa", "xaaaa"),
    ("-Z", "a\n\n", "a\n\n"),
    ("--whole", "a\n\nb", "a\n\nb"),
    (
        "-J",
        "{\"payload\":\"a\",\"key\":\"k\"}\n{\"payload\":null}\n{\"payload\":\"b\"}\n",
        "a\n\nb\n",
    ),
    ("--batch-records 1", "a\nb\nc\n", "a\nb\nc\n"),
];

#[test]
fn what_was_stored_is_printed_whatever_shaped_it() {
    for (options, input, want) in WAYS {
        let sandbox = Sandbox::new();
        sandbox.tapelog(&format!("produce -T {options}")).write_stdin(input).prints(want);
        let expected = Sandbox::new();
        expected.produce(options, input);
        let records = expected.tapelog("consume -F %K:%k,%V:%v;").text();
        sandbox.tapelog("consume -F %K:%k,%V:%v;").prints(records);
    }
}

#[test]
fn what_was_left_out_is_not_printed() {
    for options in ["", "-k key", "-Z", "--batch-records 1"] {
        let sandbox = Sandbox::with_config("max-record-size=5");
        let mut produce = sandbox.tapelog(&format!("produce -T --oversize skip {options}"));
        produce.write_stdin("a\n123456\nb\n\n1234567\n");
        produce.ends(status::PARTIAL, "a\nb\n\n", &["2 "]);
        sandbox.all().prints("a\nb\n\n");
    }
}

#[test]
fn what_came_before_an_error_is_printed_and_nothing_of_what_follows() {
    let sandbox = Sandbox::with_config("max-record-size=5");
    let mut produce = sandbox.tapelog("produce -T");
    produce.write_stdin("a\n123456\nb\n").ends(status::TOO_BIG, "a\n", &["record 2 "]);
    let mut produce = sandbox.tapelog("produce -T -K :");
    produce.write_stdin("k:c\nd\nk:e\n").ends(status::FAILED, "c\n", &["record 2 "]);
    let mut produce = sandbox.tapelog("produce -T -J");
    produce.write_stdin("{\"payload\":\"f\"}\n{}\n").ends(status::FAILED, "f\n", &["record 2 "]);
    let mut produce = sandbox.tapelog("produce -T --expect-end 9");
    produce.write_stdin("g\n").ends(status::RANGE, "", &[]);
    sandbox.all().prints("a\nc\nf\n");
}

#[test]
fn a_large_input_goes_through_in_order() {
    let sandbox = Sandbox::with_config("segment-size=1M");
    let input = crate::sandbox::want(1, 100_000);
    sandbox.tapelog("produce -T").write_stdin(input.clone()).prints(&input);
    sandbox.all().prints(&input);
    let keyed = Sandbox::new();
    keyed
        .tapelog("produce -T -K - -z lz4")
        .write_stdin(input.clone())
        .prints(input.replace("m-", ""));
}

#[test]
fn a_line_is_printed_as_soon_as_it_is_stored() {
    let sandbox = Sandbox::new();
    let mut producer = sandbox.spawn("producer", sandbox.command("produce -T"));
    producer.feed("a\n");
    producer.prints_within(crate::sandbox::SECOND, "a\n");
    sandbox.all().prints("a\n");
    producer.feed("b\nhal");
    producer.prints_within(crate::sandbox::SECOND, "a\nb\n");
    producer.close_stdin();
    assert!(producer.ends_within(crate::sandbox::SECOND * 5).success());
    assert_eq!(producer.out(), b"a\nb\nhal\n");
}

#[test]
fn receipts_and_values_do_not_share_stdout() {
    let sandbox = Sandbox::new();
    let mut produce = sandbox.tapelog("produce -T --receipt");
    produce.write_stdin("a\n").fails(status::USAGE, &["--receipt"]);
    assert!(!sandbox.log().exists());
}
