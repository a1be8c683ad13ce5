//! Checkpoints of several ranks that do not stop their programs: each is the state of every rank at
//! its call, pages are shared among ranks behind the programs, and nobody waits for ever.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use standfast::config::Loaded;
use standfast::{Job, Kind, Level, Rank, Version};
use standfast_comm::{Comm, Concurrency, Result, Tag};
use standfast_store::{MemoryStore, Store};
use standfast_testkit::{Fault, FaultyStore, Op, run_threads};

const WORDS: usize = 1 << 20;
const PAGE_WORDS: usize = 512;

type Settings = [(&'static str, &'static str)];

fn loaded(settings: &Settings) -> Loaded {
    let base = [("job", "ranks"), ("capture", "cow"), ("memory", "10MiB"), ("lab.pool", "2MiB")];
    // Memory is for all ranks of the node.
    let own = |(name, text): (&str, &str)| (name.to_owned(), text.to_owned());
    let all =
        standfast_testkit::last_of_each(base.into_iter().chain(settings.iter().copied()).map(own));
    Loaded::load(&all).unwrap()
}

fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 16
}

/// Memory of one rank: its first half is that of every other rank too.
struct Field(Vec<AtomicU64>);

impl Field {
    fn new(rank: usize) -> Self {
        let word = |at: usize| match at < WORDS / 2 {
            true => at as u64 + 1,
            false => (at as u64) << 8 | rank as u64,
        };
        Self((0..WORDS).map(|at| AtomicU64::new(word(at))).collect())
    }

    fn protect(&self, job: &Job) {
        let start = self.0.as_ptr().cast_mut().cast();
        // SAFETY: the memory outlives its protection; writers pause during the calls.
        unsafe { job.protect("field", start, WORDS * 8, 8).unwrap() };
    }

    fn copy(&self) -> Vec<u64> {
        self.0.iter().map(|word| word.load(Ordering::Relaxed)).collect()
    }
}

/// Whether the program was stopped because it could not be otherwise. `auto` also stops it for a
/// checkpoint that comes before memory for copies is ready.
fn stops(job: &Job, version: Version) -> bool {
    let of_need = |note: &String| note.contains("program stopped") && !note.contains("not ready");
    job.report(version).unwrap().notes.iter().any(of_need)
}

