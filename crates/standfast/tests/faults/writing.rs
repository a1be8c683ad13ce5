//! Every call of a checkpoint fails, in every way.

use standfast::Kind;
use standfast_testkit::{Fault, Op};

use crate::world::{KEEP, World, text};

/// The checkpoint that the faults meet: the first one whose pruning removes whole segments.
const VICTIM: u64 = 5;

/// What callers of a store may meet while it writes.
const KINDS: [Kind; 6] =
    [Kind::Full, Kind::Io, Kind::Denied, Kind::Transient, Kind::Busy, Kind::Missing];

/// A world just before the victim, with the store's counters at zero.
fn before() -> World {
    let world = World::new();
    for step in 1..VICTIM {
        world.checkpoint(step).unwrap();
    }
    world.store.reset();
    world
}

/// How often each sort of call happens during the victim.
fn calls() -> Vec<(Op, u64)> {
    let world = before();
    world.checkpoint(VICTIM).unwrap();
    Op::ALL.into_iter().map(|op| (op, world.store.calls(op))).collect()
}

fn meet(fault: &Fault, kind: Kind) {
    let context = format!("{fault:?}");
    let world = before();
    world.store.inject(fault.clone());
    let outcome = world.checkpoint(VICTIM);
    assert!(world.store.fired() > 0, "{context} never happened");
    world.store.reset();

    let mut acknowledged: Vec<u64> = (1..VICTIM).collect();
    match outcome {
        Ok(_) => acknowledged.push(VICTIM),
        Err(error) => assert_eq!(error.kind(), kind, "{context}: {error}"),
    }
    assert_kept(&world, &acknowledged, &context);

    // Later checkpoints refer to what the library believes to be stored.
    for step in [VICTIM + 1, VICTIM + 2] {
        let taken = world.checkpoint(step).map_err(text);
        assert!(taken.is_ok(), "{context}: {taken:?}");
        acknowledged.push(step);
        assert_kept(&world, &acknowledged, &context);
    }
    let world = world.reopen().unwrap();
    assert_kept(&world, &acknowledged, &context);
    world.assert_no_leftovers(&context);
    assert_eq!(world.restart(None).map_err(text), Ok((VICTIM + 2, vec![])), "{context}");
}

/// The newest acknowledged checkpoints are there; whatever is offered restores. A checkpoint
/// whose failure was reported may exist all the same, and then counts as one that is kept.
fn assert_kept(world: &World, acknowledged: &[u64], context: &str) {
    let offered = world.offered();
    let surprise = u64::from(offered.contains(&VICTIM) && !acknowledged.contains(&VICTIM));
    let must = acknowledged.iter().rev().take((KEEP - surprise) as usize);
    for version in must {
        assert!(offered.contains(version), "{context}: {version} is gone, {offered:?} are there");
    }
    world.assert_all_restore(context);
}

#[test]
fn each_call_may_fail_in_each_way() {
    let calls = calls();
    for (op, least) in [(Op::Seal, 2), (Op::Put, 2), (Op::Remove, 3), (Op::List, 1), (Op::Lock, 1)]
    {
        let found = calls.iter().find(|(of, _)| *of == op).unwrap().1;
        assert!(found >= least, "{op:?} happens {found} times: the case is too simple");
    }
    for (op, calls) in calls {
        for nth in 0..calls {
            // Every kind at the first call of a sort; then they take turns.
            let turn = nth as usize % KINDS.len();
            for kind in if nth == 0 { &KINDS[..] } else { &KINDS[turn..=turn] } {
                meet(&Fault::Fail { op, nth, kind: *kind }, *kind);
            }
            meet(&Fault::FailAfter { op, nth, kind: Kind::Io }, Kind::Io);
            meet(&Fault::FailFrom { op, nth, kind: Kind::Io }, Kind::Io);
        }
    }
}

#[test]
fn appends_may_be_torn() {
    let appends = calls().iter().find(|(op, _)| *op == Op::Append).unwrap().1;
    for nth in 0..appends {
        for bytes in [1, 100, 5000] {
            meet(&Fault::TearAppend { nth, bytes, kind: Kind::Io }, Kind::Io);
        }
    }
}

#[test]
fn the_store_may_be_full_at_any_byte() {
    // The victim stores two groups of 16 pages and some metadata: less than this.
    for bytes in (0..140_000).step_by(4999) {
        meet(&Fault::FullAfter { bytes }, Kind::Full);
    }
}

/// Versions that the program chooses, and an answer that gets lost: newest is what was
/// acknowledged last.
#[test]
fn a_commit_whose_answer_was_lost_does_not_shadow_later_ones() {
    let world = before();
    world.store.inject(Fault::FailAfter { op: Op::Put, nth: 1, kind: Kind::Io });
    assert_eq!(world.checkpoint(100).map_err(|error| error.kind()), Err(Kind::Io));
    world.store.reset();
    world.checkpoint(VICTIM).unwrap();
    assert_eq!(world.restart(None).map_err(text), Ok((VICTIM, vec![])));
    let world = world.reopen().unwrap();
    assert_eq!(world.restart(None).map_err(text), Ok((VICTIM, vec![])));
    world.assert_all_restore("lost answer");
}

/// Space of a failed attempt comes back at once, not only with the next opening.
#[test]
fn a_failed_attempt_leaves_nothing_behind() {
    for fault in [
        Fault::Fail { op: Op::Seal, nth: 1, kind: Kind::Full },
        Fault::Fail { op: Op::Put, nth: 0, kind: Kind::Full },
    ] {
        let world = before();
        world.store.inject(fault.clone());
        world.checkpoint(VICTIM).unwrap_err();
        world.store.reset();
        world.assert_no_leftovers(&format!("{fault:?}"));
    }
}

/// A program that replaces one version for ever needs a bounded store.
#[test]
fn replaced_checkpoints_give_their_space_back() {
    let world = World::new();
    for _ in 0..4 {
        for step in [1, 2] {
            world.checkpoint(step).unwrap();
            world.assert_no_leftovers("replacing");
        }
    }
}
