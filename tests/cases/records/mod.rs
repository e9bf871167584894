//! Whole records through the real binary: keys, headers, own times and null values on
//! their way from pipe to log to pipe; the options that shape, choose and print them.

mod compression;
mod expected_end;
mod filters;
mod forms;
mod grouped;
mod json_input;
mod json_output;
mod keys;
mod limits;
mod reverse;
mod round_trip;
mod tee;
mod templates;

use std::process::Stdio;

use serde_json::Value;

use crate::sandbox::{Expect, Sandbox};

/// What `consume -J` shows, each field as one of the records has it, null if not.
fn field(records: &[Value], name: &str) -> Vec<Value> {
    records.iter().map(|record| record[name].clone()).collect()
}

/// `consume FROM HOW | produce INTO HOW`, both in silence.
#[track_caller]
fn pipe(from: &Sandbox, consume: &str, into: &Sandbox, produce: &str) {
    let err = from.path("pipe.err");
    let mut reader = from.command(&format!("consume {consume}"));
    reader.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut reader = reader.stderr(std::fs::File::create(&err).unwrap()).spawn().unwrap();
    let mut writer = into.command(&format!("produce {produce}"));
    writer.stdin(reader.stdout.take().unwrap());
    let written = writer.output().unwrap();
    assert!(reader.wait().unwrap().success() && written.status.success(), "{written:?}");
    assert_eq!((written.stdout, written.stderr), (vec![], vec![]));
    assert_eq!(std::fs::read_to_string(err).unwrap(), "");
}

/// `consume` with a template that holds spaces or nothing special.
#[track_caller]
fn templated(sandbox: &Sandbox, template: &str) -> Vec<u8> {
    let outcome = sandbox.tapelog("consume -F").arg(template).outcome().succeeded();
    assert_eq!(outcome.stderr, "");
    outcome.stdout
}

/// A log of records written as JSON lines.
fn of_json(lines: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.produce("-J", lines);
    sandbox
}
