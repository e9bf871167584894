//! Records that look like nothing anybody planned for, through JSON and back, again
//! and again.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::pipe;
use crate::sandbox::{Expect, Random, Sandbox, rounds, same_bytes};

/// How a record looks in JSON, without its offsets and times.
struct Drawn {
    own_time: Option<i64>,
    rest: String,
}

/// Bytes of one of the kinds that matter: none, text, no text, delimiters, JSON.
fn bytes(random: &mut Random) -> Vec<u8> {
    let length = match random.between(0, 19) {
        0 => random.between(300, 9000),
        _ => random.between(1, 40),
    } as usize;
    match random.between(0, 7) {
        0 => Vec::new(),
        1 => random.bytes(length),
        2 => vec![b'\n'; random.between(1, 3) as usize],
        3 => format!("{{\"n\": [{}, null],\r\n \"t\": \"\\u00e9\"}}", random.next()).into(),
        4 => "é\u{2028}\u{0}\u{1f980}\"\\\u{7f}\u{feff}"
            .chars()
            .cycle()
            .take(length)
            .collect::<String>()
            .into(),
        5 => [&b"\xed\xa0\x80\xc0\x80"[..], &random.bytes(length)].concat(),
        _ => (0..length).map(|_| random.between(0x20, 0x7e) as u8).collect(),
    }
}

/// `"name":"text"`, or `"name_base64":"…"` if it is no text.
fn named(name: &str, bytes: &[u8]) -> String {
    match str::from_utf8(bytes) {
        Ok(text) => format!("\"{name}\":{}", json!(text)),
        Err(_) => format!("\"{name}_base64\":\"{}\"", STANDARD.encode(bytes)),
    }
}

fn headers(random: &mut Random) -> String {
    let mut flat = Vec::new();
    for _ in 0..random.between(1, 3) {
        let name = match random.between(0, 3) {
            0 => b"again".to_vec(),
            _ => bytes(random),
        };
        let value = (random.between(0, 4) > 0).then(|| bytes(random));
        flat.extend([Some(name), value]);
    }
    let text = |part: &Option<Vec<u8>>| part.clone().map(String::from_utf8).transpose();
    let texts: Result<Vec<_>, _> = flat.iter().map(text).collect();
    match texts {
        Ok(texts) => format!("\"headers\":{}", json!(texts)),
        Err(_) => {
            let encoded: Vec<_> =
                flat.iter().map(|part| part.as_ref().map(|b| STANDARD.encode(b))).collect();
            format!("\"headers_base64\":{}", json!(encoded))
        }
    }
}

fn drawn(random: &mut Random) -> Drawn {
    let own_time = match random.between(0, 4) {
        0 => None,
        1 => Some(-(random.between(0, 1 << 40) as i64)),
        _ => Some(random.between(0, 1 << 42) as i64),
    };
    let mut parts = Vec::new();
    if random.between(0, 2) > 0 {
        parts.push(named("key", &bytes(random)));
    }
    if random.between(0, 2) == 0 {
        parts.push(headers(random));
    }
    parts.push(match random.between(0, 5) {
        0 => "\"payload\":null".to_owned(),
        _ => named("payload", &bytes(random)),
    });
    Drawn { own_time, rest: parts.join(",") }
}

/// The lines for `produce -J`.
fn input(records: &[Drawn]) -> String {
    let mut text = String::new();
    for Drawn { own_time, rest } in records {
        match own_time {
            Some(time) => writeln!(text, "{{\"ts\":{time},{rest}}}").unwrap(),
            None => writeln!(text, "{{{rest}}}").unwrap(),
        }
    }
    text
}

/// `consume -J` without the append times.
fn shown(sandbox: &Sandbox, options: &str) -> String {
    let mut text = String::new();
    for line in sandbox.tapelog(&format!("consume -J {options}")).text().lines() {
        let (head, tail) = line.split_once("\"append_ts\":").expect("every record has one");
        let after = tail.split_once(',').expect("the payload comes later").1;
        writeln!(text, "{head}{after}").unwrap();
    }
    text
}

