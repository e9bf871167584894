//! INPUT: line framing, binary bytes, encodings. What goes in comes out.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use crate::sandbox::{Expect, Random, Sandbox, same_bytes, status, want};

/// Stores these bytes with these options and gives the sizes of the records.
fn sizes_of(options: &str, stdin: &[u8]) -> (Sandbox, Vec<usize>) {
    let sandbox = Sandbox::new();
    sandbox.produce(options, stdin);
    let sizes = sandbox.tapelog(r"consume -F %S\n").text();
    (sandbox, sizes.lines().map(|size| size.parse().unwrap()).collect())
}

#[test]
fn h030_an_empty_line_is_an_empty_record() {
    let sandbox = Sandbox::new();
    sandbox.produce("", "a\n\n\nb\n");
    sandbox.tapelog(r"consume -F %o:%S:%s\n").prints("0:1:a\n1:0:\n2:0:\n3:1:b\n");
    sandbox.tapelog(r"consume -F %o:%V:%v\n").prints("0:1:a\n1:0:\n2:0:\n3:1:b\n");
    sandbox.all().prints("a\n\n\nb\n");
}

#[test]
fn h030_a_lone_newline_is_one_record_and_nothing_is_none() {
    assert_eq!(sizes_of("", b"\n").1, [0]);
    assert_eq!(sizes_of("", b"\n\n\n").1, [0, 0, 0]);
    assert!(sizes_of("", b"").1.is_empty());
    assert_eq!(sizes_of("-0", b"\0").1, [0]);
}

#[test]
fn h030_empty_records_count_when_the_log_is_read_from_an_offset() {
    let sandbox = Sandbox::new();
    sandbox.produce("", "\n".repeat(1000) + "a\n" + &"\n".repeat(1000) + "b\n");
    sandbox.tapelog("consume -o 1000 -n 1").prints("a\n");
    sandbox.tapelog("consume -o -1").prints("b\n");
    sandbox.tapelog("consume -o 999 -n 3").prints("\na\n\n");
}

#[test]
fn h030_an_empty_record_is_an_empty_payload_in_json() {
    let sandbox = Sandbox::new();
    sandbox.produce("", "\na\n");
    let records = sandbox.tapelog("consume -J").json();
    assert_eq!(records[0]["payload"], "");
    assert_eq!((&records[1]["payload"], &records[1]["offset"]), (&"a".into(), &1.into()));
}

#[test]
fn h031_nul_bytes_are_data() {
    let (sandbox, sizes) = sizes_of("", b"x\0\n\0y\n");
    assert_eq!(sizes, [2, 2]);
    sandbox.all().prints(b"x\0\n\0y\n");
}

#[test]
fn h031_every_byte_but_the_newline_comes_back_as_it_was() {
    let line: Vec<u8> = (0..=255).filter(|&byte| byte != b'\n').chain(*b"\n").collect();
    let (sandbox, sizes) = sizes_of("", &line);
    assert_eq!(sizes, [255]);
    sandbox.all().prints(line);
}

#[test]
fn h031_random_bytes_come_back_as_they_were() {
    let mut bytes = Random(31).bytes(3 << 20);
    bytes.push(b'\n');
    let sandbox = Sandbox::with_config("segment-size=1M");
    sandbox.produce("", bytes.clone());
    sandbox.all().prints(bytes);
}

#[test]
fn h031_json_of_bytes_that_are_no_text_is_base64() {
    let sandbox = Sandbox::new();
    sandbox.produce("", b"\xff\x00\n\0y\n");
    let records = sandbox.tapelog("consume -J").json();
    assert_eq!(records[0]["payload_base64"], "/wA=");
    assert!(records[0].get("payload").is_none());
    assert_eq!(records[1]["payload"], "\0y");
}

#[test]
fn h033_only_the_delimiter_divides() {
    let line = b"a\xe2\x80\xa8b\x0bc\x0cd\x85e\n";
    let (sandbox, sizes) = sizes_of("", line);
    assert_eq!(sizes, [11]);
    sandbox.all().prints(line);
}

#[test]
fn h033_a_carriage_return_is_data() {
    let (sandbox, sizes) = sizes_of("", b"a\r\nb\r\n\r\n\rc\n");
    assert_eq!(sizes, [2, 2, 1, 2]);
    sandbox.all().prints("a\r\nb\r\n\r\n\rc\n");
}

#[test]
fn h033_nothing_is_trimmed() {
    let text = " a \n\tb\t\n\u{feff}c\n\u{a0}\n";
    let (sandbox, _) = sizes_of("", text.as_bytes());
    sandbox.all().prints(text);
}

