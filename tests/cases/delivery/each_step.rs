//! A consumer that is killed at each call which changes something, or hands something
//! over, in each way of delivery: the table in tapelog(7), row by row.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use crate::sandbox::{Call, Expect, Sandbox, Strace, calls, offsets};

/// One way of delivery.
struct Way {
    options: &'static str,
    /// What is run for each record or batch, if that is a command.
    exec: Option<&'static str>,
    may_repeat: bool,
    may_lose: bool,
}

/// A worker prints its offsets, so that what was handed over is what is printed.
const OFFSETS: &str = "echo $TAPELOG_OFFSET";
const ALL: u64 = 6;

const WAYS: [Way; 6] = [
    Way { options: "-F %o\\n", exec: None, may_repeat: true, may_lose: false },
    Way {
        options: "-F %o\\n --commit before --commit-every 2",
        exec: None,
        may_repeat: false,
        may_lose: true,
    },
    Way { options: "--commit-every 1", exec: Some(OFFSETS), may_repeat: true, may_lose: false },
    Way { options: "--commit before", exec: Some(OFFSETS), may_repeat: false, may_lose: true },
    Way {
        options: "--batch 4 -F %o\\n",
        exec: Some("exec cat"),
        may_repeat: true,
        may_lose: false,
    },
    Way {
        options: "--batch 4 -F %o\\n --commit before",
        exec: Some("exec cat"),
        may_repeat: false,
        may_lose: true,
    },
];

impl Way {
    fn command(&self, sandbox: &Sandbox) -> Command {
        let options = format!("-g g -q {}", self.options);
        match self.exec {
            Some(line) => sandbox.exec_command(&options, line),
            None => sandbox.command(&format!("consume {options}")),
        }
    }

    /// Six records, group g before them.
    fn begin() -> Sandbox {
        let sandbox = Sandbox::new();
        sandbox.mk(ALL);
        sandbox.commit("g", 0);
        sandbox
    }

    /// Kills it at the call, and runs it again: what was handed over, and then.
    fn killed_at(&self, strace: &Strace, call: &Call) -> (Vec<u64>, Vec<u64>, bool) {
        let sandbox = Way::begin();
        let fault = format!("{}:signal=KILL:when={}", call.name, call.nth);
        let mut doomed = strace.inject(&sandbox, &fault, &self.command(&sandbox));
        let output = doomed.stdin(Stdio::null()).stderr(Stdio::null()).output().unwrap();
        let handed_over = offsets(std::str::from_utf8(&output.stdout).unwrap());
        let again = crate::sandbox::foreground(self.command(&sandbox)).text();
        assert_eq!(sandbox.position("g"), ALL, "{fault}");
        (handed_over, offsets(&again), output.status.signal() == Some(9))
    }
}

#[test]
fn what_each_way_repeats_or_loses_at_a_kill_is_what_the_manual_says() {
    let Some(strace) = Strace::find("each step") else { return };
    for way in WAYS {
        let alone = Way::begin();
        let traced = strace.of(&alone, &[], &way.command(&alone));
        crate::sandbox::foreground(traced).outcome().succeeded();
        let calls = calls(&alone);
        let hands_over = |call: &Call| call.kind().contains("write") || call.kind() == "wait4";
        let steps: Vec<_> =
            calls.iter().filter(|call| call.changes() || hands_over(call)).collect();
        let (mut kills, mut repeats, mut losses) = (0, 0, 0);
        for call in steps {
            let (first, second, was_killed) = way.killed_at(&strace, call);
            kills += u64::from(was_killed);
            assert!(first.iter().copied().eq(0..first.len() as u64), "{}: {first:?}", way.options);
            let from = second.first().copied().unwrap_or(ALL);
            assert!(second.iter().copied().eq(from..ALL), "{}: {second:?}", way.options);
            repeats += u64::from(from < first.len() as u64);
            losses += u64::from(from > first.len() as u64);
        }
        let told = format!("{} kills, {repeats} repeat, {losses} lose: {}", kills, way.options);
        println!("{told}");
        assert!(kills > 5, "{told}");
        assert_eq!((repeats > 0, losses > 0), (way.may_repeat, way.may_lose), "{told}");
    }
}
