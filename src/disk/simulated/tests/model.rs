//! A file under random writes, cuts, syncs and failed syncs, held against a plain
//! list of the bytes that each position may have after a power cut.

use proptest::prelude::{Strategy, prop, prop_assert, prop_oneof, proptest};

use super::{path, with_file, write};
use crate::disk::simulated::{Class, CrashStyle, Lasts, Trouble};

#[derive(Clone, Debug)]
enum Change {
    Write { position: u64, count: usize },
    SetLen(u64),
    Sync,
    FailSync,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (0..1500_u64, 1..900_usize)
            .prop_map(|(position, count)| Change::Write { position, count }),
        1 => (0..2500_u64).prop_map(Change::SetLen),
        2 => prop::strategy::Just(Change::Sync),
        1 => prop::strategy::Just(Change::FailSync),
    ]
}

const POSITIONS: usize = 2600;

/// What may be left.
struct Model {
    /// For each position its possible bytes, the newest last.
    possible: Vec<Vec<u8>>,
    /// Whether it was changed since the last sync, good or bad.
    fresh: Vec<bool>,
    length: u64,
    shortest: u64,
    longest: u64,
    doubtful: bool,
}

impl Model {
    fn new() -> Self {
        Self {
            possible: vec![vec![0]; POSITIONS],
            fresh: vec![false; POSITIONS],
            length: 0,
            shortest: 0,
            longest: 0,
            doubtful: false,
        }
    }

    fn set(&mut self, range: std::ops::Range<usize>, byte: u8) {
        for position in range {
            self.possible[position].push(byte);
            self.fresh[position] = true;
        }
    }

    fn set_length(&mut self, length: u64) {
        self.length = length;
        self.shortest = self.shortest.min(length);
        self.longest = self.longest.max(length);
    }

    fn synced(&mut self) {
        for (possible, fresh) in self.possible.iter_mut().zip(&mut self.fresh) {
            if std::mem::take(fresh) {
                possible.drain(..possible.len() - 1);
            }
        }
        if !self.doubtful {
            (self.shortest, self.longest) = (self.length, self.length);
        }
    }

    fn allows(&self, left: &[u8]) -> bool {
        let length = left.len() as u64;
        (self.shortest..=self.longest).contains(&length)
            && left.iter().zip(&self.possible).all(|(byte, possible)| possible.contains(byte))
    }
}

proptest! {
    #[test]
    fn no_image_holds_what_the_model_forbids(
        changes in prop::collection::vec(change(), 1..20),
        large in prop::bool::ANY,
    ) {
        let sector = if large { 4096 } else { 512 };
        let (disk, file) = with_file(b"");
        let mut model = Model::new();
        let mut player = disk.crash_player();
        for (number, change) in (1_u8..).zip(&changes) {
            match change {
                Change::Write { position, count } => {
                    write(file.as_ref(), &vec![number; *count], *position);
                    let end = *position + *count as u64;
                    model.set(*position as usize..end as usize, number);
                    model.set_length(model.length.max(end));
                }
                Change::SetLen(length) => {
                    file.set_len(*length).unwrap();
                    model.set(*length as usize..POSITIONS, 0);
                    model.set_length(*length);
                }
                Change::Sync => {
                    file.sync_data().unwrap();
                    model.synced();
                }
                Change::FailSync => {
                    disk.fail_at(Class::Sync, 1, Trouble::EIO, Lasts::Once);
                    file.sync_data().unwrap_err();
                    model.fresh.fill(false);
                    model.doubtful = true;
                }
            }
            player = disk.crash_player();
            player.go_to(usize::MAX);
            for seed in 0..20 {
                let image = player.image(seed, CrashStyle::Random { sector });
                let left = image.read_file(path("/f")).unwrap();
                prop_assert!(model.allows(&left), "seed {} after {:?}", seed, change);
            }
        }
        let seen = disk.read_file(path("/f"));
        prop_assert!(player.image(0, CrashStyle::KeepAll).read_file(path("/f")) == seen);
        prop_assert!(player.killed().read_file(path("/f")) == seen);
    }
}
