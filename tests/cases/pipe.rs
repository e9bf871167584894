//! PIPE: pipes, buffering, signals, follow mode.
//!
//! The second half of H074 (a sealed segment replaced by compaction) waits for
//! `gc --compact`.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::sandbox::{
    Background, Expect, Sandbox, binary, find_program, foreground, rounds, same_bytes, skip,
    status, stays, wait_until, want,
};

const SECOND: Duration = Duration::from_secs(1);
/// What may end "within a second", on a busy machine.
const A_SECOND: Duration = Duration::from_millis(1300);

/// A reader whose output goes into a pipe that the test reads.
struct Piped {
    child: Child,
    out: Option<BufReader<ChildStdout>>,
    err: PathBuf,
}

impl Piped {
    fn start(sandbox: &Sandbox, line: &str) -> Piped {
        let err = sandbox.path("piped.err");
        let mut command = sandbox.command(line);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&err).unwrap());
        let mut child = command.spawn().unwrap();
        let out = child.stdout.take().map(BufReader::new);
        Piped { child, out, err }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.as_mut().unwrap().read_line(&mut line).unwrap();
        line
    }

    /// Takes exactly so many bytes out of the pipe.
    fn take(&mut self, bytes: usize) -> Vec<u8> {
        let mut taken = vec![0; bytes];
        self.out.as_mut().unwrap().get_mut().read_exact(&mut taken).unwrap();
        taken
    }

    fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        self.out.as_mut().unwrap().read_to_end(&mut rest).unwrap();
        rest
    }

    /// Goes away as `head` does.
    fn close(&mut self) {
        self.out = None;
    }

    fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    fn ends_within(&mut self, limit: Duration) -> ExitStatus {
        wait_until(limit, "the reader ends", || !self.runs());
        self.child.wait().unwrap()
    }

    fn err(&self) -> String {
        fs::read_to_string(&self.err).unwrap()
    }

    /// It ended as a program in a pipe should: with 0 or by SIGPIPE, in silence.
    fn ends_quietly(&mut self) {
        let end = self.ends_within(A_SECOND);
        assert!(is_quiet(end), "{end}");
        assert_eq!(self.err(), "");
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_quiet(end: ExitStatus) -> bool {
    end.success() || end.signal() == Some(13) || end.code() == Some(141)
}

/// `COMMAND | cat`.
fn into_cat(command: &Command) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell
        .env_clear()
        .args(["-c", r#""$@" | /bin/cat"#, "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    shell
}

fn follows_line_by_line(sandbox: &Sandbox, follower: &Background) {
    for n in 1..=5 {
        thread::sleep(rounds(Duration::from_millis(100), 2 * SECOND));
        sandbox.produce("", want(n, n));
        follower.prints_within(SECOND, want(1, n));
    }
}

#[test]
fn h071_a_follower_in_a_pipe_shows_each_line_at_once() {
    let sandbox = Sandbox::with_config("segment-size=64M");
    let mut cat = Command::new("/bin/sh");
    follows_line_by_line(&sandbox, &sandbox.spawn("cat", into_cat(&sandbox.command("consume -f"))));
}

#[test]
fn h071_a_follower_into_a_file_shows_each_line_at_once_in_every_format() {
    for options in ["", "-J", r"-F %v\n", "-g g"] {
        let sandbox = Sandbox::with_config("segment-size=64M");
        let follower = sandbox.spawn("follower", sandbox.command(&format!("consume -f {options}")));
        for n in 1..=3 {
            sandbox.produce("", want(n, n));
            let shown = || memchr::memchr_iter(b'\n', &follower.out()).count() as u64;
            wait_until(SECOND, "the line is there", || shown() == n);
        }
    }
}

#[test]
fn h071_receipts_come_at_once_through_a_pipe() {
    let sandbox = Sandbox::new();
    let mut producer =
        sandbox.spawn("producer", into_cat(&sandbox.command("produce --receipt --sync each")));
    for n in 0..3 {
        producer.feed("x\n");
        let receipts: String = (0..=n).map(|offset| format!("{offset}\n")).collect();
        producer.prints_within(SECOND, receipts);
    }
}

#[test]
fn h072_head_ends_a_reader_quietly() {
    let sandbox = Sandbox::new();
    sandbox.mk(1_000_000);
    for options in ["", "-J", r"-F %v\n", "-0", "-f"] {
        let mut reader = Piped::start(&sandbox, &format!("consume {options} -o earliest"));
        assert!(reader.take(8).starts_with(if options == "-J" { b"{" } else { b"m-000001" }));
        reader.close();
        reader.ends_quietly();
    }
}

#[test]
fn h072_a_pipe_closed_from_the_start_ends_every_command_quietly() {
    let sandbox = Sandbox::with_config("segment-size=512");
    sandbox.produce("--batch-records 1", want(1, 1000));
    sandbox.tapelog("commit -g g 500").outcome().succeeded();
    let lines = [
        "consume",
        "consume -J",
        "consume -0",
        "consume -f",
        "segments",
        "segments -J",
        "segments --summary",
        "groups",
        "groups -J",
        "groups -g g",
        "gc --dry-run",
        "gc --dry-run -J",
        "config",
        "config -J",
        "seek -g g --to-earliest --dry-run",
        "consume --help",
        "segments -h",
    ];
    for line in lines {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = sandbox.command(line);
        let mut child = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        drop(command);
        let start = Instant::now();
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        let end = child.wait().unwrap();
        assert!(is_quiet(end) && said.is_empty(), "{line}: {end}, {said}");
        assert!(start.elapsed() < A_SECOND, "{line}");
    }
}

#[test]
fn h072_an_idle_follower_ends_within_a_second_of_its_reader() {
    for options in ["-f", "-f -g g", "-f -J", "--timeout 1h"] {
        let sandbox = Sandbox::new();
        sandbox.mk(1);
        sandbox.tapelog("commit -g g 0").outcome().succeeded();
        let mut follower = Piped::start(&sandbox, &format!("consume {options}"));
        follower.line();
        follower.close();
        follower.ends_quietly();
    }
}

#[test]
fn h072_a_group_keeps_what_head_did_not_read() {
    for (bytes, position) in [(0, 0), (8, 0), (9, 1), (90, 10), (95, 10)] {
        let sandbox = Sandbox::new();
        sandbox.mk(1000);
        sandbox.tapelog("commit -g g 0").outcome().succeeded();
        let mut reader = Piped::start(&sandbox, "consume -g g");
        same_bytes(&reader.take(bytes), &want(1, 1000).as_bytes()[..bytes], "head");
        reader.close();
        reader.ends_quietly();
        assert_eq!(sandbox.position("g"), position, "{bytes} bytes were read");
        sandbox.tapelog("consume -g g").prints(want(position + 1, 1000));
    }
}

#[test]
fn h072_a_group_waits_for_its_reader_before_its_last_commit() {
    let sandbox = Sandbox::new();
    sandbox.mk(100);
    sandbox.tapelog("commit -g g 0").outcome().succeeded();
    let mut reader = Piped::start(&sandbox, "consume -g g");
    let untaken =
        stays(Duration::from_millis(1500), || sandbox.position("g") == 0 && reader.runs());
    assert!(untaken, "nothing was taken out of the pipe");
    same_bytes(&reader.rest(), want(1, 100).as_bytes(), "the reader");
    assert!(reader.ends_within(A_SECOND).success());
    assert_eq!((sandbox.position("g"), reader.err().as_str()), (100, ""));
}

#[test]
fn h072_a_signal_does_not_wait_for_a_stuck_reader() {
    for (records, signal) in [(100, Signal::TERM), (1_000_000, Signal::INT)] {
        let sandbox = Sandbox::new();
        sandbox.mk(records);
        sandbox.tapelog("commit -g g 0").outcome().succeeded();
        let mut reader = Piped::start(&sandbox, "consume -g g");
        same_bytes(&reader.take(9), want(1, 1).as_bytes(), "a reader that gets stuck");
        stays(Duration::from_millis(200), || reader.runs());
        kill_process(Pid::from_child(&reader.child), signal).unwrap();
        assert_eq!(reader.ends_within(A_SECOND).signal(), Some(signal.as_raw()));
        assert_eq!(sandbox.position("g"), 1, "one record was taken out of the pipe");
    }
}

#[test]
fn h073_a_group_ends_at_the_end_of_the_log() {
    let sandbox = Sandbox::with_config("segment-size=64M");
    sandbox.tapelog("commit -g g 0").outcome().succeeded();
    for (from, to) in [(1, 0), (1, 10), (11, 10), (11, 20)] {
        if from <= to {
            sandbox.produce("", want(from, to));
        }
        let start = Instant::now();
        sandbox.tapelog("consume -g g").prints(want(from, to));
        assert!(start.elapsed() < SECOND);
    }
}

#[test]
fn h073_a_follower_ends_at_its_count_and_at_its_timeout() {
    let sandbox = Sandbox::new();
    sandbox.mk(10);
    sandbox.tapelog("consume -f -n 3").prints(want(1, 3));
    sandbox.tapelog("consume --timeout 200ms").prints(want(1, 10));
    sandbox.tapelog("consume -o latest --timeout 200ms").prints("");
    sandbox.tapelog("consume -o latest --timeout 200ms --fail-empty").fails(status::NOT_THERE, &[]);
    let mut follower = sandbox.spawn("follower", sandbox.command("consume -f -o latest -n 2"));
    sandbox.produce("", want(11, 11));
    assert!(follower.runs());
    sandbox.produce("", want(12, 13));
    assert!(follower.ends_within(A_SECOND).success());
    assert!([want(11, 12), want(12, 13)].contains(&String::from_utf8(follower.out()).unwrap()));
}

#[test]
fn h073_a_signal_ends_a_follower_and_saves_its_group() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let sandbox = Sandbox::new();
        sandbox.mk(10);
        sandbox.tapelog("commit -g g 0").outcome().succeeded();
        let mut follower = sandbox.spawn("follower", sandbox.command("consume -f -g g"));
        follower.prints_within(SECOND, want(1, 10));
        follower.signal(signal);
        assert_eq!(follower.ends_within(A_SECOND).signal(), Some(signal.as_raw()));
        assert_eq!((sandbox.position("g"), follower.err().as_str()), (10, ""));
    }
}

