//! Which records `consume` prints: by key, header, bytes and own time.

use super::of_json;
use crate::sandbox::{Expect, Sandbox, status};

/// Values a to g with keys, headers and bytes of their own.
fn mixed() -> Sandbox {
    of_json(concat!(
        r#"{"payload":"a"}"#,
        "\n",
        r#"{"key":"k","payload":"b"}"#,
        "\n",
        r#"{"key":"","payload":"c","headers":["x","1"]}"#,
        "\n",
        r#"{"key":"k2","payload":"d","headers":["x","2","x","1","y","1"]}"#,
        "\n",
        r#"{"key":"k","payload":null,"headers":["x",null]}"#,
        "\n",
        r#"{"key":"K","payload":"f\nb","headers":["y","1","x",""]}"#,
        "\n",
        r#"{"key_base64":"/w==","payload_base64":"Z/8A","headers_base64":["eA==","/w=="]}"#,
        "\n",
    ))
}

/// Asserts which offsets these options print.
#[track_caller]
fn finds(sandbox: &Sandbox, options: &[&str], offsets: &[u64]) {
    let want: String = offsets.iter().map(|offset| format!("{offset} ")).collect();
    sandbox.tapelog("consume -F").arg("%o ").args(options).prints(want);
}

#[test]
fn a_key_is_met_exactly_and_any_of_several_will_do() {
    let sandbox = mixed();
    finds(&sandbox, &["--key", "k"], &[1, 4]);
    finds(&sandbox, &["--key", "K"], &[5]);
    finds(&sandbox, &["--key", ""], &[2]);
    finds(&sandbox, &["--key", "k", "--key", "k2", "--key", "none"], &[1, 3, 4]);
    finds(&sandbox, &["--key", "none"], &[]);
    finds(&sandbox, &["--key", "k\n"], &[]);
}

#[test]
fn a_header_is_met_by_name_and_value_and_all_of_several_must_be() {
    let sandbox = mixed();
    finds(&sandbox, &["-H", "x=1"], &[2, 3]);
    finds(&sandbox, &["--header", "x=2"], &[3]);
    finds(&sandbox, &["-H", "x=1", "-H", "x=2"], &[3]);
    finds(&sandbox, &["-H", "y=1"], &[3, 5]);
    finds(&sandbox, &["-H", "y=1", "-H", "x="], &[5]);
    finds(&sandbox, &["-H", "x="], &[5]);
    finds(&sandbox, &["-H", "X=1"], &[]);
    finds(&sandbox, &["-H", "1=x"], &[]);
}

#[test]
fn a_regular_expression_is_met_by_the_bytes_of_the_value() {
    let sandbox = mixed();
    finds(&sandbox, &["--grep", "b"], &[1, 5]);
    finds(&sandbox, &["--grep", "^b"], &[1]);
    finds(&sandbox, &["--grep", "(?m)^b"], &[1, 5]);
    finds(&sandbox, &["--grep", "f$"], &[]);
    finds(&sandbox, &["--grep", "(?i)D|A"], &[0, 3]);
    finds(&sandbox, &["--grep", r"\n"], &[5]);
    finds(&sandbox, &["--grep", r"(?-u:\xff)\x00"], &[6]);
    finds(&sandbox, &["--grep", r"^g(?-u:.)\x00$"], &[6]);
    finds(&sandbox, &["--grep", ""], &[0, 1, 2, 3, 5, 6]);
    finds(&sandbox, &["--grep", "-"], &[]);
}

#[test]
fn lines_of_any_encoding_are_searched() {
    let sandbox = Sandbox::new();
    sandbox.produce("", b"caf\xe9 latin\ncaf\xc3\xa9 utf8\ncafe\n\nx\r\n".to_vec());
    finds(&sandbox, &["--grep", "café"], &[1]);
    finds(&sandbox, &["--grep", r"(?-u:caf\xe9)"], &[0]);
    finds(&sandbox, &["--grep", "caf"], &[0, 1, 2]);
    finds(&sandbox, &["--grep", "^$"], &[3]);
    finds(&sandbox, &["--grep", r"\r$"], &[4]);
    finds(&sandbox, &["--grep", r"\bcafe\b"], &[2]);
    sandbox.tapelog("consume --grep latin").prints(b"caf\xe9 latin\n");
}

