//! Compaction against a plain map, on simulated disks.

use std::collections::HashMap;

use proptest::prelude::{Just, Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};

use super::*;
use crate::format::body::{self, Body};
use crate::format::codec::Compression;
use crate::format::record::{Content, Headers, push_header};
use crate::log::fixture::{Fixture, fixture};
use crate::log::{BackReader, Reader, Reading};
use crate::model::Start;

mod unreliable;

/// Everything of a record, owned.
#[derive(Clone, Debug, PartialEq)]
struct Record {
    offset: u64,
    appended: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<u8>,
    own_time: Option<i64>,
}

const EVERYTHING: Scope = Scope { even_unread: true, even_without_groups: false };

fn terms(scope: Scope, tombstones_before: i64) -> CompactionTerms {
    let tombstones_before = Timestamp::from_millis(tombstones_before);
    CompactionTerms { scope, tombstones_before }
}

/// Compacts all that is sealed.
fn compact(fixture: &Fixture, tombstones_before: i64) -> Compaction {
    fixture.log.compact(&terms(EVERYTHING, tombstones_before), &mut |_| ()).unwrap()
}

fn records_in(piece: &crate::log::Piece<'_>) -> Vec<Record> {
    let records = piece.records().unwrap().filter(|record| record.offset >= piece.from);
    let owned = |record: crate::format::record::RecordView<'_>| Record {
        offset: record.offset.get(),
        appended: record.append_time.as_millis(),
        key: record.content.key.map(<[u8]>::to_vec),
        value: record.content.value.map(<[u8]>::to_vec),
        headers: record.content.headers.block().to_vec(),
        own_time: record.content.own_time.map(Timestamp::as_millis),
    };
    records.map(owned).collect()
}

fn read(log: &Log, from: u64) -> Vec<Record> {
    let mut reader = Reader::open(log, Offset::new(from)).unwrap();
    let mut records = Vec::new();
    while let Reading::Records(piece) = reader.read().unwrap() {
        records.extend(records_in(&piece));
    }
    assert_eq!(reader.next_offset(), log.bounds().unwrap().end);
    records
}

fn read_back(log: &Log) -> Vec<Record> {
    let bounds = log.bounds().unwrap();
    let mut reader = BackReader::open(log, bounds.start, bounds.end);
    let mut records = Vec::new();
    while let Some(block) = reader.read().unwrap() {
        let end = block.end().get();
        for piece in block.pieces().rev() {
            let piece = records_in(&piece).into_iter().rev();
            records.extend(piece.filter(|record| record.offset < end));
        }
    }
    records.reverse();
    records
}

/// What a plain map says that is left of `records`, whose sealed segments end at `sealed`.
fn expected(records: &[Record], sealed: u64, tombstones_before: i64) -> Vec<Record> {
    let keyed = records.iter().filter_map(|record| Some((record.key.clone()?, record.offset)));
    let newest: HashMap<Vec<u8>, u64> = keyed.collect();
    let stays = |record: &&Record| {
        let Some(key) = &record.key else { return true };
        let old_tombstone = record.value.is_none() && record.appended < tombstones_before;
        record.offset >= sealed || (newest[key] == record.offset && !old_tombstone)
    };
    records.iter().filter(stays).cloned().collect()
}

/// What a record is given.
#[derive(Clone, Debug)]
struct Given {
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    header: bool,
    own_time: Option<i16>,
}

fn given() -> impl Strategy<Value = Given> {
    let key = prop_oneof![
        1 => Just(None),
        1 => Just(Some(Vec::new())),
        8 => (0..6u8).prop_map(|number| Some(vec![b'k', number])),
    ];
    let value = prop_oneof![
        2 => Just(None),
        6 => prop::collection::vec(any::<u8>(), 0..30).prop_map(Some),
        1 => (200..600usize).prop_map(|length| Some(vec![b'x'; length])),
    ];
    let own_time = prop::option::weighted(0.2, any::<i16>());
    (key, value, any::<bool>(), own_time).prop_map(|(key, value, header, own_time)| Given {
        key,
        value,
        header,
        own_time,
    })
}

type Batch = (Vec<Given>, u8);

