//! Lazy restarts of several ranks: each goes on at once with pages that any rank may have stored.

use std::sync::Arc;

use standfast::config::Loaded;
use standfast::{Job, Level, Version};
use standfast_comm::Comm;
use standfast_store::{MemoryStore, Store};
use standfast_testkit::{Fault, FaultyStore, run_threads};

const WORDS: usize = 1 << 18;

fn loaded(restart: &str) -> Loaded {
    let all =
        [("job", "ranks"), ("restart", restart), ("lab.pool", "4MiB"), ("lab.segment", "1MiB")];
    Loaded::load(&all.map(|(name, text)| (name.to_owned(), text.to_owned()))).unwrap()
}

/// Half of it is what every rank has, so that most ranks have stored only part of it.
fn expected(rank: usize, step: u64, at: usize) -> u64 {
    match at {
        0..100_000 => at as u64 / 512 + step,
        100_000..110_000 => 0,
        _ => (at as u64 + 1).wrapping_mul(0x9e37_79b9) ^ (rank as u64) << 50 ^ step << 40,
    }
}

fn write(job: &Job, rank: usize, step: u64) -> Version {
    let array = job.alloc::<u64>("array", WORDS).unwrap();
    array.write().iter_mut().enumerate().for_each(|(at, word)| *word = expected(rank, step, at));
    let version = job.checkpoint(None).unwrap();
    job.wait(version, Level::Local).unwrap();
    version
}

fn is_step(job: &Job, rank: usize, step: u64) -> bool {
    let array = job.alloc::<u64>("array", WORDS).unwrap();
    array.write().fill(3);
    let restarted = job.restart().unwrap().unwrap();
    assert_eq!(restarted.version, Version(step));
    // From the end, as no stream does it.
    let same =
        array.read().iter().enumerate().rev().all(|(at, word)| *word == expected(rank, step, at));
    drop(array);
    same
}

#[test]
fn every_rank_reads_what_any_rank_has_stored() {
    for size in [2, 3] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        run_threads(size, |comm| {
            let rank = comm.rank();
            let open =
                |how: &str| Job::open_store_comm(loaded(how), Arc::clone(&store), &comm).unwrap();
            let job = open("lazy");
            write(&job, rank, 1);
            write(&job, rank, 2);
            job.close().unwrap();
            for how in ["lazy", "eager", "lazy"] {
                let job = open(how);
                assert!(is_step(&job, rank, 2), "{how} {rank}");
                job.close().unwrap();
            }
            let job = open("lazy");
            let array = job.alloc::<u64>("array", WORDS).unwrap();
            let restarted = job.restart().unwrap().unwrap();
            assert!(restarted.notes.is_empty(), "{:?}", restarted.notes);
            // The next checkpoint waits for what is under way, and knows every page.
            array.write()[200_000] = 9;
            let version = job.checkpoint(None).unwrap();
            job.wait(version, Level::Local).unwrap();
            assert_eq!(job.report(version).unwrap().stats.new_pages, size as u64);
            job.restart_from(Version(1)).unwrap();
            assert_eq!(array.read()[7], expected(rank, 1, 7));
            drop(array);
            job.close().unwrap();
        });
    }
}

#[test]
fn a_rank_that_cannot_read_all_of_it_makes_all_fill_their_memory() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    run_threads(2, |comm| {
        let rank = comm.rank();
        let faults = FaultyStore::new(Arc::clone(&store));
        let settings = loaded("lazy");
        let job = Job::open_store_comm(settings, Arc::new(faults.clone()), &comm).unwrap();
        let version = write(&job, rank, 1);
        // What the first rank wrote is out of the other's reach, as on a disk of its own.
        if rank == 1 {
            let manifest = job.list().into_iter().find(|it| it.version == version).unwrap();
            let first = manifest.segments.iter().filter(|segment| segment.rank.0 == 0);
            for segment in first {
                faults.inject(Fault::Hide { object: standfast_format::name::segment(segment.id) });
            }
        }
        let array = job.alloc::<u64>("array", WORDS).unwrap();
        let restarted = job.restart().unwrap().unwrap();
        assert_eq!(restarted.notes.len(), 1, "{:?}", restarted.notes);
        assert!(restarted.notes[0].contains("restarted eagerly"), "{:?}", restarted.notes);
        assert!(array.read().iter().enumerate().all(|(at, word)| *word == expected(rank, 1, at)));
        drop(array);
        job.close().unwrap();
    });
}
