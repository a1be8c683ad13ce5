//! The node's agent: what goes through it comes back, and its end costs nothing that was committed.
//!
//! The agent runs in a thread of the test, on a directory of its own; `tests/crash` kills real ones.

use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

use standfast::config::Loaded;
use standfast::{Job, Kind, Level, Protected, Version};
use standfast_agent::{Daemon, Place, Status};
use standfast_comm::Comm;
use standfast_testkit::run_threads;

/// An agent, and where jobs are.
struct World {
    dir: tempfile::TempDir,
    place: Place,
    agent: Option<JoinHandle<()>>,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::open(Some(&dir.path().join("agent"))).unwrap();
        let mut world = Self { dir, place, agent: None };
        world.start();
        world
    }

    fn start(&mut self) {
        let daemon = Daemon::bind(&self.place, Duration::from_secs(600)).unwrap().unwrap();
        self.agent = Some(std::thread::spawn(move || daemon.run()));
    }

    fn stop(&mut self, now: bool) {
        standfast_agent::stop(&self.place, now).unwrap();
        self.agent.take().unwrap().join().unwrap();
    }

    fn status(&self) -> Status {
        standfast_agent::status(&self.place).unwrap()
    }

    fn settings(&self, more: &[(&str, &str)]) -> Loaded {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let mut settings = vec![
            ("store".to_owned(), text(&self.dir.path().join("store"))),
            ("lab.agent_dir".into(), text(self.place.dir())),
            ("lab.agent_command".into(), "/no/such/command".into()),
            ("lab.write".into(), "wag-dbi".into()),
            ("lab.pool".into(), "1MiB".into()),
        ];
        settings.extend(more.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        Loaded::load(&standfast_testkit::last_of_each(settings)).unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(agent) = self.agent.take()
            && standfast_agent::stop(&self.place, true).is_ok()
        {
            let _ = agent.join();
        }
    }
}

const WORDS: usize = 40_000;

/// What a rank's memory holds at a step: some pages are the same on all ranks, some stay as they
/// are, some are of this rank and step alone.
fn word(rank: usize, step: u64, at: usize) -> u64 {
    let page = at / 512;
    let (rank, step) = match page % 4 {
        0 => (0, step),
        1 => (rank as u64, 0),
        2 => (0, 0),
        _ => (rank as u64, step),
    };
    let seed = (at as u64) << 32 | rank << 16 | step;
    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (seed >> 7)
}

fn fill(memory: &Protected<u64>, rank: usize, step: u64) {
    let mut memory = memory.write();
    memory.iter_mut().enumerate().for_each(|(at, value)| *value = word(rank, step, at));
}

fn is_at(memory: &Protected<u64>, rank: usize, step: u64) -> bool {
    memory.read().iter().enumerate().all(|(at, value)| *value == word(rank, step, at))
}

/// Takes checkpoints 1 to `steps` and comes back to each that is kept.
fn life(job: &Job, rank: usize, first: u64, steps: u64) {
    let memory = job.alloc::<u64>("memory", WORDS).unwrap();
    let small = job.alloc::<u8>("small", 100).unwrap();
    for step in first..first + steps {
        fill(&memory, rank, step);
        small.write().fill(step as u8);
        assert_eq!(job.checkpoint(None).unwrap(), Version(step));
        fill(&memory, rank, step + 100);
        job.wait(Version(step), Level::Local).unwrap();
    }
    let kept: Vec<u64> = job.list().iter().map(|manifest| manifest.version.0).collect();
    assert_eq!(kept[0], first + steps - 1);
    for step in kept {
        job.restart_from(Version(step)).unwrap();
        assert!(is_at(&memory, rank, step), "rank {rank}, checkpoint {step}");
        assert!(small.read().iter().all(|byte| *byte == step as u8));
    }
}

#[test]
fn what_goes_through_the_agent_comes_back() {
    for mode in ["full", "incremental", "local", "all"] {
        let world = World::new();
        let settings = || world.settings(&[("lab.mode", mode), ("keep", "3"), ("codec", "lz4")]);
        let job = Job::open_loaded(settings()).unwrap();
        life(&job, 0, 1, 5);
        let status = world.status();
        assert_eq!((status.sessions[0].committed, status.sessions[0].failed), (5, 0), "{mode}");
        assert!(job.report(Version(5)).unwrap().notes.is_empty());
        job.close().unwrap();
        assert!(world.status().sessions.is_empty(), "a closed job leaves nothing behind");
        // Another life goes on from there, by itself: the store is one as any other.
        let job =
            Job::open_loaded(world.settings(&[("lab.write", "pool"), ("lab.mode", mode)])).unwrap();
        life(&job, 0, 6, 2);
    }
}

