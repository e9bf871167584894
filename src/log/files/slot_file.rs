//! A two-slot file on the disk: born whole, read by anyone at any time, written
//! by whoever holds its lock. [`crate::format::slots`] has the layout and why a
//! power cut can't take both slots.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::whole_file;
use crate::disk::{Access, DiskFile, read_full, write_all};
use crate::format::slots::{self, FILE_LEN, OtherSlot, SLOT_LEN, Slots};
use crate::log::error::{Error, Result};
use crate::log::home::Home;
use crate::log::note::Note;

/// How often a bad slot is read again: a writer may be in the middle of it.
const LOOKS: usize = 64;

/// An open two-slot file.
#[derive(Debug)]
pub(crate) struct SlotFile<T> {
    file: Box<dyn DiskFile>,
    path: PathBuf,
    bytes: Vec<u8>,
    slots: Slots<T>,
    /// Whether the newest slot is known to be durable, so that the other may be written over.
    newest_is_durable: bool,
}

impl<T: Serialize + DeserializeOwned + Clone> SlotFile<T> {
    /// Makes the file at `path`, durably; one that is there already stays.
    pub(crate) fn create(home: &Home, path: &Path, state: &T) -> Result<()> {
        let bytes = Self::born(path, state)?;
        match whole_file::create_whole(home.disk(), path, &bytes) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            made => made.map_err(Error::io("create", path)),
        }
    }

    /// The bytes of a new file at `path`: both slots good.
    pub(crate) fn born(path: &Path, state: &T) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(FILE_LEN);
        for seq in 0..2 {
            let slot = slots::encode(seq, 0, state).ok_or_else(|| too_long(path))?;
            bytes.extend_from_slice(&slot);
        }
        Ok(bytes)
    }

    /// Opens the file and reads it.
    ///
    /// # Errors
    /// [`Error::Io`] if it can't be read; [`Error::Unreadable`] if no slot is good.
    pub(crate) fn open(home: &Home, path: &Path, access: Access) -> Result<SlotFile<T>> {
        let file = home.open(path, access)?;
        let mut bytes = Vec::new();
        let mut slots = None;
        for _ in 0..LOOKS {
            bytes = read(file.as_ref(), path)?;
            slots = slots::decode_file::<T>(&bytes);
            if slots.as_ref().is_some_and(|slots| slots.other != OtherSlot::Bad) {
                break;
            }
            std::thread::yield_now();
        }
        let slots = slots.ok_or_else(|| unreadable(path, bytes.len()))?;
        if slots.other == OtherSlot::Bad {
            home.tell(&Note::BadSlot(path.to_owned()));
        }
        Ok(SlotFile { file, path: path.to_owned(), bytes, slots, newest_is_durable: false })
    }

    /// Reads the file's state once.
    pub(crate) fn read(home: &Home, path: &Path) -> Result<T> {
        Ok(Self::open(home, path, Access::Read)?.slots.newest.state)
    }

    /// What the file says.
    pub(crate) fn state(&self) -> &T {
        &self.slots.newest.state
    }

    /// Whether one of its lines is bad, as a torn write or rot leaves it.
    pub(crate) fn has_bad_line(&self) -> bool {
        self.slots.other == OtherSlot::Bad
    }

    /// What each of its good lines says: while somebody else has not synced the newest,
    /// a power cut may leave the other one to count.
    pub(crate) fn states(&self) -> impl Iterator<Item = T> {
        self.bytes.chunks(SLOT_LEN).filter_map(slots::decode).map(|slot| slot.state)
    }

    /// Whether somebody else wrote the file since, or put another in its place; if so,
    /// the caller opens it anew.
    pub(crate) fn has_changed(&self) -> Result<bool> {
        let size = self.file.size_at(&self.path).map_err(Error::io("look at", &self.path))?;
        if size != Some(FILE_LEN as u64) {
            return Ok(true);
        }
        let mut bytes = [0; FILE_LEN];
        let length =
            read_full(self.file.as_ref(), &mut bytes, 0).map_err(Error::io("read", &self.path))?;
        Ok(bytes[..length] != self.bytes)
    }

    /// Whether the file still has its name.
    pub(crate) fn is_in_place(&self) -> Result<bool> {
        self.file.is_at(&self.path).map_err(Error::io("look at", &self.path))
    }

    /// Writes a new state, which a power cut may lose until [`sync`](Self::sync).
    pub(crate) fn store(&mut self, state: T) -> Result<()> {
        let newest = &self.slots.newest;
        let other_is_kept = self.slots.other == OtherSlot::Good(newest.kept);
        let (at, kept) = if self.newest_is_durable || !other_is_kept {
            (1 - self.slots.at, newest.seq)
        } else {
            (self.slots.at, newest.kept)
        };
        let seq = newest.seq + 1;
        let slot = slots::encode(seq, kept, &state).ok_or_else(|| too_long(&self.path))?;
        write_all(self.file.as_ref(), &[&slot], (at * SLOT_LEN) as u64)
            .map_err(Error::io("write", &self.path))?;
        self.bytes[at * SLOT_LEN..(at + 1) * SLOT_LEN].copy_from_slice(&slot);
        self.slots =
            Slots { newest: slots::Slot { seq, kept, state }, at, other: OtherSlot::Good(kept) };
        self.newest_is_durable = false;
        Ok(())
    }

    /// Stores the newest state once more, durably: over the other line if that is bad.
    pub(crate) fn write_again(&mut self) -> Result<()> {
        // The line that is written over must not be the only durable one.
        self.sync()?;
        self.store(self.state().clone())?;
        self.sync()
    }

    /// Makes the newest state durable. After a failure its line is written once more:
    /// the system may hold it for clean though the disk never got it, and whoever syncs
    /// the file next must not be told that all is well.
    pub(crate) fn sync(&mut self) -> Result<()> {
        if let Err(error) = self.file.sync_data() {
            let begin = self.slots.at * SLOT_LEN;
            let line = &self.bytes[begin..begin + SLOT_LEN];
            let _ = write_all(self.file.as_ref(), &[line], begin as u64);
            return Err(Error::io("sync", &self.path)(error));
        }
        self.newest_is_durable = true;
        Ok(())
    }
}