/// Takes checkpoints while threads scribble over the memory; what it held at each call.
fn scribbled(job: &Job, field: &Field, area: usize, rounds: usize) -> Vec<Vec<u64>> {
    let (stop, pause) = (AtomicBool::new(false), RwLock::new(()));
    let mut states = Vec::new();
    std::thread::scope(|scope| {
        for seed in 1..=2u64 {
            let (stop, pause) = (&stop, &pause);
            scope.spawn(move || {
                let mut state = seed * 0x1234_5677;
                while !stop.load(Ordering::Relaxed) {
                    let _running = pause.read().unwrap();
                    for _ in 0..64 {
                        let at = next(&mut state) as usize % area;
                        // Ranks write the same now and then: pages that are new and shared.
                        field.0[at].store(next(&mut state) % 3, Ordering::Relaxed);
                    }
                }
            });
        }
        for round in 0..rounds {
            let stopped = pause.write().unwrap();
            states.push(field.copy());
            let version = job.checkpoint(None).unwrap();
            drop(stopped);
            if round % 2 == 0 {
                job.wait(version, Level::Local).unwrap();
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    states
}

#[test]
fn every_checkpoint_is_the_state_of_all_ranks_at_the_call() {
    // All memory changes; a little does, so that tracking takes over; every way of sharing.
    let cases: [(usize, usize, &Settings); 8] = [
        (2, WORDS, &[]),
        (3, 20 * PAGE_WORDS, &[]),
        (2, WORDS, &[("lab.strategy", "topk"), ("lab.mode", "collective"), ("lab.track", "hash")]),
        (3, WORDS / 8, &[("lab.page", "16KiB")]),
        (2, WORDS / 8, &[("lab.mode", "local")]),
        (3, WORDS, &[("capture", "staged"), ("memory", "300MiB")]),
        (2, WORDS / 8, &[("capture", "auto"), ("memory", "300MiB"), ("lab.strategy", "topk")]),
        (2, 20 * PAGE_WORDS, &[("capture", "staged"), ("memory", "300MiB"), ("lab.page", "16KiB")]),
    ];
    for (size, area, settings) in cases {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        run_threads(size, |comm| {
            let (loaded, store) = (loaded(settings), Arc::clone(&store));
            let job = Job::open_store_comm(loaded, store, &comm).unwrap();
            let field = Field::new(comm.rank());
            field.protect(&job);
            let states = scribbled(&job, &field, area, 4);
            for version in 1..=4 {
                let notes = job.report(Version(version)).unwrap().notes;
                assert!(!stops(&job, Version(version)), "{settings:?} {version}: {notes:?}");
            }
            for (at, state) in states.iter().enumerate() {
                job.restart_from(Version(at as u64 + 1)).unwrap();
                assert!(field.copy() == *state, "{settings:?}, checkpoint {}", at + 1);
            }
            job.unprotect("field").unwrap();
            job.close().unwrap();
        });
    }
}

#[test]
fn pages_are_stored_once_for_all_ranks() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let new_pages = run_threads(3, |comm| {
        let settings = loaded(&[("memory", "300MiB")]);
        let job = Job::open_store_comm(settings, Arc::clone(&store), &comm).unwrap();
        let field = Field::new(comm.rank());
        field.protect(&job);
        let version = job.checkpoint(None).unwrap();
        job.wait(version, Level::Local).unwrap();
        let first = job.report(version).unwrap().stats.new_pages;
        field.0[7].store(99, Ordering::Relaxed);
        let version = job.checkpoint(None).unwrap();
        job.wait(version, Level::Local).unwrap();
        job.unprotect("field").unwrap();
        (first, job.report(version).unwrap().stats.new_pages)
    });
    let pages = (WORDS / PAGE_WORDS) as u64;
    // The report is of all ranks: one common half and three halves of their own, then one page.
    assert!(new_pages.iter().all(|found| *found == (pages / 2 * 4, 1)), "{new_pages:?}");
}

/// A communicator as a message library with one lock has it: every call takes it for a moment.
struct OneLock {
    comm: Box<dyn Comm>,
    lock: Arc<Mutex<()>>,
    concurrency: Concurrency,
    /// Whether the thread that agrees with other ranks panics when it asks for its rank.
    trap: Arc<AtomicBool>,
}

impl OneLock {
    fn new(comm: impl Comm + 'static, concurrency: Concurrency) -> Self {
        Self { comm: Box::new(comm), lock: Arc::default(), concurrency, trap: Arc::default() }
    }

    fn enter(&self) -> &dyn Comm {
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
        &*self.comm
    }
}

impl Comm for OneLock {
    fn rank(&self) -> usize {
        // Threads of ranks and the committer have names.
        let agrees = std::thread::current().name().is_none();
        assert!(!(agrees && self.trap.swap(false, Ordering::Relaxed)), "as planned");
        self.comm.rank()
    }

    fn size(&self) -> usize {
        self.comm.size()
    }

    fn concurrency(&self) -> Concurrency {
        self.concurrency
    }

    fn send(&self, to: usize, tag: Tag, bytes: &[u8]) -> Result<()> {
        self.enter().send(to, tag, bytes)
    }

    fn receive(&self, from: usize, tag: Tag) -> Result<Vec<u8>> {
        self.enter().receive(from, tag)
    }

    fn exchange(&self, to: usize, bytes: &[u8], from: usize, tag: Tag) -> Result<Vec<u8>> {
        self.enter().exchange(to, bytes, from, tag)
    }

    fn all_to_all(&self, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        self.enter().all_to_all(outgoing)
    }

    fn barrier(&self) -> Result<()> {
        self.enter().barrier()
    }

    fn split(&self, colour: Option<u32>, key: u32) -> Result<Option<Box<dyn Comm>>> {
        let part = self.enter().split(colour, key)?;
        let (lock, trap) = (&self.lock, &self.trap);
        Ok(part.map(|comm| {
            let (lock, trap) = (Arc::clone(lock), Arc::clone(trap));
            Box::new(Self { comm, lock, concurrency: self.concurrency, trap }) as _
        }))
    }
}

#[test]
fn a_writer_inside_the_message_library_holds_nobody_up_for_ever() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    run_threads(2, |comm| {
        let rank = comm.rank();
        let comm = OneLock::new(comm, Concurrency::AnyThread);
        let lock = Arc::clone(&comm.lock);
        let job = Job::open_store_comm(loaded(&[]), Arc::clone(&store), &comm).unwrap();
        let field = Field::new(rank);
        field.protect(&job);
        for _ in 0..3 {
            let state = field.copy();
            let version = job.checkpoint(None).unwrap();
            // As a message that is received into memory larger than there is for copies.
            let receiving = lock.lock().unwrap();
            field.0.iter().for_each(|word| {
                word.fetch_add(1 << 40, Ordering::Relaxed);
            });
            drop(receiving);
            job.wait(version, Level::Local).unwrap();
            assert!(!stops(&job, version));
            let now = field.copy();
            job.restart_from(version).unwrap();
            assert!(field.copy() == state, "rank {rank}, {version}");
            field.0.iter().zip(now).for_each(|(word, now)| word.store(now, Ordering::Relaxed));
        }
        job.unprotect("field").unwrap();
        job.close().unwrap();
    });
}

#[test]
fn ranks_whose_threads_may_not_talk_stop_only_to_share() {
    for (mode, stopped) in [("all", true), ("local", false)] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        run_threads(2, |comm| {
            let rank = comm.rank();
            let comm = OneLock::new(comm, Concurrency::CallerOnly);
            let settings = loaded(&[("lab.mode", mode)]);
            let job = Job::open_store_comm(settings, Arc::clone(&store), &comm).unwrap();
            let field = Field::new(rank);
            field.protect(&job);
            let state = field.copy();
            let version = job.checkpoint(None).unwrap();
            field.0.iter().for_each(|word| word.store(5, Ordering::Relaxed));
            job.wait(version, Level::Local).unwrap();
            assert_eq!(stops(&job, version), stopped, "{mode}");
            job.restart_from(version).unwrap();
            assert!(field.copy() == state);
            job.unprotect("field").unwrap();
            job.close().unwrap();
        });
    }
}

#[test]
fn ranks_whose_threads_may_not_talk_are_staged_and_taken_in_within_later_calls() {
    for (strategy, calls) in [("exact", 0), ("exact", 4), ("topk", 4)] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        run_threads(3, |comm| {
            let rank = comm.rank();
            let comm = OneLock::new(comm, Concurrency::CallerOnly);
            let settings: &Settings =
                &[("capture", "staged"), ("memory", "300MiB"), ("lab.strategy", strategy)];
            let job = Job::open_store_comm(loaded(settings), Arc::clone(&store), &comm).unwrap();
            let mut states = Vec::new();
            for round in 1..=3u64 {
                // Memory is gone when it is taken in.
                let field = Field::new(rank);
                field.0[round as usize * 600].store(round, Ordering::Relaxed);
                field.protect(&job);
                states.push(field.copy());
                let version = job.checkpoint(None).unwrap();
                assert!(!matches!(job.poll(version).unwrap(), standfast::Progress::Done(_)));
                job.unprotect("field").unwrap();
                drop(field);
                for _ in 0..calls {
                    assert_eq!(job.point().unwrap(), None);
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                if round != 2 {
                    job.wait(version, Level::Local).unwrap();
                    assert!(!stops(&job, version));
                }
            }
            let field = Field::new(rank);
            field.protect(&job);
            for (version, state) in (1..).zip(&states) {
                job.restart_from(Version(version)).unwrap();
                assert!(field.copy() == *state, "{strategy}, checkpoint {version}");
            }
            job.unprotect("field").unwrap();
            job.close().unwrap();
        });
    }
}

#[test]
fn a_rank_that_fails_behind_its_program_fails_the_checkpoint_of_all() {
    for (op, nth) in
        [(Op::Create, 0), (Op::Append, 0), (Op::Append, 3), (Op::Seal, 0), (Op::Put, 0)]
    {
        for concurrency in [Concurrency::AnyThread, Concurrency::CallerOnly] {
            let mode = match concurrency {
                Concurrency::AnyThread => "all",
                Concurrency::CallerOnly => "local",
            };
            let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
            run_threads(3, |comm| {
                let rank = comm.rank();
                let comm = OneLock::new(comm, concurrency);
                let faults = FaultyStore::new(Arc::clone(&store));
                let settings = loaded(&[("lab.mode", mode)]);
                let job = Job::open_store_comm(settings, Arc::new(faults.clone()), &comm).unwrap();
                let field = Field::new(rank);
                field.protect(&job);
                let first = job.checkpoint(None).unwrap();
                job.wait(first, Level::Local).unwrap();
                let state = field.copy();
                if rank == 1 {
                    faults.reset();
                    faults.inject(Fault::Fail { op, nth, kind: Kind::Full });
                }
                field.0.iter().for_each(|word| {
                    word.fetch_add(1 << 50, Ordering::Relaxed);
                });
                let second = job.checkpoint(None).unwrap();
                let error = job.wait(second, Level::Local).unwrap_err();
                assert_eq!(error.kind(), Kind::Full, "{op:?} {nth}: {error}");
                let heard = error.rank() == Some(Rank(1));
                assert_eq!(heard, rank != 1, "{error}");
                faults.reset();
                job.restart().unwrap().unwrap();
                assert!(field.copy() == state, "the previous one is good");
                let third = job.checkpoint(None).unwrap();
                job.wait(third, Level::Local).unwrap();
                job.restart_from(third).unwrap();
                assert!(field.copy() == state);
                job.unprotect("field").unwrap();
                job.close().unwrap();
            });
        }
    }
}

#[test]
fn a_panic_while_the_ranks_agree_fails_the_checkpoint_of_all() {
    for strategy in ["exact", "topk"] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        run_threads(3, |comm| {
            let rank = comm.rank();
            let comm = OneLock::new(comm, Concurrency::AnyThread);
            let settings: &Settings = match strategy {
                "exact" => &[],
                _ => &[("lab.strategy", "topk"), ("lab.mode", "collective")],
            };
            let job = Job::open_store_comm(loaded(settings), Arc::clone(&store), &comm).unwrap();
            let field = Field::new(rank);
            field.protect(&job);
            let first = job.checkpoint(None).unwrap();
            job.wait(first, Level::Local).unwrap();
            comm.trap.store(rank == 1, Ordering::Relaxed);
            field.0.iter().for_each(|word| {
                word.fetch_add(1 << 50, Ordering::Relaxed);
            });
            let second = job.checkpoint(None).unwrap();
            let error = job.wait(second, Level::Local).unwrap_err();
            assert_eq!(error.kind(), Kind::Bug, "{error}");
            let heard = error.rank() == Some(Rank(1));
            assert_eq!(heard, rank != 1, "{error}");
            let state = field.copy();
            let third = job.checkpoint(None).unwrap();
            job.wait(third, Level::Local).unwrap();
            field.0.iter().for_each(|word| word.store(5, Ordering::Relaxed));
            job.restart_from(third).unwrap();
            assert!(field.copy() == state);
            job.unprotect("field").unwrap();
            job.close().unwrap();
        });
    }
}