#[test]
fn ranks_share_pool_and_segments() {
    for (mode, more) in [
        ("all", &[][..]),
        ("full", &[("lab.pool", "512KiB")]),
        ("collective", &[("lab.segment", "256KiB")]),
        ("all", &[("lab.segment", "128KiB"), ("codec", "none"), ("lab.strategy", "topk")]),
        ("local", &[("lab.pool", "16MiB"), ("codec", "none")]),
    ] {
        let world = World::new();
        let more: Vec<(&str, &str)> =
            [("lab.mode", mode), ("keep", "2")].iter().chain(more).copied().collect();
        for first in [1, 4] {
            run_threads(5, |comm| {
                let job = Job::open_comm(world.settings(&more), &comm).unwrap();
                life(&job, comm.rank(), first, 3);
                let notes = job.report(Version(first + 2)).unwrap().notes;
                assert!(notes.is_empty(), "{notes:?}");
                let newest = &job.list()[0];
                assert_eq!(newest.images.len(), 5);
                if mode == "full" {
                    assert_eq!(newest.segments.len(), 1, "five ranks write one segment");
                }
            });
        }
        let status = world.status();
        assert!(status.sessions.is_empty(), "{status:?}");
        assert!(status.writes > 0);
    }
}

#[test]
fn a_tiny_pool_makes_ranks_wait_and_all_of_them_get_on() {
    let world = World::new();
    run_threads(6, |comm| {
        let tiny = [("lab.pool", "64KiB"), ("lab.block", "16KiB"), ("lab.mode", "full")];
        let job = Job::open_comm(world.settings(&tiny), &comm).unwrap();
        life(&job, comm.rank(), 1, 2);
        if comm.rank() == 0 {
            let session = world.status().sessions.remove(0);
            assert_eq!((session.units, session.pool_bytes), (4, 64 << 10));
            assert!(session.units_peak <= 4);
        }
        standfast_comm::collective::barrier(&comm).unwrap();
    });
}

#[test]
fn an_agent_that_ends_costs_nothing_and_ranks_go_on() {
    let mut world = World::new();
    let (world_ref, barrier) = (std::sync::Mutex::new(&mut world), std::sync::Barrier::new(3));
    run_threads(3, |comm| {
        let rank = comm.rank();
        let settings = world_ref.lock().unwrap().settings(&[("keep", "all")]);
        let job = Job::open_comm(settings, &comm).unwrap();
        let memory = job.alloc::<u64>("memory", WORDS).unwrap();
        for step in 1..=3 {
            fill(&memory, rank, step);
            job.checkpoint(None).unwrap();
        }
        job.wait(Version(3), Level::Local).unwrap();
        barrier.wait();
        if rank == 0 {
            world_ref.lock().unwrap().stop(true);
        }
        barrier.wait();
        for step in 4..=6 {
            fill(&memory, rank, step);
            assert_eq!(job.checkpoint(None).unwrap(), Version(step));
            job.wait(Version(step), Level::Local).unwrap();
        }
        let notes = job.report(Version(4)).unwrap().notes;
        assert!(notes[0].contains("by the ranks themselves"), "{notes:?}");
        let notes = job.report(Version(5)).unwrap().notes;
        assert!(notes[0].contains("/no/such/command"), "it looks for another: {notes:?}");
        assert!(job.report(Version(6)).unwrap().notes.is_empty(), "told once");
        for step in 1..=6 {
            job.restart_from(Version(step)).unwrap();
            assert!(is_at(&memory, rank, step), "rank {rank}, checkpoint {step}");
        }
    });
}

#[test]
fn without_an_agent_ranks_write_by_themselves() {
    let mut world = World::new();
    world.stop(false);
    run_threads(2, |comm| {
        let job = Job::open_comm(world.settings(&[]), &comm).unwrap();
        life(&job, comm.rank(), 1, 2);
        let notes = job.report(Version(1)).unwrap().notes;
        assert!(notes[0].contains("/no/such/command"), "{notes:?}");
    });
    // Memory has no place that another process could write to.
    let job = Job::open_loaded(world.settings(&[("store", "memory:")])).unwrap();
    life(&job, 0, 1, 2);
}

#[test]
fn jobs_do_not_disturb_each_other() {
    let world = World::new();
    std::thread::scope(|scope| {
        for name in ["a", "b", "c"] {
            let settings = world.settings(&[("job", name)]);
            scope.spawn(move || {
                let job = Job::open_loaded(settings).unwrap();
                life(&job, name.len(), 1, 4);
            });
        }
    });
    let job = Job::open_loaded(world.settings(&[("job", "a")])).unwrap();
    let second = Job::open_loaded(world.settings(&[("job", "a")]));
    assert_eq!(second.err().unwrap().kind(), Kind::Busy, "one job at a time per store");
    drop(job);
    Job::open_loaded(world.settings(&[("job", "a")])).unwrap().close().unwrap();
}

#[test]
fn a_dropped_job_is_finished_before_the_next_one_begins() {
    let world = World::new();
    for step in 1..=4 {
        let job = Job::open_loaded(world.settings(&[("keep", "all"), ("capture", "cow")])).unwrap();
        let memory = job.alloc::<u64>("memory", WORDS).unwrap();
        if step > 1 {
            assert_eq!(job.restart().unwrap().unwrap().version, Version(step - 1));
            assert!(is_at(&memory, 0, step - 1));
        }
        fill(&memory, 0, step);
        job.checkpoint(None).unwrap();
    }
}
