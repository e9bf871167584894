//! Reading single records by their offsets.

use crate::format::batch::Header;
use crate::format::body::{self, Paused, Records};
use crate::format::record::RecordView;
use crate::log::find::locate;
use crate::log::find::table::SegmentTable;
use crate::log::{Error, Log, OutOfRange, Piece, Reader, Reading, Result};
use crate::model::Offset;
use crate::segment::{Bad, Inflater, SegmentReader, Step};

/// Reads records by their offsets. What was read last is kept, so that records near to
/// each other, in their order, cost little.
#[derive(Debug)]
pub struct Fetch {
    log: Log,
    table: Option<SegmentTable>,
    /// Behind the batch that was read last.
    reader: Option<SegmentReader>,
    inflater: Inflater,
    batch: Option<Batch>,
}

/// A batch, read and checked.
#[derive(Debug)]
struct Batch {
    header: Header,
    body: Vec<u8>,
    /// Behind the record that was found last.
    place: Paused,
}

/// What is at an offset.
#[derive(Debug)]
pub enum Fetched<'a> {
    /// A record.
    Record(RecordView<'a>),
    /// None: it was compacted away, or gc deleted it.
    Gone,
}

impl Fetch {
    /// Reads records of `log`.
    pub fn of(log: &Log) -> Fetch {
        let inflater = Inflater::default();
        Fetch { log: log.clone(), table: None, reader: None, inflater, batch: None }
    }

    /// The record at `offset`. One that gc has deleted since records near to it were read
    /// may still be found.
    ///
    /// # Errors
    /// [`Error::Damage`] where it can't be read; what the disk says.
    pub fn at(&mut self, offset: Offset) -> Result<Fetched<'_>> {
        let Some(batch) = self.batch_at(offset)? else { return Ok(Fetched::Gone) };
        Ok(batch.record(offset).map_or(Fetched::Gone, Fetched::Record))
    }

    /// All records of the batch that holds `offset`, or the gap there; `None` if gc deleted
    /// it, or the log ends before it.
    ///
    /// # Errors
    /// As [`at`](Self::at).
    pub(super) fn batch(&mut self, offset: Offset) -> Result<Option<Piece<'_>>> {
        Ok(self.batch_at(offset)?.map(|batch| Piece {
            header: batch.header.clone(),
            from: batch.header.base,
            body: &batch.body,
            stored: None,
        }))
    }

    fn batch_at(&mut self, offset: Offset) -> Result<Option<&mut Batch>> {
        if !self.batch.as_ref().is_some_and(|batch| holds(&batch.header, offset)) {
            self.batch = self.read(offset)?;
        }
        Ok(self.batch.as_mut())
    }

    /// The batch that holds `offset`; `None` if there is none.
    fn read(&mut self, offset: Offset) -> Result<Option<Batch>> {
        if let Some(reader) = self.reader.take_if(|reader| reader.next_offset() == offset) {
            let found = self.take(reader, offset)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        match self.locate(offset) {
            Err(Error::OutOfRange(OutOfRange::BeforeStart { .. })) | Ok(None) => Ok(None),
            Ok(Some(reader)) => self.take(reader, offset),
            Err(error) => Err(error),
        }
    }

    /// A reader before the batch that holds `offset`.
    fn locate(&mut self, offset: Offset) -> Result<Option<SegmentReader>> {
        // Segments may have been made since.
        let mut table = match self.table.take().filter(|table| offset < table.active) {
            Some(table) => table,
            None => SegmentTable::load(&self.log)?,
        };
        let reader = locate::reader_at(&self.log, &mut table, offset);
        self.table = Some(table);
        reader
    }

    /// The batch before `reader`, if it holds `offset`.
    fn take(&mut self, mut reader: SegmentReader, offset: Offset) -> Result<Option<Batch>> {
        let path = self.log.home.segment_path(reader.segment());
        let batch = match reader.step().map_err(Error::io("read", &path))? {
            Step::Batch(batch) => batch,
            Step::End => return Ok(None),
            Step::Bad(_) => return self.judge(offset),
        };
        let header = batch.header.clone();
        let found = self.inflater.open(&header, batch.body).and_then(|body| {
            let body = body.to_vec();
            let place = body::records(&header, &body)?.pause(&body);
            Ok(Batch { header, body, place })
        });
        let bad = |reason: body::BodyError| {
            let (offset, position) = (batch.header.base, batch.position);
            Error::bad(path, &Bad { offset, position, reason: reason.into() })
        };
        let found = found.map_err(bad)?;
        self.reader = Some(reader);
        Ok(Some(found).filter(|batch| holds(&batch.header, offset)))
    }

    /// What a reader makes of bad bytes where `offset` should be: damage, or the log's end.
    fn judge(&self, offset: Offset) -> Result<Option<Batch>> {
        let mut reader = Reader::open(&self.log, offset)?;
        let Reading::Records(piece) = reader.read()? else { return Ok(None) };
        let (header, body) = (piece.header.clone(), piece.body.to_vec());
        let Ok(records) = piece.records() else { return Ok(None) };
        let place = records.pause(piece.body);
        Ok(Some(Batch { header, body, place }).filter(|batch| holds(&batch.header, offset)))
    }
}

