//! A real agent against somebody of the same user who says an old conversation again: in another order,
//! twice, cut, with other names and descriptors. Nothing that was committed changes, the agent neither
//! panics nor hangs, and the next job is served.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use standfast::{Job, Level, Version};
use standfast_crash_tests::agents::{Agent, settings};
use standfast_crash_tests::setting;
use standfast_store::{DirStore, Lock, Options, Store};
use standfast_testkit::talk::{Attacker, Recorder, Talk, attacks};

const EXE: &str = env!("CARGO_BIN_EXE_crash-rank");
const WORDS: usize = 16 << 10;
const CHECKPOINTS: u64 = 2;

fn word(step: u64, at: usize) -> u64 {
    (at as u64 ^ step << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Takes checkpoints through the agent in a directory, and comes back to each.
fn work(agent_dir: &Path, store: &Path, versions: std::ops::RangeInclusive<u64>) -> Vec<Vec<u8>> {
    let job = Job::open_loaded(settings(agent_dir, store)).unwrap();
    let memory = job.alloc::<u64>("memory", WORDS).unwrap();
    for version in versions.clone() {
        memory.write().iter_mut().enumerate().for_each(|(at, value)| *value = word(version, at));
        job.checkpoint(Some(Version(version))).unwrap();
        job.wait(Version(version), Level::Local).unwrap();
        let report = job.report(Version(version)).unwrap();
        assert!(!format!("{report:?}").contains("by the ranks themselves"), "{report:?}");
    }
    for version in versions {
        job.restart_from(Version(version)).unwrap();
        assert!(memory.read().iter().enumerate().all(|(at, value)| *value == word(version, at)));
    }
    job.list().iter().map(|manifest| manifest.attempt.0.to_vec()).collect()
}

/// Every file of a store and its bytes, but for the locks.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let store = DirStore::open(dir, &Options::default()).unwrap();
    let objects = store.list("").unwrap().into_iter();
    let mut files: BTreeMap<String, Vec<u8>> = objects
        .map(|object| (object.name.clone(), store.get(&object.name, object.bytes).unwrap()))
        .collect();
    for part in standfast_crash_tests::checker::parts(dir) {
        files.insert(part, Vec::new());
    }
    files
}

fn record(dir: &Path, agent: &Agent) -> (Talk, Vec<Vec<u8>>) {
    let between = dir.join("between");
    std::fs::create_dir(&between).unwrap();
    std::fs::set_permissions(&between, std::fs::Permissions::from_mode(0o700)).unwrap();
    let recorder = Recorder::listen(&between, agent.place.socket()).unwrap();
    let attempts = work(&between, &dir.join("store"), 1..=CHECKPOINTS);
    let mut talks = recorder.talks();
    assert_eq!(talks.len(), 1, "one session");
    (talks.remove(0), attempts)
}

fn lock_of(dir: &Path) -> standfast_store::LockGuard {
    let store = DirStore::open(dir, &Options::default()).unwrap();
    let locked = standfast_testkit::command::until(std::time::Duration::from_secs(20), || {
        store.lock(Lock::Writer).is_ok()
    });
    assert!(locked, "the agent keeps the lock");
    store.lock(Lock::Writer).unwrap()
}

#[test]
fn an_old_conversation_said_again_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let agent = Agent::start(EXE, dir.path(), &[]);
    let (talk, attempts) = record(dir.path(), &agent);
    let store = dir.path().join("store/job");
    let before = files(&store);
    let foreign = lock_of(&dir.path().join("other"));
    let fd = |file: std::fs::File| Some(OwnedFd::from(file));
    let all = attacks(&talk, 5, setting("STANDFAST_TEST_FLIPS", 8));
    for (number, attack) in all.iter().enumerate() {
        let lock = lock_of(&store);
        let descriptors = vec![
            None,
            fd(std::fs::File::open("/dev/null").unwrap()),
            fd(foreign.file().unwrap().try_clone().unwrap()),
            fd(std::fs::File::open(store.join("lock.writer")).unwrap()),
            fd(std::fs::File::open(&store).unwrap()),
        ];
        let (socket, fd) = (agent.place.socket(), lock.file().unwrap().as_fd());
        let attacker =
            Attacker { socket, talk: &talk, lock: fd, descriptors, attempts: attempts.clone() };
        attacker.run(attack).unwrap_or_else(|error| panic!("{attack}: {error}"));
        drop(lock);
        let after = files(&store);
        let changed: Vec<&String> = before
            .keys()
            .chain(after.keys())
            .filter(|name| before.get(*name) != after.get(*name))
            .collect();
        assert!(changed.is_empty(), "{attack}: {changed:?}");
        // The agent serves the next job.
        let version = number as u64 + 1;
        work(agent.place.dir(), &dir.path().join("next"), version..=version);
    }
    assert!(!agent.log().contains("panic"), "{}", agent.log());
    println!("{} attacks on {} messages", all.len(), talk.said.len());
    // What was committed is still what it was.
    let job = Job::open_loaded(settings(agent.place.dir(), &dir.path().join("store"))).unwrap();
    let memory = job.alloc::<u64>("memory", WORDS).unwrap();
    for version in 1..=CHECKPOINTS {
        job.restart_from(Version(version)).unwrap();
        assert!(memory.read().iter().enumerate().all(|(at, value)| *value == word(version, at)));
    }
}
