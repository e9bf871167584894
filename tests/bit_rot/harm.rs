//! Harm of every kind that a log's files can come to.

use std::path::Path;
use std::sync::Arc;

use tapelog::disk::Disk;
use tapelog::disk::simulated::SimulatedDisk;
use tapelog::format::batch::{Codec, HEADER_LEN, Layout};
use tapelog::format::file_name;
use tapelog::model::Offset;

use crate::reading::Batch;
use crate::sample::{Sample, path};

/// One kind of harm.
pub struct Harm {
    /// What it is.
    pub name: &'static str,
    /// Does it, and says which batches are lost with it.
    pub does: fn(&Sample, &Arc<SimulatedDisk>) -> Vec<usize>,
}

/// All kinds.
pub const ALL: &[Harm] = &[
    Harm { name: "none", does: |_, _| Vec::new() },
    Harm { name: "a bit in the first header", does: |s, d| bit(s, d, 0, 20) },
    Harm { name: "a bit in a sealed body", does: |s, d| bit(s, d, middle(s), 80) },
    Harm {
        name: "a bit in the first body of the active segment",
        does: |s, d| bit(s, d, first_of_active(s), 80),
    },
    Harm { name: "a bit in the last body", does: |s, d| bit(s, d, last(s), 80) },
    Harm { name: "a bit in the last header", does: |s, d| bit(s, d, last(s), 9) },
    Harm {
        name: "the first and the last batch",
        does: |s, d| [bit(s, d, 0, 80), bit(s, d, last(s), 80)].concat(),
    },
    Harm {
        name: "two batches of a segment",
        does: |s, d| {
            let first =
                s.batches.iter().position(|batch| batch.segment == s.batches[middle(s)].segment);
            let first = first.unwrap();
            [bit(s, d, first, 80), bit(s, d, first + 2, 80)].concat()
        },
    },
    Harm {
        name: "two batches in a row",
        does: |s, d| [bit(s, d, 1, 80), bit(s, d, 2, 7)].concat(),
    },
    Harm { name: "a header of zeros", does: |s, d| zeros(s, d, middle(s), HEADER_LEN as u64) },
    Harm {
        name: "zeros over a batch",
        does: |s, d| zeros(s, d, middle(s), s.batches[middle(s)].header.batch_len()),
    },
    Harm {
        name: "a sealed segment cut in a batch",
        does: |s, d| cut(s, d, last_of(s, middle(s)), 70),
    },
    Harm {
        name: "a sealed segment cut between batches",
        does: |s, d| cut(s, d, last_of(s, middle(s)), 0),
    },
    Harm {
        name: "a sealed segment cut to nothing",
        does: |s, d| cut(s, d, first_of(s, middle(s)), 0),
    },
    Harm { name: "the active segment cut in a batch", does: |s, d| cut(s, d, last(s), 70) },
    Harm { name: "the active segment cut between batches", does: |s, d| cut(s, d, last(s), 0) },
    Harm {
        name: "the active segment cut to nothing",
        does: |s, d| cut(s, d, first_of_active(s), 0),
    },
    Harm { name: "a segment in the middle is gone", does: |s, d| gone(s, d, middle(s)) },
    Harm { name: "the first segment is gone", does: |s, d| gone(s, d, 0) },
    Harm { name: "the active segment is gone", does: |s, d| gone(s, d, last(s)) },
    Harm {
        name: "two segments in a row are gone",
        does: |s, d| {
            let next = last_of(s, middle(s)) + 1;
            [gone(s, d, middle(s)), gone(s, d, next)].concat()
        },
    },
    Harm {
        name: "a foreign segment between two",
        does: |s, d| stranger(s, d, s.batches[middle(s)].header.base.get() + 1),
    },
    Harm { name: "a foreign segment at the end", does: |s, d| stranger(s, d, s.end().get()) },
    Harm {
        name: "a foreign segment beyond the end",
        does: |s, d| stranger(s, d, s.end().get() + 1000),
    },
    Harm {
        name: "the first segment in place of a later one",
        does: |s, d| {
            let from = d.read_file(&path(&s.batches[0].segment)).unwrap();
            write(d, &s.batches[middle(s)].segment, &from);
            in_segment(s, middle(s))
        },
    },
    Harm {
        name: "garbage at the end",
        does: |s, d| {
            change(d, &s.batches[last(s)].segment, |bytes| bytes.extend([7; 300]));
            Vec::new()
        },
    },
    Harm {
        name: "zeros at the end of a sealed segment",
        does: |s, d| {
            change(d, &s.batches[0].segment, |bytes| bytes.extend([0; 300]));
            Vec::new()
        },
    },
    Harm { name: "log.json is gone", does: |_, d| remove(d, "log.json") },
    Harm { name: "log.json is garbage", does: |_, d| write(d, "log.json", b"{}") },
    Harm { name: "start is gone", does: |_, d| remove(d, "start") },
    Harm { name: "start is garbage", does: |_, d| write(d, "start", &[0; 8192]) },
    Harm { name: "end is gone", does: |_, d| remove(d, "end") },
    Harm { name: "end is garbage", does: |_, d| write(d, "end", &[0; 8192]) },
    Harm { name: "end is short", does: |_, d| write(d, "end", b"x") },
    Harm {
        name: "end is garbage and a batch is bad",
        does: |s, d| {
            write(d, "end", &[0; 8192]);
            bit(s, d, first_of_active(s), 80)
        },
    },
    Harm {
        name: "end and log.json are gone, and a segment",
        does: |s, d| {
            remove(d, "end");
            remove(d, "log.json");
            gone(s, d, middle(s))
        },
    },
    Harm {
        name: "the table is garbage",
        does: |_, d| write(d, file_name::SEGMENT_TABLE, &[9; 640]),
    },
    Harm {
        name: "an index is garbage",
        does: |s, d| write(d, &file_name::index(s.batches[0].header.base), &[9; 64]),
    },
    Harm {
        name: "a layout that does not fit under good checksums",
        does: |s, d| forge(s, d, |_, body| body[0] = b'\n'),
    },
    Harm {
        name: "a batch too large under a good checksum",
        does: |s, d| {
            forge(s, d, |header, _| header[48..52].copy_from_slice(&0x7FFF_FFFF_u32.to_le_bytes()))
        },
    },
];

