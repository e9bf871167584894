//! A small random generator that gives the same numbers for the same seed, on
//! every machine and in every version, so that a failing test can be repeated
//! from what it printed. Not for secrets.

/// SplitMix64: a counter with large steps, and a mix of its bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeded {
    state: u64,
}

impl Seeded {
    /// The generator of this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A generator for the `index`-th of many things that share a seed.
    #[must_use]
    pub fn derived(seed: u64, index: u64) -> Self {
        let mut first = Self::new(seed);
        Self::new(first.next_u64() ^ Self::new(!index).next_u64())
    }

    /// The next number.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 if that is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        let wide = u128::from(self.next_u64()) * u128::from(bound);
        (wide >> 64) as u64
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// Yes or no, alike often.
    pub const fn coin(&mut self) -> bool {
        self.next_u64() >> 63 == 1
    }

    /// Yes once in `times`.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// So many bytes of any value.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let words = std::iter::repeat_with(|| self.next_u64().to_le_bytes());
        words.take(count.div_ceil(8)).flatten().take(count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_that_the_algorithm_is_known_for() {
        let mut seeded = Seeded::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| seeded.next_u64()).collect();
        let known =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(first, known);
    }

    #[test]
    fn a_bound_holds_and_each_number_below_it_comes() {
        let mut seeded = Seeded::new(1);
        let mut seen = [false; 5];
        (0..200).for_each(|_| seen[seeded.below(5) as usize] = true);
        assert_eq!(seen, [true; 5]);
        assert_eq!(seeded.below(0), 0);
        assert!((0..100).all(|_| (3..=4).contains(&seeded.between(3, 4))));
        assert_eq!(seeded.bytes(13).len(), 13);
    }

    #[test]
    fn neighbours_of_one_seed_differ() {
        let of = |index| Seeded::derived(7, index).next_u64();
        assert_ne!(of(0), of(1));
        assert_eq!(of(1), of(1));
    }
}