#[test]
fn conditions_of_several_kinds_must_all_be_met() {
    let sandbox = mixed();
    finds(&sandbox, &["--key", "k", "--grep", "b"], &[1]);
    finds(&sandbox, &["--key", "", "--key", "k2", "-H", "x=1", "--grep", "c|d"], &[2, 3]);
    finds(&sandbox, &["--key", "k", "-H", "x=1"], &[]);
}

#[test]
fn what_is_counted_is_what_is_printed() {
    let sandbox = mixed();
    finds(&sandbox, &["--key", "k", "-n", "1"], &[1]);
    finds(&sandbox, &["--key", "k", "-n", "5"], &[1, 4]);
    finds(&sandbox, &["-H", "x=1", "-n", "0"], &[]);
    finds(&sandbox, &["--key", "k", "-o", "2"], &[4]);
    finds(&sandbox, &["--key", "k", "-o", "0:4"], &[1]);
    finds(&sandbox, &["--grep", "[a-d]", "-o", "-5", "-n", "2"], &[2, 3]);
    sandbox
        .tapelog("consume --key none --fail-empty")
        .outcome()
        .ended(status::NOT_THERE)
        .printed("");
    sandbox.tapelog("consume --key k2 --fail-empty").prints("d\n");
}

#[test]
fn every_form_of_output_is_filtered() {
    let sandbox = mixed();
    sandbox.tapelog("consume --key k2").prints("d\n");
    sandbox.tapelog("consume --key k2 -0").prints("d\0");
    sandbox.tapelog("consume --key k2 -K =").prints("k2=d\n");
    assert_eq!(sandbox.tapelog("consume --key k -J").json().len(), 2);
    assert_eq!(sandbox.tapelog("consume --key k --json-payload").json().len(), 2);
    finds(&sandbox, &["--key", "k", "-r"], &[4, 1]);
}

#[test]
fn a_follower_filters_what_comes() {
    let sandbox = Sandbox::new();
    sandbox.produce("-K :", "a:1\nb:2\n");
    let follower = sandbox.spawn("follower", sandbox.command("consume -f --key a"));
    follower.prints_within(crate::sandbox::SECOND * 2, "1\n");
    sandbox.produce("-K :", "b:3\na:4\nb:5\n");
    sandbox.produce("", "a\n");
    follower.prints_within(crate::sandbox::SECOND * 2, "1\n4\n");
    let mut counted = sandbox.tapelog("consume -f --key a -n 2");
    counted.prints("1\n4\n");
}

#[test]
fn filters_work_across_segments_layouts_and_codecs() {
    let sandbox = Sandbox::with_config("segment-size=2K");
    for round in 0..20 {
        let codec = ["none", "lz4", "zstd"][round % 3];
        sandbox.produce(&format!("-z {codec}"), format!("plain {round}\n"));
        let keyed: String = (0..30).map(|n| format!("k{}:keyed {round} {n}\n", n % 10)).collect();
        sandbox.produce(&format!("-K : -z {codec}"), keyed);
    }
    let want: String =
        (0..20).flat_map(|round| [3, 13, 23].map(|n| format!("keyed {round} {n}\n"))).collect();
    sandbox.tapelog("consume --key k3").prints(want);
    let want: String = (0..20).map(|round| format!("plain {round}\n")).collect();
    sandbox.tapelog("consume --grep ^plain").prints(want);
}

#[test]
fn what_is_no_filter_is_a_usage_error_and_prints_nothing() {
    let sandbox = mixed();
    for (option, wrong, named) in [
        ("--grep", "(", "grep"),
        ("--grep", "[z-a]", "grep"),
        ("--grep", r"\xZ", "grep"),
        ("-H", "x", "header"),
        ("-H", "", "header"),
    ] {
        let outcome = sandbox.tapelog("consume").args([option, wrong]).outcome();
        outcome.ended(status::USAGE).said(&[named]).printed("");
    }
    let mut consume = sandbox.tapelog("consume -g g --grep (");
    consume.fails(status::USAGE, &["grep"]);
    sandbox.tapelog("groups -g g").outcome().ended(status::NOT_THERE);
}

