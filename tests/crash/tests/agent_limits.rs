//! A real agent without descriptors or threads: it says so, ranks write by themselves, and it serves
//! again when it can.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use standfast::{Job, Level};
use standfast_crash_tests::agents::{Agent, settings};
use standfast_testkit::command::until;

const EXE: &str = env!("CARGO_BIN_EXE_crash-rank");

/// Takes a checkpoint; what the report says about the agent.
fn work(agent: &Agent, dir: &Path) -> String {
    let job = Job::open_loaded(settings(agent.place.dir(), &dir.join("store"))).unwrap();
    let _memory = job.alloc::<u64>("memory", 1 << 15).unwrap();
    let version = job.checkpoint(None).unwrap();
    job.wait(version, Level::Local).unwrap();
    job.report(version).unwrap().notes.join("; ")
}

#[test]
fn connections_beyond_its_descriptors_are_refused_in_words() {
    let dir = tempfile::tempdir().unwrap();
    let agent = Agent::start_limited(EXE, dir.path(), &[], Some(256));
    assert_eq!(work(&agent, dir.path()), "");
    let mut open: Vec<UnixStream> =
        (0..300).map(|_| UnixStream::connect(agent.place.socket()).unwrap()).collect();
    let mut refused = 0;
    for stream in &mut open {
        let mut text = [0; 256];
        stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let told = stream.read(&mut text).unwrap_or(0);
        refused += usize::from(String::from_utf8_lossy(&text[..told]).contains("descriptors"));
    }
    assert!(refused >= 150, "{refused} of 300 were refused");
    let told = work(&agent, dir.path());
    assert!(told.contains("by the ranks themselves") && told.contains("descriptors"), "{told}");
    drop(open);
    assert!(until(Duration::from_secs(20), || standfast_agent::status(&agent.place).is_ok()));
    assert_eq!(work(&agent, dir.path()), "", "it serves again");
}

/// Bytes of memory that a process has mapped.
fn mapped_bytes(pid: Pid) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/statm", pid.as_raw_nonzero())).unwrap();
    let pages: u64 = text.split(' ').next().unwrap().parse().unwrap();
    pages * rustix::param::page_size() as u64
}

#[test]
fn an_agent_that_cannot_start_a_thread_says_so_and_serves_again() {
    let dir = tempfile::tempdir().unwrap();
    let agent = Agent::start(EXE, dir.path(), &[]);
    // A little memory, but none for the stack of another thread. It has had one rank at a time so far,
    // and keeps that one's.
    let most = Some(mapped_bytes(agent.pid()) + (1 << 20));
    let before =
        prlimit(Some(agent.pid()), Resource::As, Rlimit { current: most, maximum: None }).unwrap();
    let told = work(&agent, dir.path());
    assert!(told.contains("by the ranks themselves") && told.contains("thread"), "{told}");
    prlimit(Some(agent.pid()), Resource::As, before).unwrap();
    assert_eq!(work(&agent, dir.path()), "", "it serves again");
    let status = standfast_agent::status(&agent.place).unwrap();
    assert!(status.sessions.is_empty(), "{status:?}");
}
