//! Every object comes back damaged: exact bytes or an error that names it, never anything else.

use std::sync::Arc;

use standfast::{Error, Kind};
use standfast_store::{MemoryStore, ObjectMeta, Store};
use standfast_testkit::{Fault, FaultyStore};

use crate::world::{World, text};

const STEPS: u64 = 3;

/// A intact store with a few checkpoints.
fn intact() -> MemoryStore {
    let store = MemoryStore::new();
    let world = World::open(FaultyStore::new(Arc::new(store.clone()))).unwrap();
    for step in 1..=STEPS {
        world.checkpoint(step).unwrap();
    }
    store
}

fn copy(of: &MemoryStore) -> MemoryStore {
    let copy = MemoryStore::new();
    for object in of.list("").unwrap() {
        copy.put(&object.name, &of.get(&object.name, u64::MAX).unwrap()).unwrap();
    }
    copy
}

/// Bytes worth damaging: the first and last ones, and some between.
fn offsets(bytes: u64) -> Vec<u64> {
    let ends = (0..70).step_by(3).chain((bytes.saturating_sub(130)..bytes).step_by(3));
    let mut all: Vec<u64> =
        ends.chain((0..bytes).step_by(30_011)).filter(|at| *at < bytes).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn damages(object: &ObjectMeta, all: &[ObjectMeta]) -> Vec<Fault> {
    let name = || object.name.clone();
    let flip = |offset: u64| Fault::FlipBit { object: name(), offset, bit: offset as u8 % 8 };
    let mut faults: Vec<Fault> = offsets(object.bytes).into_iter().map(flip).collect();
    let cuts = [0, 1, 23, 24, 56, object.bytes / 2, object.bytes - 64, object.bytes - 1];
    faults.extend(
        cuts.iter()
            .filter(|bytes| **bytes < object.bytes)
            .map(|bytes| Fault::Truncate { object: name(), bytes: *bytes }),
    );
    faults.push(Fault::Hide { object: name() });
    let others = all.iter().filter(|other| other.name > object.name);
    faults.extend(others.map(|other| Fault::Swap { a: name(), b: other.name.clone() }));
    faults
}

/// The objects that a fault touches, by the last part of their names.
fn touched(fault: &Fault) -> Vec<&str> {
    let names = match fault {
        Fault::FlipBit { object, .. } | Fault::Truncate { object, .. } | Fault::Hide { object } => {
            vec![object.as_str()]
        }
        Fault::Swap { a, b } => vec![a.as_str(), b.as_str()],
        _ => Vec::new(),
    };
    names.iter().map(|name| name.trim_start_matches("segments/")).collect()
}

fn assert_named(fault: &Fault, message: &str) {
    let named = touched(fault).iter().any(|name| message.contains(name));
    // A checkpoint whose manifest is gone does not exist; nobody can say more.
    let gone = matches!(fault, Fault::Hide { object } if object.starts_with("manifests/"))
        && message.contains("does not exist");
    // Without its header a place is no store; the message says where.
    let header = matches!(fault, Fault::Hide { object } if object == "store");
    assert!(named || gone || header, "{fault:?} is reported as: {message}");
}

fn meet(intact: &MemoryStore, fault: &Fault) {
    let store = FaultyStore::new(Arc::new(copy(intact)));
    store.inject(fault.clone());
    let world = match World::open(store) {
        Ok(world) => world,
        Err(error) => {
            assert!(matches!(error.kind(), Kind::Corrupt | Kind::Busy), "{fault:?}: {error}");
            return assert_named(fault, &text(error));
        }
    };
    for version in 1..=STEPS {
        match world.restart(Some(version)) {
            Ok(_) => {}
            Err(error) => refused(fault, error),
        }
    }
    match world.restart(None) {
        Ok((STEPS, passed_over)) if passed_over.is_empty() => {}
        Ok((_, passed_over)) => {
            for (what, why) in passed_over {
                assert_named(fault, &format!("{what}: {why}"));
            }
        }
        Err(error) => refused(fault, error),
    }
    go_on(fault, &world);
}

fn refused(fault: &Fault, error: Error) {
    assert!(matches!(error.kind(), Kind::Corrupt | Kind::Missing), "{fault:?}: {error}");
    assert_named(fault, &text(error));
}

/// A program that restarted from what was left goes on. What it stores must not lean on what is
/// damaged, for that has just been found out.
fn go_on(fault: &Fault, world: &World) {
    let next = STEPS + 1;
    world.checkpoint(next).unwrap_or_else(|error| panic!("{fault:?}: {error}"));
    match world.restart(None) {
        Ok((version, _)) => assert_eq!(version, next, "{fault:?}"),
        Err(error) => panic!("{fault:?}: the next checkpoint is lost: {error}"),
    }
}

#[test]
fn damage_is_named_and_never_returned() {
    let intact = intact();
    let objects = intact.list("").unwrap();
    let mut met = 0;
    for object in &objects {
        for fault in damages(object, &objects) {
            meet(&intact, &fault);
            met += 1;
        }
    }
    assert!(met > 500, "only {met} damages: the store is too small for this test");
}

#[test]
fn the_next_older_good_one_serves_and_the_reason_is_told() {
    let intact = intact();
    let manifest = standfast_format::name::manifest;
    let newest = manifest(standfast::Version(STEPS), standfast::Level::Local);
    let store = FaultyStore::new(Arc::new(copy(&intact)));
    store.inject(Fault::FlipBit { object: newest.clone(), offset: 30, bit: 0 });
    let world = World::open(store).unwrap();
    let (version, passed_over) = world.restart(None).unwrap();
    assert_eq!(version, STEPS - 1);
    assert_eq!(passed_over.len(), 1);
    assert_eq!(passed_over[0].0, newest);
    assert!(passed_over[0].1.contains("checksum"), "{passed_over:?}");
}
