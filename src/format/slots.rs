//! A two-slot file: small state that is written far more often than read. Two
//! lines of JSON, each padded with spaces to 4096 bytes:
//!
//! ```text
//! {"seq":12,"kept":9, …the state… ,"crc":"9f0c11aa"}        \n
//! ```
//!
//! `seq` goes up by one with each write, and the good line with the higher one
//! counts. `kept` is the `seq` of the other line when this one was written: that
//! line was durable then. A write goes over the line that is not known to be
//! durable, so that a power cut can never tear both. `crc` is that of
//! [`super::checked_json`].

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::checked_json;

/// The size of one slot in bytes.
pub const SLOT_LEN: usize = 4096;
/// The size of the file in bytes.
pub const FILE_LEN: usize = 2 * SLOT_LEN;

const SPACES: [u8; SLOT_LEN] = [b' '; SLOT_LEN];

/// A good line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot<T> {
    /// Which write this was.
    pub seq: u64,
    /// The `seq` of the line that was durable when this one was written.
    pub kept: u64,
    /// What was written.
    pub state: T,
}

/// What a two-slot file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slots<T> {
    /// The newer good line.
    pub newest: Slot<T>,
    /// Which of the two it is: 0 or 1.
    pub at: usize,
    /// Whether the other line is good too.
    pub other: OtherSlot,
}

/// The line that does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherSlot {
    /// A good line with this `seq`.
    Good(u64),
    /// No good line: a write that a power cut tore, or damage.
    Bad,
}

/// A line of the file, but for its checksum.
#[derive(Serialize, Deserialize)]
struct Line<T> {
    seq: u64,
    kept: u64,
    #[serde(flatten)]
    state: T,
}

/// The 4096 bytes of a slot; `None` if the state is too long for it.
pub fn encode<T: Serialize>(seq: u64, kept: u64, state: &T) -> Option<Vec<u8>> {
    let mut slot = checked_json::encode(&Line { seq, kept, state })?.into_bytes();
    if slot.len() >= SLOT_LEN {
        return None;
    }
    slot.resize(SLOT_LEN - 1, b' ');
    slot.push(b'\n');
    Some(slot)
}

/// Reads one slot; `None` if it is not a good line.
pub fn decode<T: DeserializeOwned>(slot: &[u8]) -> Option<Slot<T>> {
    let padded = slot.strip_suffix(b"\n")?;
    let (line, padding) = padded.split_at(memchr::memrchr(b'}', padded)? + 1);
    if !SPACES.starts_with(padding) || !checked_json::is_good(line) {
        return None;
    }
    let Line { seq, kept, state } = serde_json::from_slice(line).ok()?;
    Some(Slot { seq, kept, state })
}

/// Reads a whole file; `None` if its size is another or no line is good.
pub fn decode_file<T: DeserializeOwned>(bytes: &[u8]) -> Option<Slots<T>> {
    if bytes.len() != FILE_LEN {
        return None;
    }
    let (first, second) = bytes.split_at(SLOT_LEN);
    match (decode::<T>(first), decode::<T>(second)) {
        (Some(a), Some(b)) if a.seq >= b.seq => {
            Some(Slots { newest: a, at: 0, other: OtherSlot::Good(b.seq) })
        }
        (Some(a), Some(b)) => Some(Slots { newest: b, at: 1, other: OtherSlot::Good(a.seq) }),
        (Some(a), None) => Some(Slots { newest: a, at: 0, other: OtherSlot::Bad }),
        (None, Some(b)) => Some(Slots { newest: b, at: 1, other: OtherSlot::Bad }),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct State {
        next: u64,
        name: String,
    }

    fn state(next: u64) -> State {
        State { next, name: "a,\"crc\":\"b".to_owned() }
    }

    fn file(seqs: [u64; 2]) -> Vec<u8> {
        seqs.iter().flat_map(|&seq| encode(seq, 0, &state(seq * 10)).unwrap()).collect()
    }

    #[test]
    fn the_higher_number_counts() {
        for (seqs, at) in [([4, 3], 0), ([4, 5], 1)] {
            let slots: Slots<State> = decode_file(&file(seqs)).unwrap();
            assert_eq!((slots.at, slots.newest.state), (at, state(seqs[at] * 10)));
            assert_eq!(slots.other, OtherSlot::Good(seqs[1 - at]));
        }
    }

    #[test]
    fn one_bad_slot_leaves_the_other_to_count() {
        let mut bytes = file([4, 5]);
        bytes[SLOT_LEN + 20] ^= 1;
        let slots: Slots<State> = decode_file(&bytes).unwrap();
        assert_eq!((slots.newest.seq, slots.other), (4, OtherSlot::Bad));
    }

    #[test]
    fn no_good_slot_or_another_size_is_nothing() {
        let good = file([4, 5]);
        assert!(decode_file::<State>(&good[..FILE_LEN - 1]).is_none());
        assert!(decode_file::<State>(&[0; FILE_LEN]).is_none());
        assert!(decode_file::<State>(b"").is_none());
    }

    #[test]
    fn any_flipped_bit_of_the_text_is_noticed() {
        let good = encode(7, 6, &state(1)).unwrap();
        let text = good.trim_ascii_end().len();
        for bit in 0..text * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(decode::<State>(&bytes).is_none(), "bit {bit}");
        }
    }

    #[test]
    fn a_state_too_long_for_a_slot_is_refused() {
        let long = State { next: 1, name: "x".repeat(SLOT_LEN) };
        assert!(encode(1, 0, &long).is_none());
    }
}