fn read(file: &dyn DiskFile, path: &Path) -> Result<Vec<u8>> {
    // One byte more than it may hold, so that a longer file is noticed.
    let mut bytes = vec![0; FILE_LEN + 1];
    let length = read_full(file, &mut bytes, 0).map_err(Error::io("read", path))?;
    bytes.truncate(length);
    Ok(bytes)
}

fn unreadable(path: &Path, length: usize) -> Error {
    let what = match length == FILE_LEN {
        true => "neither of its two lines is good".to_owned(),
        false => format!("its length is not {FILE_LEN} bytes"),
    };
    Error::Unreadable { path: path.to_owned(), what }
}

fn too_long(path: &Path) -> Error {
    let source = std::io::ErrorKind::FileTooLarge.into();
    Error::Io { action: "write", path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk;
    use crate::disk::simulated::{CrashStyle, SimulatedDisk};
    use std::sync::Arc;

    const PATH: &str = "/state";

    fn home(disk: SimulatedDisk) -> Home {
        Home::new(Arc::new(disk), "/", |_| {})
    }

    #[derive(Clone, Debug, PartialEq, Serialize, serde::Deserialize)]
    struct Number {
        number: u64,
    }

    fn numbers(home: &Home) -> SlotFile<Number> {
        SlotFile::open(home, Path::new(PATH), Access::ReadWrite).unwrap()
    }

    #[test]
    fn unsynced_writes_go_over_the_same_slot_and_leave_the_durable_one() {
        let disk = Arc::new(SimulatedDisk::new());
        let home = Home::new(disk.clone(), "/", |_| {});
        SlotFile::create(&home, Path::new(PATH), &Number { number: 0 }).unwrap();
        let mut file = numbers(&home);
        file.store(Number { number: 1 }).unwrap();
        file.sync().unwrap();
        for number in 2..5 {
            file.store(Number { number }).unwrap();
            // Whatever a power cut does now, the synced state is the least that is left.
            for seed in 0..20 {
                let style = CrashStyle::Random { sector: 512 };
                let image = disk.crash_image(disk.steps(), seed, style);
                let found = numbers(&self::home(image)).state().number;
                assert!((1..=number).contains(&found), "{found} of {number}");
            }
        }
    }

    #[test]
    fn somebody_elses_write_is_noticed() {
        let home = home(SimulatedDisk::new());
        SlotFile::create(&home, Path::new(PATH), &Number { number: 0 }).unwrap();
        let (mut one, two) = (numbers(&home), numbers(&home));
        assert!(!two.has_changed().unwrap());
        one.store(Number { number: 1 }).unwrap();
        assert!(two.has_changed().unwrap() && !one.has_changed().unwrap());
    }

    #[test]
    fn a_longer_or_shorter_file_is_unreadable() {
        let disk = Arc::new(SimulatedDisk::new());
        let home = Home::new(disk.clone(), "/", |_| {});
        SlotFile::create(&home, Path::new(PATH), &Number { number: 0 }).unwrap();
        let good = disk.read_file(Path::new(PATH)).unwrap();
        for bytes in [&good[1..], &[&good[..], b" "].concat(), b""] {
            disk.write_file(Path::new(PATH), bytes).unwrap();
            let read = SlotFile::<Number>::read(&home, Path::new(PATH));
            assert!(matches!(read, Err(Error::Unreadable { .. })), "{read:?}");
        }
        assert!(disk.entry(Path::new(PATH)).unwrap().is_some());
    }
}