/// What must be shown; `got` tells the times of records without one of their own.
fn wanted(records: &[Drawn], got: &str) -> String {
    let mut text = String::new();
    for ((offset, Drawn { own_time, rest }), line) in records.iter().enumerate().zip(got.lines()) {
        let time = match own_time {
            Some(time) => *time,
            None => {
                serde_json::from_str::<serde_json::Value>(line).unwrap()["ts"].as_i64().unwrap()
            }
        };
        let next = offset + 1;
        writeln!(text, "{{\"offset\":{offset},\"next\":{next},\"ts\":{time},{rest}}}").unwrap();
    }
    text
}

#[test]
fn records_with_any_bytes_go_through_json_unchanged_however_often() {
    let mut random = Random(3_000_003);
    let records: Vec<_> = (0..rounds(5_000, 100_000)).map(|_| drawn(&mut random)).collect();
    let mut from = Sandbox::with_config(rounds("segment-size=200K", "segment-size=10M"));
    from.produce("-J", input(&records));
    let first = shown(&from, "");
    same_bytes(first.as_bytes(), wanted(&records, &first).as_bytes(), "the first consume -J");
    let small = format!("segment-size={}", rounds("64K", "2M"));
    let settings = [&small, "compression=lz4", &format!("compression=zstd {small}")];
    for round in 0..rounds(3, 10) {
        let into = Sandbox::with_config(settings[round % settings.len()]);
        pipe(&from, "-J", &into, "-J");
        same_bytes(shown(&into, "").as_bytes(), first.as_bytes(), &format!("round {round}"));
        into.tapelog("consume -n 1 -o -1 -r").outcome().succeeded();
        from = into;
    }
}

#[test]
fn a_part_of_a_log_goes_through_json_as_it_is_and_is_counted_anew() {
    let mut random = Random(77);
    let records: Vec<_> = (0..300).map(|_| drawn(&mut random)).collect();
    let (from, into) = (Sandbox::new(), Sandbox::new());
    from.produce("-J --batch-records 7", input(&records));
    pipe(&from, "-J -o 100:200", &into, "-J");
    let (part, again) = (shown(&from, "-o 100:200"), shown(&into, ""));
    let tail = |line: &str| line[line.find("\"ts\":").unwrap()..].to_owned();
    assert_eq!(
        part.lines().map(tail).collect::<Vec<_>>(),
        again.lines().map(tail).collect::<Vec<_>>()
    );
    assert_eq!(into.end(), 100);
}

#[test]
fn one_record_at_a_time_is_the_same_as_all_at_once() {
    let mut random = Random(5);
    let records: Vec<_> = (0..200).map(|_| drawn(&mut random)).collect();
    let (at_once, singly) = (Sandbox::new(), Sandbox::new());
    at_once.at("2026-01-01", "produce -J").write_stdin(input(&records)).prints("");
    singly.at("2026-01-01", "produce -J --batch-records 1").write_stdin(input(&records)).prints("");
    let all = at_once.tapelog("consume -J").text();
    singly.tapelog("consume -J").prints(&all);
    for offset in [0, 1, 57, 199] {
        let line = all.lines().nth(offset).unwrap();
        for log in [&at_once, &singly] {
            log.tapelog(&format!("consume -J -o {offset} -n 1")).prints(format!("{line}\n"));
        }
    }
}

#[test]
fn a_record_whose_every_part_is_larger_than_a_batch_goes_through_json() {
    let mut random = Random(12);
    let mut encoded = || STANDARD.encode(random.bytes(5 << 20));
    let (key, header, value) = (encoded(), encoded(), encoded());
    let line = format!(
        "\"key_base64\":\"{key}\",\"headers_base64\":[\"bg==\",\"{header}\"],\"payload_base64\":\"{value}\"}}\n"
    );
    let neighbours = "{\"payload\":\"small\"}\n";
    let (from, into) = (Sandbox::new(), Sandbox::with_config("compression=zstd"));
    from.produce("-J", format!("{neighbours}{{{line}{neighbours}"));
    pipe(&from, "-J", &into, "-J");
    for sandbox in [from, into] {
        let shown = sandbox.tapelog("consume -J -o 1 -n 1").text();
        same_bytes(&shown.as_bytes()[shown.len() - line.len()..], line.as_bytes(), "consume -J");
        sandbox.tapelog("consume -F %o:%K+%V, -r").prints("2:-1+5,1:5242880+5242880,0:-1+5,");
    }
}
