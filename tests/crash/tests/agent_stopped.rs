//! A real agent that is stopped (SIGSTOP) at every step of a checkpoint: each call of the program ends
//! soon, the checkpoint exists or the error says why not, and the ranks go on by themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use standfast::{Job, Level, Version};
use standfast_checkpoint::failpoint::AGENT_FAILPOINTS;
use standfast_crash_tests::agents::{Agent, STOP_AT, settings};

const EXE: &str = env!("CARGO_BIN_EXE_crash-rank");
/// More than the pool of 256 KiB.
const WORDS: usize = 96 << 10;
/// How long a call may take: five seconds of silence, and what it does itself on a loaded machine.
const CALL_MAX: Duration = Duration::from_secs(8);

fn word(step: u64, at: usize) -> u64 {
    (at as u64 ^ step << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Makes a call and looks at the clock.
#[track_caller]
fn timed<T>(what: &str, call: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let answer = call();
    let took = began.elapsed();
    println!("{what}: {took:.1?}");
    assert!(took < CALL_MAX, "{what} took {took:?}");
    answer
}

/// Stops the agent when this process first passes a point.
fn stop_at(point: &str, agent: Pid) -> Arc<AtomicBool> {
    let passed = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&passed);
    let stop = move || {
        if !told.swap(true, Ordering::SeqCst) {
            kill_process(agent, Signal::STOP).expect("it lives");
        }
    };
    fail::cfg_callback(point, stop).unwrap();
    passed
}

/// One job whose agent is stopped at a point: of the rank, or of the agent itself.
fn live_through(point: &str) {
    let dir = tempfile::tempdir().unwrap();
    let ranks = AGENT_FAILPOINTS.contains(&point);
    let environment: &[(&str, &str)] = if ranks { &[] } else { &[(STOP_AT, point)] };
    let mut agent = Agent::start(EXE, dir.path(), environment);
    let stopped = ranks.then(|| stop_at(point, agent.pid()));
    let (at, store) = (agent.place.dir().to_owned(), dir.path().join("store"));
    let open = || Job::open_loaded(settings(&at, &store));
    let job = timed("open", open).unwrap();
    let memory = job.alloc::<u64>("memory", WORDS).unwrap();
    let mut exists = Vec::new();
    for step in 1..=3 {
        memory.write().iter_mut().enumerate().for_each(|(at, value)| *value = word(step, at));
        let taken = timed("checkpoint", || job.checkpoint(Some(Version(step))));
        let waited = taken.and_then(|version| timed("wait", || job.wait(version, Level::Local)));
        match waited {
            Ok(()) => exists.push(step),
            Err(error) => assert!(error.to_string().contains("agent"), "{point}: {error}"),
        }
    }
    if let Some(stopped) = stopped {
        assert!(stopped.load(Ordering::SeqCst), "{point} was passed");
        fail::remove(point);
    }
    assert!(exists.contains(&3), "{point}: ranks write by themselves, {exists:?}");
    let report = |step: &u64| job.report(Version(*step)).expect("it exists");
    let notes: Vec<String> = exists.iter().flat_map(|step| report(step).notes).collect();
    assert!(
        notes.iter().any(|note| note.contains("by the ranks themselves")),
        "{point}: {notes:?}"
    );
    timed("close", || job.close()).unwrap();
    // One that was handed something was ended; one that was only asked may go on, and changes nothing.
    if !agent.has_ended() {
        agent.signal(Signal::CONT);
    }
    let job = timed("open again", open).unwrap();
    let memory = job.alloc::<u64>("memory", WORDS).unwrap();
    let offered: Vec<u64> = job.list().iter().map(|manifest| manifest.version.0).collect();
    assert_eq!(
        offered.first(),
        Some(&3),
        "{point}: the newest is what was taken last, {offered:?}"
    );
    for step in exists {
        job.restart_from(Version(step)).unwrap();
        let is_there = memory.read().iter().enumerate().all(|(at, value)| *value == word(step, at));
        assert!(is_there, "{point}: checkpoint {step}");
    }
}

/// One test: failpoints are of the whole process.
#[test]
fn a_stopped_agent_holds_up_nobody_for_long() {
    let commit = ["commit.before_segments", "commit.before_image", "commit.before_manifest"];
    let after = ["commit.after_manifest"];
    for point in AGENT_FAILPOINTS.iter().chain(&commit).chain(&after) {
        println!("-- {point}");
        live_through(point);
    }
}

#[test]
fn stop_now_ends_an_agent_that_is_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let mut agent = Agent::start(EXE, dir.path(), &[]);
    agent.signal(Signal::STOP);
    let asked = timed("stop", || standfast_agent::stop(&agent.place, false));
    assert!(asked.unwrap_err().to_string().contains("does not answer"));
    timed("stop --now", || standfast_agent::stop(&agent.place, true)).unwrap();
    assert!(agent.has_ended());
}
