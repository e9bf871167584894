//! counts.txt: with what was counted, and a line for each path.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::REFRESH;

/// What comes before the compiler's and the tools' names.
const WITH: &str = "# with ";

/// Counts, and all that has a share in them besides the code.
pub struct Counts {
    pub with: String,
    pub paths: BTreeMap<String, u64>,
}

impl Counts {
    /// What the file says.
    pub fn load() -> Counts {
        let text = fs::read_to_string(file()).unwrap();
        let with = text.lines().find_map(|line| line.strip_prefix(WITH)).unwrap().to_owned();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let paths = lines.map(|line| {
            let (count, path) = line.trim_start().split_once("  ").unwrap();
            (path.to_owned(), count.parse().unwrap())
        });
        Counts { with, paths: paths.collect() }
    }

    /// Writes the file anew.
    pub fn save(&self) {
        let mut text =
            format!("# Instructions of each path, by callgrind; refreshed by\n# {REFRESH}\n");
        text += &format!("{WITH}{}\n", self.with);
        for (path, count) in &self.paths {
            text += &format!("{count:>10}  {path}\n");
        }
        fs::write(file(), text).unwrap();
    }
}

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/instructions/counts.txt")
}
