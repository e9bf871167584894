//! Where a log lives: its disk, its directory, and who is told what it has to
//! tell. Builds paths and opens files with errors that name them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::{Error, Result};
use super::note::Note;
use crate::disk::{Access, Disk, DiskFile, Entry};
use crate::format::file_name;
use crate::model::Offset;

/// The disk and the directory of one log. Cheap to clone.
#[derive(Clone)]
pub struct Home {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    tell: Arc<dyn Fn(&Note) + Send + Sync>,
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
        Home { disk, dir: dir.into(), tell: Arc::new(tell) }
    }

    /// The disk.
    pub fn disk(&self) -> &dyn Disk {
        self.disk.as_ref()
    }

    /// The log's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
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
