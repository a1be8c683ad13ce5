//! What a restart asks a store for: where a request costs something, each file is opened once.

use std::sync::Arc;

use standfast::config::Loaded;
use standfast::{Job, Level};
use standfast_comm::Comm;
use standfast_format::SegmentRef;
use standfast_store::{MemoryStore, Store};
use standfast_testkit::{FaultyStore, Op, run_threads};

const WORDS: usize = 1 << 18;

#[test]
fn a_rank_opens_its_own_segments_once() {
    for size in [1, 3] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        run_threads(size, |comm| {
            let rank = comm.rank();
            let counted = FaultyStore::new(Arc::clone(&store));
            let all = [
                ("job", "reads"),
                ("lab.segment", "1MiB"),
                ("lab.pool", "4MiB"),
                ("codec", "none"),
            ];
            let all = all.map(|(name, text)| (name.to_owned(), text.to_owned()));
            let loaded = Loaded::load(&all).unwrap();
            let job = Job::open_store_comm(loaded, Arc::new(counted.clone()), &comm).unwrap();
            let words = job.alloc::<u64>("words", WORDS).unwrap();
            let own = |at: usize| (at as u64 + 1).wrapping_mul(0x9e37_79b9) ^ (rank as u64) << 50;
            words.write().iter_mut().enumerate().for_each(|(at, word)| *word = own(at));
            let version = job.checkpoint(None).unwrap();
            job.wait(version, Level::Local).unwrap();
            words.write().fill(0);
            let manifest = job.list().swap_remove(0);
            let is_own = |segment: &&SegmentRef| segment.rank.0 as usize == rank;
            let segments = manifest.segments.iter().filter(is_own).count();
            assert!(segments > 1, "{segments}");
            let before = counted.calls(Op::Open);
            job.restart().unwrap().unwrap();
            let opened = counted.calls(Op::Open) - before;
            assert!(words.read().iter().enumerate().all(|(at, word)| *word == own(at)));
            // Its image and its segments.
            assert_eq!(opened, 1 + segments as u64, "{size} ranks");
            drop(words);
            job.close().unwrap();
        });
    }
}
