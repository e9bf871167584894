//! What stands for a key in an index: 128 bits of SipHash-1-3, keyed with the log's id,
//! so that whoever chooses keys without knowing that can't choose their hashes.

use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher13};

use crate::model::LogId;

/// The hash of a key. Two keys of one log that share it are as good as impossible, but
/// what it finds is compared with the key all the same, wherever a record is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(u128);

impl KeyHash {
    /// The hash of `key` in the log `log`.
    pub fn of(log: LogId, key: &[u8]) -> KeyHash {
        let mut hasher = SipHasher13::new_with_keys(log.get(), 0);
        hasher.write(key);
        KeyHash(hasher.finish128().as_u128())
    }

    /// The hash with these bits.
    pub const fn new(bits: u128) -> KeyHash {
        KeyHash(bits)
    }

    /// The bare bits.
    pub const fn get(self) -> u128 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_key_or_another_log_is_another_hash() {
        let of = |log, key: &str| KeyHash::of(LogId::new(log), key.as_bytes());
        let hashes = [of(1, ""), of(1, "a"), of(1, "a\0"), of(2, "a"), of(1, "1"), of(1, "01")];
        for (number, hash) in hashes.iter().enumerate() {
            assert!(!hashes[..number].contains(hash), "{number}");
        }
        assert_eq!(of(1, "a"), of(1, "a"));
    }
}
