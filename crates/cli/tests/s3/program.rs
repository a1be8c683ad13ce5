//! The program whose checkpoints are drained: this test program, started again with a job to do.

use std::sync::atomic::{AtomicU64, Ordering};

use standfast::{Job, Level, Version};
use standfast_conformance::store as conformance;
use standfast_store::Options;

/// The environment variable with what to do.
pub(crate) const WORDS: &str = "STANDFAST_TEST_PROGRAM";
const LENGTH: usize = 512 << 10;

/// A state that changes with the version; half of it is the same for ever, and compresses badly.
pub(crate) fn bytes(version: u64) -> Vec<u8> {
    let mut random = 1u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let words = (0..LENGTH).map(|at| match at {
        at if at < LENGTH / 2 => next(),
        at if at < LENGTH * 3 / 4 => next().wrapping_mul(version | 1),
        at => version + at as u64 / 4096,
    });
    words.flat_map(u64::to_ne_bytes).collect()
}

/// Does what the environment asks for; nothing where it asks for nothing.
#[test]
fn program() {
    let Ok(words) = std::env::var(WORDS) else { return };
    match words.split(' ').collect::<Vec<_>>().as_slice() {
        ["contract"] => contract(),
        ["checkpoint", store, from, to] => {
            let (job, mut memory) = open(store);
            for version in from.parse::<u64>().unwrap()..=to.parse().unwrap() {
                take(&job, &mut memory, version);
            }
            job.close().unwrap();
        }
        ["restart", store, version] => restart(store, version.parse().unwrap()),
        ["go-on", store, version] => go_on(store, version.parse().unwrap()),
        other => panic!("{other:?}"),
    }
}

fn open(store: &str) -> (Job, Vec<u8>) {
    let job = Job::open(&[("store", store), ("job", "test"), ("lab.segment", "1MiB")]).unwrap();
    let mut memory = vec![0; 8 * LENGTH];
    // SAFETY: the memory outlives the job and is not touched while a checkpoint is taken.
    unsafe { job.protect("state", memory.as_mut_ptr(), memory.len(), 8) }.unwrap();
    (job, memory)
}

fn take(job: &Job, memory: &mut [u8], version: u64) {
    memory.copy_from_slice(&bytes(version));
    let taken = job.checkpoint(None).unwrap();
    assert_eq!(taken, Version(version), "numbers go on");
    job.wait(taken, Level::Local).unwrap();
}

fn restart(store: &str, version: u64) {
    let (job, memory) = open(store);
    let restarted = job.restart().unwrap().unwrap();
    assert_eq!(restarted.version, Version(version));
    assert!(memory == bytes(version), "another state");
    println!("{restarted:?}");
}

/// Comes back and takes one more checkpoint.
fn go_on(store: &str, version: u64) {
    let (job, mut memory) = open(store);
    job.restart().unwrap().unwrap();
    take(&job, &mut memory, version);
    job.close().unwrap();
}

/// The suite of all backends.
fn contract() {
    let global = std::env::var("STANDFAST_GLOBAL").unwrap();
    let next = AtomicU64::new(0);
    conformance::run(|| {
        let number = next.fetch_add(1, Ordering::Relaxed);
        standfast_store::open(&format!("{global}/{number}"), &Options::default()).unwrap()
    });
}
