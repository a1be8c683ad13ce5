//! The bars of an agent that is attacked or stopped: real processes, the attacks of the tests.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use standfast::config::Loaded;
use standfast::{Job, Level, Version};
use standfast_agent::Place;
use standfast_measure::{Bar, Better};
use standfast_store::{DirStore, Lock, Options, Store};
use standfast_testkit::command::{clean, die_with_us, until};
use standfast_testkit::talk::{Attacker, Recorder, Talk, attacks};

use super::Sheet;

const LETTER: &str = "K";
const WORDS: usize = 64 << 10;
/// How long a call may take whose agent does not answer.
const CALL_MAX: Duration = Duration::from_secs(6);

/// Measures the bars, handing each over as soon as it is known.
pub(crate) fn bars(quick: bool, sheet: &mut Sheet) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (refused, tried) = attacked(dir.path(), if quick { 2 } else { 32 })?;
    let name = format!("agent: attacks refused of {tried} tried");
    sheet.bar(Bar::new(LETTER, name, refused as f64, Better::Higher, tried as f64));
    let instants_ms: &[u64] = if quick { &[0, 2] } else { &[0, 1, 2, 4, 8, 16, 32] };
    let (mut calls, mut ended) = (0, 0);
    for after_ms in instants_ms {
        let took = stopped(*after_ms)?;
        calls += took.len();
        ended += took.iter().filter(|took| **took < CALL_MAX).count();
    }
    let name = format!(
        "agent stopped at {} points: calls of {calls} that ended within 6 s",
        instants_ms.len()
    );
    sheet.bar(Bar::new(LETTER, name, ended as f64, Better::Higher, calls as f64));
    Ok(())
}

/// A running agent; dropping it kills it.
struct Agent {
    place: Place,
    child: Child,
}

impl Agent {
    fn start(dir: &Path) -> anyhow::Result<Self> {
        let place = Place::open(Some(&dir.join("agent")))?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["agent", "run", "--dir"]).arg(place.dir()).args(["--idle", "600000ms"]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = clean(die_with_us(&mut command)).spawn()?;
        let agent = Self { place, child };
        let answers = || standfast_agent::status(&agent.place).is_ok();
        anyhow::ensure!(until(Duration::from_secs(30), answers), "no agent answers");
        Ok(agent)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn open(agent_dir: &Path, store: &Path) -> anyhow::Result<Job> {
    let settings = [
        ("store", store.display().to_string()),
        ("job", "job".into()),
        ("lab.agent_dir", agent_dir.display().to_string()),
        ("lab.agent_command", "/no/such/command".into()),
        ("lab.write", "wag-dbi".into()),
        ("lab.pool", "1MiB".into()),
    ];
    let settings: Vec<(String, String)> =
        settings.into_iter().map(|(name, value)| (name.into(), value)).collect();
    Ok(Job::open_loaded(Loaded::load(&settings)?)?)
}

/// Takes a checkpoint through the agent; its attempt.
fn work(agent_dir: &Path, store: &Path, step: u64) -> anyhow::Result<Vec<u8>> {
    let job = open(agent_dir, store)?;
    let memory = job.alloc::<u64>("memory", WORDS)?;
    memory.write().iter_mut().zip(step << 32..).for_each(|(value, number)| *value = number);
    let version = job.checkpoint(None)?;
    job.wait(version, Level::Local)?;
    let notes = job.report(version)?.notes;
    anyhow::ensure!(notes.is_empty(), "{notes:?}");
    Ok(job.list()[0].attempt.0.to_vec())
}

fn record(dir: &Path, agent: &Agent) -> anyhow::Result<(Talk, Vec<Vec<u8>>)> {
    let between = Place::open(Some(&dir.join("between")))?;
    let recorder = Recorder::listen(between.dir(), agent.place.socket())?;
    let attempt = work(between.dir(), &dir.join("store"), 1)?;
    let talk = recorder.talks().pop().context("nothing was recorded")?;
    Ok((talk, vec![attempt]))
}

fn files(dir: &Path) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let store = DirStore::open(dir, &Options::default())?;
    let read = |object: standfast_store::ObjectMeta| {
        Ok((object.name.clone(), store.get(&object.name, object.bytes)?))
    };
    store.list("")?.into_iter().map(read).collect()
}

/// How many attacks changed nothing and left an agent that serves, of how many.
fn attacked(dir: &Path, flips: u64) -> anyhow::Result<(usize, usize)> {
    let agent = Agent::start(dir)?;
    let (talk, attempts) = record(dir, &agent)?;
    let path = dir.join("store/job");
    let (store, before) = (DirStore::open(&path, &Options::default())?, files(&path)?);
    let all = attacks(&talk, 2, flips);
    let mut refused = 0;
    for (number, attack) in all.iter().enumerate() {
        let mut held = store.lock(Lock::Writer);
        until(Duration::from_secs(20), || {
            held = store.lock(Lock::Writer);
            held.is_ok()
        });
        let lock = held?;
        let fd = lock.file().context("a directory's lock is a file")?.as_fd();
        let descriptors = vec![None, Some(OwnedFd::from(File::open("/dev/null")?))];
        let (socket, attempts): (PathBuf, _) = (agent.place.socket(), attempts.clone());
        let ran = Attacker { socket, talk: &talk, lock: fd, descriptors, attempts }.run(attack);
        drop(lock);
        let serves = work(agent.place.dir(), &dir.join("next"), number as u64).is_ok();
        refused += usize::from(ran.is_ok() && files(&path)? == before && serves);
    }
    Ok((refused, all.len()))
}

/// How long the calls of a job take whose agent is stopped so long after a checkpoint was begun.
fn stopped(after_ms: u64) -> anyhow::Result<Vec<Duration>> {
    let dir = tempfile::tempdir()?;
    let agent = Agent::start(dir.path())?;
    let job = open(agent.place.dir(), &dir.path().join("store"))?;
    let memory = job.alloc::<u64>("memory", 16 * WORDS)?;
    let pid = Pid::from_child(&agent.child);
    let mut took = Vec::new();
    for step in 1..=2u64 {
        memory.write().iter_mut().zip(step << 32..).for_each(|(value, number)| *value = number);
        let stopping = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(after_ms));
            let _ = kill_process(pid, Signal::STOP);
        });
        let began = Instant::now();
        let taken = job.checkpoint(Some(Version(step)));
        took.push(began.elapsed());
        let began = Instant::now();
        let _ = taken.and_then(|version| job.wait(version, Level::Local));
        took.push(began.elapsed());
        stopping.join().map_err(|_| anyhow::anyhow!("stopping panicked"))?;
    }
    Ok(took)
}
