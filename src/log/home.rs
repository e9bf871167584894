//! Where a log lives: its disk, its directory, and who is told what it has to
//! tell. Builds paths and opens files with errors that name them.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::error::{Error, Result};
use super::note::Note;
use crate::disk::{Access, Disk, DiskFile, Entry, FileSystem};
use crate::format::file_name;
use crate::model::Offset;

/// The disk and the directory of one log. Cheap to clone.
#[derive(Clone)]
pub struct Home {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    tell: Arc<dyn Fn(&Note) + Send + Sync>,
    /// What keeps the directory, once somebody asked.
    file_system: Arc<OnceLock<FileSystem>>,
}

impl fmt::Debug for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Home").field("dir", &self.dir).finish_non_exhaustive()
    }
}

impl Home {
    /// The log at `dir` on `disk`, whose notes go to `tell`.
    pub fn new(
        disk: Arc<dyn Disk>,
        dir: impl Into<PathBuf>,
        tell: impl Fn(&Note) + Send + Sync + 'static,
    ) -> Home {
        let file_system = Arc::default();
        Home { disk, dir: dir.into(), tell: Arc::new(tell), file_system }
    }

    /// The disk.
    pub fn disk(&self) -> &dyn Disk {
        self.disk.as_ref()
    }

    /// The log's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The directory that holds the log's, if there is one.
    pub(crate) fn parent(&self) -> Option<&Path> {
        let parent = self.dir.parent()?;
        Some(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })
    }

    /// Refuses to change anything where locks and syncs can't be relied on.
    ///
    /// # Errors
    /// [`Error::NetworkFileSystem`]; what the disk says.
    pub(crate) fn require_local(&self) -> Result<()> {
        match self.file_system()? {
            FileSystem::Local => Ok(()),
            FileSystem::Network { name } => {
                Err(Error::NetworkFileSystem { path: self.dir.clone(), name })
            }
        }
    }

    /// What keeps the log's directory, or will once that is made. Asked once.
    fn file_system(&self) -> Result<FileSystem> {
        if let Some(known) = self.file_system.get() {
            return Ok(known.clone());
        }
        let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let found = match (self.disk.file_system(&self.dir), self.parent()) {
            (Err(error), Some(parent)) if is_missing(&error) => self.disk.file_system(parent),
            (found, _) => found,
        };
        match found {
            // Nothing can be made there either, as the next step tells.
            Err(error) if is_missing(&error) => Ok(FileSystem::Local),
            found => {
                let found = found.map_err(Error::io("look at", &self.dir))?;
                Ok(self.file_system.get_or_init(|| found).clone())
            }
        }
    }

    pub(crate) fn tell(&self, note: &Note) {
        (self.tell)(note);
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.join(name)
    }

    pub(crate) fn segment_path(&self, base: Offset) -> PathBuf {
        self.path(file_name::segment(base))
    }

    pub(crate) fn groups_dir(&self) -> PathBuf {
        self.path(file_name::GROUPS)
    }

    pub(crate) fn keys_dir(&self) -> PathBuf {
        self.path(file_name::KEYS)
    }

    pub(crate) fn open(&self, path: &Path, access: Access) -> Result<Box<dyn DiskFile>> {
        self.disk.open(path, access).map_err(Error::io("open", path))
    }

    pub(crate) fn open_segment(&self, base: Offset, access: Access) -> Result<Box<dyn DiskFile>> {
        self.open(&self.segment_path(base), access)
    }

    pub(crate) fn exists(&self, path: &Path) -> Result<bool> {
        Ok(self.entry(path)?.is_some())
    }

    pub(crate) fn entry(&self, path: &Path) -> Result<Option<Entry>> {
        self.disk.entry(path).map_err(Error::io("look at", path))
    }

    /// Refuses anything but a directory in the place of one of the log's own.
    pub(crate) fn refuse_link(&self, dir: &Path) -> Result<()> {
        match self.entry(dir)? {
            None | Some(Entry::Directory) => Ok(()),
            Some(_) => {
                let remedy = match dir == self.keys_dir() {
                    // Derived: another one is made.
                    true => format!("run tapelog verify {} --repair", self.dir.display()),
                    false => "put the directory itself in its place".to_owned(),
                };
                let what = format!("it is no directory, and links are not followed here: {remedy}");
                Err(Error::Unreadable { path: dir.to_owned(), what })
            }
        }
    }

    pub(crate) fn sync_dir(&self, path: &Path) -> Result<()> {
        self.disk.sync_dir(path).map_err(Error::io("sync", path))
    }

    /// The base offsets of the segments whose files are here, in order.
    pub(crate) fn list_segments(&self) -> Result<Vec<Offset>> {
        let names = self.disk.list(&self.dir).map_err(Error::io("list", &self.dir))?;
        let mut bases: Vec<Offset> =
            names.iter().filter_map(|name| file_name::parse_segment(name)).collect();
        bases.sort_unstable();
        Ok(bases)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::simulated::SimulatedDisk;
    use crate::log::fixture::fixture;
    use crate::log::{
        Appender, Claim, CompactionTerms, Consumer, Log, Reader, Reading, SeekTarget,
    };
    use crate::model::{GroupName, LogId, Start, Timestamp};
    use crate::policy::compaction::Scope;

    const NOW: Timestamp = Timestamp::from_millis(0);

    fn home(disk: &Arc<SimulatedDisk>, dir: &str) -> Home {
        Home::new(disk.clone(), dir, |note| panic!("{note}"))
    }

    /// A log of twenty records and the group g, whose disk has become a server's.
    fn on_a_network() -> (Arc<SimulatedDisk>, Log) {
        let fixture = fixture(512);
        fixture.append(20);
        fixture.log.commit(&group(), Offset::new(5), NOW).unwrap();
        let disk = fixture.disk;
        disk.set_file_system(FileSystem::Network { name: "nfs".to_owned() });
        let log = Log::open(&home(&disk, "/log")).unwrap();
        (disk, log)
    }

    fn group() -> GroupName {
        "g".parse().unwrap()
    }

    fn terms() -> CompactionTerms {
        CompactionTerms { scope: Scope::default(), tombstones_before: NOW }
    }

    fn claim(log: &Log, group: &str) -> Result<()> {
        let claim = Claim {
            start: Start::Earliest,
            out_of_range: None,
            commits: true,
            holder: "me".into(),
        };
        Consumer::claim(log, &group.parse().unwrap(), &claim, NOW).map(drop)
    }

    #[test]
    fn on_a_network_file_system_whatever_writes_is_refused_and_changes_nothing() {
        let (disk, log) = on_a_network();
        let steps = disk.steps();
        let new = |dir| Log::open_or_create(&home(&disk, dir), LogId::new(1), &Default::default());
        let refused: [(&str, Result<()>); 14] = [
            ("produce", Appender::open(&log).map(drop)),
            ("produce to a new log", new("/new").map(drop)),
            ("produce to the name alone", new("new").map(drop)),
            ("config", log.clone().change_settings(|_| Ok(()))),
            ("commit", log.commit(&group(), Offset::new(6), NOW)),
            ("commit for a new group", log.commit(&"new".parse().unwrap(), Offset::ZERO, NOW)),
            ("seek", log.seek(&group(), &SeekTarget::To(Start::Latest), NOW).map(drop)),
            ("consume as a group", claim(&log, "g")),
            ("consume as a new group", claim(&log, "new")),
            ("gc", log.collect().map(drop)),
            ("gc that compacts", log.compact(&terms(), &mut |_| ()).map(drop)),
            ("gc that seals", log.seal_active(true, NOW)),
            ("gc that may seal", log.seal_active(false, NOW)),
            ("groups --delete", log.delete_group(&group())),
        ];
        for (what, result) in refused {
            let error = result.expect_err(what);
            assert!(matches!(error, Error::NetworkFileSystem { .. }), "{what}: {error}");
            let line = error.to_string();
            assert!(line.contains("nfs") && line.contains("locks and syncs"), "{what}: {line}");
        }
        assert_eq!(disk.steps(), steps, "nothing was changed");
    }

    #[test]
    fn on_a_network_file_system_reading_goes_on_and_changes_nothing() {
        for name in ["segments.index", "notes"] {
            let (disk, log) = on_a_network();
            // Without its table, a reader would mend it elsewhere.
            disk.write_file(&Path::new("/log").join(name), b"").unwrap();
            let steps = disk.steps();
            let mut reader = Reader::open(&log, Offset::ZERO).unwrap();
            while let Reading::Records(_) = reader.read().unwrap() {}
            assert_eq!(reader.next_offset(), Offset::new(20));
            assert_eq!(log.group_listing(NOW).unwrap().good.len(), 1);
            assert!(log.segments().unwrap().0.len() > 1);
            log.plan_collection().unwrap();
            log.plan_compaction(&terms(), &mut |_| ()).unwrap();
            log.plan_seek(&group(), &SeekTarget::To(Start::Earliest)).unwrap();
            assert_eq!(disk.steps(), steps, "nothing was changed");
        }
    }

    #[test]
    fn where_there_is_no_directory_the_one_above_it_counts() {
        let disk = Arc::new(SimulatedDisk::new());
        assert!(home(&disk, "/new").require_local().is_ok());
        assert!(home(&disk, "/missing/new").require_local().is_ok(), "the next step tells");
        disk.set_file_system(FileSystem::Network { name: "9p".to_owned() });
        assert!(home(&disk, "/new").require_local().is_err());
        assert!(home(&disk, "/").require_local().is_err());
    }
}
