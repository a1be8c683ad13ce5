//! A kill at every named failpoint: the old or the new checkpoint restores, byte by byte.
//!
//! A dry run traces which points are passed how often, and during which step. Then, for each
//! point, a fresh program is killed at the chosen passages: the first and the last one, and all
//! of a step in which every sort of object comes and goes (segments, image and manifest are
//! written; manifest, image and segments are pruned).

use std::collections::BTreeMap;

use standfast_crash_tests::life::{Point, Style, Worker};
use standfast_crash_tests::program::Setup;
use standfast_crash_tests::report::{Facts, Line};
use standfast_crash_tests::setting;

const EXE: &str = env!("CARGO_BIN_EXE_crash-worker");
const STEPS: u64 = 5;
/// A step whose passages are all tried: pruning has begun, and another step follows.
const BUSY_STEP: u64 = 4;
/// How many writes an object takes depends on who is quicker, the encoder or the disk: of this point a
/// life may have fewer passages than the one that was traced.
const VARYING: &str = "store.chunk.write";

fn points() -> impl Iterator<Item = &'static str> {
    standfast_checkpoint::FAILPOINTS.iter().chain(standfast_store::FAILPOINTS).copied()
}

fn seed() -> u64 {
    setting("STANDFAST_TEST_SEED", 1)
}

/// For each point: in which step each passage happened.
fn trace(cow: bool) -> BTreeMap<String, Vec<u64>> {
    let dir = tempfile::tempdir().unwrap();
    let setup = Setup { dir: dir.path().to_str().unwrap(), seed: seed(), threads: 1 };
    let ended = Worker::new(EXE, &setup).with_cow(cow).trace(STEPS);
    assert!(ended.status.success(), "{}", ended.status);
    let mut passages: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for line in ended.lines {
        if let Line::Passed(point, _, step) = line {
            passages.entry(point).or_default().push(step);
        }
    }
    passages
}

/// Which passages to die at, counted from 1.
fn chosen(steps: &[u64]) -> Vec<u64> {
    let all = setting("STANDFAST_TEST_CRASH_ALL", 0) != 0;
    let last = steps.len();
    (1..=last)
        .filter(|nth| all || *nth == 1 || *nth == last || steps[nth - 1] == BUSY_STEP)
        .map(|nth| nth as u64)
        .collect()
}

/// One death and what it left behind.
fn die_and_check(point: Point<'_>, cow: bool) {
    let dir = tempfile::tempdir().unwrap();
    let setup = Setup { dir: dir.path().to_str().unwrap(), seed: seed(), threads: 1 };
    let worker = Worker::new(EXE, &setup).with_cow(cow);
    let facts = die(&worker, STEPS, point, Facts::default());
    worker.check(facts, &format!("killed at {point:?}"));
}

fn die(worker: &Worker, steps: u64, point: Point<'_>, before: Facts) -> Facts {
    let ended = worker.run(steps, Style::Waiting, Some(point)).wait();
    if point.0 == VARYING && point.1 > steps && ended.status.success() {
        return before.and(&ended.lines);
    }
    assert!(ended.was_killed(), "at {point:?} the worker ended with {}", ended.status);
    let dying = Line::Dying(point.0.into(), point.1);
    assert_eq!(ended.lines.last(), Some(&dying), "it died where it should");
    before.and(&ended.lines)
}

#[test]
fn a_kill_at_every_failpoint_loses_nothing() {
    kill_at_every_failpoint(false);
}

#[test]
fn a_kill_at_every_failpoint_of_a_snapshot_loses_nothing() {
    kill_at_every_failpoint(true);
}

fn kill_at_every_failpoint(cow: bool) {
    let passages = trace(cow);
    for point in points() {
        assert!(passages.contains_key(point), "nobody passes the failpoint {point}");
    }
    let cases: Vec<(&str, u64)> = points()
        .flat_map(|point| chosen(&passages[point]).into_iter().map(move |nth| (point, nth)))
        .collect();
    println!("{} deaths at {} points", cases.len(), passages.len());
    in_parallel(&cases, |case| die_and_check(*case, cow));
}

/// A crash, and another one while the next life clears up after it.
#[test]
fn a_kill_during_the_opening_after_a_kill_loses_nothing() {
    let firsts = [
        ("commit.before_image", BUSY_STEP),
        ("commit.before_manifest", BUSY_STEP),
        ("prune.before_image", 1),
        ("prune.before_segment", 1),
    ];
    let seconds = [
        ("prune.before_image", 1),
        ("prune.before_segment", 1),
        ("store.remove.before", 1),
        ("store.remove.after", 1),
    ];
    for first in firsts {
        for second in seconds {
            let dir = tempfile::tempdir().unwrap();
            let setup = Setup { dir: dir.path().to_str().unwrap(), seed: seed(), threads: 1 };
            let worker = Worker::new(EXE, &setup);
            let facts = die(&worker, STEPS, first, Facts::default());
            // Not every first death leaves work for every second one.
            let again = worker.run(0, Style::Waiting, Some(second)).wait();
            assert!(again.was_killed() || again.status.success(), "{}", again.status);
            worker.check(facts, &format!("killed at {first:?}, then at {second:?}"));
        }
    }
}

/// Works through the cases on all cores; a panic of one is a panic of the test.
fn in_parallel<T: Sync>(cases: &[T], each: impl Fn(&T) + Sync) {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(case) =
                    cases.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    each(case);
                }
            });
        }
    });
}
