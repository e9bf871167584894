//! What tapelog-format(5) calls damage, newer or too large, under checksums that are
//! right: no crash and no rotten bit makes such files, another program may. The binary
//! and reader.py must end alike and print what comes before.

use std::fs;
use std::path::Path;

use tapelog::format::batch::{Codec, GapReason, Layout};
use tapelog::format::body::Body;
use tapelog::format::columns;
use tapelog::format::record::{Content, Headers};
use tapelog::model::Timestamp;

use crate::golden;
use crate::python;
use crate::sandbox::{Expect, Sandbox, copy_tree, cut, foreground, len, status};

/// Both end with this status after so many records.
#[track_caller]
fn both_end(what: &str, sandbox: &Sandbox, status: i32, records: u64) {
    let offsets: String = (0..records).map(|offset| format!("{offset}\n")).collect();
    if let Some(reader) = python::reader(what) {
        let outcome = foreground(reader.on(sandbox.log())).outcome();
        let printed = outcome.stdout.iter().filter(|&&byte| byte == b'\n').count();
        assert_eq!(
            (outcome.status.code(), printed as u64),
            (Some(status), records),
            "{what}: {outcome}"
        );
    }
    let outcome = sandbox.tapelog(r"consume -F %o\n").outcome();
    assert_eq!(outcome.status.code(), Some(status), "{what}: {outcome}");
    assert_eq!(String::from_utf8_lossy(&outcome.stdout), offsets, "{what}: {outcome}");
}

/// A log of a good record and then this batch, both said to be durable.
#[track_caller]
fn behind_a_good_one(what: &str, body: Body<'_>, status: i32) {
    let sandbox = Sandbox::new();
    let good = Body::plain(Layout::Lines, 1, b"good\n");
    golden::put(&golden::forged(&[good, body]), sandbox.log());
    both_end(what, &sandbox, status, 1);
}

fn in_columns(gap: u64, content: Content<'_>) -> Vec<u8> {
    let mut body = Vec::new();
    columns::encode(&[(gap, content)], &mut body);
    body
}

/// A record for *columns*.
fn keyed<'a>() -> Content<'a> {
    Content { key: Some(b"key"), ..Content::of_value(b"value") }
}

#[test]
fn lines_that_do_not_fit_their_header_are_damage() {
    for body in [&b"no newline"[..], b"two\nlines\n"] {
        let what = body.escape_ascii().to_string();
        behind_a_good_one(&what, Body::plain(Layout::Lines, 1, body), status::DAMAGE);
    }
    behind_a_good_one("one line of two", Body::plain(Layout::Lines, 2, b"a\n"), status::DAMAGE);
}

#[test]
fn columns_that_do_not_fit_are_damage() {
    let timed = Content { own_time: Some(Timestamp::from_millis(5)), ..keyed() };
    let headers = |block| Content { headers: Headers::in_block(block), ..keyed() };
    let patched = |content, at: usize, byte| {
        let mut body = in_columns(0, content);
        body[at] = byte;
        body
    };
    let whole = in_columns(0, keyed());
    let rows = [
        ("a byte too many", [&whole[..], b"x"].concat()),
        ("a byte too few", whole[..whole.len() - 1].to_vec()),
        ("a value without its newline", patched(keyed(), whole.len() - 1, b'x')),
        ("a time that is neither there nor not", patched(timed, 2, 2)),
        ("a header's name that is not whole", in_columns(0, headers(b"\x07trace"))),
        ("a header's name that is null", in_columns(0, headers(b"\0\0"))),
        ("a header's value that is missing", in_columns(0, headers(b"\x02a"))),
        ("a record beyond the next offset", in_columns(5, keyed())),
    ];
    for (what, body) in rows {
        behind_a_good_one(what, Body::plain(Layout::Columns, 1, &body), status::DAMAGE);
    }
}

#[test]
fn a_column_that_is_unknown_is_newer() {
    let mut body = in_columns(0, keyed());
    body[0] |= 16;
    behind_a_good_one("column 16", Body::plain(Layout::Columns, 1, &body), status::FAILED);
}

