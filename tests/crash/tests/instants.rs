//! Kills from outside at random instants, life after life on the same store.
//!
//! The program works with two threads and does not wait for its checkpoints, so a kill meets
//! capture, compression, writing, committing and pruning in every mixture.

use std::time::Duration;

use standfast_crash_tests::life::{Style, Worker};
use standfast_crash_tests::program::Setup;
use standfast_crash_tests::report::{Facts, Line};
use standfast_crash_tests::{random, setting};

const EXE: &str = env!("CARGO_BIN_EXE_crash-worker");
/// More than any life lasts.
const STEPS: u64 = 1_000_000;
/// Long enough for some checkpoints, short enough for many lives.
const LIFE_US_MAX: u64 = 250_000;
/// One life in so many is killed while it opens the store; the others once they work.
const EARLY: u64 = 4;

#[test]
fn a_kill_at_any_instant_loses_nothing() {
    kill_at_instants(false);
}

/// The program then writes on while its previous state is still being taken in.
#[test]
fn a_kill_at_any_instant_of_a_snapshot_loses_nothing() {
    kill_at_instants(true);
}

fn kill_at_instants(cow: bool) {
    let kills = setting("STANDFAST_TEST_KILLS", 24);
    let seed = setting("STANDFAST_TEST_SEED", 1);
    let dir = tempfile::tempdir().unwrap();
    let setup = Setup { dir: dir.path().to_str().unwrap(), seed, threads: 2 };
    let worker = Worker::new(EXE, &setup).with_cow(cow);
    let mut state = seed;
    let (mut facts, mut checkpoints) = (Facts::default(), 0);
    for kill in 0..kills {
        let mut life = worker.run(STEPS, Style::Overlapping, None);
        if kill % EARLY != 0 {
            life.wait_for(&Line::Begun(facts.durable + 1));
        }
        let instant = Duration::from_micros(random(&mut state) % LIFE_US_MAX);
        std::thread::sleep(instant);
        let ended = life.kill();
        assert!(ended.was_killed(), "it ended by itself: {}", ended.status);
        let told = facts.and(&ended.lines);
        checkpoints += told.durable - facts.durable;
        let newest = worker.check(told, &format!("kill {kill} after {instant:?}"));
        facts = Facts { durable: newest, begun: newest };
    }
    println!("{kills} kills, {checkpoints} checkpoints acknowledged between them, seed {seed}");
    assert!(checkpoints > 0, "the lives are too short to prove anything");
}
