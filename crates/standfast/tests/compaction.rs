//! Stores of many checkpoints stay small, and what is stored again comes back as it was.

use std::path::Path;

use standfast::Job;
use standfast::config::Loaded;
use standfast_comm::Comm;
use standfast_testkit::{command::Random, run_threads};

const PAGE: usize = 1024;
const PAGES: usize = 2048;
/// Checkpoints that are kept.
const KEEP: usize = 3;
/// Pages that change between two of them.
const CHANGES: usize = 8;
const ROUNDS: usize = 120;

fn open(store: &Path, capture: &str, comm: &dyn Comm) -> Job {
    let settings = [
        ("store", store.to_str().unwrap()),
        ("job", "many"),
        ("keep", "3"),
        ("capture", capture),
        ("codec", "none"),
        ("lab.page", "1KiB"),
        ("lab.block", "4KiB"),
        ("lab.segment", "64KiB"),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Job::open_comm(Loaded::load(&settings).unwrap(), comm).unwrap()
}

/// Files below a store's `segments`, and their bytes.
fn segments(store: &Path) -> (usize, u64) {
    let dir = store.join("many/segments");
    let sizes =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
    sizes.fold((0, 0), |(files, bytes), size| (files + 1, bytes + size))
}

fn change(memory: &mut [u8], random: &mut Random) {
    for _ in 0..CHANGES {
        let page = random.next_u64() as usize % PAGES;
        memory[page * PAGE..][..8].copy_from_slice(&random.next_u64().to_le_bytes());
    }
}

/// Takes many checkpoints on each rank, and brings the last one back.
fn many(ranks: usize, capture: &str, shared: bool) -> (usize, u64) {
    let home = tempfile::tempdir().unwrap();
    run_threads(ranks, |comm| {
        let job = open(home.path(), capture, &comm);
        let memory = job.alloc::<u8>("memory", PAGES * PAGE).unwrap();
        // Ranks that share everything draw the same numbers.
        let mut random = Random::new(if shared { 1 } else { 1 + 2 * comm.rank() as u64 });
        memory.write().copy_from_slice(&random.noise(PAGES * PAGE));
        for _ in 0..ROUNDS {
            change(&mut memory.write(), &mut random);
            job.checkpoint(None).unwrap();
        }
        job.settle().unwrap();
        let wanted = memory.read().to_vec();
        memory.write().fill(0);
        job.restart().unwrap().unwrap();
        assert!(memory.read()[..] == wanted[..], "rank {}: another state", comm.rank());
        job.close().unwrap();
    });
    segments(home.path())
}

fn assert_small((files, bytes): (usize, u64), writers: usize, pages: usize) {
    assert!(files <= 64 * writers, "{files} segments of {writers} ranks");
    // The kept checkpoints' own pages are needed too; heads and indexes come on top.
    let needed = ((pages + KEEP * CHANGES * writers) * PAGE) as f64;
    let heads = (files * 4096) as f64;
    assert!(bytes as f64 <= 1.3 * needed + heads, "{bytes} bytes for {needed}, {files} files");
}

#[test]
fn one_rank_stays_small() {
    assert_small(many(1, "stop", false), 1, PAGES);
}

#[test]
fn snapshots_stay_small() {
    assert_small(many(1, "cow", false), 1, PAGES);
}

#[test]
fn ranks_of_their_own_stay_small() {
    assert_small(many(3, "stop", false), 3, 3 * PAGES);
}

#[test]
fn ranks_that_share_everything_stay_small() {
    assert_small(many(3, "stop", true), 3, PAGES);
}
