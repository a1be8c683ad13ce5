//! Jobs of many ranks: one version over all of them, each page stored once, all or none.

mod failures;
mod signals;
mod world;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use standfast::{Kind, Rank, Version};
use world::{Pages, World};

/// Some pages are common to all ranks, some are a rank's own, some change with the step, some are
/// zero, and some are what another rank had a step earlier.
fn mixed(rank: usize, step: u64) -> Vec<u64> {
    let (rank, own) = (rank as u64, 1_000_000 * (rank as u64 + 1));
    let common = (1..40).map(|at| at * 77);
    let zeros = [0; 5];
    let unchanged = (0..20).map(|at| own + at);
    let changed = (0..10).map(|at| own + 1000 * step + at);
    let handed_on = (0..6).map(|at| 5_000_000 + 100 * (rank + 40 - step) + at);
    common.chain(zeros).chain(unchanged).chain(changed).chain(handed_on).collect()
}

fn identical(_: usize, step: u64) -> Vec<u64> {
    (0..64).map(|at| 1000 * step + at + 1).collect()
}

fn own_only(rank: usize, step: u64) -> Vec<u64> {
    (0..30).map(|at| 10_000 * (rank as u64 + 1) + 100 * step + at).collect()
}

const SIZES: [usize; 6] = [1, 2, 3, 5, 7, 8];

#[test]
fn every_mode_restarts_on_any_number_of_ranks() {
    let modes = ["full", "incremental", "local", "collective", "all"];
    let strategies = ["exact", "topk"];
    for (mode, strategy) in modes.iter().flat_map(|mode| strategies.map(|other| (*mode, other))) {
        for size in SIZES {
            let world = World::new(mixed).with("lab.mode", mode).with("lab.strategy", strategy);
            world.run(size, |member| {
                for step in 1..=4 {
                    member.checkpoint(step).unwrap();
                }
                member.job.close().unwrap();
            });
            let steps = world.run(size, |member| {
                assert_eq!(member.restart().unwrap(), 4);
                // What follows leans on what was restored.
                member.checkpoint(5).unwrap();
                member.restart().unwrap()
            });
            assert_eq!(steps, vec![5; size], "{mode} {strategy}");
        }
    }
}

#[test]
fn ranks_whose_threads_may_not_talk_finish_in_their_calls() {
    for size in SIZES {
        let world = World::new(mixed);
        world.run_funneled(size, |member| {
            member.checkpoint(1).unwrap();
            // Not waited for: the next call finishes it.
            let version = member.job.checkpoint(Some(Version(2))).unwrap();
            assert_eq!(version, Version(2));
            member.checkpoint(3).unwrap();
            member.job.close().unwrap();
        });
        let steps = world.run_funneled(size, |member| member.restart().unwrap());
        assert_eq!(steps, vec![3; size]);
    }
}

#[test]
fn one_rank_may_read_what_is_stored_while_the_others_do_something_else() {
    let world = World::new(mixed);
    let read = AtomicBool::new(false);
    world.run_funneled(3, |member| {
        member.checkpoint(1).unwrap();
        // Under way until the next call that all make together.
        member.job.checkpoint(Some(Version(2))).unwrap();
        if member.job.rank().0 == Rank(1) {
            let expected = member.bytes_of(0, 1);
            let mut bytes = vec![0; expected.len()];
            member.job.read_region_of(Version(1), Rank(0), "field", &mut bytes).unwrap();
            assert!(bytes == expected);
            read.store(true, Ordering::Release);
        }
        let patience = Instant::now() + Duration::from_secs(30);
        while !read.load(Ordering::Acquire) {
            assert!(Instant::now() < patience, "reading waits for the other ranks");
            std::thread::sleep(Duration::from_millis(5));
        }
        member.job.close().unwrap();
    });
}

