//! INDEX, H016 to H020, with keys: whatever becomes of the files that tell where keys
//! are, `get` gives the same answers.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use tapelog::format::key_hash::KeyHash;
use tapelog::format::key_table::{KeyEntry, NewPage, PAGE_LEN, Page, PageBytes, TableHeader};
use tapelog::model::{LogId, Offset};

use crate::sandbox::{
    Expect, Outcome, Random, Sandbox, copy_tree, flip, foreground, len, numbers, status,
};

/// Enough for the index to be written: over a megabyte.
const COUNT: u64 = 6000;

fn line(n: u64) -> String {
    format!("k{n}:m-{n:06} {}\n", "x".repeat(400))
}

fn value(n: u64) -> String {
    format!("m-{n:06} {}\n", "x".repeat(400))
}

fn keyed() -> Sandbox {
    keyed_at(0)
}

/// The same, appended at that second.
fn keyed_at(second: u8) -> Sandbox {
    let sandbox = Sandbox::with_config("segment-size=1M");
    let lines = (0..COUNT).map(line).collect::<String>();
    sandbox.produce(&format!("-K : {}", at(second)), lines);
    sandbox
}

fn at(second: u8) -> String {
    format!("--now 2026-01-01T12:00:0{second}Z")
}

/// What is derived: the table of segments, an index of one, and all that is in `keys/`.
fn sides(sandbox: &Sandbox) -> Vec<PathBuf> {
    let files = |dir: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(dir).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect()
    };
    let is_index = |path: &PathBuf| path.extension().is_some_and(|end| end == "index");
    let mut sides: Vec<_> = files(sandbox.log()).into_iter().filter(is_index).collect();
    sides.sort();
    sides.drain(1..sides.len() - 1);
    sides.extend(files(&sandbox.log().join("keys")));
    let log = sandbox.log();
    sides.into_iter().map(|path| path.strip_prefix(log).unwrap().to_owned()).collect()
}

/// The key tables of a log, in the order of their ranges.
fn tables(sandbox: &Sandbox) -> Vec<PathBuf> {
    let is_table = |path: &PathBuf| path.extension().is_some_and(|end| end == "table");
    let mut tables: Vec<_> = sides(sandbox).into_iter().filter(is_table).collect();
    tables.sort();
    assert!(!tables.is_empty(), "a log of that size has a table");
    tables.into_iter().map(|table| sandbox.log().join(table)).collect()
}

/// Every answer is right, whatever is noted the first time; the second time is silent.
fn answers_as_ever(sandbox: &Sandbox, what: &str) {
    for n in [900, 0, COUNT - 1] {
        let outcome = sandbox.tapelog(&format!("get k{n}")).outcome().succeeded();
        assert!(outcome.errors().is_empty(), "{what}: {outcome}");
        outcome.printed(value(n));
    }
    sandbox.tapelog("get k900").prints(value(900));
    sandbox.tapelog("consume --key k900 -n 1").prints(value(900));
    sandbox.tapelog("get none").fails(status::NOT_THERE, &["none"]);
}

#[test]
fn h016_side_files_may_be_anything_and_get_finds_the_same() {
    let (original, other) = (keyed(), keyed());
    answers_as_ever(&original, "as it was");
    assert_eq!(tables(&original).len(), 1);
    for side in sides(&original) {
        let good = fs::read(original.log().join(&side)).unwrap();
        let foreign = fs::read(other.log().join(&side)).unwrap_or_default();
        let harms: [(&str, Option<Vec<u8>>); 8] = [
            ("deleted", None),
            ("empty", Some(Vec::new())),
            ("one byte", Some(good[..good.len().min(1)].to_vec())),
            ("one byte short", Some(good[..good.len().saturating_sub(1)].to_vec())),
            ("random", Some(Random(16).bytes(4096))),
            ("all 0xFF", Some(vec![0xFF; good.len()])),
            ("all zeros", Some(vec![0; good.len()])),
            ("another log's", Some(foreign)),
        ];
        for (harm, bytes) in harms {
            let sandbox = original.copy();
            match bytes {
                Some(bytes) => fs::write(sandbox.log().join(&side), bytes).unwrap(),
                None => fs::remove_file(sandbox.log().join(&side)).unwrap(),
            }
            answers_as_ever(&sandbox, &format!("{} {harm}", side.display()));
        }
    }
    original.delete_indexes();
    answers_as_ever(&original, "all deleted");
}

