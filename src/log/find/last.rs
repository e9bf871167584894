//! Where the last so many records begin. Offsets count gaps too, records do not.

use super::table::SegmentTable;
use super::tail::open_if_there;
use crate::log::error::{Error, Result};
use crate::log::{Bounds, Log, Reader, Reading};
use crate::model::{Offset, Position, SegmentFacts};
use crate::segment::SegmentReader;

/// The offset of the first of the last `records` records of a log with these bounds; the
/// log start if there are no more. Where there are no gaps, no segment is read.
pub(crate) fn offset_of_last(log: &Log, records: u64, bounds: &Bounds) -> Result<Offset> {
    let by_offsets = bounds.end.back(records).max(bounds.start);
    let table = SegmentTable::load(log)?;
    // Only sealed segments have gaps: repair and compaction replace no other.
    if bounds.damage.is_some() || by_offsets >= table.active {
        return Ok(by_offsets);
    }
    let mut wanted = records - bounds.end.since(table.active);
    for number in (0..table.len()).rev() {
        let Some(facts) = table.row(number) else { return Ok(by_offsets) };
        if wanted == 0 || facts.next <= bounds.start {
            return Ok(facts.next.max(bounds.start));
        }
        if facts.records >= wanted {
            return Ok(within(log, &facts, wanted)?.max(bounds.start));
        }
        wanted -= facts.records;
    }
    Ok(bounds.start)
}

/// The same of one segment, which has as many.
fn within(log: &Log, facts: &SegmentFacts, wanted: u64) -> Result<Offset> {
    if facts.records == facts.next.since(facts.base) {
        return Ok(facts.next.back(wanted));
    }
    let Some(file) = open_if_there(&log.home, facts.base)? else { return Ok(facts.base) };
    let mut reader = SegmentReader::new(file, log.id, facts.base, Position::ZERO, facts.base);
    let mut before = facts.records - wanted;
    let path = log.home.segment_path(facts.base);
    while let Some(header) = reader.skip_if(|_| true).map_err(Error::io("read", &path))? {
        match before.checked_sub(u64::from(header.records)) {
            Some(left) => before = left,
            None => return nth_of_batch(log, header.base, before),
        }
    }
    Ok(facts.next.back(wanted))
}

/// The offset of record number `n` of the batch at `base`.
fn nth_of_batch(log: &Log, base: Offset, n: u64) -> Result<Offset> {
    let mut reader = Reader::open(log, base)?;
    let Reading::Records(piece) = reader.read()? else { return Ok(base) };
    let nth = piece.records().ok().and_then(|mut records| records.nth(n as usize));
    Ok(nth.map_or(base, |record| record.offset))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::log::fixture::{Fixture, fixture};
    use crate::model::{Start, Timestamp};

    fn has_the_last_of_each_number(fixture: &Fixture, all: &[u64]) {
        for records in 0..all.len() as u64 + 5 {
            let from = fixture.log.resolve(Start::Last(records)).unwrap().get();
            let wanted = &all[all.len().saturating_sub(records as usize)..];
            assert_eq!(fixture.read(from).unwrap(), wanted, "the last {records}, from {from}");
        }
    }

    #[test]
    fn the_last_records_are_counted_across_gaps() {
        let fixture = fixture(512);
        fixture.append(60);
        has_the_last_of_each_number(&fixture, &(0..60).collect::<Vec<_>>());
        let (facts, _) = fixture.log.segments().unwrap();
        let harmed = [1, 4].map(|number: usize| facts[number].base);
        let lost = harmed.map(|base| base.get() + 1);
        for base in harmed {
            let path = fixture.log.home.segment_path(base);
            let mut bytes = fixture.disk.read_file(&path).unwrap();
            let second = memchr::memmem::find_iter(&bytes, b"\xF5tlb").nth(1).unwrap();
            bytes[second + 70] ^= 1;
            fixture.disk.write_file(Path::new(&path), &bytes).unwrap();
        }
        fixture.log.repair(Timestamp::default(), &mut |_| ()).unwrap();
        let all: Vec<u64> = (0..60).filter(|offset| !lost.contains(offset)).collect();
        has_the_last_of_each_number(&fixture, &all);
    }
}