/// The number of a batch in the midst of a sealed segment.
fn middle(sample: &Sample) -> usize {
    first_of(sample, sample.batches.len() / 2) + 1
}

fn last(sample: &Sample) -> usize {
    sample.batches.len() - 1
}

fn in_segment(sample: &Sample, batch: usize) -> Vec<usize> {
    let name = &sample.batches[batch].segment;
    let is_in = |number: &usize| sample.batches[*number].segment == *name;
    (0..sample.batches.len()).filter(is_in).collect()
}

fn first_of(sample: &Sample, batch: usize) -> usize {
    in_segment(sample, batch)[0]
}

fn last_of(sample: &Sample, batch: usize) -> usize {
    in_segment(sample, batch).pop().unwrap()
}

fn first_of_active(sample: &Sample) -> usize {
    first_of(sample, last(sample))
}

fn write(disk: &SimulatedDisk, name: &str, bytes: &[u8]) -> Vec<usize> {
    disk.write_file(&path(name), bytes).unwrap();
    Vec::new()
}

fn change(disk: &SimulatedDisk, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = disk.read_file(&path(name)).unwrap();
    change(&mut bytes);
    write(disk, name, &bytes);
}

fn remove(disk: &SimulatedDisk, name: &str) -> Vec<usize> {
    disk.remove_file(&path(name)).unwrap();
    disk.sync_dir(Path::new(crate::sample::DIR)).unwrap();
    disk.settle();
    Vec::new()
}

fn bit(sample: &Sample, disk: &SimulatedDisk, batch: usize, at: u64) -> Vec<usize> {
    let Batch { segment, position, .. } = &sample.batches[batch];
    change(disk, segment, |bytes| bytes[(position + at) as usize] ^= 4);
    vec![batch]
}

fn zeros(sample: &Sample, disk: &SimulatedDisk, batch: usize, count: u64) -> Vec<usize> {
    let Batch { segment, position, .. } = &sample.batches[batch];
    let range = *position as usize..(position + count) as usize;
    change(disk, segment, |bytes| bytes[range].fill(0));
    vec![batch]
}

/// Cuts a segment so many bytes behind where a batch begins.
fn cut(sample: &Sample, disk: &SimulatedDisk, batch: usize, at: u64) -> Vec<usize> {
    let Batch { segment, position, .. } = &sample.batches[batch];
    change(disk, segment, |bytes| bytes.truncate((position + at) as usize));
    in_segment(sample, batch).into_iter().filter(|&number| number >= batch).collect()
}

fn gone(sample: &Sample, disk: &SimulatedDisk, batch: usize) -> Vec<usize> {
    remove(disk, &sample.batches[batch].segment);
    in_segment(sample, batch)
}

/// Changes a batch of plain lines and makes its checksums right again.
fn forge(
    sample: &Sample,
    disk: &SimulatedDisk,
    change_it: impl FnOnce(&mut [u8], &mut [u8]),
) -> Vec<usize> {
    let is_plain =
        |batch: &Batch| (batch.header.layout, batch.header.codec) == (Layout::Lines, Codec::None);
    let number = sample.batches.iter().position(is_plain).unwrap();
    let batch = &sample.batches[number];
    let base: u64 = batch.segment.trim_end_matches(".log").parse().unwrap();
    change(disk, &batch.segment, |bytes| {
        let bytes = &mut bytes[batch.position as usize..batch.end() as usize];
        let (header, body) = bytes.split_at_mut(HEADER_LEN);
        change_it(header, body);
        header[56..60].copy_from_slice(&crc32fast::hash(body).to_le_bytes());
        let place = [base.to_le_bytes(), batch.position.to_le_bytes()].concat();
        let crc = crc32fast::hash(&[&header[..60], &place].concat());
        header[60..].copy_from_slice(&crc.to_le_bytes());
    });
    vec![number]
}

/// A copy of the first segment under another name.
fn stranger(sample: &Sample, disk: &SimulatedDisk, base: u64) -> Vec<usize> {
    let bytes = disk.read_file(&path(&sample.batches[0].segment)).unwrap();
    write(disk, &file_name::segment(Offset::new(base)), &bytes)
}