#[test]
fn h017_old_side_files_put_back_do_not_hide_what_came_later() {
    let sandbox = keyed();
    let old = sandbox.copy();
    assert_eq!(tables(&old).len(), 1);
    sandbox.produce("-K :", (COUNT - 100..2 * COUNT).map(line).collect::<String>());
    sandbox.produce("-K :", "k5:changed\n");
    sandbox.delete_indexes();
    for side in sides(&old) {
        fs::create_dir_all(sandbox.log().join(&side).parent().unwrap()).unwrap();
        fs::copy(old.log().join(&side), sandbox.log().join(&side)).unwrap();
    }
    for (key, want) in [("k5", "changed\n".to_owned()), ("k11000", value(11_000)), ("k9", value(9))]
    {
        let outcome = sandbox.tapelog(&format!("get {key}")).outcome();
        outcome.succeeded().printed(want);
    }
    let mut again = sandbox.tapelog("produce --unique -K : --receipt");
    again.write_stdin(line(11_000) + "new:x\n").outcome().succeeded().printed("11100\n12101\n");
}

/// A log with tables of `COUNT` records and half as many again, of which the latter were
/// replaced: an older copy of the segments was put back, and `lines` were appended. With
/// what came of that.
fn rewritten_beneath(lines: impl Into<Vec<u8>>) -> (Sandbox, Outcome) {
    let sandbox = keyed_at(1);
    let old = sandbox.copy();
    let more = (COUNT..COUNT * 3 / 2).map(line).collect::<String>();
    sandbox.produce(&format!("-K : {}", at(2)), more);
    assert_eq!(tables(&sandbox).len(), 2);
    fs::remove_dir_all(old.log().join("keys")).unwrap();
    copy_tree(&sandbox.log().join("keys"), &old.log().join("keys"));
    let mut produce = old.tapelog(&format!("produce -K : {}", at(3)));
    let outcome = produce.write_stdin(lines).outcome().succeeded();
    assert!(old.end() > COUNT * 3 / 2);
    (old, outcome)
}

#[test]
fn h017_tables_of_records_that_an_older_copy_took_the_place_of_are_not_believed() {
    // So few bytes that the one who appends them leaves all tables as they are.
    let short = |n: u64| format!("k{}:other {n}\n", COUNT * 3 / 2 + 9 - n);
    let lines = (0..=COUNT / 2 + 9).map(short).collect::<String>();
    let (sandbox, outcome) = rewritten_beneath(lines);
    outcome.silent();
    let [good, stale] = &tables(&sandbox)[..] else { panic!("two tables") };
    let stale_name = stale.file_name().unwrap().to_str().unwrap();
    let compacted = sandbox.copy();
    let found = sandbox.tapelog("verify").outcome().succeeded().text();
    assert!(found.contains(stale_name) && found.contains("rewritten beneath it"), "{found}");
    let kept = fs::read(good).unwrap();
    let outcome = sandbox.tapelog(&format!("get k{}", COUNT + 5)).outcome().succeeded();
    outcome.noted(&[stale_name]).printed(format!("other {}\n", COUNT / 2 + 4));
    assert!(!stale.exists() && fs::read(good).unwrap() == kept);
    sandbox.tapelog("get k900").prints(value(900));
    sandbox.tapelog(&format!("get k{}", COUNT * 3 / 2 + 1)).prints("other 8\n");
    sandbox.tapelog(&format!("get k{}", COUNT + 1)).prints(format!("other {}\n", COUNT / 2 + 8));
    // Compaction would drop what an old table has something newer for.
    compacted.tapelog("gc --compact --even-unread --roll").outcome().succeeded();
    let left = compacted.tapelog("consume -o earliest -F %k=%o;").text();
    let first = |n: u64| format!("k{n}={n};");
    let last = |n: u64| format!("k{}={};", COUNT * 3 / 2 + 9 - n, COUNT + n);
    let want: String = (0..COUNT).map(first).chain((0..=COUNT / 2 + 9).map(last)).collect();
    assert!(left == want);
}

