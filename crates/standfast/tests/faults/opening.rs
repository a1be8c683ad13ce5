//! Every call of an opening, and of the first checkpoint after it, fails.

use standfast::{Kind, Version};
use standfast_store::Store;
use standfast_testkit::{Fault, FaultyStore, Op};

use crate::world::{KEEP, World, text};

const STEPS: u64 = 5;

/// A store with some checkpoints and leftovers of a crash.
fn store() -> FaultyStore {
    let world = World::new();
    for step in 1..=STEPS {
        world.checkpoint(step).unwrap();
    }
    let store = world.store.clone();
    let orphan = standfast_format::name::segment(standfast_format::SegmentId([7; 16]));
    store.put(&orphan, b"of a crashed predecessor").unwrap();
    drop(world);
    store.reset();
    store
}

/// Opens, restarts and takes a checkpoint with a fault in force, as a real program would.
fn live(store: &FaultyStore, context: &str) -> Option<World> {
    let world = match World::open(store.clone()) {
        Ok(world) => world,
        Err(error) => {
            assert_eq!(error.kind(), Kind::Io, "{context}: {error}");
            return None;
        }
    };
    let _ = world.restart(None);
    let _ = world.checkpoint(STEPS + 1);
    Some(world)
}

#[test]
fn a_store_that_fails_while_it_is_opened_loses_nothing() {
    let counted = store();
    drop(live(&counted, "counting"));
    for op in Op::ALL {
        for nth in 0..counted.calls(op) {
            for fault in [
                Fault::Fail { op, nth, kind: Kind::Io },
                Fault::FailAfter { op, nth, kind: Kind::Io },
                Fault::FailFrom { op, nth, kind: Kind::Io },
            ] {
                let context = format!("{fault:?}");
                let store = store();
                store.inject(fault);
                drop(live(&store, &context));
                store.reset();
                assert_all_there(&store, &context);
            }
        }
    }
}

/// The newest acknowledged checkpoints are whole after a clean opening.
fn assert_all_there(store: &FaultyStore, context: &str) {
    let world = World::open(store.clone()).map_err(text).unwrap();
    let offered = world.offered();
    let newest = offered[0];
    assert!([STEPS, STEPS + 1].contains(&newest), "{context}: {offered:?}");
    for version in newest + 1 - KEEP..=newest {
        assert!(offered.contains(&version), "{context}: {version} is gone, {offered:?}");
    }
    world.assert_all_restore(context);
    world.assert_no_leftovers(context);
    world.checkpoint(STEPS + 2).map_err(text).unwrap();
    world.assert_all_restore(context);
}

/// A manifest that cannot be read today may be readable tomorrow: its number is not given away.
#[test]
fn an_unreadable_checkpoint_is_not_overwritten() {
    let store = store();
    let newest = standfast_format::name::manifest(Version(STEPS), standfast::Level::Local);
    store.inject(Fault::Truncate { object: newest, bytes: 10 });
    let world = World::open(store.clone()).unwrap();
    assert_eq!(world.restart(None).unwrap().0, STEPS - 1);
    let taken = world.job.checkpoint(None).unwrap();
    assert_eq!(taken, Version(STEPS + 1));
    drop(world);
    store.reset();
    let world = World::open(store).unwrap();
    assert_eq!(world.restart(Some(STEPS)).map_err(text), Ok((STEPS, vec![])));
}
