//! What only looks at a log: its bounds, every listing, and reading backwards.

use std::path::Path;
use std::sync::Arc;

use tapelog::disk::Disk;
use tapelog::disk::simulated::{Class, Lasts, SimulatedDisk, Trouble};
use tapelog::format::batch::Layout;
use tapelog::format::body::Body;
use tapelog::log::{Appender, BackReader, Error, Log};
use tapelog::model::{LogId, Offset, Start, Timestamp};

use crate::program::{DIR, Program, home, settings};
use crate::reading::{read_all, words};

const NOW: Timestamp = Timestamp::from_millis(2_000_000);

/// Looks at the log of a program in every way; all must say the same.
pub fn look(program: &mut Program) -> Result<(), String> {
    program.doing = "look".to_owned();
    let log = Log::open(&home(&program.disk, |_| ())).map_err(words("open"))?;
    let bounds = log.bounds().map_err(words("bounds"))?;
    let segments = log.segment_listing().map_err(words("segment_listing"))?;
    let groups = log.group_listing(NOW).map_err(words("group_listing"))?;
    if let Some(bad) = segments.bad_groups.into_iter().chain(groups.bad).next() {
        return Err(words("a group")(bad.why));
    }
    let next = segments.segments.last().map_or(bounds.start, |facts| facts.next);
    if segments.damage.is_some() || next != bounds.end || groups.end != bounds.end {
        return Err(format!("{bounds:?}, but segments to {next}, groups to {}", groups.end));
    }
    let latest = log.resolve(Start::Latest).map_err(words("resolve"))?;
    let by_time = log.resolve(Start::Time(NOW)).map_err(words("resolve"))?;
    if latest != bounds.end || by_time != bounds.end {
        return Err(format!("{bounds:?}, but the latest is {latest}, the newest {by_time}"));
    }
    backwards(&log)
}

/// Backwards is forwards, turned round.
fn backwards(log: &Log) -> Result<(), String> {
    let read = read_all(log)?;
    let bounds = log.bounds().map_err(words("bounds"))?;
    let mut reader = BackReader::open(log, bounds.start, bounds.end);
    let mut bases = Vec::new();
    while let Some(block) = reader.read().map_err(words("read backwards"))? {
        bases.extend(block.pieces().rev().map(|piece| (piece.header.base, piece.header.next)));
    }
    bases.reverse();
    let ends = bases.iter().map(|(_, next)| *next);
    let follow = std::iter::once(bounds.start).chain(ends).zip(&bases).all(|(a, (b, _))| a == *b);
    match (follow, bases.last()) {
        (true, None) if read.values.is_empty() => Ok(()),
        (true, Some((_, next))) if next.get() == read.end() => Ok(()),
        _ => Err(format!("read up to {}, but backwards {bases:?}", read.end())),
    }
}

#[test]
#[allow(clippy::unwrap_used, reason = "a failure here is a failed test")]
fn a_listing_that_cannot_be_read_in_full_is_an_error() {
    let disk = Arc::new(SimulatedDisk::new());
    let home = home(&disk, |_| ());
    let log = Log::open_or_create(&home, LogId::new(1), &settings(512)).unwrap();
    let body = Body::plain(Layout::Lines, 2, b"a\nb\n");
    Appender::open(&log).unwrap().append(&body, Timestamp::from_millis(5)).unwrap();
    log.commit(&"g".parse().unwrap(), Offset::new(1), NOW).unwrap();
    let right = log.group_listing(NOW).unwrap();
    for nth in 1.. {
        let met = disk.faults_met();
        disk.fail_at(Class::Read, nth, Trouble::EIO, Lasts::Once);
        match log.group_listing(NOW) {
            Ok(listing) if listing.bad.is_empty() => assert_eq!(listing.good, right.good, "{nth}"),
            Ok(_) | Err(Error::Io { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
        if disk.faults_met() == met {
            return;
        }
    }
}

#[test]
#[allow(clippy::unwrap_used, reason = "a failure here is a failed test")]
fn a_directory_that_cannot_be_looked_at_is_not_taken_for_another_thing() {
    for nth in 1.. {
        let disk = Arc::new(SimulatedDisk::new());
        disk.create_dir(Path::new(DIR)).unwrap();
        disk.fail_at(Class::Look, nth, Trouble::EIO, Lasts::Once);
        match Log::open_or_create(&home(&disk, |_| ()), LogId::new(1), &settings(512)) {
            Ok(_) if disk.faults_met() == 0 => return,
            Ok(_) | Err(Error::Io { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}
