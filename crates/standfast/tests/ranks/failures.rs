//! Where one rank fails, all fail, and what was there before stays good.

use standfast::{Kind, Level, Rank, Version};
use standfast_format::name;
use standfast_testkit::{Fault, Op, run_threads};

use crate::mixed;
use crate::world::World;

/// Fails the `nth` call of a sort on one rank of a job that has a good checkpoint.
fn fails_together(world: &World, size: usize, bad: usize, op: Op, nth: u64) -> bool {
    let outcomes = world.run(size, |member| {
        member.checkpoint(1).unwrap();
        let rank = member.job.rank().0.0 as usize;
        member.faults.reset();
        if rank == bad {
            member.faults.inject(Fault::Fail { op, nth, kind: Kind::Full });
        }
        let outcome = member.checkpoint(2);
        member.faults.reset();
        let failed = outcome.is_err();
        if let Err(error) = outcome {
            assert_eq!(error.kind(), Kind::Full, "{error}");
            let by_name = error.rank() == Some(Rank(bad as u32));
            assert_eq!(by_name, rank != bad, "{error}");
            assert_eq!(member.restart().unwrap(), 1, "the previous one is good");
        }
        member.checkpoint(3).unwrap();
        assert_eq!(member.restart().unwrap(), 3);
        failed
    });
    assert!(outcomes.iter().all(|failed| *failed == outcomes[0]), "{op:?} {nth}: {outcomes:?}");
    outcomes[0]
}

#[test]
fn a_rank_that_cannot_store_fails_the_checkpoint_of_all() {
    for bad in 0..3 {
        let mut failed = 0;
        for (op, nth) in [
            (Op::Create, 0),
            (Op::Create, 1),
            (Op::Append, 0),
            (Op::Append, 3),
            (Op::Seal, 0),
            (Op::Put, 0),
            (Op::Put, 1),
        ] {
            failed += usize::from(fails_together(&World::new(mixed), 3, bad, op, nth));
        }
        assert!(failed >= 4, "rank {bad}: the faults must be met, only {failed} were");
    }
}

#[test]
fn a_damaged_part_of_one_rank_takes_all_back_to_the_older_checkpoint() {
    let world = World::new(mixed);
    let attempts = world.run(4, |member| {
        for step in 1..=2 {
            member.checkpoint(step).unwrap();
        }
        let newest = member.job.list().remove(0);
        (name::image(newest.version, newest.attempt, Rank(2)), newest.segments)
    });
    let (image, _) = &attempts[0];
    world.run(4, |member| {
        if member.job.rank().0.0 == 2 {
            member.faults.inject(Fault::FlipBit { object: image.clone(), offset: 90, bit: 3 });
        }
        assert_eq!(member.restart().unwrap(), 1);
        // What could not be read back is not leaned on.
        member.checkpoint(3).unwrap();
        member.faults.reset();
        assert_eq!(member.restart().unwrap(), 3);
    });
}

#[test]
fn a_damaged_page_that_others_refer_to_is_found_by_its_owner() {
    let world = World::new(mixed).with("codec", "none");
    let segments = world.run(3, |member| {
        member.checkpoint(1).unwrap();
        let newest = member.job.list().remove(0);
        newest.segments.iter().filter(|one| one.rank.0 == 1).copied().collect::<Vec<_>>()
    });
    let victim = name::segment(segments[0][0].id);
    world.run(3, |member| {
        member.faults.inject(Fault::FlipBit { object: victim.clone(), offset: 5000, bit: 1 });
        let error = member.restart().unwrap_err();
        assert_eq!(error.kind(), Kind::Corrupt, "{error}");
        assert!(!error.skipped().is_empty(), "{error}");
    });
}

#[test]
fn ranks_that_disagree_are_told_so() {
    let world = World::new(mixed);
    world.run(3, |member| {
        let rank = u64::from(member.job.rank().0.0);
        let error = member.job.checkpoint(Some(Version(1 + rank / 2))).unwrap_err();
        assert!(error.to_string().contains("do not agree"), "{error}");
        assert!(error.to_string().contains("rank 2 takes checkpoint 2"), "{error}");
        member.checkpoint(1).unwrap();
        let restarted = match rank {
            1 => member.job.restart_from(Version(1)).map(drop),
            _ => member.job.restart().map(drop),
        };
        let error = restarted.unwrap_err();
        assert!(error.to_string().contains("do not agree"), "{error}");
        // One that is told to take no checkpoint stops the others, too.
        let version = (rank == 0).then_some(Version(0));
        assert_eq!(member.job.checkpoint(version).unwrap_err().kind(), Kind::Invalid);
        assert_eq!(member.restart().unwrap(), 1);
    });
    // Ranks that kept differently would not prune, or make room, in the same calls.
    for (name, texts) in
        [("lab.mode", ["all", "local"]), ("keep", ["1", "2"]), ("keep", ["1", "1, 1MiB"])]
    {
        let errors = run_threads(2, |comm| {
            use standfast_comm::Comm;
            let world = World::new(mixed).with(name, texts[comm.rank()]);
            world.member(&comm).err().expect("settings differ")
        });
        let word = name.trim_start_matches("lab.");
        assert!(errors.iter().all(|error| error.to_string().contains(word)), "{errors:?}");
    }
}

#[test]
fn a_second_job_is_refused_on_all_ranks() {
    let world = World::new(mixed);
    let tried = std::sync::Barrier::new(2);
    world.run(2, |member| {
        member.checkpoint(1).unwrap();
        let second = run_threads(2, |comm| world.member(&comm).err());
        // The first job lives until both ranks have tried.
        tried.wait();
        let second: Vec<_> = second.into_iter().map(|error| error.expect("it is locked")).collect();
        assert!(second.iter().all(|error| error.kind() == Kind::Busy), "{second:?}");
        member.job.wait(Version(1), Level::Local).unwrap();
    });
}

/// Reading a region is no affair of all ranks. What it finds damaged is, at the next checkpoint:
/// whoever keeps the index of such a page would still hand its place out.
#[test]
fn what_one_rank_finds_damaged_no_rank_leans_on() {
    for strategy in ["exact", "topk"] {
        let world = World::new(mixed).with("codec", "none").with("lab.strategy", strategy);
        world.run(3, |member| {
            member.checkpoint(1).unwrap();
            let newest = member.job.list().remove(0);
            for segment in newest.segments.iter().filter(|segment| segment.rank.0 == 1) {
                let object = name::segment(segment.id);
                member.faults.inject(Fault::FlipBit { object, offset: 5000, bit: 1 });
            }
            if member.job.rank().0.0 == 0 {
                let mut bytes = vec![0; member.bytes_of(1, 1).len()];
                let read = member.job.read_region_of(Version(1), Rank(1), "field", &mut bytes);
                assert_eq!(read.unwrap_err().kind(), Kind::Corrupt);
            }
            member.checkpoint(2).unwrap();
            assert_eq!(member.restart().unwrap(), 2, "{strategy}");
        });
    }
}

/// A program whose ranks call different things is told so, where they would wait for each other.
#[test]
fn ranks_that_call_different_things_are_told_where_each_is() {
    let errors = World::new(mixed).run(3, |member| match member.job.rank().0.0 {
        1 => member.restart().unwrap_err(),
        _ => member.checkpoint(1).unwrap_err(),
    });
    for error in errors {
        assert!(error.is_out_of_reach(), "{error}");
        assert_eq!(error.kind(), Kind::Invalid, "{error}");
        let text = error.to_string();
        assert!(text.contains("(restart)") && text.contains("(history)"), "{text}");
    }
}
