//! What is derived, compared with what it is derived from. Nothing depends on it.

use super::finding::{Finding, Kind};
use super::stretch::Stretch;
use crate::disk::Access;
use crate::format::file_name;
use crate::log::Log;
use crate::log::error::Result;
use crate::log::find::{index_upkeep, table_file};
use crate::segment::{Index, IndexError};

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
    Some(Finding { file, position: None, offsets: None, kind: Kind::Derived, what })
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

/// What is to be told of the table of segments, if it says that it is complete.
pub(crate) fn of_table(log: &Log, stretches: &[Stretch]) -> Result<Option<Finding>> {
    let Some(table) = table_file::current(log)? else { return Ok(None) };
    // Rows of segments that gc has deleted may come first.
    let first = stretches.first().map_or(0, |first| {
        (0..table.len())
            .take_while(|&number| table.row(number).is_some_and(|row| row.base < first.base))
            .count()
    });
    let mut sealed = stretches[..stretches.len().saturating_sub(1)].iter().zip(first as u64..);
    if sealed.all(|(stretch, number)| table.row(number).as_ref() == Some(&stretch.facts)) {
        return Ok(None);
    }
    let (file, what) = (log.home.path(file_name::SEGMENT_TABLE), "it does not fit the segments");
    let what = what.to_owned();
    Ok(Some(Finding { file, position: None, offsets: None, kind: Kind::Derived, what }))
}
