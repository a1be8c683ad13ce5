//! Checkpoints that a signal asks for: all ranks take them, at the same point.

use standfast::config::Signal;
use standfast::{Job, Kind, Version};
use standfast_comm::Comm;
use standfast_testkit::run_threads;

use crate::mixed;
use crate::world::World;

const POINTS: u64 = 20;
const ASKED_AT: u64 = 7;

fn raise(name: &str) {
    let signal: Signal = name.parse().unwrap();
    // SAFETY: an open job has a handler for it.
    assert_eq!(unsafe { libc::raise(signal.number()) }, 0);
}

/// The points at which a rank took a checkpoint; the last rank is asked at one of them.
fn points_taken(signal: &'static str, listens: impl Fn(usize) -> bool + Sync, size: usize) {
    let deaf = World::new(mixed);
    let listening = deaf.clone().with("signal", signal);
    let taken = run_threads(size, |comm| {
        let rank = comm.rank();
        let world = if listens(rank) { &listening } else { &deaf };
        let member = world.member(&comm).unwrap();
        let mut taken = Vec::new();
        for point in 1..=POINTS {
            if point == ASKED_AT && rank == size - 1 {
                raise(signal);
            }
            taken.extend(member.job.point().unwrap().map(|version| (point, version)));
        }
        member.job.close().unwrap();
        taken
    });
    assert_eq!(taken, vec![vec![(ASKED_AT, Version(1))]; size], "{size} ranks");
}

#[test]
fn a_signal_to_one_rank_asks_all() {
    for size in [2, 3, 5, 8] {
        points_taken("URG", |rank| rank == size - 1, size);
    }
}

#[test]
fn a_signal_to_all_ranks_asks_once() {
    for size in [1, 2, 5] {
        points_taken("WINCH", |_| true, size);
    }
}

#[test]
fn a_request_stays_until_it_is_answered() {
    let job = Job::open(&[("store", "memory:"), ("signal", "IO")]).unwrap();
    let field = job.alloc::<u64>("field", 512).unwrap();
    assert_eq!(job.point().unwrap(), None);
    raise("IO");
    let writing = field.write();
    assert_eq!(job.point().unwrap_err().kind(), Kind::Invalid, "the field is being written");
    drop(writing);
    assert!(job.need_checkpoint());
    assert_eq!(job.point().unwrap(), Some(Version(1)));
    assert!(!job.need_checkpoint());
    raise("IO");
    // Whoever takes one before the next point has answered, too.
    job.checkpoint(None).unwrap();
    assert_eq!(job.point().unwrap(), None);
}
