//! The agent finishes a drain although its job was killed, and also if it was itself.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use standfast_agent::{Place, Status};
use standfast_crash_tests::mount::Mounted;
use standfast_crash_tests::node::{Jobs, RANKS};
use standfast_crash_tests::report::Line;
use standfast_store::{DirStore, Lock, LockGuard, Options, Store};
use standfast_testkit::must::or_leave_out;

const EXE: &str = env!("CARGO_BIN_EXE_crash-rank");
/// Long enough for a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(120);

/// A job that drains, in a directory of its own.
fn jobs(dir: &Path, nodes: usize) -> Jobs {
    let jobs = Jobs {
        dir: dir.to_owned(),
        command: EXE.into(),
        seed: 7,
        nodes,
        capture: "stop".into(),
        drains: true,
    };
    std::fs::create_dir(jobs.global()).unwrap();
    jobs
}

/// A job that drains to a file system of its own, of so many MiB; `None` where none can be mounted.
fn jobs_with_target(dir: &Path, mib: u32) -> Option<(Jobs, Mounted)> {
    let target = or_leave_out("mount", Mounted::tmpfs(mib))?;
    let jobs = jobs(dir, 1);
    std::fs::remove_dir(jobs.global()).unwrap();
    std::os::unix::fs::symlink(target.path(), jobs.global()).unwrap();
    Some((jobs, target))
}

/// Waits until the drain waits for this reason, and has tried again; nothing is offered meanwhile.
fn wait_in_vain(jobs: &Jobs, why: &str) {
    let place = &jobs.places()[0];
    let waits = |status: &Status| {
        let reason = status.drains.iter().find_map(|drain| drain.waits_for.as_ref());
        status.sessions.is_empty() && reason.is_some_and(|reason| reason.contains(why))
    };
    wait_for(place, why, waits);
    // Long enough for two further attempts.
    std::thread::sleep(Duration::from_millis(1800));
    wait_for(place, why, waits);
    assert_eq!(offered(jobs), 0, "the target cannot have a checkpoint");
}

/// How many manifests global storage has, beside the header's copy.
fn offered(jobs: &Jobs) -> usize {
    let files = std::fs::read_dir(jobs.global().join("job/manifests")).map_or(0, Iterator::count);
    files.saturating_sub(1)
}

/// The newest version that global storage has, told by its manifests' names; 0: none.
fn newest(jobs: &Jobs) -> u64 {
    let Ok(names) = std::fs::read_dir(jobs.global().join("job/manifests")) else { return 0 };
    let version = |name: &str| name.strip_prefix('v')?.strip_suffix(".global")?.parse().ok();
    names.filter_map(|entry| version(entry.ok()?.file_name().to_str()?)).max().unwrap_or(0)
}

/// Runs the job until every rank has returned from so many checkpoints, then kills all ranks.
fn live_until(jobs: &Jobs, returned: u64) {
    let mut life = Life::start(jobs);
    life.wait(returned);
    life.kill();
}

/// The ranks of a job that runs.
struct Life {
    ranks: Vec<Child>,
    /// Kept: nobody shall die of a closed pipe before it is killed.
    outs: Vec<BufReader<ChildStdout>>,
    _meeting: tempfile::TempDir,
}

impl Life {
    fn start(jobs: &Jobs) -> Life {
        let meeting = tempfile::tempdir().unwrap();
        let start = |rank: usize| -> Child {
            let mut command = Command::new(EXE);
            command.arg("rank").arg(&jobs.dir).arg(jobs.seed.to_string());
            command.arg(jobs.nodes.to_string()).arg(&jobs.capture);
            command.arg(meeting.path()).arg(rank.to_string());
            command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().expect("it can be started")
        };
        let mut ranks: Vec<Child> = (0..RANKS).map(start).collect();
        let out = |rank: &mut Child| BufReader::new(rank.stdout.take().expect("it is piped"));
        let outs = ranks.iter_mut().map(out).collect();
        Life { ranks, outs, _meeting: meeting }
    }

    /// Waits until every rank has returned from so many checkpoints.
    fn wait(&mut self, returned: u64) {
        for out in &mut self.outs {
            while Line::parse(&next_line(out)) != Some(Line::Returned(returned)) {}
        }
    }

    fn kill(mut self) {
        for rank in &mut self.ranks {
            rank.kill().unwrap();
            let ended = rank.wait().unwrap();
            assert!(!ended.success(), "it was killed");
        }
    }
}

/// # Panics
/// If there is none: the rank has ended by itself.
fn next_line(out: &mut impl BufRead) -> String {
    let mut line = String::new();
    let bytes = out.read_line(&mut line).expect("a rank tells text");
    assert!(bytes > 0, "a rank has ended by itself");
    line.trim_end().to_owned()
}