/// The distinct pages of a step that no earlier step had.
fn truly_new(pages: Pages, size: usize, step: u64) -> usize {
    let all = |step| (0..size).flat_map(move |rank| pages(rank, step));
    let mut last = HashSet::new();
    // The last page of a region is cut short, so it is another page than a whole one.
    let cut: HashSet<u64> = (0..size).map(|rank| *pages(rank, step).last().unwrap()).collect();
    let whole: HashSet<u64> = (0..size)
        .flat_map(|rank| {
            let pages = pages(rank, step);
            let whole = pages.len() - 1;
            pages.into_iter().take(whole)
        })
        .collect();
    for earlier in 1..step {
        last.extend(all(earlier));
    }
    let is_new = |number: &&u64| **number != 0 && !last.contains(*number);
    whole.iter().filter(is_new).count() + cut.iter().filter(is_new).count()
}

#[test]
fn exact_stores_every_page_once_over_ranks_and_time() {
    for size in SIZES {
        for pages in [mixed as Pages, identical, own_only] {
            let world = World::new(pages);
            world.run(size, |member| {
                for step in 1..=3 {
                    member.checkpoint(step).unwrap();
                    let stats = member.job.report(Version(step)).unwrap().stats;
                    let expected = truly_new(pages, size, step) as u64;
                    assert_eq!(stats.new_pages, expected, "{size} ranks, step {step}");
                    let fates = stats.zero_pages
                        + stats.duplicate_pages
                        + stats.remote_pages
                        + stats.old_pages
                        + stats.new_pages;
                    assert_eq!(fates, stats.pages);
                }
            });
        }
    }
}

#[test]
fn what_all_ranks_hold_is_stored_in_equal_shares() {
    for strategy in ["exact", "topk"] {
        let world = World::new(identical).with("lab.strategy", strategy).with("codec", "none");
        let figures = world.run(8, |member| {
            member.checkpoint(1).unwrap();
            member.job.report(Version(1)).unwrap().stats
        });
        let stats = figures[0];
        assert!(figures.iter().all(|other| *other == stats), "one report for all");
        assert_eq!(stats.new_pages, 64, "{strategy}: one copy");
        let average = (stats.segment_bytes + stats.image_bytes) / 8;
        assert!(stats.rank_bytes_max * 100 <= average * 102, "{strategy}: {stats:?}");
    }
}

#[test]
fn a_page_of_another_rank_in_an_earlier_checkpoint_is_not_stored_again() {
    fn rotating(rank: usize, step: u64) -> Vec<u64> {
        let from = (rank as u64 + step) % 5;
        (0..20).map(|at| 1000 * (from + 1) + at).collect()
    }
    let world = World::new(rotating);
    world.run(5, |member| {
        for step in 1..=4 {
            member.checkpoint(step).unwrap();
            let stats = member.job.report(Version(step)).unwrap().stats;
            assert_eq!(stats.new_pages, if step == 1 { 100 } else { 0 }, "step {step}");
        }
    });
    // Also after all ranks began anew, with nothing but the store.
    world.run(5, |member| {
        member.checkpoint(5).unwrap();
        assert_eq!(member.job.report(Version(5)).unwrap().stats.new_pages, 0);
        assert_eq!(member.restart().unwrap(), 5);
    });
}

#[test]
fn any_rank_can_be_read_by_any_number_of_ranks() {
    for size in [1, 3] {
        let world = World::new(mixed);
        world.run(5, |member| member.checkpoint(1).unwrap());
        world.run(size, |member| {
            for rank in 0..5 {
                let expected = member.bytes_of(rank, 1);
                let image = member.job.image_of(Version(1), Rank(rank as u32)).unwrap();
                assert_eq!(image.region("field").unwrap().bytes, expected.len() as u64);
                let mut bytes = vec![0; expected.len()];
                member
                    .job
                    .read_region_of(Version(1), Rank(rank as u32), "field", &mut bytes)
                    .unwrap();
                assert!(bytes == expected, "rank {rank}");
            }
            let error = member.restart().unwrap_err();
            assert_eq!(error.kind(), Kind::Invalid);
            assert!(error.to_string().contains("5 ranks"), "{error}");
            // A job of another size goes on in the same store.
            member.checkpoint(2).unwrap();
            assert_eq!(member.restart().unwrap(), 2);
        });
    }
}
