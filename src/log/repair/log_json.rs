//! A `log.json` that is lost or damaged, made anew: the log's id stands in everything
//! else that the log has. The settings are lost.

use std::path::Path;

use crate::disk::{Access, DiskFile, read_full};
use crate::format::batch::{HEADER_LEN, Header, Place};
use crate::format::file_name;
use crate::format::settings::{FORMAT_VERSION, LogFile, Settings};
use crate::format::slots;
use crate::format::state::{EndState, StartState};
use crate::log::error::{Error, Result};
use crate::log::files::lock::AppendLock;
use crate::log::files::{quarantine, whole_file};
use crate::log::home::Home;
use crate::log::{Finding, Kind, Log};
use crate::model::{LogId, Offset, Position};

impl Log {
    /// Makes `log.json` anew, with settings that were never given, where that is what
    /// keeps [`Log::open`] from opening the log; `None` if nothing does.
    ///
    /// # Errors
    /// What [`Log::open`] says where this is not what helps; what the disk says.
    pub fn restore(home: &Home) -> Result<Option<Finding>> {
        let error = match Log::open(home) {
            Ok(_) => return Ok(None),
            Err(error @ Error::Unreadable { .. }) => error,
            Err(error) => return Err(error),
        };
        let Some(id) = id_of(home)? else { return Err(error) };
        let lock = AppendLock::of(home)?;
        let _held = lock.acquire(home)?;
        let path = home.path(file_name::SETTINGS);
        if home.exists(&path)? {
            quarantine::displace(home, &path, &error.to_string())?;
        }
        let file = LogFile { id, format: FORMAT_VERSION, settings: Settings::default() };
        whole_file::create_whole(home.disk(), &path, &file.encode())
            .map_err(Error::io("create", &path))?;
        let what = "made anew; its settings are lost: tapelog config sets them again".to_owned();
        Ok(Some(Finding { file: path, position: None, offsets: None, kind: Kind::State, what }))
    }
}

/// The log's id: from `end`, from `start`, or from the first batch of a segment.
fn id_of(home: &Home) -> Result<Option<LogId>> {
    if let Some(end) = state::<EndState>(home, file_name::END)? {
        return Ok(Some(end.log));
    }
    if let Some(start) = state::<StartState>(home, file_name::START)? {
        return Ok(Some(start.log));
    }
    for base in home.list_segments()? {
        let path = home.segment_path(base);
        let file = home.open_segment(base, Access::Read)?;
        if let Some(id) = id_in(file.as_ref(), &path, base)? {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

fn state<T: serde::de::DeserializeOwned>(home: &Home, name: &str) -> Result<Option<T>> {
    let path = home.path(name);
    let file = match home.open(&path, Access::Read) {
        Err(error) if error.is_not_found() => return Ok(None),
        file => file?,
    };
    let mut bytes = vec![0; slots::FILE_LEN];
    let read = read_full(file.as_ref(), &mut bytes, 0).map_err(Error::io("read", &path))?;
    Ok(slots::decode_file::<T>(&bytes[..read]).map(|slots| slots.newest.state))
}

/// The id in the header at the beginning of a segment: one that makes it good.
fn id_in(file: &dyn DiskFile, path: &Path, segment: Offset) -> Result<Option<LogId>> {
    let mut bytes = [0; HEADER_LEN];
    let read = read_full(file, &mut bytes, 0).map_err(Error::io("read", path))?;
    let log = Header::claimed_log(&bytes);
    let place = Place { log, segment, position: Position::ZERO };
    let good = read == HEADER_LEN && Header::decode(&bytes, &place).is_ok();
    Ok(good.then_some(log))
}