#[test]
fn h017_whoever_covers_what_was_appended_notices_old_tables_too() {
    let much = |n: u64| format!("q{n}:{n:0400}\n");
    let (sandbox, outcome) = rewritten_beneath((0..COUNT).map(much).collect::<String>());
    outcome.noted(&[".table"]);
    sandbox.tapelog("get q5").prints(format!("{:0400}\n", 5));
    sandbox.tapelog(&format!("get k{}", COUNT + 5)).fails(status::NOT_THERE, &["k6005"]);
    sandbox.tapelog("verify").outcome().succeeded().printed("");
}

#[test]
fn a_table_of_a_log_that_was_compacted_is_believed() {
    let sandbox = keyed_at(1);
    let changed = |n: u64| format!("k{n}:changed\n");
    // The last ones of the table are no longer kept.
    sandbox.produce(&format!("-K : {}", at(2)), (4000..COUNT).map(changed).collect::<String>());
    let fates = sandbox.tapelog("gc --compact --even-unread --roll -J").json();
    let made = tables(&sandbox);
    assert!(fates.iter().any(|fate| fate["removed_records"].as_u64() > Some(0)), "{fates:?}");
    sandbox.tapelog("get k900").prints(value(900));
    sandbox.tapelog("get k5999").prints("changed\n");
    sandbox.tapelog("verify").outcome().succeeded().printed("");
    assert_eq!(tables(&sandbox), made);
}

#[test]
fn h018_an_index_that_may_not_be_read_stays_and_get_answers() {
    let sandbox = keyed();
    for side in sides(&sandbox).into_iter().filter(|side| side.starts_with("keys")) {
        let file = sandbox.log().join(&side);
        let mode = |mode| fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        let before = fs::read(&file).unwrap();
        mode(0o000);
        let outcome = foreground(sandbox.as_nobody("get k900")).outcome().succeeded();
        outcome.noted(&["keys", "ermission"]).printed(value(900));
        mode(0o644);
        assert!(fs::read(&file).unwrap() == before, "{}", side.display());
    }
    foreground(sandbox.as_nobody("get k900")).prints(value(900));
}

/// Makes the only table of a log anew, with other entries.
fn forge(sandbox: &Sandbox, change: impl Fn(&mut KeyEntry)) {
    let [table] = &tables(sandbox)[..] else { panic!("one table") };
    let bytes = fs::read(table).unwrap();
    let mut pages = bytes.chunks_exact(PAGE_LEN).map(|page| PageBytes::try_from(page).unwrap());
    let header = TableHeader::decode(&pages.next().unwrap(), id(sandbox)).unwrap();
    let mut forged = header.encode().to_vec();
    for (page, number) in pages.zip(0..) {
        let (page, mut new) = (Page::check(&page, &header.of, number).unwrap(), NewPage::default());
        for mut entry in (0..page.len()).filter_map(|entry| page.entry(entry)) {
            change(&mut entry);
            new.push(&entry, &header.of);
        }
        new.finish(&header.of, number, &mut forged);
    }
    assert!(forged.len() == bytes.len() && forged != bytes);
    fs::write(table, forged).unwrap();
}

fn id(sandbox: &Sandbox) -> LogId {
    let settings = fs::read(sandbox.log().join("log.json")).unwrap();
    let settings: serde_json::Value = serde_json::from_slice(&settings).unwrap();
    settings["id"].as_str().unwrap().parse().unwrap()
}

#[test]
fn h019_a_table_that_names_another_keys_record_is_not_believed() {
    // Far away, right beside it, the last one of the table.
    for lie in [700, 501, COUNT - 1] {
        let sandbox = keyed();
        let k500 = KeyHash::of(id(&sandbox), b"k500");
        forge(&sandbox, |entry| {
            if entry.hash == k500 {
                assert_eq!(entry.offset, Offset::new(500));
                entry.offset = Offset::new(lie);
            }
        });
        sandbox.tapelog("get k500").prints(value(500));
        sandbox.tapelog("get --all k500").prints(value(500));
        sandbox.tapelog(&format!("get k500 k{lie}")).prints(value(500) + &value(lie));
        sandbox.tapelog("consume --key k500").prints(value(500));
        let mut again = sandbox.tapelog("produce --unique -K : --receipt");
        again.write_stdin(line(500)).outcome().succeeded().printed("500\n");
    }
}