fn wait_for(place: &Place, what: &str, is_so: impl Fn(&Status) -> bool) {
    let began = Instant::now();
    loop {
        let status = standfast_agent::status(place);
        if status.as_ref().is_ok_and(&is_so) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{what} does not come: {status:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_drain_of_a_killed_job_is_finished() {
    let dir = tempfile::tempdir().unwrap();
    let jobs = jobs(dir.path(), 1);
    live_until(&jobs, 3);
    let place = &jobs.places()[0];
    wait_for(place, "the end of the drain", |status| status.drains.is_empty());
    let newest = jobs.check_global(3);
    // Another life, another kill; the agent is the same.
    live_until(&jobs, newest + 2);
    wait_for(place, "the end of the second drain", |status| status.drains.is_empty());
    assert!(jobs.check_global(newest + 2) >= newest + 2);
    standfast_agent::stop(place, true).unwrap();
}

/// No agent has all files: each brings its node's part, and whoever comes last commits.
#[test]
fn agents_of_several_nodes_drain_their_parts() {
    let dir = tempfile::tempdir().unwrap();
    let jobs = jobs(dir.path(), 2);
    // The third call returns when the second checkpoint, which was waited for, is committed.
    live_until(&jobs, 3);
    for place in &jobs.places() {
        wait_for(place, "the end of the drain", |status| status.drains.is_empty());
    }
    assert!(jobs.check_global(2) >= 2);
    for place in &jobs.places() {
        standfast_agent::stop(place, true).unwrap();
    }
}

/// Somebody else drains, so it seems: the agent's drain has to wait, until the lock goes.
fn drain_that_waits(jobs: &Jobs) -> (DirStore, LockGuard) {
    let store = DirStore::open(jobs.dir.join("store/job"), &Options::default()).unwrap();
    let other = store.lock(Lock::Drain).unwrap();
    live_until(jobs, 2);
    let waits = |status: &Status| {
        status.sessions.is_empty() && status.drains.iter().any(|drain| drain.waits_for.is_some())
    };
    wait_for(&jobs.places()[0], "a drain that waits", waits);
    (store, other)
}

#[test]
fn an_agent_that_was_killed_leaves_the_drain_to_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let jobs = jobs(dir.path(), 1);
    let (_store, other) = drain_that_waits(&jobs);
    let place = &jobs.places()[0];
    let pid = standfast_agent::status(place).unwrap().pid;
    kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).unwrap();
    drop(other);
    assert!(!jobs.global().join("job/manifests").exists(), "nothing has arrived");
    let dir = place.dir().to_str().unwrap();
    let words = ["agent", "start", "--dir", dir, "--idle", "20000ms"];
    assert!(Command::new(EXE).args(words).status().unwrap().success());
    wait_for(place, "the end of the drain", |status| status.drains.is_empty());
    jobs.check_global(2);
    standfast_agent::stop(place, true).unwrap();
}

/// The program need not end for that: it starts another agent itself.
#[test]
fn a_job_whose_agent_was_killed_gets_another_that_drains() {
    let dir = tempfile::tempdir().unwrap();
    let jobs = jobs(dir.path(), 1);
    let place = &jobs.places()[0];
    let mut life = Life::start(&jobs);
    life.wait(2);
    let killed = standfast_agent::status(place).unwrap().pid;
    kill_process(Pid::from_raw(killed as i32).unwrap(), Signal::KILL).unwrap();
    let is_another = |status: &Status| status.pid != killed && !status.sessions.is_empty();
    let began = Instant::now();
    for returned in 3.. {
        life.wait(returned);
        if standfast_agent::status(place).as_ref().is_ok_and(is_another) {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "there is no other agent");
    }
    let before = newest(&jobs);
    while newest(&jobs) == before {
        assert!(began.elapsed() < PATIENCE, "nothing arrives while the job lives");
        std::thread::sleep(Duration::from_millis(100));
    }
    life.kill();
    wait_for(place, "the end of the drain", |status| status.drains.is_empty());
    assert!(jobs.check_global(newest(&jobs)) > before);
    standfast_agent::stop(place, true).unwrap();
}

#[test]
fn a_job_that_begins_in_the_last_round_of_a_drain_is_drained_too() {
    let dir = tempfile::tempdir().unwrap();
    let jobs = jobs(dir.path(), 1);
    let (store, other) = drain_that_waits(&jobs);
    let place = &jobs.places()[0];
    // Its next round is the last one, and is held up.
    let busy = store.lock(Lock::Busy).unwrap();
    drop(other);
    let is_under_way = |status: &Status| status.drains.iter().any(|own| own.under_way.is_some());
    wait_for(place, "its last round", is_under_way);
    std::thread::scope(|scope| {
        let life = scope.spawn(|| live_until(&jobs, 6));
        wait_for(place, "a second life", |status| !status.sessions.is_empty());
        drop(busy);
        life.join().unwrap();
    });
    wait_for(place, "the end of the drain", |status| status.drains.is_empty());
    // The sixth call returns when the fifth checkpoint is committed.
    assert!(jobs.check_global(5) >= 5);
    standfast_agent::stop(place, true).unwrap();
}

#[test]
fn a_full_target_gets_the_checkpoint_when_it_has_room() {
    let dir = tempfile::tempdir().unwrap();
    let Some((jobs, target)) = jobs_with_target(dir.path(), 8) else { return };
    let filler = target.path().join("filler");
    std::fs::write(&filler, vec![1; (8 << 20) - (24 << 10)]).unwrap();
    let free = || rustix::fs::statvfs(target.path()).unwrap().f_bavail;
    live_until(&jobs, 3);
    wait_in_vain(&jobs, "No space left");
    let left = free();
    std::thread::sleep(Duration::from_secs(3));
    assert!(free() >= left, "attempts that fail take no further space");
    std::fs::remove_file(&filler).unwrap();
    let place = &jobs.places()[0];
    wait_for(place, "the end of the drain", |status| status.drains.is_empty());
    jobs.check_global(3);
    standfast_agent::stop(place, true).unwrap();
}

#[test]
fn a_target_that_was_read_only_gets_the_checkpoint_afterwards() {
    let dir = tempfile::tempdir().unwrap();
    let Some((jobs, target)) = jobs_with_target(dir.path(), 8) else { return };
    target.set_read_only(true);
    live_until(&jobs, 3);
    wait_in_vain(&jobs, "Read-only");
    target.set_read_only(false);
    let place = &jobs.places()[0];
    wait_for(place, "the end of the drain", |status| status.drains.is_empty());
    jobs.check_global(3);
    standfast_agent::stop(place, true).unwrap();
}