#[test]
fn h033_a_last_line_without_a_newline_counts() {
    let (sandbox, sizes) = sizes_of("", b"a\nbc");
    assert_eq!(sizes, [1, 2]);
    sandbox.all().prints("a\nbc\n");
    sandbox.produce("", "d");
    sandbox.all().prints("a\nbc\nd\n");
}

#[test]
fn h033_values_that_hold_newlines_come_back_whole() {
    let (sandbox, sizes) = sizes_of("-0", b"a\nb\0\n\0\0c\n\n\0last");
    assert_eq!(sizes, [3, 1, 0, 3, 4]);
    sandbox.tapelog("consume -0").prints("a\nb\0\n\0\0c\n\n\0last\0");
    sandbox.tapelog("consume").prints("a\nb\n\n\n\nc\n\n\nlast\n");
    let records = sandbox.tapelog("consume -J").json();
    assert_eq!((records.len(), &records[0]["payload"]), (5, &"a\nb".into()));
    sandbox.tapelog("consume -0 -o 3 -n 1").prints("c\n\n\0");
}

#[test]
fn h033_logs_may_mix_delimiters() {
    let sandbox = Sandbox::new();
    sandbox.produce("", "a\nb\n");
    sandbox.produce("-0", "c\nd\0e\0");
    sandbox.produce("-D ;", "f\ng;h");
    sandbox.tapelog("consume -0").prints("a\0b\0c\nd\0e\0f\ng\0h\0");
    sandbox.tapelog("consume -D ;").prints("a;b;c\nd;e;f\ng;h;");
    sandbox.tapelog("consume -o -4 -n 2 -0").prints("c\nd\0e\0");
}

#[test]
fn h034_a_delimiter_of_ones_own_divides() {
    let (sandbox, sizes) = sizes_of("-D #", b"a#b#c");
    assert_eq!(sizes, [1, 1, 1]);
    sandbox.all().prints("a\nb\nc\n");
    assert_eq!(
        sizes_of("-D #", b"a#b#").1,
        [1, 1],
        "the last delimiter ends a record, it begins none"
    );
}

#[test]
fn h034_a_delimiter_may_be_long_and_is_written_with_escapes() {
    let (sandbox, sizes) = sizes_of(r"-D \r\n", b"a\r\nb");
    assert_eq!(sizes, [1, 1]);
    sandbox.tapelog(r"consume -D \r\n").prints("a\r\nb\r\n");
    assert_eq!(sizes_of(r"-D \r\n", b"a\rb\nc\r\n\r\n\r\r\n").1, [5, 0, 1]);
    assert_eq!(sizes_of(r"-D \x41\t", b"xA\tyA").1, [1, 2]);
    assert_eq!(sizes_of(r"-D \\", br"a\b").1, [1, 1]);
    assert_eq!(sizes_of(r"-D \0", b"a\0b").1, [1, 1]);
    assert_eq!(sizes_of("-D aa", b"aaab").1, [0, 2], "the first place where it fits");
}

#[test]
fn h034_a_long_delimiter_is_found_wherever_the_input_is_torn() {
    let mut random = Random(34);
    let values: Vec<String> =
        (0..400).map(|_| "v".repeat(random.between(0, 2000) as usize)).collect();
    let input = values.concat_with("<=>");
    let sandbox = Sandbox::new();
    let mut producer = sandbox.spawn("producer", sandbox.command("produce -D <=>"));
    let mut rest = input.as_bytes();
    while !rest.is_empty() {
        let (now, later) = rest.split_at(rest.len().min(random.between(1, 5000) as usize));
        producer.feed(now);
        rest = later;
    }
    producer.close_stdin();
    assert!(producer.ends_within(Duration::from_secs(20)).success());
    sandbox.tapelog("consume -D <=>").prints(input);
    sandbox.all().prints(values.concat_with("\n"));
}

/// Every value followed by its delimiter.
trait ConcatWith {
    fn concat_with(&self, delimiter: &str) -> String;
}

impl ConcatWith for Vec<String> {
    fn concat_with(&self, delimiter: &str) -> String {
        self.iter().flat_map(|value| [value.as_str(), delimiter]).collect()
    }
}

#[test]
fn h034_a_delimiter_that_cannot_be_is_a_usage_error_and_makes_no_log() {
    for bad in ["", r"\q", r"\x4", r"\"] {
        let sandbox = Sandbox::new();
        sandbox.tapelog("produce").args(["-D", bad]).write_stdin("a\n").fails(status::USAGE, &[]);
        assert!(!sandbox.log().exists());
    }
}

#[test]
fn h034_a_format_that_cannot_be_is_a_usage_error() {
    let sandbox = Sandbox::new();
    sandbox.mk(1);
    for bad in ["%q", "%", r"\q"] {
        sandbox.tapelog("consume -F").arg(bad).fails(status::USAGE, &[]);
    }
    sandbox.tapelog(r"consume -F %%\t%o\x21").prints("%\t0!");
}

