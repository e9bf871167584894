//! What goes in comes out, byte for byte, through many segments.

use crate::sandbox::{Expect, Random, Sandbox, rounds};

#[test]
fn numbers_from_one_to_a_great_many_come_back_as_they_were() {
    let count = rounds(200_000, 5_000_000);
    let numbers: String = (1..=count).map(|n| format!("{n}\n")).collect();
    let sandbox = Sandbox::with_config("segment-size=1M");
    sandbox.produce("", numbers.as_str());
    sandbox.all().prints(&numbers);
    assert_eq!(sandbox.end(), count);
}

#[test]
fn random_bytes_come_back_as_they_were() {
    let mut bytes = Random(1).bytes(rounds(8 << 20, 256 << 20));
    bytes.push(b'\n');
    let sandbox = Sandbox::with_config("segment-size=1M");
    sandbox.produce("", bytes.as_slice());
    sandbox.all().prints(&bytes);
    assert!(sandbox.segments().len() >= rounds(7, 255));
}

#[test]
fn random_bytes_from_a_file_come_back_as_they_were() {
    let mut bytes = Random(2).bytes(rounds(8 << 20, 256 << 20));
    bytes.push(b'\n');
    let sandbox = Sandbox::with_config("segment-size=1M");
    let input = sandbox.file("input", &bytes);
    sandbox.tapelog("produce").arg(input).prints("");
    sandbox.all().prints(&bytes);
}