#[test]
fn h073_a_signal_ends_a_producer_after_what_it_has_read_whole() {
    for signal in [Signal::INT, Signal::TERM] {
        let sandbox = Sandbox::new();
        let mut producer = sandbox.spawn("producer", sandbox.command("produce"));
        producer.feed(want(1, 10) + "half");
        wait_until(5 * SECOND, "the whole lines are in", || {
            sandbox.all().outcome().stdout == want(1, 10).as_bytes()
        });
        producer.signal(signal);
        assert_eq!(producer.ends_within(A_SECOND).signal(), Some(signal.as_raw()));
        let said = producer.err();
        assert!(said.contains("4 bytes"), "the bytes of the half line are told: {said:?}");
        sandbox.all().prints(want(1, 10));
        assert_eq!(sandbox.append("x"), 10);
    }
}

/// The command under strace, whose watches on files all fail as this error.
fn without_file_events(sandbox: &Sandbox, error: &str) -> Option<Command> {
    let strace = find_program("strace")?;
    let works = Command::new(&strace)
        .args(["-o", "/dev/null", "/bin/true"])
        .output()
        .unwrap()
        .status
        .success();
    works.then(|| {
        let mut command = Command::new(strace);
        command.env_clear().arg("-f").arg("-o").arg(sandbox.path("strace"));
        command.args([
            "-e",
            &format!("inject=inotify_init,inotify_init1,inotify_add_watch:error={error}"),
        ]);
        // Should strace be killed, the follower ends by its timeout.
        command.arg(binary()).arg("consume").arg(sandbox.log()).args(["-f", "--timeout", "30s"]);
        command
    })
}