#[test]
fn a_gap_with_a_body_is_damage() {
    let layout = Layout::Gap(GapReason::Compacted);
    let gap = Body { records: 0, ..Body::plain(layout, 0, b"body") };
    behind_a_good_one("a gap with a body", gap, status::DAMAGE);
}

#[test]
fn what_comes_before_a_batch_too_large_at_the_end_is_printed() {
    let body = Body { codec: Codec::Zstd, raw: u32::MAX, ..Body::plain(Layout::Lines, 1, b"x") };
    behind_a_good_one("4 GiB claimed at the end", body, status::TOO_BIG);
}

/// A golden log of two segments with 35 and 10 records, harmed.
#[track_caller]
fn two_segments(what: &str, harm: impl FnOnce(&Sandbox), status: i32, records: u64) {
    let golden = golden::all().into_iter().find(|log| log.name == "two-segments").unwrap();
    let sandbox = Sandbox::new();
    copy_tree(&golden.dir(), sandbox.log());
    harm(&sandbox);
    both_end(what, &sandbox, status, records);
}

#[test]
fn a_missing_segment_is_damage_with_and_without_the_end() {
    let remove = |path: &Path| fs::remove_file(path).unwrap();
    two_segments("the first is missing", |sandbox| remove(&sandbox.sealed(1)), status::DAMAGE, 0);
    let first_and_end = |sandbox: &Sandbox| {
        remove(&sandbox.sealed(1));
        remove(&sandbox.log().join("end"));
    };
    two_segments("the first and the end are missing", first_and_end, status::DAMAGE, 0);
    two_segments("the last is missing", |sandbox| remove(&sandbox.active()), status::DAMAGE, 35);
}

#[test]
fn a_sealed_segment_that_ends_early_is_damage_without_the_end_too() {
    let short = |sandbox: &Sandbox| {
        // Its last batch as a whole, so that nothing in it is bad.
        let segment = sandbox.sealed(1);
        let last = memchr::memmem::rfind(&fs::read(&segment).unwrap(), b"\xf5tlb").unwrap() as u64;
        cut(&segment, len(&segment) - last);
    };
    two_segments("cut between batches", short, status::DAMAGE, 15);
    let without_end = |sandbox: &Sandbox| {
        short(sandbox);
        fs::remove_file(sandbox.log().join("end")).unwrap();
    };
    two_segments("cut between batches, no end", without_end, status::DAMAGE, 15);
}

/// Changes the bytes of one file of the log.
fn changed(name: &str, change: impl FnOnce(&mut Vec<u8>)) -> impl FnOnce(&Sandbox) {
    move |sandbox| {
        let path = sandbox.log().join(name);
        let mut bytes = fs::read(&path).unwrap();
        change(&mut bytes);
        fs::write(path, bytes).unwrap();
    }
}

#[test]
fn a_start_or_an_end_that_is_there_and_no_good_is_damage() {
    let other = Sandbox::new();
    other.mk(1);
    // Without its end a log is read as far as it goes, and then nobody knows.
    for (name, records) in [("start", 0), ("end", 45)] {
        let no_good_line = changed(name, |bytes| (bytes[9], bytes[4105]) = (b'?', b'?'));
        two_segments("no good line", no_good_line, status::DAMAGE, records);
        two_segments(
            "too short",
            changed(name, |bytes| bytes.truncate(8191)),
            status::DAMAGE,
            records,
        );
        let foreign = fs::read(other.log().join(name)).unwrap();
        two_segments(
            "another log's",
            changed(name, |bytes| *bytes = foreign),
            status::DAMAGE,
            records,
        );
    }
}

#[test]
fn a_segment_that_nothing_leads_to_is_damage() {
    let empty = |name: &'static str| {
        move |sandbox: &Sandbox| fs::write(sandbox.log().join(name), b"").unwrap()
    };
    let beyond = empty("00000000000000001000.log");
    two_segments("a segment beyond the end", beyond, status::DAMAGE, 45);
    let amid = empty("00000000000000000020.log");
    two_segments("a segment amid a batch", amid, status::DAMAGE, 15);
}