#[test]
fn h020_ids_sent_in_ten_runs_are_found_as_those_sent_in_one() {
    let (one, ten) = (keyed(), Sandbox::with_config("segment-size=1M"));
    for run in 0..10 {
        let range = run * COUNT / 10..(run + 1) * COUNT / 10;
        ten.produce("-K :", range.map(line).collect::<String>());
    }
    let rebuilt = ten.copy();
    rebuilt.delete_indexes();
    for sandbox in [&one, &ten, &rebuilt] {
        let mut get = sandbox.tapelog("get -F %k=%o;");
        get.args((0..COUNT).step_by(13).map(|n| format!("k{n}")));
        let want: String = (0..COUNT).step_by(13).map(|n| format!("k{n}={n};")).collect();
        get.outcome().succeeded().printed(want);
    }
}

/// Thirty versions of each of three keys, in segments that nobody appends to; no index yet.
fn sealed() -> Sandbox {
    let sandbox = Sandbox::with_config("segment-size=600");
    let input: String = (0..90).map(|n| format!("k{}:{n}\n", n % 3)).collect();
    sandbox.produce("-K : --batch-records 5", input);
    sandbox.tapelog("gc --roll").outcome().succeeded();
    sandbox
}

/// Compaction, which trusts nothing but the index, ends so.
fn compaction(sandbox: &Sandbox) -> crate::sandbox::Outcome {
    sandbox.tapelog("gc --compact --even-unread").outcome()
}

/// What it is, the name it takes in the log's directory, and what puts it there.
type Harm<'a> = (&'a str, String, &'a dyn Fn(&Path));

#[test]
fn repair_sets_aside_what_stands_in_the_way_of_the_index_which_works_again() {
    let table = |next: u64| format!("keys/{:020}-{next:020}.table", 0);
    let target = |path: &Path| path.parent().unwrap().join("log.json");
    let file = |path: &Path| fs::write(path, "mine\n").unwrap();
    let link = |path: &Path| symlink(target(path), path).unwrap();
    let dir = |path: &Path| fs::create_dir(path).unwrap();
    let harms: [Harm<'_>; 5] = [
        ("a file for keys/", "keys".to_owned(), &file),
        ("a link for keys/", "keys".to_owned(), &link),
        ("a directory for a table", table(90), &dir),
        ("a link for a table", table(90), &link),
        ("a directory for a table of a longer log", table(900), &dir),
    ];
    for (what, name, harm) in harms {
        let sandbox = sealed();
        let path = sandbox.log().join(&name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        harm(&path);
        if !what.starts_with("a link for a table") {
            compaction(&sandbox).ended(status::DAMAGE).with_words(&["keys", "verify", "--repair"]);
        }
        let repaired = sandbox.tapelog("verify --repair").outcome().succeeded();
        assert!(repaired.text().contains(&name), "{what}");
        sandbox.tapelog("verify").outcome().succeeded().printed("");
        let name = format!("{}.0.displaced", path.file_name().unwrap().to_str().unwrap());
        let kept = sandbox.log().join("quarantine").join(name);
        assert!(fs::symlink_metadata(kept).is_ok(), "{what} is kept");
        compaction(&sandbox).succeeded();
        let left = sandbox.tapelog("consume -J").json();
        assert_eq!(numbers(&left, "offset"), [87, 88, 89], "{what}");
        sandbox.tapelog("get k0").prints("87\n");
    }
}

#[test]
fn compaction_makes_its_own_table_in_the_place_of_a_link() {
    let sandbox = sealed();
    let (settings, keys) = (sandbox.log().join("log.json"), sandbox.log().join("keys"));
    let before = fs::read(&settings).unwrap();
    fs::create_dir(&keys).unwrap();
    symlink(&settings, keys.join(format!("{:020}-{:020}.table", 0, 90))).unwrap();
    compaction(&sandbox).succeeded();
    assert_eq!(fs::read(&settings).unwrap(), before);
    sandbox.tapelog("get k0").prints("87\n");
}

#[test]
fn a_segment_is_mended_although_something_stands_in_the_way_of_the_index() {
    let sandbox = sealed();
    fs::write(sandbox.log().join("keys"), "mine\n").unwrap();
    let segment = sandbox.sealed(1);
    flip(&segment, len(&segment) - 3);
    sandbox.tapelog("verify --repair").outcome().succeeded();
    compaction(&sandbox).succeeded();
}
