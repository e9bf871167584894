//! Which log the files of a directory belong to. The id stands in `log.json`, and in every
//! other file and batch: where they disagree, the odd one out is in the wrong place.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde::de::DeserializeOwned;

use crate::disk::{Access, read_full};
use crate::format::batch::{Header, Place};
use crate::format::file_name;
use crate::format::slots;
use crate::format::state::{CheckpointState, EndState, StartState};
use crate::log::error::{Error, Result};
use crate::log::home::Home;
use crate::model::{LogId, Offset, Position};
use crate::segment::each_header;

/// So many segments are asked.
const ASKED: u64 = 32;
/// The records are what matters, and no repair is to take them for another log's.
const OF_A_SEGMENT: u64 = 4;

/// How many files name which log.
#[derive(Debug, Default)]
pub(crate) struct Votes(BTreeMap<LogId, u64>);

impl Votes {
    /// Asks `start`, `end`, the checkpoints and some segments.
    pub(crate) fn of(home: &Home) -> Result<Votes> {
        let mut votes = Votes::default();
        votes.add(state::<EndState>(home, file_name::END)?.map(|end| end.log), 1);
        votes.add(state::<StartState>(home, file_name::START)?.map(|start| start.log), 1);
        for name in home.disk().list(&home.groups_dir()).unwrap_or_default() {
            if file_name::parse_checkpoint(&name).is_some() {
                let path = home.groups_dir().join(name);
                votes.add(state::<CheckpointState>(home, path)?.map(|state| state.log), 1);
            }
        }
        let mut asked = 0;
        for base in home.list_segments()? {
            let id = id_in_segment(home, base)?;
            votes.add(id, OF_A_SEGMENT);
            asked += u64::from(id.is_some());
            if asked == ASKED {
                break;
            }
        }
        Ok(votes)
    }

    fn add(&mut self, id: Option<LogId>, votes: u64) {
        if let Some(id) = id {
            *self.0.entry(id).or_default() += votes;
        }
    }

    /// The log that most files name; `None` if none names one.
    pub(crate) fn winner(&self) -> Option<LogId> {
        self.0.iter().max_by_key(|(_, votes)| **votes).map(|(id, _)| *id)
    }

    /// Whether the files outvote `log.json`, which names this log.
    pub(crate) fn are_against(&self, id: LogId) -> bool {
        let of = |id: &LogId| self.0.get(id).copied().unwrap_or_default();
        self.winner().is_some_and(|winner| of(&winner) > of(&id) + 1)
    }
}

/// What a two-slot file says, if it is there and good.
fn state<T: DeserializeOwned>(home: &Home, name: impl AsRef<std::path::Path>) -> Result<Option<T>> {
    let path = home.path(name);
    let Ok(file) = home.open(&path, Access::Read) else { return Ok(None) };
    let mut bytes = vec![0; slots::FILE_LEN];
    let read = read_full(file.as_ref(), &mut bytes, 0).map_err(Error::io("read", &path))?;
    Ok(slots::decode_file::<T>(&bytes[..read]).map(|slots| slots.newest.state))
}

/// The log that the first good header of a segment names.
fn id_in_segment(home: &Home, segment: Offset) -> Result<Option<LogId>> {
    let Ok(file) = home.open_segment(segment, Access::Read) else { return Ok(None) };
    let from = Place { log: LogId::new(0), segment, position: Position::ZERO };
    each_header(file.as_ref(), from, |place, bytes| {
        let log = Header::claimed_log(bytes);
        Ok(match Header::decode(bytes, &Place { log, ..*place }) {
            Ok(_) => ControlFlow::Break(log),
            Err(_) => ControlFlow::Continue(()),
        })
    })
    .map_err(Error::io("read", home.segment_path(segment)))
}

/// What is wrong with a `log.json` that no other file agrees with.
pub(crate) fn another_logs(home: &Home) -> Error {
    let what = format!(
        "it is another log's, as the other files say; put the right one back, or run \
         tapelog verify {} --repair, which makes it anew without the settings",
        home.dir().display()
    );
    Error::Unreadable { path: home.path(file_name::SETTINGS), what }
}