fn batches() -> impl Strategy<Value = Vec<Batch>> {
    prop::collection::vec((prop::collection::vec(given(), 1..12), 0..3u8), 1..25)
}

/// Appends a batch with the time that its number is, and syncs it.
fn append(log: &Log, number: i64, (records, codec): &Batch) {
    let mut block = Vec::new();
    push_header(b"name", Some(b"value"), &mut block);
    let contents: Vec<Content<'_>> = records
        .iter()
        .map(|given| Content {
            key: given.key.as_deref(),
            value: given.value.as_deref(),
            headers: if given.header { Headers::in_block(&block) } else { Headers::default() },
            own_time: given.own_time.map(|time| Timestamp::from_millis(time.into())),
        })
        .collect();
    let mut bytes = Vec::new();
    let layout = body::encode(&contents, &mut bytes);
    let mut appender = Appender::open(log).unwrap();
    appender
        .compress([Compression::None, Compression::Lz4, Compression::Zstd(3)][usize::from(*codec)]);
    let body = Body::plain(layout, records.len() as u32, &bytes);
    appender.append(&body, Timestamp::from_millis(number)).unwrap();
    appender.sync().unwrap();
}

fn log_of(batches: &[Batch]) -> Fixture {
    let fixture = fixture(700);
    (0..).zip(batches).for_each(|(number, batch)| append(&fixture.log, number, batch));
    fixture
}

fn sealed_end(log: &Log) -> u64 {
    log.segments().unwrap().0.last().unwrap().base.get()
}

/// Every way to look at a log says that it holds `records`, and that it is whole.
fn holds(fixture: &Fixture, records: &[Record]) {
    let log = &fixture.log;
    assert_eq!(read(log, 0), records);
    assert_eq!(read_back(log), records);
    let (segments, damage) = log.segments().unwrap();
    for facts in &segments {
        let (base, next) = (facts.base.get(), facts.next.get());
        let here = records.iter().filter(|record| (base..next).contains(&record.offset)).count();
        assert_eq!(facts.records, here as u64, "{facts:?}");
    }
    let verified = log.verify(&mut |_| ()).unwrap();
    assert!(damage.is_none() && verified.findings.is_empty(), "{:?}", verified.findings);
    for last in [1, 2, records.len() / 2, records.len(), records.len() + 1] {
        let from = log.resolve(Start::Last(last as u64)).unwrap().get();
        let wanted = &records[records.len().saturating_sub(last)..];
        assert_eq!(read(log, from), wanted, "the last {last}, from {from}");
    }
    for from in 0..log.bounds().unwrap().end.get() {
        let first = records.iter().find(|record| record.offset >= from);
        assert_eq!(read(log, from).first(), first, "from {from}");
    }
    for time in 0..25 {
        let from = log.resolve(Start::Time(Timestamp::from_millis(time))).unwrap().get();
        let first = records.iter().find(|record| record.appended >= time);
        assert_eq!(read(log, from).iter().find(|record| record.appended >= time), first);
        assert!(read(log, from).iter().all(|record| record.appended >= time), "{time}");
    }
    let temporary = |name: &String| name.ends_with(".tmp");
    for dir in ["/log", "/log/keys"] {
        let names = fixture.disk.names(std::path::Path::new(dir)).unwrap_or_default();
        assert!(!names.iter().any(temporary), "{names:?}");
    }
}

