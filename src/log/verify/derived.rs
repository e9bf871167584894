//! What is derived, compared with what it is derived from. Nothing depends on it.

use std::ops::Range;

use super::finding::{Finding, Kind};
use super::stretch::Stretch;
use crate::disk::Access;
use crate::format::file_name;
use crate::log::Log;
use crate::log::error::{Error, Result};
use crate::log::find::{index_upkeep, table_file};
use crate::log::keys::directory;
use crate::log::keys::table::{Table, TableError};
use crate::model::Offset;
use crate::segment::{Index, IndexError};

/// How often a table that does not fit is looked at again.
const LOOKS: usize = 20;

/// What is to be told of the index of one segment: nothing if there is none, or if it
/// holds the first of the entries that it should.
pub(crate) fn of_index(log: &Log, stretch: &Stretch) -> Option<Finding> {
    let fits = match index_upkeep::open(log, stretch.base, Access::Read) {
        Ok(None) => return None,
        Ok(Some(index)) => holds(&index, stretch),
        Err(error) => Err(error),
    };
    let what = match fits {
        Ok(true) => return None,
        Ok(false) => "it speaks of batches that are not there".to_owned(),
        Err(error) => error.to_string(),
    };
    let file = log.home.path(file_name::index(stretch.base));
    Some(Finding::of_file(file, Kind::Derived, what))
}

fn holds(index: &Index, stretch: &Stretch) -> std::result::Result<bool, IndexError> {
    for number in 0..index.len() {
        let entry = index.entry(number)?;
        // The active segment may have grown since it was looked at.
        let looked_at = entry.position < stretch.length;
        if looked_at
            && usize::try_from(number).ok().and_then(|n| stretch.index.get(n)) != Some(&entry)
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What is to be told of the tables of the key index, each page of which is read.
pub(crate) fn of_key_tables(log: &Log) -> Vec<Finding> {
    let dir = log.home.path(file_name::KEYS);
    let derived = |file, what: String| Finding::of_file(file, Kind::Derived, what);
    let tables = match directory::list(&log.home) {
        Ok(tables) => tables,
        Err(Error::Unreadable { .. }) => {
            return vec![derived(dir, "it is a link or a file, where a directory belongs".into())];
        }
        Err(error) => return vec![derived(dir, error.to_string())],
    };
    let check = |range: &Range<Offset>| {
        let table = Table::open(&log.home, &dir, log.id, range)?;
        let mut entries = table.entries();
        while entries.next()?.is_some() {}
        Ok(())
    };
    let tell = |range: &Range<Offset>| match check(range) {
        Err(error @ TableError::Io(_)) if error.is_not_found() => None,
        Err(error) => Some(derived(dir.join(file_name::key_table(range)), error.to_string())),
        Ok(()) => None,
    };
    tables.iter().filter_map(tell).collect()
}

/// What is to be told of the table of segments, if it says that it is complete.
pub(crate) fn of_table(log: &Log, stretches: &[Stretch]) -> Result<Option<Finding>> {
    // Either may know of segments that the other does not: gc and writers have gone on.
    let sealed = &stretches[..stretches.len().saturating_sub(1)];
    for _ in 0..LOOKS {
        let Some(table) = table_file::current(log)? else { return Ok(None) };
        let fits = |number| {
            let row = table.row(number)?;
            match sealed.binary_search_by_key(&row.base, |stretch| stretch.base) {
                Ok(at) => (sealed[at].facts == row).then_some(()),
                Err(at) => (at == 0 || at == sealed.len()).then_some(()),
            }
        };
        if (0..table.len()).all(|number| fits(number).is_some()) {
            return Ok(None);
        }
        // Unless it was being written, it will not fit again.
        std::thread::yield_now();
    }
    let file = log.home.path(file_name::SEGMENT_TABLE);
    Ok(Some(Finding::of_file(file, Kind::Derived, "it does not fit the segments")))
}
