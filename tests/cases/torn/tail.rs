//! H001 to H003: which bytes at the end are torn, and which are damaged.

use std::fs;

use super::{closed_100, name_of, the_log_is_damaged_after, the_tail_is_torn_after, unclosed_100};
use crate::sandbox::{
    Expect, Random, Sandbox, Unclosed, append_bytes, batch_of, copy_tree, cut, flip, len, status,
    want,
};

#[test]
fn h001_a_tail_cut_at_any_byte_loses_only_the_cut_batch() {
    let original = unclosed_100();
    let batch = batch_of("m-000100", &original.active());
    let size = batch.end - batch.start;
    for cut_off in 1..=size {
        let sandbox = original.copy();
        let active = sandbox.active();
        cut(&active, cut_off);
        let torn = fs::read(&active).unwrap()[batch.start as usize..].to_vec();
        let left = if torn.is_empty() { String::new() } else { format!("{} byte", torn.len()) };
        sandbox.all().notes(want(1, 99), &[name_of(&active), &left]);
        let produced =
            sandbox.tapelog("produce --receipt").write_stdin("x\n").outcome().succeeded();
        assert!(produced.errors().is_empty() && produced.notes().len() <= 1, "{produced}");
        produced.printed("99\n");
        sandbox.all().prints(want(1, 99) + "x\n");
        if !torn.is_empty() {
            assert_eq!(sandbox.quarantine(), [torn], "the torn bytes are kept, cut by {cut_off}");
        }
    }
}

#[test]
fn h001_a_cut_below_the_durable_mark_is_damage_at_any_byte() {
    let original = closed_100();
    let batch = batch_of("m-000100", &original.active());
    for cut_off in [1, 3, 9, 10, batch.end - batch.start - 1, batch.end - batch.start] {
        let sandbox = original.copy();
        cut(&sandbox.active(), cut_off);
        the_log_is_damaged_after(&sandbox, 99);
    }
}

#[test]
fn h001_a_tail_torn_in_a_younger_segment_leaves_the_sealed_ones_alone() {
    let sandbox = Sandbox::new();
    sandbox.mkx_with("segment-size=1024", 100);
    assert!(sandbox.segments().len() > 3, "it rolled");
    cut(&sandbox.active(), 3);
    the_tail_is_torn_after(&sandbox, 99);
}

#[test]
fn h001_a_youngest_segment_that_is_still_empty_takes_the_next_record() {
    let sandbox = Sandbox::new();
    sandbox.mkx_with("segment-size=1024", 100);
    let active = sandbox.active();
    let first: u64 = name_of(&active).trim_end_matches(".log").parse().unwrap();
    fs::write(&active, "").unwrap();
    sandbox.all().notes(want(1, first), &[name_of(&active)]);
    let produced = sandbox.tapelog("produce --receipt").write_stdin("x\n").outcome().succeeded();
    produced.printed(format!("{first}\n"));
    sandbox.all().prints(want(1, first) + "x\n");
}

#[test]
fn h002_zeros_after_the_end_are_a_torn_tail_of_any_length() {
    let original = unclosed_100();
    for zeros in [1, 7, 63, 64, 65, 511, 512, 4096, 4_194_304] {
        let sandbox = original.copy();
        let active = sandbox.active();
        let size = len(&active);
        append_bytes(&active, &vec![0; zeros]);
        the_tail_is_torn_after(&sandbox, 100);
        assert_eq!(len(&active), size + 64 + 2, "the zeros are gone, one batch came");
    }
}

#[test]
fn h002_zeros_after_a_closed_log_are_a_torn_tail_too() {
    let sandbox = closed_100();
    append_bytes(&sandbox.active(), &[0; 4096]);
    the_tail_is_torn_after(&sandbox, 100);
}

#[test]
fn h002_zeros_over_the_last_batch_are_a_torn_tail() {
    let sandbox = unclosed_100();
    let active = sandbox.active();
    let batch = batch_of("m-000100", &active);
    cut(&active, batch.end - batch.start);
    append_bytes(&active, &[0; 4096]);
    the_tail_is_torn_after(&sandbox, 99);
}

#[test]
fn h002_garbage_after_the_end_is_a_torn_tail() {
    let original = unclosed_100();
    let mut random = Random(2);
    for length in [1, 64, 73, 5000] {
        let sandbox = original.copy();
        append_bytes(&sandbox.active(), &random.bytes(length));
        the_tail_is_torn_after(&sandbox, 100);
    }
}

#[test]
fn h002_a_good_batch_in_the_wrong_place_is_no_batch() {
    let original = unclosed_100();
    for body in ["m-000001", "m-000050", "m-000100"] {
        let sandbox = original.copy();
        let active = sandbox.active();
        let batch = batch_of(body, &active);
        let again = fs::read(&active).unwrap()[batch.start as usize..batch.end as usize].to_vec();
        append_bytes(&active, &again);
        the_tail_is_torn_after(&sandbox, 100);
    }
}

#[test]
fn h003_a_changed_body_in_the_last_batch_is_never_printed() {
    let sandbox = unclosed_100();
    let active = sandbox.active();
    flip(&active, batch_of("m-000100", &active).start + 64);
    sandbox.all().notes(want(1, 99), &[name_of(&active), "offset 99"]);
    the_tail_is_torn_after(&sandbox, 99);
}

#[test]
fn h003_a_flip_of_any_byte_of_the_last_batch_makes_it_torn() {
    let original = unclosed_100();
    for position in batch_of("m-000100", &original.active()) {
        let sandbox = original.copy();
        flip(&sandbox.active(), position);
        sandbox.all().notes(want(1, 99), &[name_of(&sandbox.active())]);
    }
}

#[test]
fn h003_good_batches_behind_an_unsynced_bad_one_are_torn_with_it() {
    let sandbox = Sandbox::new();
    let mut unclosed = Unclosed::start(&sandbox, "");
    unclosed.append(&want(1, 50), 50);
    let end = fs::read(unclosed.log().join("end")).unwrap();
    unclosed.append(&want(51, 100), 100);
    copy_tree(unclosed.log(), sandbox.log());
    // A power cut: the note of the last fifty never reached the disk, one batch did in part.
    fs::write(sandbox.log().join("end"), end).unwrap();
    let active = sandbox.active();
    let bad = batch_of("m-000090", &active);
    flip(&active, bad.start + 64);
    let torn = fs::read(&active).unwrap()[bad.start as usize..].to_vec();
    the_tail_is_torn_after(&sandbox, 89);
    assert_eq!(sandbox.quarantine(), [torn], "every byte is kept");
}

#[test]
fn h003_a_flip_below_the_durable_mark_is_damage() {
    let original = closed_100();
    for body in ["m-000001", "m-000050", "m-000100"] {
        let sandbox = original.copy();
        let active = sandbox.active();
        let batch = batch_of(body, &active);
        flip(&active, batch.start + 64);
        let n: u64 = body[2..].parse().unwrap();
        let position = batch.start.to_string();
        sandbox.all().ends(
            status::DAMAGE,
            want(1, n - 1),
            &[name_of(&active), &position, &(n - 1).to_string()],
        );
    }
}