proptest! {
    #[test]
    fn what_is_left_is_what_a_plain_map_says(batches in batches(), before in 0..30i64) {
        let fixture = log_of(&batches);
        let all = read(&fixture.log, 0);
        let left = expected(&all, sealed_end(&fixture.log), before);
        let planned = fixture.log.plan_compaction(&terms(EVERYTHING, before), &mut |_| ()).unwrap();
        prop_assert_eq!(read(&fixture.log, 0), all.clone());
        let done = compact(&fixture, before);
        prop_assert_eq!(&done, &planned, "a dry run says what is done");
        holds(&fixture, &left);
        let removed: u64 = done.fates.iter().map(CompactionFate::removed).sum();
        prop_assert_eq!(removed as usize, all.len() - left.len());
        // Once more there is nothing to do, and no byte changes.
        let steps = segments(&fixture);
        let again = compact(&fixture, before);
        prop_assert_eq!(again.fates.iter().map(CompactionFate::removed).sum::<u64>(), 0);
        prop_assert_eq!(segments(&fixture), steps);
        prop_assert_eq!(fixture.told(), vec![]);
    }

    #[test]
    fn a_log_that_is_compacted_again_and_again_is_as_one_that_was_once(
        batches in batches(), each in 1..6usize
    ) {
        let often = fixture(700);
        let mut all = Vec::new();
        for (number, batch) in (0..).zip(&batches) {
            let end = often.log.bounds().unwrap().end.get();
            append(&often.log, number, batch);
            all.extend(read(&often.log, end));
            if (number as usize).is_multiple_of(each) {
                compact(&often, 0);
            }
        }
        compact(&often, 0);
        holds(&often, &expected(&all, sealed_end(&often.log), 0));
    }
}

/// The bytes of every segment.
fn segments(fixture: &Fixture) -> Vec<Vec<u8>> {
    let bases = fixture.log.home.list_segments().unwrap();
    let bytes = |&base: &Offset| fixture.disk.read_file(&fixture.log.home.segment_path(base));
    bases.iter().filter_map(bytes).collect()
}

fn keyed(key: &str, value: Option<&str>) -> Given {
    let (key, value) = (Some(key.into()), value.map(Into::into));
    Given { key, value, header: false, own_time: None }
}

/// A log of one batch a segment.
fn one_batch_a_segment(batches: &[&[Given]]) -> Fixture {
    let fixture = fixture(1 << 20);
    for (number, batch) in (0..).zip(batches) {
        append(&fixture.log, number, &(batch.to_vec(), 0));
        Appender::open(&fixture.log).unwrap().seal().unwrap();
    }
    fixture
}

fn offsets(fixture: &Fixture) -> Vec<u64> {
    read(&fixture.log, 0).iter().map(|record| record.offset).collect()
}

#[test]
fn a_tombstone_goes_once_it_is_old_and_no_older_record_comes_back() {
    let a = |value| keyed("a", value);
    let fixture = one_batch_a_segment(&[&[a(Some("1"))], &[a(None)], &[keyed("b", None)]]);
    compact(&fixture, 1);
    assert_eq!(offsets(&fixture), [1, 2], "of the age it is not older");
    compact(&fixture, 2);
    assert_eq!(offsets(&fixture), [2]);
    // A whole log of nothing.
    compact(&fixture, 3);
    assert_eq!((offsets(&fixture), fixture.log.bounds().unwrap().end.get()), (vec![], 3));
}

#[test]
fn what_groups_have_not_read_stays_unless_told_otherwise() {
    let batch = [keyed("a", Some("1")), keyed("a", Some("2"))];
    let fixture = one_batch_a_segment(&[&batch, &batch, &batch]);
    let log = &fixture.log;
    let run = |scope| {
        log.compact(&terms(scope, 0), &mut |_| ()).unwrap();
        offsets(&fixture)
    };
    assert_eq!(run(Scope::default()).len(), 6, "no group has read it");
    log.commit(&"g".parse().unwrap(), Offset::new(3), Timestamp::default()).unwrap();
    assert_eq!(run(Scope { even_without_groups: true, ..Scope::default() }), [2, 3, 4, 5]);
    assert_eq!(run(EVERYTHING), [5]);
}

#[test]
fn a_record_that_is_not_synced_yet_replaces_none() {
    let fixture = one_batch_a_segment(&[&[keyed("a", Some("1"))]]);
    let mut appender = Appender::open(&fixture.log).unwrap();
    let mut bytes = Vec::new();
    let content = Content { key: Some(b"a"), ..Content::of_value(b"2") };
    let layout = body::encode(&[content], &mut bytes);
    appender.append(&Body::plain(layout, 1, &bytes), Timestamp::default()).unwrap();
    // Had it been opened anew, `end` would be settled, and the record with it.
    let range = Offset::ZERO..Offset::new(1);
    let dead = fixture.log.dead_offsets(range.clone(), Offset::ZERO).unwrap();
    assert!(!dead.contains(Offset::ZERO));
    appender.sync().unwrap();
    let dead = fixture.log.dead_offsets(range, Offset::ZERO).unwrap();
    assert!(dead.contains(Offset::ZERO));
}

