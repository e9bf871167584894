//! ROT: bytes that change where they lie, segments that are lost or do not belong, and
//! what readers, writers and repair make of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::sandbox::{
    Expect, Outcome, Random, Sandbox, Strace, batch_of, binary, cut, flip, foreground, len, rounds,
    status, tree, want, was_injected,
};

/// A closed log of one-record batches in segments of 4 KiB.
fn many_segments(records: u64) -> Sandbox {
    let sandbox = Sandbox::with_config("segment-size=4096");
    sandbox.mk1(records);
    sandbox
}

/// The segments by name, with their bytes.
fn segments(sandbox: &Sandbox) -> BTreeMap<PathBuf, Vec<u8>> {
    sandbox.segments().into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// Where the batch of record `n` lies, and in which sealed segment.
fn place_of(sandbox: &Sandbox, n: u64) -> (PathBuf, std::ops::Range<u64>) {
    let body = format!("m-{n:06}");
    let holds =
        |path: &PathBuf| memchr::memmem::find(&fs::read(path).unwrap(), body.as_bytes()).is_some();
    let path = sandbox.segments().into_iter().find(holds).unwrap();
    let range = batch_of(&body, &path);
    (path, range)
}

/// All records but one.
fn without(n: u64, records: u64) -> String {
    want(1, n - 1) + &want(n + 1, records)
}

fn repaired(sandbox: &Sandbox) -> Outcome {
    sandbox.tapelog("verify --repair").outcome().succeeded()
}

#[test]
fn h009_one_flipped_bit_costs_one_batch_and_is_told() {
    let original = many_segments(1000);
    let sealed = original.segments().len() - 1;
    let mut random = Random(9);
    for round in 0..rounds(20, 200) {
        let sandbox = original.copy();
        let file = sandbox.sealed(random.between(1, sealed as u64) as usize);
        let at = random.between(0, len(&file) - 1);
        flip(&file, at);
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let all =
            sandbox.all().outcome().ended(status::DAMAGE).with_words(&[&name, "byte", "offset"]);
        let printed = all.text();
        let k = printed.lines().count() as u64;
        assert_eq!(printed, want(1, k), "round {round}: byte {at} of {name}");
        let skipped = sandbox.tapelog("consume --skip-damage").outcome().ended(status::DAMAGE);
        assert_eq!(skipped.text(), without(k + 1, 1000), "round {round}: byte {at} of {name}");
    }
}

#[test]
fn h010_a_header_of_zeros_is_damage_and_no_end_of_the_data() {
    let sandbox = many_segments(1000);
    let (file, batch) = place_of(&sandbox, 500);
    let mut bytes = fs::read(&file).unwrap();
    bytes[batch.start as usize..batch.start as usize + 64].fill(0);
    fs::write(&file, bytes).unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    sandbox.all().ends(status::DAMAGE, want(1, 499), &[name, "499"]);
    let group = sandbox.tapelog("consume -g g").outcome().ended(status::DAMAGE);
    assert_eq!(group.text(), want(1, 499));
    assert_eq!(sandbox.position("g"), 499);
    sandbox.tapelog("verify").outcome().ended(status::DAMAGE);
    repaired(&sandbox);
    sandbox.tapelog("consume -g g").outcome().succeeded().printed(want(501, 1000));
}

#[test]
fn h011_repair_replaces_what_is_damaged_and_deletes_no_segment() {
    let sandbox = many_segments(1000);
    let before = segments(&sandbox);
    let (file, batch) = place_of(&sandbox, 200);
    flip(&file, batch.start + 70);
    let damaged = fs::read(&file).unwrap()[batch.start as usize..batch.end as usize].to_vec();
    sandbox.tapelog("produce").write_stdin("").outcome().succeeded();
    assert_eq!(segments(&sandbox).len(), before.len(), "without repair nothing goes");
    repaired(&sandbox);
    let after = segments(&sandbox);
    assert!(after.keys().eq(before.keys()), "all segments still exist");
    let others = |all: &BTreeMap<PathBuf, Vec<u8>>| {
        all.iter()
            .filter(|(path, _)| **path != file)
            .map(|(_, bytes)| bytes.clone())
            .collect::<Vec<_>>()
    };
    assert!(others(&before) == others(&after), "those that were good are as they were");
    assert!(sandbox.quarantine().contains(&damaged), "the bytes are kept");
    sandbox.all().outcome().succeeded().noted(&["199"]).printed(without(200, 1000));
    let found = sandbox.tapelog("verify -J").outcome().succeeded().text();
    assert!(found.contains(r#""first":199,"next":200,"kind":"gap""#), "{found}");
    assert_eq!(sandbox.append("x"), 1000);
}

#[test]
fn h012_a_torn_tail_is_cut_once_and_told_once() {
    let sandbox = Sandbox::new();
    sandbox.mkx(100);
    cut(&sandbox.active(), 3);
    sandbox.tapelog("produce").write_stdin("a\n").notes("", &["quarantine"]);
    sandbox.produce("", "b\n");
    sandbox.all().prints(want(1, 99) + "a\nb\n");
    let verified = sandbox.tapelog("verify").outcome().succeeded();
    verified.noted(&["no damage"]).printed("");
}

/// A log of three segments of 300 records, and the path of its first one.
fn three_times_300() -> (Sandbox, PathBuf) {
    let sandbox = Sandbox::new();
    for part in 0..3 {
        sandbox.produce("--batch-records 1", want(part * 300 + 1, part * 300 + 300));
        if part < 2 {
            sandbox.tapelog("gc --roll").outcome().succeeded();
        }
    }
    assert_eq!(sandbox.segments().len(), 3);
    let first = sandbox.segments().swap_remove(0);
    (sandbox, first)
}

#[test]
fn h013_a_foreign_segment_at_the_end_is_no_data() {
    let (sandbox, first) = three_times_300();
    let foreign = sandbox.log().join("00000000000000000900.log");
    fs::copy(&first, &foreign).unwrap();
    let copied = fs::read(&first).unwrap();
    let all = sandbox.all().outcome().succeeded();
    assert!(all.notes().len() <= 1 && all.errors().is_empty(), "{all}");
    all.printed(want(1, 900));
    let produced = sandbox.tapelog("produce --receipt").write_stdin("x\n").outcome().succeeded();
    produced.printed("900\n");
    assert!(sandbox.quarantine().contains(&copied), "it is set aside");
    sandbox.all().prints(want(1, 900) + "x\n");
}

#[test]
fn h013_a_foreign_segment_between_two_is_damage_until_it_is_repaired() {
    let (sandbox, first) = three_times_300();
    let copied = fs::read(&first).unwrap();
    fs::copy(&first, sandbox.log().join("00000000000000000450.log")).unwrap();
    let all = sandbox.all().outcome().ended(status::DAMAGE);
    let printed = all.text();
    assert_eq!(printed, want(1, printed.lines().count() as u64), "no line twice");
    sandbox.tapelog("produce").write_stdin("x\n").outcome().ended(status::DAMAGE);
    let skipped = sandbox.tapelog("consume --skip-damage").outcome().ended(status::DAMAGE);
    skipped.printed(want(1, 900));
    let found = sandbox.tapelog("verify").outcome().ended(status::DAMAGE);
    assert!(found.text().contains("stranger"));
    repaired(&sandbox);
    assert!(sandbox.quarantine().contains(&copied), "it is set aside");
    sandbox.all().prints(want(1, 900));
    assert_eq!(sandbox.append("x"), 900);
}

#[test]
fn h014_no_mutation_of_a_segment_crashes_a_reader() {
    let original = Sandbox::with_config("segment-size=64K");
    original.mk1(900);
    let file = original.active().file_name().unwrap().to_owned();
    let good = fs::read(original.active()).unwrap();
    let all: std::collections::HashSet<String> = want(1, 900).lines().map(str::to_owned).collect();
    let sandbox = original.copy();
    let mut random = Random(14);
    for round in 0..rounds(150, 10_000) {
        fs::write(sandbox.log().join(&file), mutated(&good, &mut random)).unwrap();
        let line = "ulimit -v 524288; exec timeout 5 \"$0\" consume \"$1\" --skip-damage";
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", line]).arg(binary()).arg(sandbox.log());
        let outcome = foreground(shell).outcome();
        let code = outcome.status.code();
        assert!(matches!(code, Some(0 | status::DAMAGE)), "round {round}: {outcome}");
        let text = String::from_utf8(outcome.stdout).unwrap();
        assert!(text.lines().all(|line| all.contains(line)), "round {round}: an invented line");
    }
}

/// Cut, flipped, spliced, its halves swapped, or with an odd length in a header.
fn mutated(good: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = good.to_vec();
    let at = |random: &mut Random| random.between(0, good.len() as u64 - 1) as usize;
    match random.between(0, 4) {
        0 => bytes.truncate(at(random)),
        1 => (0..random.between(1, 9)).for_each(|_| bytes[at(random)] ^= 1 << random.between(0, 7)),
        2 => {
            let (a, b) = (at(random), at(random));
            bytes = [&good[..a], &good[b..]].concat();
        }
        3 => bytes.rotate_left(good.len() / 2),
        _ => {
            let value = [0, 0x7FFF_FFFF_u32, 0xFFFF_FFFF][random.between(0, 2) as usize];
            let begins: Vec<usize> = memchr::memmem::find_iter(good, b"\xF5tlb").collect();
            let header = begins[random.between(0, begins.len() as u64 - 1) as usize];
            bytes[header + 48..header + 52].copy_from_slice(&value.to_le_bytes());
        }
    }
    bytes
}

#[test]
fn a_checkpoint_that_cannot_be_read_is_left_to_its_owner() {
    let sandbox = many_segments(100);
    sandbox.commit("g", 50);
    let checkpoint = sandbox.log().join("groups/g.checkpoint");
    fs::write(&checkpoint, "garbage").unwrap();
    for line in ["verify -J", "verify --repair -J"] {
        let found = sandbox.tapelog(line).outcome().ended(status::DAMAGE).text();
        assert!(found.contains(r#""kind":"checkpoint","action":"seek""#), "{line}: {found}");
    }
    assert_eq!(fs::read(&checkpoint).unwrap(), b"garbage");
    sandbox.tapelog("seek -g g --to 50").outcome().succeeded();
    sandbox.tapelog("verify").outcome().succeeded();
    assert_eq!(sandbox.position("g"), 50);
}

#[test]
fn skipping_damage_goes_on_behind_segments_that_are_gone() {
    for gone in [1, 5] {
        let sandbox = many_segments(1000);
        let file = sandbox.sealed(gone);
        let text = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
        fs::remove_file(&file).unwrap();
        let kept: String =
            want(1, 1000).split_inclusive('\n').filter(|line| !text.contains(*line)).collect();
        sandbox.all().outcome().ended(status::DAMAGE);
        let skipped = sandbox.tapelog("consume --skip-damage").outcome().ended(status::DAMAGE);
        skipped.printed(&kept);
        repaired(&sandbox);
        sandbox.all().outcome().succeeded().printed(&kept);
        sandbox.tapelog("consume --tail 990").outcome().succeeded().printed(kept);
    }
}

#[test]
fn skipping_damage_goes_on_though_nothing_says_where_the_log_ends() {
    let sandbox = many_segments(100);
    fs::write(sandbox.log().join("end"), [0xA5; 8192]).unwrap();
    flip(&sandbox.segments()[0], 100);
    for (start, records) in [("0", without(2, 100)), ("90", want(91, 100))] {
        let outcome = sandbox.tapelog(&format!("consume -o {start} --skip-damage")).outcome();
        outcome.ended(status::DAMAGE).printed(records).with_words(&["verify", "--repair"]);
    }
}

#[test]
fn reading_backwards_does_not_begin_before_damage() {
    let sandbox = many_segments(1000);
    let last = sandbox.segments().last().unwrap().clone();
    flip(&last, len(&last) - 5);
    for options in ["-r", "-r -n 1", "-r --since -1h", "-r --tail 3", "-r -o 990:", "-r -o :1000"] {
        let outcome = sandbox.tapelog(&format!("consume {options}")).outcome();
        outcome.ended(status::DAMAGE).printed("").with_words(&["offset 999"]);
    }
    sandbox.tapelog("consume -r -o :999 -n 1").prints("m-000999\n");
    let outcome = sandbox.tapelog("consume -r -n 2 --skip-damage").outcome();
    outcome.ended(status::DAMAGE).printed("m-000999\nm-000998\n");
    fs::remove_file(last).unwrap();
    sandbox.tapelog("consume -r -n 1").outcome().ended(status::DAMAGE).printed("");
    sandbox.tapelog("groups").outcome().ended(status::DAMAGE);
}

#[test]
fn another_logs_settings_file_is_the_one_that_goes() {
    let (sandbox, other) = (many_segments(200), many_segments(3));
    let files = ["log.json", "end"];
    for wrong in [&files[..1], &files[..]] {
        let good = segments(&sandbox);
        for name in wrong {
            fs::copy(other.log().join(name), sandbox.log().join(name)).unwrap();
        }
        let found = sandbox.tapelog("verify -J").outcome().ended(status::DAMAGE).text();
        assert!(found.contains("log.json") && found.lines().count() == 1, "{found}");
        repaired(&sandbox).succeeded();
        assert!(segments(&sandbox) == good, "{wrong:?}");
        sandbox.tapelog("verify").outcome().succeeded();
        sandbox.all().prints(want(1, 200));
    }
    assert_eq!(sandbox.end(), 200);
}

#[test]
fn an_empty_stray_segment_is_no_part_of_the_log() {
    let sandbox = many_segments(200);
    for base in [5000u64, 9_000_000_000_000_000_000] {
        let stray = sandbox.log().join(format!("{base:020}.log"));
        fs::write(&stray, "").unwrap();
        let found = sandbox.tapelog("verify -J").outcome().ended(status::DAMAGE).text();
        assert!(found.contains("stranger") && found.lines().count() == 1, "{found}");
        repaired(&sandbox).succeeded();
        assert!(!stray.exists());
        assert_eq!(sandbox.end(), 200);
    }
    sandbox.all().prints(want(1, 200));
}

#[test]
fn a_gap_where_the_log_begins_is_not_older_than_what_follows() {
    let sandbox = many_segments(200);
    sandbox.tapelog("commit -g g 1").outcome().succeeded();
    fs::remove_file(&sandbox.segments()[0]).unwrap();
    repaired(&sandbox).succeeded();
    let line = sandbox.tapelog("groups -J").outcome().succeeded().text();
    let row: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert!(row["lag_ms"].as_u64().unwrap() < 3_600_000, "{line}");
}

#[test]
fn what_comes_to_light_by_a_repair_is_listed_with_the_rest() {
    let sandbox = many_segments(200);
    sandbox.tapelog("commit -g g 200").outcome().succeeded();
    let last = sandbox.segments().last().unwrap().clone();
    flip(&last, len(&last) - 5);
    fs::write(sandbox.log().join("end"), "hi\n").unwrap();
    let repair = sandbox.tapelog("verify --repair").outcome();
    let found = repair.ended(status::DAMAGE).text();
    assert!(found.contains("g.checkpoint"), "{found}");
}

#[test]
fn h015_a_damaged_segment_is_left_to_be_examined() {
    let sandbox = many_segments(200);
    let file = sandbox.sealed(1);
    flip(&file, 300);
    let damaged = fs::read(&file).unwrap();
    sandbox.tapelog("produce").write_stdin("x\n").outcome().succeeded();
    sandbox.all().outcome().ended(status::DAMAGE);
    for line in ["segments", "gc --dry-run"] {
        let outcome = sandbox.tapelog(line).outcome();
        assert!(matches!(outcome.status.code(), Some(0 | status::DAMAGE)), "{outcome}");
    }
    sandbox.tapelog("verify").outcome().ended(status::DAMAGE);
    assert!(damaged == fs::read(&file).unwrap(), "nobody changed it");
    repaired(&sandbox).with_words(&["quarantine"]);
    let kept = sandbox.quarantine();
    let is_kept = |kept: &Vec<u8>| memchr::memmem::find(&damaged, kept).is_some();
    assert!(kept.iter().any(is_kept), "the damaged bytes are kept");
}

#[test]
fn h029_a_repair_whose_sync_fails_keeps_every_old_segment() {
    let Some(strace) = Strace::find("h029") else { return };
    let original = many_segments(200);
    flip(&original.sealed(2), 300);
    flip(&original.active(), 100);
    for k in 1.. {
        let sandbox = original.copy();
        let (before, all) = (segments(&sandbox), sandbox.all().outcome());
        let repair = sandbox.command("verify --repair");
        let fault = format!("fsync,fdatasync:error=EIO:when={k}");
        let outcome = foreground(strace.inject(&sandbox, &fault, &repair)).outcome();
        if !was_injected(&sandbox) {
            assert!(k > 5, "repair syncs");
            outcome.succeeded();
            return;
        }
        assert_eq!(outcome.status.code(), Some(status::FAILED), "sync {k}: {outcome}");
        let after = segments(&sandbox);
        let damaged = [sandbox.sealed(2), before.keys().last().unwrap().clone()];
        for (path, bytes) in &before {
            let same = after.get(path) == Some(bytes);
            let mended = damaged.contains(path) && after.contains_key(path);
            assert!(same || mended, "sync {k}: {} is as it was", path.display());
        }
        let now = sandbox.all().outcome();
        assert!(now.stdout.starts_with(&all.stdout), "sync {k}: {now}");
        repaired(&sandbox);
        sandbox.tapelog("verify").outcome().succeeded();
    }
}

#[test]
fn verify_of_a_good_log_prints_nothing_and_changes_nothing() {
    let sandbox = many_segments(200);
    let before = tree(sandbox.log());
    let verified = sandbox.tapelog("verify").outcome().succeeded();
    verified.noted(&["segments", "200 records: no damage"]).printed("");
    sandbox.tapelog("verify -J").outcome().succeeded().printed("");
    assert!(tree(sandbox.log()) == before);
}

#[test]
fn verify_finds_nothing_while_others_write_collect_and_consume() {
    let sandbox = Sandbox::with_config("segment-size=2048");
    sandbox.mk1(10);
    let mut producers: Vec<_> = (0..3)
        .map(|n| {
            sandbox.spawn(&format!("producer{n}"), sandbox.command("produce --batch-records 1"))
        })
        .collect();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                sandbox.tapelog("consume -g g").outcome().succeeded();
                sandbox.tapelog("gc").outcome().succeeded();
            }
        });
        for round in 0..rounds(30, 300) {
            for producer in &mut producers {
                producer.feed(want(round * 40 + 1, round * 40 + 40));
            }
            let found = sandbox.tapelog("verify -J").outcome();
            if found.status.code() != Some(status::DONE) || !found.stdout.is_empty() {
                done.store(true, Ordering::Relaxed);
                panic!("round {round}: {}\n{found}", String::from_utf8_lossy(&found.stdout));
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}
