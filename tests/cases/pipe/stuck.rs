//! Outputs that are full, of every kind: a signal is heard, and nothing fails
//! because an output never sleeps.

use std::fs::File;
use std::io::{self, PipeReader, Read};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::sandbox::{
    A_SECOND, Background, Expect, SECOND, Sandbox, same_bytes, status, stays, wait_until, want,
};

/// Both ends of a terminal: what reads it, and what is a program's stdout.
fn terminal() -> (OwnedFd, OwnedFd) {
    let reader = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&reader).unwrap();
    unlockpt(&reader).unwrap();
    let name = ptsname(&reader, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let stdout = rustix::fs::open(name, flags, Mode::empty()).unwrap();
    (reader, stdout)
}

fn tcp() -> (TcpStream, OwnedFd) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stdout = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (listener.accept().unwrap().0, stdout.into())
}

/// What whoever reads has waiting for it.
fn waiting(reader: impl AsFd) -> u64 {
    rustix::io::ioctl_fionread(reader).unwrap()
}

/// Waits until the process has filled its output, and signals it.
#[track_caller]
fn hears_a_signal(mut process: Background, reader: impl AsFd, what: &str) {
    wait_until(10 * SECOND, "something is printed", || waiting(&reader) > 0);
    let mut last = 0;
    while waiting(&reader) > last {
        last = waiting(&reader);
        assert!(stays(Duration::from_millis(200), || process.runs()), "{what}");
    }
    process.signal(Signal::TERM);
    let end = process.ends_within(A_SECOND);
    assert_eq!(end.signal(), Some(Signal::TERM.as_raw()), "{what}");
    // What was dropped of a half line is told.
    let notes = process.err().lines().all(|line| line.starts_with("tapelog: note: dropped"));
    assert!(notes, "{what}: {}", process.err());
}

#[test]
fn a_producer_hears_a_signal_behind_a_stuck_reader() {
    for options in ["--receipt --sync each", "--receipt --sync none", "-T", "-T -k key"] {
        let sandbox = Sandbox::new();
        sandbox.file("in", want(1, 200_000));
        let command = sandbox.command(&format!("produce in {options} --batch-records 1000"));
        let (reader, stdout) = io::pipe().unwrap();
        let producer = sandbox.spawn_onto("producer", command, stdout);
        hears_a_signal(producer, &reader, options);
        let stored = sandbox.all().text();
        assert!(want(1, 200_000).starts_with(&stored) && !stored.is_empty(), "{options}");
    }
}

#[test]
fn a_reader_hears_a_signal_behind_a_stuck_peer_or_terminal() {
    let sandbox = Sandbox::new();
    sandbox.file("in", want(1, 200_000).repeat(10));
    sandbox.tapelog("produce in").prints("");
    let reads = |stdout: OwnedFd| sandbox.spawn_onto("reader", sandbox.command("consume"), stdout);

    let (reader, stdout) = UnixStream::pair().unwrap();
    hears_a_signal(reads(stdout.into()), &reader, "a unix socket");
    let (reader, stdout) = tcp();
    hears_a_signal(reads(stdout), &reader, "a TCP socket");
    // Each stops at another byte: before a newline there may be room, but not for two.
    for skip in 0..9 {
        let (reader, stdout) = terminal();
        rustix::io::write(&stdout, &b"        "[..skip]).unwrap();
        hears_a_signal(reads(stdout), &reader, "a terminal");
    }
}

/// Runs a command on a pipe with room for a page whose writes never sleep.
fn never_sleeping(sandbox: &Sandbox, line: &str) -> (Background, PipeReader) {
    let (reader, stdout) = io::pipe().unwrap();
    rustix::pipe::fcntl_setpipe_size(&stdout, 4096).unwrap();
    rustix::io::ioctl_fionbio(&stdout, true).unwrap();
    (sandbox.spawn_onto("writer", sandbox.command(line), stdout), reader)
}

#[test]
fn an_output_that_never_sleeps_gets_everything() {
    let sandbox = Sandbox::with_config("segment-size=512");
    sandbox.mk1(2000);
    sandbox.file("in", want(1, 2000));
    for line in ["segments", "segments -J", "consume"] {
        let whole = sandbox.tapelog(line).text();
        assert!(whole.len() > 4096, "{line}");
        let (mut writer, mut reader) = never_sleeping(&sandbox, line);
        assert!(stays(Duration::from_millis(100), || writer.runs()), "{line}: {}", writer.err());
        let mut text = Vec::new();
        reader.read_to_end(&mut text).unwrap();
        same_bytes(&text, whole.as_bytes(), line);
        assert_eq!(writer.ends_within(A_SECOND).code(), Some(status::DONE), "{line}");
    }
    let (mut writer, mut reader) = never_sleeping(&sandbox, "produce in --receipt");
    let mut text = String::new();
    assert!(stays(Duration::from_millis(100), || writer.runs()), "{}", writer.err());
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, (2000..4000).map(|offset| format!("{offset}\n")).collect::<String>());
    assert_eq!(writer.ends_within(A_SECOND).code(), Some(status::DONE));
}

#[test]
fn a_socket_gets_everything_and_ends_a_reader_quietly_when_it_is_reset() {
    let sandbox = Sandbox::new();
    sandbox.mk(200_000);
    let reads = |stdout: OwnedFd| sandbox.spawn_onto("reader", sandbox.command("consume"), stdout);
    let (mut reader, stdout) = tcp();
    let mut process = reads(stdout);
    let mut text = Vec::new();
    reader.read_to_end(&mut text).unwrap();
    same_bytes(&text, want(1, 200_000).as_bytes(), "a socket");
    assert!(process.ends_within(A_SECOND).success());

    sandbox.mk(200_000);
    sandbox.mk(200_000);
    let (mut reader, stdout) = tcp();
    let mut process = reads(stdout);
    reader.read_exact(&mut [0; 9]).unwrap();
    // With bytes unread, so that the peer resets the connection.
    drop(reader);
    assert!(process.ends_within(A_SECOND).success(), "{}", process.err());
    assert_eq!(process.err(), "");
}

#[test]
fn an_idle_follower_ends_when_the_peer_of_its_socket_has_gone() {
    let sandbox = Sandbox::new();
    sandbox.mk(1);
    let follows =
        |stdout: OwnedFd| sandbox.spawn_onto("follower", sandbox.command("consume -f"), stdout);
    let (mut unix, stdout) = UnixStream::pair().unwrap();
    let by_unix = follows(stdout.into());
    unix.read_exact(&mut [0; 9]).unwrap();
    // Whoever has no more to say may still listen.
    unix.shutdown(std::net::Shutdown::Write).unwrap();
    sandbox.produce("", want(2, 2));
    unix.read_exact(&mut [0; 9]).unwrap();
    let (mut by_tcp, stdout) = tcp();
    let on_tcp = follows(stdout);
    by_tcp.read_exact(&mut [0; 18]).unwrap();
    drop((unix, by_tcp));
    for mut follower in [by_unix, on_tcp] {
        assert!(follower.ends_within(A_SECOND).success());
        assert_eq!(follower.err(), "");
    }
}

#[test]
fn a_null_device_takes_everything_at_once() {
    let sandbox = Sandbox::new();
    sandbox.mk(100_000);
    let null = File::options().write(true).open("/dev/null").unwrap();
    let mut reader = sandbox.spawn_onto("reader", sandbox.command("consume"), null);
    assert!(reader.ends_within(5 * SECOND).success());
}