fn holds(header: &Header, offset: Offset) -> bool {
    header.base <= offset && offset < header.next
}

impl Batch {
    /// The record at `offset`: from where the last one was found, if that is before it.
    fn record(&mut self, offset: Offset) -> Option<RecordView<'_>> {
        let mut records = match self.place.next() <= offset {
            true => Records::resume(&self.header, &self.body, &self.place),
            false => body::records(&self.header, &self.body).ok()?,
        };
        let found = records.find(|record| record.offset >= offset)?;
        if found.offset > offset {
            return None;
        }
        self.place = records.pause(&self.body);
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::simulated::Class;
    use crate::log::fixture::fixture;

    fn number(fetched: &Fetched<'_>) -> Option<u64> {
        match fetched {
            Fetched::Record(record) => {
                let text = std::str::from_utf8(record.content.value.unwrap()).unwrap();
                Some(text["record ".len()..].parse().unwrap())
            }
            Fetched::Gone => None,
        }
    }

    #[test]
    fn records_are_found_in_any_order_in_old_and_new_segments() {
        let fixture = fixture(700);
        let mut fetch = Fetch::of(&fixture.log);
        for end in [1, 40, 80] {
            fixture.append(end - fixture.log.bounds().unwrap().end.get());
            let forwards = 0..end;
            let jumps = (0..end).map(|number| number * 29 % end);
            for offset in forwards.clone().chain(forwards.rev()).chain(jumps) {
                let found = fetch.at(Offset::new(offset)).unwrap();
                assert_eq!(number(&found), Some(offset));
            }
            assert_eq!(number(&fetch.at(Offset::new(end)).unwrap()), None);
        }
    }

    #[test]
    fn records_in_their_order_need_no_new_search() {
        let fixture = fixture(1 << 20);
        fixture.append(500);
        let mut fetch = Fetch::of(&fixture.log);
        fetch.at(Offset::ZERO).unwrap();
        let opened = fixture.disk.calls(Class::Open);
        for offset in 1..500 {
            let found = fetch.at(Offset::new(offset)).unwrap();
            assert_eq!(number(&found), Some(offset));
        }
        assert_eq!(fixture.disk.calls(Class::Open), opened);
    }

    #[test]
    fn a_torn_tail_is_no_record_and_damage_is_an_error() {
        let fixture = fixture(1 << 20);
        fixture.append(20);
        let path = std::path::Path::new("/log/00000000000000000000.log");
        let good = fixture.disk.read_file(path).unwrap();
        let mut torn = good.clone();
        torn.extend_from_slice(b"half a batch");
        fixture.disk.write_file(path, &torn).unwrap();
        assert_eq!(number(&Fetch::of(&fixture.log).at(Offset::new(20)).unwrap()), None);
        let mut bad = good.clone();
        bad[good.len() / 2] ^= 1;
        fixture.disk.write_file(path, &bad).unwrap();
        let mut fetch = Fetch::of(&fixture.log);
        let damaged = (0..20)
            .filter(|&offset| matches!(fetch.at(Offset::new(offset)), Err(Error::Damage(_))));
        assert!(damaged.count() > 0);
    }

    #[test]
    fn what_gc_deleted_is_gone() {
        let fixture = fixture(512);
        fixture.append(40);
        fixture.log.commit(&"g".parse().unwrap(), Offset::new(40), Default::default()).unwrap();
        fixture.log.collect().unwrap();
        let start = fixture.log.start().unwrap().get();
        assert!(start > 0);
        let mut fetch = Fetch::of(&fixture.log);
        for offset in 0..40 {
            let expected = (offset >= start).then_some(offset);
            assert_eq!(number(&fetch.at(Offset::new(offset)).unwrap()), expected);
        }
    }
}
