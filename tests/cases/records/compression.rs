//! Codecs: from the command line and the settings, mixed in one log, told by name.

use super::of_json;
use crate::sandbox::{Expect, Random, Sandbox, numbers, status, want};

/// Lines that compress as logs do.
fn access_log(lines: u64) -> String {
    let mut random = Random(4);
    let line = |random: &mut Random| {
        let (host, page) = (random.between(1, 254), random.between(1, 5000));
        let bytes = random.between(100, 99_999);
        format!(
            "10.0.3.{host} - - [01/Jan/2026:10:00:00 +0000] \"GET /page/{page} HTTP/1.1\" 200 {bytes} \"-\" \"Mozilla/5.0 (X11; Linux x86_64)\"\n"
        )
    };
    (0..lines).map(|_| line(&mut random)).collect()
}

/// What `segments -J` shows as the bytes of all segments.
fn stored(sandbox: &Sandbox) -> u64 {
    numbers(&sandbox.tapelog("segments -J").json(), "bytes").iter().sum()
}

#[test]
fn compressed_logs_are_smaller_and_read_the_same() {
    let input = access_log(20_000);
    let size = |options: &str, settings: &str| {
        let sandbox = Sandbox::with_config(&format!("segment-size=1G {settings}"));
        // From a file, so that batches end at the same places each time.
        let file = sandbox.file("access.log", &input);
        sandbox.tapelog(&format!("produce {options}")).arg(file).prints("");
        sandbox.all().prints(&input);
        sandbox
            .tapelog("consume -o 7001 -n 1")
            .prints(input.lines().nth(7001).unwrap().to_owned() + "\n");
        stored(&sandbox)
    };
    let plain = size("", "");
    assert!(plain < input.len() as u64 + input.len() as u64 / 1000 + 1, "{plain}");
    let lz4 = size("-z lz4", "");
    let zstd = size("-z zstd", "");
    assert!(lz4 * 2 < plain && zstd * 4 < plain, "{plain}, lz4 {lz4}, zstd {zstd}");
    assert!(size("-z zstd:19", "") < zstd);
    assert_eq!(size("-z zstd:3", ""), zstd, "3 is zstd's own default");
    assert_eq!(size("-z none", ""), plain);
    assert_eq!(size("", "compression=lz4"), lz4);
    assert_eq!(size("", "compression=zstd"), zstd);
    assert_eq!(size("-z none", "compression=zstd"), plain);
    assert_eq!(size("-z lz4", "compression=zstd:5"), lz4);
    assert_eq!(size("", "compression=none"), plain);
}

#[test]
fn the_setting_is_shown_and_taken_back() {
    let sandbox = Sandbox::with_config("compression=zstd:7");
    let value = |sandbox: &Sandbox| {
        let rows = sandbox.tapelog("config -J").json();
        rows.into_iter().find(|row| row["setting"] == "compression").unwrap()["value"].clone()
    };
    assert_eq!(value(&sandbox), "zstd:7");
    sandbox.config("compression=lz4");
    assert_eq!(value(&sandbox), "lz4");
    sandbox.config("compression=");
    assert_eq!(value(&sandbox), "none");
}

#[test]
fn codecs_may_mix_in_one_log_and_in_one_segment() {
    for segment_size in ["1G", "2K"] {
        let sandbox = Sandbox::with_config(&format!("segment-size={segment_size}"));
        let codecs =
            ["", "-z lz4", "-z zstd", "-z none", "-z zstd:19", "-z zstd:1 -k key", "-z lz4 -k key"];
        for (n, codec) in (0..).zip(codecs) {
            sandbox
                .produce(&format!("{codec} --batch-records 20"), want(100 * n + 1, 100 * n + 100));
        }
        sandbox.all().prints(want(1, 700));
        for at in [0, 99, 100, 101, 250, 333, 599, 699] {
            sandbox.tapelog(&format!("consume -o {at}")).prints(want(at + 1, 700));
        }
        sandbox.tapelog("consume -o 150:450").prints(want(151, 450));
        sandbox.delete_indexes();
        sandbox.tapelog("consume -o 345:355").prints(want(346, 355));
        sandbox
            .tapelog("consume -o 690 -F %o:%k,")
            .prints((690..700).map(|n| format!("{n}:key,")).collect::<String>());
    }
}

#[test]
fn what_does_not_compress_is_stored_all_the_same() {
    let mut random = Random(11);
    let mut bytes = random.bytes(1 << 20);
    bytes.push(b'\n');
    for codec in ["lz4", "zstd", "zstd:22"] {
        let sandbox = Sandbox::new();
        sandbox.produce(&format!("-z {codec}"), bytes.clone());
        sandbox.all().prints(&bytes);
        let stored = stored(&sandbox);
        assert!(stored < bytes.len() as u64 * 101 / 100, "{codec}: {stored}");
        sandbox.produce(&format!("-z {codec} --batch-records 1"), "a\n\nb\n");
        sandbox.tapelog("consume -o -3").prints("a\n\nb\n");
    }
}

#[test]
fn records_of_every_kind_go_through_every_codec() {
    let lines = "{\"key\":\"k\",\"headers\":[\"a\",null],\"ts\":5,\"payload\":null}\n{\"payload\":\"a\\nb\"}\n"
        .repeat(500);
    let plain = of_json(&lines);
    let shown = plain.tapelog("consume -F %o%K%k%h%d{%s}%V%v;").text();
    for codec in ["lz4", "zstd", "zstd:19"] {
        let sandbox = Sandbox::new();
        sandbox.produce(&format!("-J -z {codec}"), lines.clone());
        sandbox.tapelog("consume -F %o%K%k%h%d{%s}%V%v; -n 1").outcome().succeeded();
        let again = sandbox.tapelog("consume -J").json();
        assert_eq!(again[998]["headers"], serde_json::json!(["a", null]));
        assert_eq!((&again[998]["ts"], &again[999]["payload"]), (&5.into(), &"a\nb".into()));
        assert!(stored(&sandbox) * 4 < stored(&plain));
    }
    assert!(shown.starts_with("01k"));
}

#[test]
fn wrong_codecs_are_usage_errors_and_make_no_log() {
    for wrong in [
        "gzip", "", "zst", "zstd:", "zstd:x", "zstd:0", "zstd:23", "zstd:3:3", "lz4:1", "none:1",
        "LZ4 ",
    ] {
        let sandbox = Sandbox::new();
        let mut produce = sandbox.tapelog("produce -z");
        produce.arg(wrong).write_stdin("a\n").fails(status::USAGE, &["compression"]);
        let mut config = sandbox.tapelog("config");
        if !wrong.is_empty() {
            config.arg(format!("compression={wrong}")).fails(status::USAGE, &["compression"]);
        }
        assert!(!sandbox.log().exists(), "{wrong}");
    }
}

#[test]
fn a_wrong_codec_leaves_an_old_log_as_it_is() {
    let sandbox = Sandbox::with_config("compression=lz4");
    sandbox.mk(3);
    let before = crate::sandbox::tree(sandbox.log());
    sandbox.tapelog("config compression=brotli").fails(status::USAGE, &["compression", "zstd"]);
    let mut produce = sandbox.tapelog("produce -z brotli");
    produce.write_stdin("a\n").fails(status::USAGE, &["compression", "zstd"]);
    assert!(crate::sandbox::tree(sandbox.log()) == before);
}
