//! Agents of several nodes, each with a store of its own: one checkpoint over all of them.
//!
//! Nodes are virtual and agents are threads of the test; `tests/crash` kills real ones.

use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

use standfast::config::Loaded;
use standfast::{Job, Level, Protected, Version};
use standfast_agent::{Daemon, Place};
use standfast_comm::Comm;
use standfast_testkit::{Funneled, run_threads};

/// Nodes with their agents.
struct World {
    dir: tempfile::TempDir,
    node_of: Vec<usize>,
    agents: Vec<Option<JoinHandle<()>>>,
    more: Vec<(&'static str, &'static str)>,
}

impl World {
    fn new(node_of: &[usize]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let nodes = node_of.iter().max().unwrap() + 1;
        let agents = (0..nodes).map(|_| None).collect();
        let mut world = Self { dir, node_of: node_of.to_vec(), agents, more: Vec::new() };
        for node in 0..nodes {
            let daemon = Daemon::bind(&world.place(node), Duration::from_secs(600));
            let daemon = daemon.unwrap().unwrap();
            world.agents[node] = Some(std::thread::spawn(move || daemon.run()));
        }
        world
    }

    fn with(mut self, name: &'static str, text: &'static str) -> Self {
        self.more.push((name, text));
        self
    }

    fn place(&self, node: usize) -> Place {
        Place::open(Some(&self.dir.path().join(format!("agent-n{node}")))).unwrap()
    }

    fn stop(&self, node: usize) {
        standfast_agent::stop(&self.place(node), true).unwrap();
    }

    fn store(&self, node: usize) -> PathBuf {
        self.dir.path().join(format!("store/n{node}/job"))
    }

    fn names(&self, node: usize, below: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.store(node).join(below)) else { return vec![] };
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != "header").collect()
    }

    fn open(&self, comm: &dyn Comm) -> Job {
        let node = format!("n{}", self.node_of[comm.rank()]);
        let text = |name: &str| self.dir.path().join(name).to_str().unwrap().to_owned();
        let (store, agent_dir) = (text("store/{node}"), text("agent"));
        let mut settings = vec![
            ("store", store.as_str()),
            ("lab.node", &node),
            ("lab.agent_dir", &agent_dir),
            ("lab.agent_command", "/no/such/command"),
            ("lab.write", "wag-dbi"),
            ("lab.pool", "1MiB"),
            ("keep", "3"),
        ];
        settings.extend(&self.more);
        let own = |(name, text): (&str, &str)| (name.to_owned(), text.to_owned());
        let settings = standfast_testkit::last_of_each(settings.into_iter().map(own));
        Job::open_comm(Loaded::load(&settings).unwrap(), comm).unwrap()
    }

    /// Every rank comes back to the newest checkpoint, which is this one.
    fn restart(&self, newest: u64) {
        run_threads(self.node_of.len(), |comm| {
            let job = self.open(&comm);
            let memory = job.alloc::<u64>("memory", WORDS).unwrap();
            assert_eq!(job.restart().unwrap().unwrap().version, Version(newest));
            assert!(is_at(&memory, comm.rank(), newest), "rank {}", comm.rank());
        });
    }

    fn assert_clean(&self) {
        for node in 0..self.agents.len() {
            assert_eq!(self.names(node, "pledges"), [""; 0], "node {node}");
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for node in 0..self.agents.len() {
            let _ = standfast_agent::stop(&self.place(node), true);
            let _ = self.agents[node].take().map(JoinHandle::join);
        }
    }
}

const WORDS: usize = 40_000;

/// Some pages are the same on all ranks, some stay as they are, some are of one rank and step.
fn word(rank: usize, step: u64, at: usize) -> u64 {
    let (rank, step) = match (at / 512) % 4 {
        0 => (0, step),
        1 => (rank as u64, 0),
        2 => (0, 0),
        _ => (rank as u64, step),
    };
    let seed = (at as u64) << 32 | rank << 16 | step;
    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (seed >> 7)
}

fn fill(memory: &Protected<u64>, rank: usize, step: u64) {
    memory.write().iter_mut().enumerate().for_each(|(at, value)| *value = word(rank, step, at));
}

fn is_at(memory: &Protected<u64>, rank: usize, step: u64) -> bool {
    memory.read().iter().enumerate().all(|(at, value)| *value == word(rank, step, at))
}

fn checkpoint(job: &Job, memory: &Protected<u64>, rank: usize, step: u64) {
    fill(memory, rank, step);
    assert_eq!(job.checkpoint(Some(Version(step))).unwrap(), Version(step));
}

