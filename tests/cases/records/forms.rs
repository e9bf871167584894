//! Files as people have them, by lines and whole: what goes in comes out.

use std::fs;
use std::process::Command;

use super::{pipe, templated};
use crate::sandbox::{Expect, Random, Sandbox, find_program, same_bytes, skip, status};

fn json_lines(random: &mut Random) -> String {
    let line = |n: u64, random: &mut Random| {
        format!(
            "{{\"id\":{n},\"level\":\"{}\",\"text\":\"say \\\"{}\\\" \\u00e9 é\",\"at\":1.0e{}}}\n",
            ["info", "warn"][n as usize % 2],
            random.next(),
            random.between(0, 9)
        )
    };
    (0..2000).map(|n| line(n, random)).collect()
}

fn csv(random: &mut Random) -> String {
    let line = |n: u64, random: &mut Random| {
        format!("{n},\"two\nlines, \"\"quoted\"\" {}\",,é;\t'\r\n", random.next())
    };
    (0..1500).map(|n| line(n, random)).collect()
}

fn syslog(random: &mut Random) -> String {
    let line = |n: u64, random: &mut Random| {
        format!(
            "<{}>Jan  1 10:{:02}:{:02} host-{} kernel: [{:5}.{:06}]   eth0: link  up\n",
            random.between(0, 191),
            n / 60 % 60,
            n % 60,
            n % 7,
            n,
            random.between(0, 999_999)
        )
    };
    (0..3000).map(|n| line(n, random)).collect()
}

/// Each file's name, its bytes, and whether its last line ends as lines do.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    let mut random = Random(2026);
    let mut binary = random.bytes(400_000);
    binary.extend(*b"\0\0\x1f\x8b\0");
    vec![
        ("events.jsonl", json_lines(&mut random).into()),
        ("table.csv", csv(&mut random).into()),
        ("messages", syslog(&mut random).into()),
        ("dos.txt", "first\r\n\r\n  last \t\r\n\x1a\r\n".repeat(500).into()),
        ("no-newline.txt", "\u{feff}begun\n\n\nand not ended".into()),
        ("image", binary),
        ("empty", Vec::new()),
    ]
}

#[test]
fn real_looking_files_come_back_by_lines() {
    for (name, bytes) in files() {
        let sandbox = Sandbox::new();
        let file = sandbox.file(name, &bytes);
        sandbox.tapelog("produce").arg(file).prints("");
        let mut want = bytes.clone();
        if want.last().is_some_and(|&last| last != b'\n') {
            want.push(b'\n');
        }
        sandbox.all().prints(&want);
        let by_template = sandbox.tapelog(r"consume -F %v\n").outcome().succeeded().silent();
        same_bytes(&by_template.stdout, &want, name);
    }
}

#[test]
fn h032_real_looking_files_come_back_whole() {
    let sandbox = Sandbox::new();
    let files = files();
    let paths: Vec<_> = files.iter().map(|(name, bytes)| sandbox.file(name, bytes)).collect();
    sandbox.tapelog("produce --whole").args(&paths).prints("");
    assert_eq!(sandbox.end(), files.len() as u64, "each file is one record, the empty one too");
    for (offset, (_, bytes)) in files.iter().enumerate() {
        sandbox.tapelog(&format!("consume -F %v -o {offset} -n 1")).prints(bytes);
    }
    let all: Vec<u8> = files.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
    assert!(templated(&sandbox, "%v") == all);
}

#[test]
fn files_with_keys_and_headers_beside_them_come_back_too() {
    for (name, bytes) in files() {
        let sandbox = Sandbox::new();
        let file = sandbox.file(name, &bytes);
        let produce = format!("produce -k {name} -H from={name} -z lz4");
        sandbox.tapelog(&produce).arg(&file).prints("");
        let mut want = bytes.clone();
        if want.last().is_some_and(|&last| last != b'\n') {
            want.push(b'\n');
        }
        sandbox.all().prints(&want);
        sandbox.tapelog(&format!("{produce} --whole")).arg(&file).prints("");
        sandbox.tapelog("consume -F %v -o -1").prints(&bytes);
    }
}

#[test]
fn jq_reads_every_line_of_json() {
    let Some(jq) = find_program("jq") else {
        return skip("jq_reads_every_line_of_json", "jq is not installed");
    };
    let sandbox = Sandbox::new();
    for (name, bytes) in files() {
        let file = sandbox.file(name, &bytes);
        sandbox.tapelog("produce").arg(&file).prints("");
        sandbox.tapelog("produce --whole -k").arg(name).arg(&file).prints("");
    }
    let want: String = (0..sandbox.end()).map(|offset| format!("{offset}\n")).collect();
    for form in ["-J", "--json-payload"] {
        let shown = sandbox.tapelog(&format!("consume {form}")).text();
        let shown = sandbox.file("shown", shown);
        let read = Command::new(&jq).arg(".offset").arg(&shown).output().unwrap();
        assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
        same_bytes(&read.stdout, want.as_bytes(), "jq .offset");
    }
}

#[test]
fn h032_a_whole_file_gets_no_newline_and_copies_do_not_grow() {
    let mut random = Random(32);
    let sizes =
        [0, 1, 2, 254, 255, 256, 4095, 4096, 4097, 65_535, 65_536, 65_537, 262_143, 262_144];
    let drawn: Vec<_> = (0..6).map(|_| random.between(3, 262_144) as usize).collect();
    let first = Sandbox::new();
    let mut contents = Vec::new();
    for size in sizes.into_iter().chain(drawn) {
        contents.push(random.bytes(size));
        first.produce("--whole", contents.last().unwrap().clone());
    }
    assert_eq!(first.end(), 20);
    let mut from = first;
    for _ in 0..5 {
        let into = Sandbox::new();
        for offset in 0..contents.len() {
            pipe(&from, &format!("-F %v -o {offset} -n 1"), &into, "--whole");
        }
        from = into;
    }
    for (offset, content) in contents.iter().enumerate() {
        from.tapelog(&format!("consume -F %v -o {offset} -n 1")).prints(content);
    }
}

#[test]
fn h032_whole_takes_stdin_among_files_and_no_delimiter_beside_it() {
    let sandbox = Sandbox::new();
    let (one, two) = (sandbox.file("one", "1\n\n"), sandbox.file("two", "\n2"));
    sandbox
        .tapelog("produce --whole")
        .arg(&one)
        .arg("-")
        .arg(&two)
        .write_stdin("in\0\n")
        .prints("");
    sandbox.tapelog("consume -F %o:%v;").prints("0:1\n\n;1:in\0\n;2:\n2;");
    sandbox.tapelog("produce --whole").write_stdin("").prints("");
    sandbox.tapelog("consume -o 3 -F %V").prints("0");
    for beside in ["-0", "-D ;", "-J"] {
        let mut produce = sandbox.tapelog(&format!("produce --whole {beside}"));
        produce.write_stdin("x").fails(status::USAGE, &["--whole"]);
    }
    assert_eq!(sandbox.end(), 4);
}

#[test]
fn h032_a_large_whole_file_comes_back() {
    let sandbox = Sandbox::new();
    let bytes = Random(9).bytes(9 << 20);
    let file = sandbox.file("large", &bytes);
    sandbox.tapelog("produce --whole -k large").arg(&file).prints("");
    sandbox.tapelog("produce --whole -z zstd").arg(&file).prints("");
    let outcome = sandbox.tapelog("consume -F %v").outcome().succeeded().silent();
    same_bytes(&outcome.stdout, &[&fs::read(&file).unwrap()[..], &bytes].concat(), "both");
}