#[test]
fn a_batch_that_gaps_make_too_large_becomes_two() {
    use crate::format::batch::MAX_BATCH;
    let fixture = fixture(64 << 20);
    // Three bytes a record: a gap more would not fit any longer.
    let records = (MAX_BATCH - 64) / 3;
    let mut contents = vec![Content::of_value(b""); records];
    contents[7] = Content { key: Some(b"a"), ..contents[7] };
    let mut bytes = Vec::new();
    let layout = body::encode(&contents, &mut bytes);
    assert!((MAX_BATCH - 4096..=MAX_BATCH).contains(&bytes.len()), "{}", bytes.len());
    let mut appender = Appender::open(&fixture.log).unwrap();
    let body = Body::plain(layout, records as u32, &bytes);
    appender.append(&body, Timestamp::default()).unwrap();
    appender.seal().unwrap();
    append(&fixture.log, 1, &(vec![keyed("a", Some("2"))], 0));
    compact(&fixture, 0);
    let left = offsets(&fixture);
    assert_eq!((left.len(), left[6], left[7]), (records, 6, 8));
    assert!(fixture.log.verify(&mut |_| ()).unwrap().findings.is_empty());
}

#[test]
fn a_segment_gets_the_index_of_its_new_file() {
    let fixture = fixture(1 << 20);
    for number in 0..3000 {
        let key = if number % 4 == 1 { format!("{number}") } else { "the same".to_owned() };
        append(&fixture.log, number, &(vec![keyed(&key, Some("some value"))], 0));
    }
    Appender::open(&fixture.log).unwrap().seal().unwrap();
    let index = std::path::Path::new("/log/00000000000000000000.index");
    let before = fixture.disk.read_file(index).unwrap();
    compact(&fixture, 0);
    let after = fixture.disk.read_file(index).unwrap();
    assert!(!after.is_empty() && after.len() < before.len(), "{} bytes", after.len());
    for from in [0, 999, 1500, 2900] {
        let first = (from..).find(|n| n % 4 == 1 || *n == 2999);
        assert_eq!(read(&fixture.log, from).first().map(|record| record.offset), first);
    }
    assert_eq!(fixture.log.verify(&mut |_| ()).unwrap().findings, []);
    assert_eq!(fixture.told(), [], "nothing had to be made anew");
}

#[test]
fn a_group_in_the_midst_of_a_gap_goes_on_behind_it() {
    let a = |value: &str| keyed("a", Some(value));
    let fixture = one_batch_a_segment(&[&[a("1"), a("2")], &[a("3")], &[a("4")], &[a("5")]]);
    let (log, now) = (&fixture.log, Timestamp::default());
    for next in 0..=4 {
        log.commit(&format!("g{next}").parse().unwrap(), Offset::new(next), now).unwrap();
    }
    compact(&fixture, 0);
    for next in 0..=4 {
        let group = format!("g{next}").parse().unwrap();
        // Its checkpoint still fits the log.
        log.commit(&group, Offset::new(next), now).unwrap();
        log.seek(&group, &crate::log::SeekTarget::Current, now).unwrap();
        assert_eq!(log.group_position(&group).unwrap(), Some(Offset::new(next)));
        assert_eq!(read(log, next).iter().map(|record| record.offset).collect::<Vec<_>>(), [4]);
    }
    assert_eq!(log.verify(&mut |_| ()).unwrap().findings, []);
}

