//! Nodes lost with their disks while checkpoints go to the ring, and while they come back from there.
//!
//! A rank kills itself at a named point; its node's store is removed. What every rank knew to be on
//! the ring must come back, with the loss of that node and of another one.

use std::os::unix::process::ExitStatusExt;

use standfast_crash_tests::report::Line;
use standfast_crash_tests::ring::{Ended, Nodes, RANKS};

const EXE: &str = env!("CARGO_BIN_EXE_crash-ring");

struct World {
    nodes: Nodes,
    _dir: tempfile::TempDir,
}

impl World {
    /// Nodes with two checkpoints on the ring.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let world = Self { nodes: Nodes { dir: dir.path().to_owned() }, _dir: dir };
        world.go_on(2, 2);
        world
    }

    /// All ranks live on, and come to this checkpoint at least.
    fn go_on(&self, steps: u64, least: u64) -> u64 {
        let ended = self.nodes.run(EXE, steps, None, None);
        for (rank, ended) in ended.iter().enumerate() {
            assert!(ended.status.success(), "rank {rank}: {ended:?}");
            assert!(ended.durable() >= least, "rank {rank} is at {}, not {least}", ended.durable());
        }
        ended[0].durable()
    }

    /// A rank dies at a point; the last checkpoint that any rank knows to be on the ring.
    fn die(&self, rank: usize, point: &str, nth: u64) -> u64 {
        let ended: Vec<Ended> = self.nodes.run(EXE, 2, Some(rank), Some((point, nth)));
        let dead = &ended[rank];
        assert_eq!(dead.status.signal(), Some(9), "at {point} {nth}: {dead:?}");
        assert_eq!(dead.lines.last(), Some(&Line::Dying(point.into(), nth)), "it died there");
        for (other, ended) in ended.iter().enumerate().filter(|(other, _)| *other != rank) {
            assert!(!ended.status.success(), "rank {other} cannot go on: {ended:?}");
        }
        ended.iter().map(Ended::durable).max().unwrap()
    }

    fn lose(&self, rank: usize) {
        std::fs::remove_dir_all(self.nodes.of(rank)).unwrap();
    }
}

#[test]
fn a_node_lost_at_any_step_of_encoding_loses_nothing_that_was_on_the_ring() {
    for (at, point) in ["ring.before_shards", "ring.before_record", "store.seal.before_rename"]
        .into_iter()
        .enumerate()
    {
        for rank in [0, 2] {
            let world = World::new();
            // A life begins with a restart, which passes the record's point, too; of seals the
            // sixth is one of the first checkpoint's.
            let nth = [1, 2, 6][at];
            let least = world.die(rank, point, nth);
            assert!(least >= 2, "it came back before it died");
            world.lose(rank);
            world.lose((rank + 1) % RANKS);
            world.go_on(1, least + 1);
        }
    }
}

#[test]
fn a_node_lost_during_a_recovery_loses_nothing() {
    let deaths = [
        ("ring.before_rebuild", 2, 1),
        ("ring.before_record", 2, 1),
        // The replacement itself, while it writes what it gets.
        ("store.seal.before_rename", 1, 5),
        ("store.seal.before_rename", 1, 7),
    ];
    for (point, rank, nth) in deaths {
        let world = World::new();
        world.lose(1);
        let least = world.die(rank, point, nth).max(2);
        world.lose(rank.max(1));
        world.go_on(1, least + 1);
        world.lose(3);
        world.lose(0);
        world.go_on(0, least + 1);
    }
}