#[test]
fn h034_a_typed_line_is_appended_at_once_and_a_half_one_when_it_is_whole() {
    let sandbox = Sandbox::new();
    let mut producer = sandbox.spawn("producer", sandbox.command("produce"));
    let holds = |want: &str| {
        crate::sandbox::wait_until(Duration::from_secs(1), want, || {
            sandbox.all().outcome().stdout == want.as_bytes()
        });
    };
    producer.feed("a\n");
    holds("a\n");
    producer.feed("b\nhal");
    holds("a\nb\n");
    producer.feed("f\n");
    holds("a\nb\nhalf\n");
    producer.feed("last");
    producer.close_stdin();
    assert!(producer.ends_within(Duration::from_secs(5)).success());
    sandbox.all().prints("a\nb\nhalf\nlast\n");
}

#[test]
fn h033_lines_around_and_beyond_the_size_of_a_batch_come_back() {
    let mebi = 1 << 20;
    for length in [4 * mebi - 65, 4 * mebi - 64, 4 * mebi - 1, 4 * mebi, 4 * mebi + 1, 9 * mebi] {
        let text = format!("before\n{}\nafter\n", "x".repeat(length));
        let sandbox = Sandbox::new();
        sandbox.produce("", text.clone());
        sandbox.all().prints(text);
        sandbox.tapelog("consume -o 2").prints("after\n");
    }
}

#[test]
fn h030_files_are_appended_in_order_and_each_end_ends_a_record() {
    let sandbox = Sandbox::new();
    let (one, two, none) =
        (sandbox.file("one", "a\nb"), sandbox.file("two", "\nc\n"), sandbox.file("none", ""));
    sandbox.tapelog("produce").args([&one, &none, &two, &one]).prints("");
    sandbox.all().prints("a\nb\n\nc\na\nb\n");
}

#[test]
fn h030_a_hyphen_among_files_is_stdin() {
    let sandbox = Sandbox::new();
    let (one, two) = (sandbox.file("one", "1"), sandbox.file("two", "2\n"));
    let mut produce = sandbox.tapelog("produce");
    produce.arg(&one).arg("-").arg(&two).write_stdin("from\nstdin").prints("");
    sandbox.all().prints("1\nfrom\nstdin\n2\n");
    sandbox.tapelog("produce -").write_stdin("3").prints("");
    sandbox.tapelog("consume -o -1").prints("3\n");
}

#[test]
fn h030_stdin_is_left_alone_when_files_are_named() {
    let sandbox = Sandbox::new();
    let mut produce = sandbox.tapelog("produce");
    produce.arg(sandbox.file("one", "1\n")).write_stdin("not this\n").prints("");
    sandbox.all().prints("1\n");
}

#[test]
fn h030_a_file_that_cannot_be_opened_stops_everything_before_it_begins() {
    let sandbox = Sandbox::new();
    let good = sandbox.file("good", "a\n");
    let mut produce = sandbox.tapelog("produce");
    produce.arg(&good).arg(sandbox.path("missing")).fails(status::FAILED, &["missing"]);
    assert!(!sandbox.log().exists(), "no log was made");
    sandbox.mk(1);
    let mut produce = sandbox.tapelog("produce");
    produce.arg(&good).arg(sandbox.path("missing")).fails(status::FAILED, &["missing"]);
    sandbox.all().prints(want(1, 1));
}

#[test]
fn h030_a_directory_in_place_of_a_file_is_an_error_that_names_it() {
    let sandbox = Sandbox::new();
    let dir = sandbox.path("a-directory");
    fs::create_dir(&dir).unwrap();
    sandbox.tapelog("produce").arg(&dir).fails(status::FAILED, &["a-directory"]);
}

#[test]
fn h030_output_goes_to_a_file_or_a_pipe_alike() {
    let sandbox = Sandbox::new();
    let mut text = Random(30).bytes(700_000);
    text.push(b'\n');
    sandbox.produce("", text.clone());
    let mut to_file = sandbox.spawn("to-file", sandbox.command("consume"));
    assert!(to_file.ends_within(Duration::from_secs(20)).success());
    same_bytes(&to_file.out(), &text, "consume >file");
    sandbox.all().prints(&text);
    // Behind what is already there.
    let path = sandbox.file("both", "first\n");
    let file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let appended = sandbox.command("consume").stdout(Stdio::from(file)).status().unwrap();
    assert!(appended.success());
    same_bytes(&fs::read(&path).unwrap(), &[b"first\n", &text[..]].concat(), "consume >>file");
}