#[test]
fn damage_stops_it_and_nothing_behind_is_touched() {
    let a = |value: &str| keyed("a", Some(value));
    let fixture = one_batch_a_segment(&[&[a("1")], &[a("2")], &[a("3")], &[a("4")]]);
    let path = fixture.log.home.segment_path(Offset::new(1));
    let mut bytes = fixture.disk.read_file(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fixture.disk.write_file(&path, &bytes).unwrap();
    let before = segments(&fixture);
    let refused = fixture.log.compact(&terms(EVERYTHING, 0), &mut |_| ());
    assert!(matches!(refused, Err(Error::Damage(_))), "{refused:?}");
    assert_eq!(segments(&fixture), before);
    fixture.log.repair(Timestamp::default(), &mut |_| ()).unwrap();
    compact(&fixture, 0);
    assert_eq!(offsets(&fixture), [3]);
}

#[test]
fn damage_in_a_compacted_log_is_mended_and_its_gaps_stay() {
    let a = |value: &str| keyed("a", Some(value));
    let plain = || Given { key: None, ..keyed("", Some("plain")) };
    let fixture = one_batch_a_segment(&[&[a("1"), plain()], &[a("2")], &[plain()], &[a("3")]]);
    compact(&fixture, 0);
    assert_eq!(offsets(&fixture), [1, 3, 4]);
    let path = fixture.log.home.segment_path(Offset::new(3));
    let mut bytes = fixture.disk.read_file(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fixture.disk.write_file(&path, &bytes).unwrap();
    fixture.log.repair(Timestamp::default(), &mut |_| ()).unwrap();
    fixture.told();
    assert_eq!(offsets(&fixture), [1, 4]);
    compact(&fixture, 0);
    assert_eq!(offsets(&fixture), [1, 4]);
    let (facts, _) = fixture.log.segments().unwrap();
    assert_eq!(facts.iter().map(|facts| facts.records).collect::<Vec<_>>(), [1, 0, 0, 1, 0]);
}

#[test]
fn a_segment_that_gc_deletes_meanwhile_stays_deleted() {
    let a = |value: &str| keyed("a", Some(value));
    let fixture = one_batch_a_segment(&[&[a("1")], &[a("2")], &[a("3")]]);
    let log = &fixture.log;
    let (facts, _) = log.segments().unwrap();
    let next = Offset::new(3);
    let dead = log.dead_offsets(Offset::ZERO..next, next).unwrap();
    log.commit(&"g".parse().unwrap(), Offset::new(1), Timestamp::default()).unwrap();
    log.collect().unwrap();
    assert_eq!(log.compact_segment(&facts[0], &dead, &mut |_| ()).unwrap(), None);
    assert_eq!(log.home.list_segments().unwrap().first(), Some(&Offset::new(1)));
}

#[test]
fn a_segment_that_somebody_replaced_meanwhile_is_not_replaced() {
    let a = |value: &str| keyed("a", Some(value));
    let fixture = one_batch_a_segment(&[&[a("1")], &[a("2")]]);
    let log = &fixture.log;
    let old = log.home.open_segment(Offset::ZERO, crate::disk::Access::Read).unwrap();
    let replacement = || {
        let mut new =
            Replacement::begin(log, Offset::ZERO, log.home.dir(), Some(old.as_ref())).unwrap();
        let (next, reason) = (Offset::new(1), crate::format::batch::GapReason::Damaged);
        let gap = crate::segment::NewBatch::gap(Offset::ZERO, next, reason, Timestamp::default());
        new.append(&gap).unwrap();
        new.finish().unwrap()
    };
    let (first, second) = (replacement(), replacement());
    assert!(log.replace(Offset::ZERO, old.as_ref(), first).unwrap());
    let bytes = segments(&fixture);
    assert!(!log.replace(Offset::ZERO, old.as_ref(), second).unwrap());
    assert_eq!(segments(&fixture), bytes);
}

#[test]
fn reading_back_over_segments_without_a_record_looks_at_each_a_few_times() {
    use crate::disk::simulated::Class;
    let versions: Vec<_> = (0..80).map(|_| [keyed("a", Some("1"))]).collect();
    let fixture = one_batch_a_segment(&versions.iter().map(|one| &one[..]).collect::<Vec<_>>());
    compact(&fixture, 0);
    let before = fixture.disk.calls(Class::Open);
    assert_eq!(read_back(&fixture.log).len(), 1, "the newest one");
    let opened = fixture.disk.calls(Class::Open) - before;
    assert!(opened < 80 * 20, "{opened} opened");
}