/// Offsets 0 to 5 with own times 10:03, 10:01, none (appended at 12:00), 10:02, 09:00, 13:00.
fn timed() -> Sandbox {
    let minute = 60_000;
    let ten = 1_767_261_600_000_i64;
    let line = |time: i64| format!("{{\"ts\":{time},\"payload\":\"v\"}}\n");
    let sandbox = Sandbox::new();
    let input = [
        line(ten + 3 * minute),
        line(ten + minute),
        "{\"payload\":\"v\"}\n".to_owned(),
        line(ten + 2 * minute),
        line(ten - 60 * minute),
        line(ten + 180 * minute),
    ];
    sandbox.at("2026-01-01T12:00:00Z", "produce -J").write_stdin(input.concat()).prints("");
    sandbox
}

#[test]
fn since_and_until_may_go_by_the_records_own_times() {
    let sandbox = timed();
    let at = |time: &str| format!("2026-01-01T{time}Z");
    for (options, offsets) in [
        (vec!["--since", "10:02:00"], vec![0, 2, 3, 5]),
        (vec!["--until", "10:02:00"], vec![1, 4]),
        (vec!["--since", "10:01:00", "--until", "10:03:00"], vec![1, 3]),
        (vec!["--since", "10:01:00", "--until", "10:03:00.001"], vec![0, 1, 3]),
        (vec!["--since", "12:00:00", "--until", "12:00:00.001"], vec![2]),
        (vec!["--since", "13:00:00.001"], vec![]),
    ] {
        let options: Vec<String> = options
            .iter()
            .map(|word| if word.starts_with('-') { (*word).to_owned() } else { at(word) })
            .collect();
        let mut words = vec!["--own-time"];
        words.extend(options.iter().map(String::as_str));
        finds(&sandbox, &words, &offsets);
        words.push("-r");
        finds(&sandbox, &words, &offsets.iter().rev().copied().collect::<Vec<_>>());
    }
}

#[test]
fn without_own_time_the_append_time_counts() {
    let sandbox = timed();
    finds(&sandbox, &["--since", "2026-01-01T10:02:00Z"], &[0, 1, 2, 3, 4, 5]);
    finds(&sandbox, &["--until", "2026-01-01T10:02:00Z"], &[]);
    finds(&sandbox, &["--since", "2026-01-01T12:00:00.001Z"], &[]);
}

#[test]
fn own_times_are_relative_to_now_like_all_others() {
    let sandbox = timed();
    let mut consume = sandbox.at("2026-01-01T13:00:00Z", "consume --own-time --since -2h");
    consume.args(["-F", "%o "]).prints("2 5 ");
    let mut consume = sandbox.at("2026-01-01T13:00:00Z", "consume --own-time -n 1 --until -1h");
    consume.args(["-F", "%o "]).prints("0 ");
}

#[test]
fn own_time_beside_a_start_is_a_usage_error() {
    let sandbox = timed();
    let mut consume = sandbox.tapelog("consume --own-time -o 3");
    consume.fails(status::USAGE, &["--own-time"]);
    let mut consume = sandbox.tapelog("consume --own-time --since nonsense");
    consume.fails(status::USAGE, &["--since"]);
}

#[test]
fn own_times_choose_for_a_group_without_placing_it() {
    let sandbox = timed();
    sandbox.commit("g", 1);
    let mut consume = sandbox.tapelog("consume -g g --own-time --since 2026-01-01T10:02:00Z");
    consume.args(["-n", "1", "-F", "%o "]).prints("2 ");
    assert_eq!(sandbox.position("g"), 3);
    let mut consume = sandbox.tapelog("consume -g g --own-time --until 2026-01-01T10:02:00Z");
    consume.args(["-F", "%o "]).prints("4 ");
    assert_eq!(sandbox.position("g"), 6);
}
