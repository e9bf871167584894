//! The inputs on which a property must hold: seeds, which a decoder takes; seeds with
//! a few bytes changed, which it nearly takes; and random bytes.
//! `TAPELOG_DECODER_INPUTS` says how many, `TAPELOG_DECODER_SEEDS` names a folder in
//! which the seeds are left for cargo-fuzz.

use std::path::Path;
use std::time::{Duration, Instant};
use std::{env, fs};

use proptest::prelude::{Just, Strategy, any, prop, prop_oneof};
use proptest::test_runner::{Config, TestRunner};

/// How many inputs each property gets unless told otherwise.
const INPUTS: u32 = 2_000;
/// No input may take longer. Far more than any needs, as the machine may be busy.
const SLOWEST: Duration = Duration::from_secs(5);

/// Panics if the property `name` does not hold for some input.
pub fn hold(name: &str, check: fn(&[u8]), seeds: &[Vec<u8>]) {
    leave_for_fuzzing(name, seeds);
    seeds.iter().for_each(|seed| check(seed));
    let inputs = env::var("TAPELOG_DECODER_INPUTS");
    let cases = inputs.map_or(INPUTS, |inputs| inputs.parse().expect("a number of inputs"));
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let result = TestRunner::new(config).run(&input(seeds), |input| {
        let begin = Instant::now();
        check(&input);
        assert!(begin.elapsed() < SLOWEST, "this took {:?}", begin.elapsed());
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{name}: {failure}");
    }
}

/// Random bytes, or a seed with some of its bytes changed, cut or put in.
fn input(seeds: &[Vec<u8>]) -> impl Strategy<Value = Vec<u8>> + use<> {
    let random = || prop::collection::vec(any::<u8>(), 0..200);
    let mut seeds = seeds.to_vec();
    seeds.push(Vec::new());
    let place = any::<prop::sample::Index>();
    let change = (place, 0..4usize, prop::collection::vec(any::<u8>(), 0..4));
    let changed = (prop::sample::select(seeds), prop::collection::vec(change, 0..4));
    let changed = changed.prop_map(|(mut seed, changes)| {
        for (place, taken, put) in changes {
            let at = place.index(seed.len() + 1);
            let end = (at + taken).min(seed.len());
            seed.splice(at..end, put);
        }
        seed
    });
    let cut = (changed.clone(), any::<prop::sample::Index>()).prop_map(|(mut seed, place)| {
        seed.truncate(place.index(seed.len() + 1));
        seed
    });
    prop_oneof![4 => changed, 1 => cut, 2 => random(), 1 => Just(Vec::new())]
}

/// Writes each seed to a file of its own, in a folder of the property's name.
fn leave_for_fuzzing(name: &str, seeds: &[Vec<u8>]) {
    let Ok(folder) = env::var("TAPELOG_DECODER_SEEDS") else { return };
    let folder = Path::new(&folder).join(name);
    fs::create_dir_all(&folder).expect("a folder for the seeds");
    for (number, seed) in seeds.iter().enumerate() {
        fs::write(folder.join(format!("seed-{number:03}")), seed).expect("a seed");
    }
}
