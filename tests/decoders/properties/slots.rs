//! The two-slot files, with each state that is kept in one.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tapelog::format::slots::{FILE_LEN, SLOT_LEN, decode, decode_file, encode};
use tapelog::format::state::{CheckpointState, EndState, Mark, StartState};
use tapelog::model::{LogId, Offset, Position, Timestamp};

use super::draw::Draw;

/// `end`
pub fn end_file(input: &[u8]) {
    let mut draw = Draw::new(input);
    let log = LogId::new(draw.u64());
    let (written, durable) = (mark(&mut draw), mark(&mut draw));
    let last_batch = Position::new(draw.u64());
    let time = Timestamp::from_millis(draw.i64());
    let suspect = draw.u8() % 2 == 1;
    let state = EndState { log, boot: draw.text(), written, last_batch, durable, time, suspect };
    check(input, &state);
}

fn mark(draw: &mut Draw<'_>) -> Mark {
    let (segment, offset) = (Offset::new(draw.u64()), Offset::new(draw.u64()));
    Mark { segment, position: Position::new(draw.u64()), offset }
}

/// `start`
pub fn start_file(input: &[u8]) {
    let mut draw = Draw::new(input);
    let state = StartState { log: LogId::new(draw.u64()), start: Offset::new(draw.u64()) };
    check(input, &state);
}

/// A group's checkpoint
pub fn checkpoint_file(input: &[u8]) {
    let mut draw = Draw::new(input);
    let state = CheckpointState {
        log: LogId::new(draw.u64()),
        next: Offset::new(draw.u64()),
        before: draw.maybe(|draw| Timestamp::from_millis(draw.i64())),
        stored: Timestamp::from_millis(draw.i64()),
        group: draw.text().parse().unwrap_or_else(|_| "g".parse().expect("a group's name")),
    };
    check(input, &state);
}

/// The input as a file, as two lines whose checksums are made right, and `state`,
/// drawn from it, written and read.
fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(input: &[u8], state: &T) {
    check_file::<T>(input);
    let mut padded = input[..input.len().min(FILE_LEN)].to_vec();
    padded.resize(FILE_LEN, b' ');
    check_file::<T>(&padded);
    let middle = input.iter().position(|&byte| byte == b'\n').unwrap_or(input.len());
    let (first, second) = input.split_at(middle);
    check_file::<T>(&[sealed(first), sealed(second.get(1..).unwrap_or_default())].concat());
    let mut draw = Draw::new(input);
    if let Some(slot) = encode(draw.u64(), draw.u64(), state) {
        let read = decode::<T>(&slot).expect("a slot as it was encoded");
        assert_eq!(&read.state, state);
        let mut rotten = slot.clone();
        let at = usize::from(draw.u16()) % slot.trim_ascii_end().len();
        rotten[at] ^= 1 << (draw.u8() % 8);
        assert_eq!(decode::<T>(&rotten), None);
    }
}

fn check_file<T: Serialize + DeserializeOwned + PartialEq + Debug>(bytes: &[u8]) {
    let Some(slots) = decode_file::<T>(bytes) else { return };
    assert!(bytes.len() == FILE_LEN && slots.at < 2);
    let newest = slots.newest;
    let slot = encode(newest.seq, newest.kept, &newest.state).expect("what fitted before");
    assert_eq!(decode(&slot), Some(newest));
}

/// A slot with this text before its checksum.
fn sealed(text: &[u8]) -> Vec<u8> {
    let text = text.trim_ascii_end();
    let text = text.split(|&byte| byte == b'}').next().unwrap_or_default();
    let cut = text.windows(8).position(|part| part == br#","crc":""#).unwrap_or(text.len());
    let mut slot = text[..cut.min(SLOT_LEN - 20)].to_vec();
    let crc = format!(r#","crc":"{:08x}"}}"#, crc32fast::hash(&slot));
    slot.extend_from_slice(crc.as_bytes());
    slot.resize(SLOT_LEN - 1, b' ');
    slot.push(b'\n');
    slot
}
