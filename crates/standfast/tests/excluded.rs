//! Memory that the program excludes reaches no file, however it is captured, and a restart leaves it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use standfast::config::Loaded;
use standfast::{Job, Level};
use standfast_agent::{Daemon, Place};
use standfast_testkit::run_threads;

const SECRET: &[u8] = b"correct horse battery staple, planted";
const BYTES: usize = 200_000;
/// Not at the start of a page, and over the end of one.
const AT: usize = 3 * 4096 - FIRST;
/// Bytes of the secret on its first page; pages of two ranks are stored apart.
const FIRST: usize = 11;

fn holds(dir: &Path, text: &[u8]) -> bool {
    std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).any(|path: PathBuf| {
        match path.is_dir() {
            true => holds(&path, text),
            false => {
                std::fs::read(path).unwrap_or_default().windows(text.len()).any(|part| part == text)
            }
        }
    })
}

fn words(store: &Path, more: &[(&str, &str)]) -> Vec<(String, String)> {
    let store = store.to_str().unwrap();
    let own = [("store", store), ("job", "excluded"), ("codec", "none")];
    own.iter().chain(more).map(|(name, text)| ((*name).into(), (*text).into())).collect()
}

/// Whether any file holds some of the secret.
fn holds_secret(dir: &Path) -> bool {
    holds(dir, &SECRET[..FIRST]) || holds(dir, &SECRET[FIRST..])
}

/// Fills memory that has the secret in it and something before and behind.
fn fill(memory: &mut [u8], step: u8) {
    for (at, byte) in memory.iter_mut().enumerate() {
        *byte = (at / 7) as u8 ^ (at / 4096) as u8 ^ step;
    }
    memory[AT..AT + SECRET.len()].copy_from_slice(SECRET);
}

fn checkpoint(job: &Job) {
    let version = job.checkpoint(None).unwrap();
    job.wait(version, Level::Local).unwrap();
}

/// Checkpoints with the secret excluded, a restart, and one with the secret included again.
fn story(job: &Job, store: &Path) {
    let region = job.alloc::<u8>("state", BYTES).unwrap();
    let secret = region.read()[AT..].as_ptr();
    job.exclude(secret, SECRET.len());
    for step in 1..=3 {
        fill(&mut region.write(), step);
        checkpoint(job);
        assert!(!holds_secret(store));
    }
    let expected = region.read().to_vec();
    region.write().fill(9);
    region.write()[AT..AT + SECRET.len()].fill(8);
    job.restart().unwrap().expect("a checkpoint");
    let now = region.read().to_vec();
    assert_eq!(now[..AT], expected[..AT], "what lies before is stored");
    assert_eq!(now[AT..AT + SECRET.len()], [8; SECRET.len()], "excluded bytes stay as they are");
    assert_eq!(now[AT + SECRET.len()..], expected[AT + SECRET.len()..]);
    fill(&mut region.write(), 3);
    checkpoint(job);
    assert!(!holds_secret(store));
    job.include(secret, SECRET.len());
    checkpoint(job);
    assert!(
        holds(store, &SECRET[..FIRST]) && holds(store, &SECRET[FIRST..]),
        "included again, without being written"
    );
}

fn alone(more: &[(&str, &str)]) {
    let dir = tempfile::tempdir().unwrap();
    let job = Job::open_loaded(Loaded::load(&words(dir.path(), more)).unwrap()).unwrap();
    story(&job, dir.path());
    job.close().unwrap();
}

#[test]
fn stopped() {
    alone(&[("capture", "stop")]);
    alone(&[("capture", "stop"), ("lab.threads", "1"), ("lab.track", "hash")]);
}

#[test]
fn copied_on_write() {
    alone(&[("capture", "cow")]);
    alone(&[("capture", "staged")]);
    alone(&[]);
}

#[test]
fn two_ranks() {
    for capture in ["stop", "cow", "staged", "auto"] {
        let dir = tempfile::tempdir().unwrap();
        let words = words(dir.path(), &[("capture", capture)]);
        run_threads(2, |comm| {
            let job = Job::open_comm(Loaded::load(&words).unwrap(), &comm).unwrap();
            story(&job, dir.path());
            job.close().unwrap();
        });
    }
}

#[test]
fn through_the_agent() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::open(Some(&dir.path().join("agent"))).unwrap();
    let daemon = Daemon::bind(&place, Duration::from_secs(600)).unwrap().unwrap();
    let agent = std::thread::spawn(move || daemon.run());
    let at = place.dir().to_str().unwrap().to_owned();
    let store = dir.path().join("store");
    let more = [("agent", &*at), ("lab.agent_command", "/no/such/command"), ("lab.pool", "1MiB")];
    let job = Job::open_loaded(Loaded::load(&words(&store, &more)).unwrap()).unwrap();
    story(&job, dir.path());
    job.close().unwrap();
    standfast_agent::stop(&place, true).unwrap();
    agent.join().unwrap();
}

#[test]
fn memory_that_is_not_dumped_is_not_stored() {
    let dir = tempfile::tempdir().unwrap();
    let job = Job::open_loaded(Loaded::load(&words(dir.path(), &[])).unwrap()).unwrap();
    let region = job.alloc::<u8>("state", BYTES).unwrap();
    fill(&mut region.write(), 1);
    let start = region.write()[2 * 4096..].as_mut_ptr();
    // SAFETY: advice about whole pages of the region.
    unsafe { rustix::mm::madvise(start.cast(), 8192, rustix::mm::Advice::LinuxDontDump) }.unwrap();
    checkpoint(&job);
    assert!(!holds_secret(dir.path()));
    let before = region.read().to_vec();
    region.write().fill(5);
    job.restart().unwrap().expect("a checkpoint");
    let now = region.read().to_vec();
    assert_eq!(now[2 * 4096..4 * 4096], [5; 8192]);
    assert_eq!(now[4 * 4096..], before[4 * 4096..]);
}