#[test]
fn h074_a_follower_works_without_file_events() {
    for error in ["ENOSPC", "EMFILE", "ENOSYS"] {
        let sandbox = Sandbox::with_config("segment-size=512");
        let Some(command) = without_file_events(&sandbox, error) else {
            return skip("h074", "strace is not installed, or may not trace");
        };
        sandbox.mk1(20);
        let follower = sandbox.spawn("follower", command);
        follower.prints_within(5 * SECOND, want(1, 20));
        for n in 2..=4 {
            sandbox.produce("--batch-records 1", want(n * 10 + 1, n * 10 + 10));
            follower.prints_within(2 * SECOND, want(1, n * 10 + 10));
        }
    }
}

/// Runs the command with standard streams closed: `"<&-"`, `">&- 2>&-"`.
fn with_closed(streams: &str, command: &Command) -> assert_cmd::Command {
    let mut shell = Command::new("/bin/sh");
    shell.env_clear().current_dir(command.get_current_dir().unwrap());
    shell
        .args(["-c", &format!(r#"exec "$@" {streams}"#), "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    foreground(shell)
}

#[test]
fn h075_a_producer_with_closed_streams_stores_exactly_its_input() {
    for streams in [">&-", "2>&-", ">&- 2>&-"] {
        let sandbox = Sandbox::new();
        with_closed(streams, &sandbox.command("produce --receipt"))
            .write_stdin(want(1, 100))
            .outcome()
            .succeeded();
        sandbox.produce("", want(101, 102));
        sandbox.all().prints(want(1, 102));
    }
}

#[test]
fn h075_a_producer_with_files_and_all_streams_closed_stores_exactly_these() {
    let sandbox = Sandbox::new();
    let mut produce = sandbox.command("produce");
    produce.arg(sandbox.file("in", want(1, 100)));
    with_closed("<&- >&- 2>&-", &produce).outcome().succeeded();
    sandbox.all().prints(want(1, 100));
}

#[test]
fn h075_a_closed_stdin_is_an_empty_one() {
    let sandbox = Sandbox::new();
    sandbox.mk(10);
    with_closed("<&-", &sandbox.command("produce")).prints("");
    with_closed("<&- >&- 2>&-", &sandbox.command("produce")).prints("");
    sandbox.all().prints(want(1, 10));
}

#[test]
fn h075_a_closed_stdout_is_a_null_device_for_a_group() {
    let sandbox = Sandbox::new();
    sandbox.mk(100);
    sandbox.tapelog("commit -g g 0").outcome().succeeded();
    let before = fs::read(sandbox.active()).unwrap();
    with_closed(">&-", &sandbox.command("consume -g g")).prints("");
    with_closed("<&- >&- 2>&-", &sandbox.command("consume")).prints("");
    assert!(before == fs::read(sandbox.active()).unwrap(), "no segment was written into");
    assert_eq!(sandbox.position("g"), 100);
    sandbox.all().prints(want(1, 100));
}

#[test]
fn h075_errors_that_nobody_hears_keep_their_status() {
    let sandbox = Sandbox::new();
    with_closed("2>&-", &sandbox.command("consume")).outcome().ended(status::NOT_THERE).printed("");
    with_closed("<&- >&- 2>&-", &sandbox.command("consume --nonsense"))
        .outcome()
        .ended(status::USAGE)
        .printed("");
}
