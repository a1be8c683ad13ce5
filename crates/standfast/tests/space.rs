//! A bounded local store: the oldest checkpoints are removed, and what is needed stays.

use std::path::Path;
use std::time::Duration;

use standfast::{Job, Kind, Level, Protected, Version};
use standfast_store::{DirStore, Lock, Options, Store};

const WORDS: usize = 128 << 10;
const MIB: u64 = 1 << 20;

struct Program {
    job: Job,
    state: Protected<u64>,
}

impl Program {
    /// A program of 1 MiB whose store may take so much.
    fn open(dir: &Path, bound: &str, when_full: &str) -> Self {
        let settings = [
            ("store", dir.to_str().unwrap()),
            ("job", "room"),
            ("keep", bound),
            ("codec", "none"),
            ("lab.when_full", when_full),
        ];
        let job = Job::open(&settings).unwrap();
        let state = job.alloc("state", WORDS).unwrap();
        Self { job, state }
    }

    /// A checkpoint in which every page is new.
    fn checkpoint(&self, step: u64) -> standfast::Result<()> {
        let word = |at: usize| (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ step << 32);
        self.state.write().iter_mut().enumerate().for_each(|(at, own)| *own = word(at));
        let version = self.job.checkpoint(Some(Version(step)))?;
        self.job.wait(version, Level::Local)
    }

    fn versions(&self) -> Vec<u64> {
        self.job.list().iter().map(|manifest| manifest.version.0).collect()
    }
}

fn store(dir: &Path) -> DirStore {
    DirStore::open(dir.join("room"), &Options::default()).unwrap()
}

fn used(dir: &Path) -> u64 {
    store(dir).list("").unwrap().iter().map(|object| object.bytes).sum()
}

#[test]
fn the_oldest_make_room_and_the_bound_holds() {
    let dir = tempfile::tempdir().unwrap();
    let program = Program::open(dir.path(), "3500KiB", "error");
    for step in 1..=8 {
        program.checkpoint(step).unwrap();
        assert!(used(dir.path()) <= 3500 << 10, "step {step}: {}", used(dir.path()));
    }
    assert_eq!(program.versions(), [8, 7, 6]);
    assert_eq!(program.job.restart().unwrap().unwrap().version, Version(8));
}

#[test]
fn what_newer_ones_refer_to_stays_with_them() {
    let dir = tempfile::tempdir().unwrap();
    let program = Program::open(dir.path(), "2500KiB", "error");
    program.checkpoint(1).unwrap();
    // The same pages again: the second refers to the first's segment.
    for step in 2..=4 {
        let version = program.job.checkpoint(Some(Version(step))).unwrap();
        program.job.wait(version, Level::Local).unwrap();
    }
    program.checkpoint(5).unwrap();
    assert!(used(dir.path()) <= 2500 << 10);
    for version in program.versions() {
        program.job.restart_from(Version(version)).unwrap();
    }
}

#[test]
fn a_store_without_room_is_told_before_anything_is_touched() {
    let dir = tempfile::tempdir().unwrap();
    let program = Program::open(dir.path(), "2500KiB", "error");
    program.checkpoint(1).unwrap();
    program.checkpoint(2).unwrap();
    // A drain carries the older one.
    let held = store(dir.path()).lock(Lock::Keep(1)).unwrap();
    let before = used(dir.path());
    let error = program.checkpoint(3).unwrap_err();
    assert_eq!(error.kind(), Kind::Full, "{error}");
    assert!(error.to_string().contains("raise the size in keep"), "{error}");
    assert_eq!((used(dir.path()), program.versions()), (before, vec![2, 1]));
    drop(held);
    program.checkpoint(3).unwrap();
    assert_eq!(program.versions(), [3, 2]);
    // A bound below two checkpoints can hold the newest only.
    let small = tempfile::tempdir().unwrap();
    let program = Program::open(small.path(), "1500KiB", "wait");
    program.checkpoint(1).unwrap();
    let error = program.checkpoint(2).unwrap_err();
    assert_eq!(error.kind(), Kind::Full, "nobody holds anything that waiting would free: {error}");
}

#[test]
fn waiting_ends_when_a_drain_lets_go() {
    let dir = tempfile::tempdir().unwrap();
    let program = Program::open(dir.path(), "2500KiB", "wait");
    program.checkpoint(1).unwrap();
    program.checkpoint(2).unwrap();
    let held = store(dir.path()).lock(Lock::Keep(1)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            drop(held);
        });
        program.checkpoint(3).unwrap();
    });
    assert_eq!(program.versions(), [3, 2]);
    assert!(used(dir.path()) < 3 * MIB);
}
