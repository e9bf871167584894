//! Batches that claim more than they may, or inflate to more than they claim: they cost
//! no memory, and what stands around them is read.

use std::path::Path;
use std::process::Command;

use tapelog::format::batch::{Codec, Layout};
use tapelog::format::body::Body;

use crate::golden;
use crate::python;
use crate::sandbox::{Expect, Sandbox, binary, foreground, status};

/// The most address space that reading may take, in KiB.
const MOST: u64 = 64 << 10;
/// What a Zstandard block may hold.
const BLOCK: u32 = 128 << 10;

/// A Zstandard frame of `blocks` × 128 KiB of one byte, four bytes a block, that does
/// not say how much that is.
fn zstd_bomb(blocks: u32) -> Vec<u8> {
    const RUN: u32 = 1 << 1;
    // The magic number; no content size; a window of 128 KiB.
    let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0x00, 7 << 3];
    for block in 1..=blocks {
        let header = BLOCK << 3 | RUN | u32::from(block == blocks);
        frame.extend_from_slice(&header.to_le_bytes()[..3]);
        frame.push(b'\n');
    }
    frame
}

/// A log of three records, of which the batch in the middle is this one.
fn log_around(codec: Codec, raw: u32, bytes: &[u8]) -> Sandbox {
    let neighbour = |bytes| Body::plain(Layout::Lines, 1, bytes);
    let bomb = Body { layout: Layout::Lines, codec, records: 1, raw, bytes };
    let sandbox = Sandbox::new();
    golden::put(
        &golden::forged(&[neighbour(b"before\n"), bomb, neighbour(b"after\n")]),
        sandbox.log(),
    );
    sandbox
}

/// A command that gets no more than [`MOST`] of address space, so of memory.
fn bounded(log: &Path, line: &str) -> Command {
    let mut words = line.split_whitespace();
    let mut command = Command::new("sh");
    command.env_clear().arg("-c").arg(format!("ulimit -v {MOST} && exec \"$0\" \"$@\""));
    command.arg(binary()).args(words.next()).arg(log).args(words);
    command
}

/// Reads up to the batch in the middle, within the memory allowed, and from behind it.
fn costs_nothing(sandbox: &Sandbox, ends_with: i32) {
    for line in ["consume", "consume -F %v\\n", "consume -o 1"] {
        let before = if line.contains("-o") { "" } else { "before\n" };
        let mut consume = foreground(bounded(sandbox.log(), line));
        consume.ends(ends_with, before, &["offset 1"]);
    }
    if let Some(reader) = python::reader("reader.py on a bomb") {
        let outcome = foreground(reader.on(sandbox.log())).outcome();
        if !python::skipped("a bomb", &outcome) {
            assert!(outcome.stdout.starts_with(b"{\"offset\":0,"), "{outcome}");
            outcome.ended(ends_with);
        }
    }
}

#[test]
fn h038_a_batch_that_claims_four_gibibytes_costs_no_memory() {
    let frame = zstd_bomb(4);
    for codec in [Codec::Zstd, Codec::Lz4, Codec::None] {
        costs_nothing(&log_around(codec, u32::MAX, &frame), status::TOO_BIG);
    }
}

#[test]
fn h038_a_frame_that_inflates_to_more_than_its_header_says_costs_no_memory() {
    let four_gibibytes = zstd_bomb(4 << 30 >> 17);
    assert!(four_gibibytes.len() < 1 << 20);
    costs_nothing(&log_around(Codec::Zstd, 1000, &four_gibibytes), status::DAMAGE);
}

#[test]
fn h038_what_stands_before_and_behind_is_still_read() {
    let sandbox = log_around(Codec::Zstd, 1000, &zstd_bomb(4));
    sandbox.tapelog("consume -n 1").prints("before\n");
    sandbox.tapelog("consume -o 2").prints("after\n");
    let sandbox = log_around(Codec::Zstd, u32::MAX, &zstd_bomb(4));
    sandbox.tapelog("consume -n 1").prints("before\n");
}

#[test]
fn the_same_frame_under_an_honest_header_is_read() {
    let sandbox = log_around(Codec::Zstd, 8 * BLOCK, &zstd_bomb(8));
    let mut newlines = "\n".repeat(8 * BLOCK as usize);
    newlines.insert_str(0, "before\n");
    sandbox.tapelog("consume").prints(newlines + "after\n");
}