#[test]
fn each_node_writes_through_its_agent_and_the_ring_follows() {
    let all: [&[usize]; 3] = [&[0, 0, 1, 1], &[0, 1, 2, 0, 1, 2, 0], &[0, 1]];
    for (node_of, capture, mode) in [
        (all[0], "stop", "all"),
        (all[1], "stop", "full"),
        (all[2], "cow", "all"),
        (all[0], "cow", "local"),
    ] {
        let world = World::new(node_of).with("lab.mode", mode).with("capture", capture);
        let world =
            world.with("ring", "auto").with("lab.ring_group", "2").with("lab.segment", "512KiB");
        for first in [1, 5] {
            run_threads(node_of.len(), |comm| {
                let (job, rank) = (world.open(&comm), comm.rank());
                let memory = job.alloc::<u64>("memory", WORDS).unwrap();
                if first > 1 {
                    assert_eq!(job.restart().unwrap().unwrap().version, Version(first - 1));
                }
                for step in first..first + 4 {
                    checkpoint(&job, &memory, rank, step);
                    job.wait(Version(step), Level::Ring).unwrap();
                }
                let notes = job.report(Version(first + 3)).unwrap().notes;
                let expected = |note: &String| {
                    note.contains("program stopped") || note.contains("survives the loss")
                };
                assert!(notes.iter().all(expected), "{notes:?}");
                let kept: Vec<u64> = job.list().iter().map(|one| one.version.0).collect();
                assert_eq!(kept, [first + 3, first + 2, first + 1]);
                for step in kept {
                    job.restart_from(Version(step)).unwrap();
                    assert!(is_at(&memory, rank, step), "rank {rank}, checkpoint {step}");
                }
            });
            world.assert_clean();
        }
        for node in 0..world.agents.len() {
            let status = standfast_agent::status(&world.place(node)).unwrap();
            assert!(status.sessions.is_empty() && status.writes > 0, "node {node}: {status:?}");
        }
        // A node is lost; the ring has what its agent wrote.
        std::fs::remove_dir_all(world.store(1)).unwrap();
        world.restart(8);
    }
}

#[test]
fn what_all_nodes_have_pledged_the_next_opening_commits() {
    let world = World::new(&[0, 0, 1, 1, 2]).with("lab.mode", "all").with("lab.strategy", "topk");
    for newest in [2, 4, 6] {
        run_threads(5, |comm| {
            let (rank, comm) = (comm.rank(), Funneled(comm.duplicate().unwrap()));
            let job = world.open(&comm);
            let memory = job.alloc::<u64>("memory", WORDS).unwrap();
            checkpoint(&job, &memory, rank, newest - 1);
            job.wait(Version(newest - 1), Level::Local).unwrap();
            checkpoint(&job, &memory, rank, newest);
            // The job ends here, and nobody has written a manifest.
        });
        let manifest = format!("v{newest:010}.local");
        for node in 0..3 {
            assert!(!world.names(node, "manifests").contains(&manifest));
            assert_eq!(world.names(node, "pledges").len(), 1, "node {node}");
        }
        world.restart(newest);
        for node in 0..3 {
            assert!(world.names(node, "manifests").contains(&manifest));
        }
        world.assert_clean();
        // Also what images say of pages that others store has come out of the pledges.
        let referred = run_threads(5, |comm| {
            let image = world.open(&comm).image(Version(newest)).unwrap();
            image.references.expect("top-K writes them").len()
        });
        assert!(referred.iter().sum::<usize>() > 0);
    }
}

#[test]
fn what_a_node_has_not_pledged_is_void() {
    let world = World::new(&[0, 1]).with("lab.mode", "all");
    run_threads(2, |comm| {
        let (rank, comm) = (comm.rank(), Funneled(comm.duplicate().unwrap()));
        let job = world.open(&comm);
        let memory = job.alloc::<u64>("memory", WORDS).unwrap();
        checkpoint(&job, &memory, rank, 1);
        job.wait(Version(1), Level::Local).unwrap();
        checkpoint(&job, &memory, rank, 2);
    });
    let pledges = world.store(1).join("pledges");
    let before = world.names(0, "segments").len();
    for name in world.names(1, "pledges") {
        std::fs::write(pledges.join(name), b"torn").unwrap();
    }
    world.restart(1);
    world.assert_clean();
    assert!(world.names(0, "segments").len() < before, "what was pledged in vain is gone");
}

#[test]
fn a_node_that_loses_its_agent_makes_all_ranks_write_by_themselves() {
    let world = World::new(&[0, 0, 1]).with("lab.mode", "all").with("keep", "all");
    let barrier = std::sync::Barrier::new(3);
    run_threads(3, |comm| {
        let (job, rank) = (world.open(&comm), comm.rank());
        let memory = job.alloc::<u64>("memory", WORDS).unwrap();
        for step in 1..=2 {
            checkpoint(&job, &memory, rank, step);
            job.wait(Version(step), Level::Local).unwrap();
        }
        barrier.wait();
        if rank == 0 {
            world.stop(1);
        }
        barrier.wait();
        // One that has begun before the loss is noticed is taken again within the call.
        checkpoint(&job, &memory, rank, 3);
        job.wait(Version(3), Level::Local).unwrap();
        for step in 4..=5 {
            checkpoint(&job, &memory, rank, step);
            job.wait(Version(step), Level::Local).unwrap();
        }
        let notes = job.report(Version(3)).unwrap().notes;
        assert!(notes[0].contains("by the ranks themselves"), "{notes:?}");
        for step in 1..=5 {
            job.restart_from(Version(step)).unwrap();
            assert!(is_at(&memory, rank, step), "rank {rank}, checkpoint {step}");
        }
    });
    let alive = standfast_agent::status(&world.place(0)).unwrap();
    assert!(alive.sessions.is_empty(), "nobody uses it any more");
    world.assert_clean();
    world.restart(5);
}
