//! What compression saves on a web server's log, and what plain lines cost.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;

use crate::sandbox::{Random, Sandbox, rounds};

const SEED: u64 = 20_240_101;
const BYTES: u64 = 8 << 20;
const BYTES_IN_A_LONG_RUN: u64 = 256 << 20;

const PATHS: [&str; 12] = [
    "/",
    "/index.html",
    "/favicon.ico",
    "/robots.txt",
    "/static/app.js",
    "/static/app.css",
    "/api/v1/orders/",
    "/api/v1/users/",
    "/api/v1/search?q=",
    "/products/",
    "/images/",
    "/login",
];
const WORDS: [&str; 10] =
    ["red", "shoes", "garden", "lamp", "winter", "coat", "table", "music", "paper", "cups"];
const AGENTS: [&str; 6] = [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_2 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.2 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (X11; Linux x86_64; rv:121.0) Gecko/20100101 Firefox/121.0",
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "curl/8.5.0",
    "okhttp/4.12.0",
];
const STATUSES: [u16; 10] = [200, 200, 200, 200, 200, 200, 304, 301, 404, 500];

/// Writes lines in the combined format of Apache and nginx, `bytes` or a little more.
/// The same seed gives the same lines.
fn write_access_log(path: &Path, bytes: u64) -> u64 {
    let mut out = BufWriter::new(File::create(path).unwrap());
    let mut random = Random(SEED);
    let (mut written, mut seconds) = (0, 0);
    while written < bytes {
        seconds += u64::from(random.between(0, 3) == 0);
        let line = access_line(&mut random, seconds);
        out.write_all(line.as_bytes()).unwrap();
        written += line.len() as u64;
    }
    out.into_inner().unwrap();
    written
}

fn access_line(random: &mut Random, seconds: u64) -> String {
    // Few visitors come often: the square of a number below 1 is mostly small.
    let often =
        |random: &mut Random, most: u64| random.between(0, most) * random.between(0, most) / most;
    let visitor = often(random, 20_000);
    let agent = AGENTS[(visitor % 6) as usize];
    let address = format!(
        "{}.{}.{}.{}",
        20 + visitor % 180,
        visitor / 7 % 256,
        visitor * 31 % 256,
        visitor * 17 % 256
    );
    let mut path = pick(random, &PATHS).to_string();
    if path.ends_with('/') && path.len() > 1 {
        path += &often(random, 100_000).to_string();
    } else if path.ends_with('=') {
        path = format!("{path}{}+{}", pick(random, &WORDS), pick(random, &WORDS));
    }
    let method = if random.between(0, 9) == 0 { "POST" } else { "GET" };
    let status = pick(random, &STATUSES);
    let size = if status == &304 { 0 } else { random.between(200, 60_000) };
    let referrer =
        if random.between(0, 2) == 0 { "-" } else { "https://shop.example.com/products/" };
    let (day, hour, minute, second) =
        (1 + seconds / 86_400 % 28, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!(
        "{address} - - [{day:02}/Jan/2024:{hour:02}:{minute:02}:{second:02} +0000] \
         \"{method} {path} HTTP/1.1\" {status} {size} \"{referrer}\" \"{agent}\"\n"
    )
}

fn pick<'a, T>(random: &mut Random, choices: &'a [T]) -> &'a T {
    &choices[random.between(0, choices.len() as u64 - 1) as usize]
}

/// How many bytes the log takes that `produce` makes of a file, which must come back.
fn stored(sandbox: &Sandbox, options: &str, input: &Path) -> u64 {
    let log = sandbox.path(format!("log {options}"));
    let output = sandbox.path(format!("output {options}"));
    let mut produce = sandbox.command_on(&log, &format!("produce {options}"));
    assert!(produce.stdin(File::open(input).unwrap()).status().unwrap().success());
    let mut consume = sandbox.command_on(&log, "consume");
    assert!(consume.stdout(File::create(&output).unwrap()).status().unwrap().success());
    assert!(same_files(input, &output), "{options}: what came out is not what went in");
    let summary = sandbox.command_on(&log, "segments --summary -J").output().unwrap().stdout;
    let summary: serde_json::Value = serde_json::from_slice(&summary).unwrap();
    summary["bytes"].as_u64().unwrap()
}

fn same_files(a: &Path, b: &Path) -> bool {
    let (mut a, mut b) = (File::open(a).unwrap(), File::open(b).unwrap());
    let (mut left, mut right) = (Vec::new(), Vec::new());
    loop {
        for (file, piece) in [(&mut a, &mut left), (&mut b, &mut right)] {
            piece.clear();
            file.take(1 << 20).read_to_end(piece).unwrap();
        }
        if left != right || left.is_empty() {
            return left == right;
        }
    }
}

#[test]
fn an_access_log_is_stored_in_less_than_a_quarter_by_zstd_and_half_by_lz4() {
    let sandbox = Sandbox::new();
    let input = sandbox.path("access.log");
    let bytes = write_access_log(&input, rounds(BYTES, BYTES_IN_A_LONG_RUN));
    for (options, parts) in [("-z zstd", 4), ("-z lz4", 2)] {
        let stored = stored(&sandbox, options, &input);
        assert!(stored * parts < bytes, "{options}: {stored} of {bytes}");
        println!("{options}: {stored} of {bytes} bytes, {:.3}", stored as f64 / bytes as f64);
    }
}

#[test]
fn plain_lines_of_110_bytes_cost_under_a_thousandth() {
    let sandbox = Sandbox::new();
    let mut random = Random(SEED);
    let lines =
        (0..BYTES / 111).flat_map(|n| format!("{n:020} {:089}\n", random.next()).into_bytes());
    let input = sandbox.file("lines", lines.collect::<Vec<u8>>());
    let bytes = crate::sandbox::len(&input);
    let stored = stored(&sandbox, "-z none", &input);
    assert!(stored * 1000 < bytes * 1001, "{stored} of {bytes}");
}
