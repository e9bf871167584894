//! What a reader finds in a harmed log, and what it is told.

use std::path::Path;
use std::sync::{Arc, Mutex};

use tapelog::disk::simulated::SimulatedDisk;
use tapelog::format::batch::Layout;
use tapelog::format::file_name;
use tapelog::log::{Damage, Error, Home, Log, Note, Reader, Reading};
use tapelog::model::Start;

use crate::victim::{DIR, record};

/// A log opened anew, and all that it tells.
pub struct Opened {
    pub log: Log,
    told: Arc<Mutex<Vec<Note>>>,
}

impl Opened {
    pub fn new(disk: &Arc<SimulatedDisk>) -> Opened {
        let told = Arc::new(Mutex::new(Vec::new()));
        let listener = Arc::clone(&told);
        let tell = move |note: &Note| listener.lock().unwrap().push(note.clone());
        let log = Log::open(&Home::new(disk.clone(), DIR, tell)).unwrap();
        Opened { log, told }
    }

    /// What was told, each note once, but for files that were worked out anew.
    pub fn told(&self) -> Vec<Note> {
        let mut told: Vec<Note> = Vec::new();
        for note in self.told.lock().unwrap().iter() {
            if !matches!(note, Note::Rebuilt(_)) && !told.contains(note) {
                told.push(note.clone());
            }
        }
        told
    }

    /// Reads all records, each exactly as it was appended: how many, and the damage that ended it.
    pub fn read(&self, layout: Layout) -> (u64, Option<Damage>) {
        let bounds = self.log.bounds().unwrap();
        let mut reader = Reader::open_at(&self.log, Start::Earliest).unwrap();
        let mut next = 0;
        loop {
            match reader.read() {
                Ok(Reading::Records(piece)) => {
                    for found in piece.records().unwrap() {
                        let content = (found.content.key, found.content.value);
                        let (key, value) = record(layout, next);
                        assert_eq!(found.offset.get(), next);
                        assert_eq!(content, (key.as_deref(), Some(&value[..])), "offset {next}");
                        next += 1;
                    }
                }
                Ok(Reading::End) => {
                    assert_eq!((bounds.end.get(), bounds.damage), (next, None));
                    return (next, None);
                }
                Err(Error::Damage(damage)) => return (next, Some(damage)),
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// All bytes set aside, one entry a file.
pub fn quarantine(disk: &SimulatedDisk) -> Vec<Vec<u8>> {
    let dir = Path::new(DIR).join(file_name::QUARANTINE);
    let names = disk.names(&dir).unwrap_or_default();
    names.iter().map(|name| disk.read_file(&dir.join(name)).unwrap()).collect()
}
