//! Test data: numbered lines, and numbers that look random and are the same each time.

/// `m-00000A` to `m-00000B`, a line each: what `mk` stores at offsets A−1 to B−1.
pub fn want(a: u64, b: u64) -> String {
    lines("m", a, b)
}

/// The same with another letter.
pub fn lines(prefix: &str, a: u64, b: u64) -> String {
    (a..=b).map(|n| format!("{prefix}-{n:06}\n")).collect()
}

/// A column of numbers, as `--receipt` and `-F '%o\n'` print it.
pub fn offsets(text: &str) -> Vec<u64> {
    text.lines().map(|line| line.parse().unwrap()).collect()
}

/// xorshift64: enough for lengths, delays and bytes.
pub struct Random(pub u64);

impl Random {
    /// Any number.
    #[allow(clippy::should_implement_trait, reason = "an endless one reads better without")]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// That many bytes, all values among them.
    pub fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.next().to_le_bytes()[3]).collect()
    }
}
