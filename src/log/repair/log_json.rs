//! A `log.json` that is lost, damaged or another log's, made anew: the log's id stands in
//! everything else that the log has. The settings are lost.

use crate::format::file_name;
use crate::format::settings::{FORMAT_VERSION, LogFile, Settings};
use crate::log::error::{Error, Result};
use crate::log::files::lock::AppendLock;
use crate::log::files::{quarantine, whole_file};
use crate::log::home::Home;
use crate::log::verify::identity::{Votes, another_logs};
use crate::log::{Finding, Kind, Log};

impl Log {
    /// Makes `log.json` anew, with settings that were never given, where that is what
    /// keeps the log from being read; `None` if nothing does.
    ///
    /// # Errors
    /// What [`Log::open`] says where this is not what helps; what the disk says.
    pub fn restore(home: &Home) -> Result<Option<Finding>> {
        let (error, votes) = match Log::open(home) {
            Err(error @ Error::Unreadable { .. }) => (error, Votes::of(home)?),
            Err(error) => return Err(error),
            Ok(log) => {
                let votes = Votes::of(home)?;
                if !votes.are_against(log.id) {
                    return Ok(None);
                }
                (another_logs(home), votes)
            }
        };
        let Some(id) = votes.winner() else { return Err(error) };
        let lock = AppendLock::of(home)?;
        let _held = lock.acquire(home)?;
        let path = home.path(file_name::SETTINGS);
        if home.exists(&path)? {
            quarantine::displace(home, &path, &error.to_string())?;
        }
        let file = LogFile { id, format: FORMAT_VERSION, settings: Settings::default() };
        whole_file::create_whole(home.disk(), &path, &file.encode())
            .map_err(Error::io("create", &path))?;
        let what = "made anew; its settings are lost: tapelog config sets them again";
        Ok(Some(Finding::of_file(path, Kind::State, what)))
    }
}
