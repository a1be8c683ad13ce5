//! A run that goes back leaves what is newer behind; it takes nothing away.

use standfast::{Kind, Level, Version};
use standfast_format::name;
use standfast_restart::Inventory;
use standfast_testkit::Fault;

use crate::world::{KEEP, World, text};

const STEPS: u64 = 5;

fn world() -> World {
    let world = World::new();
    for step in 1..=STEPS {
        world.checkpoint(step).unwrap();
    }
    world.reopen().unwrap()
}

/// Versions of the line and abandoned ones, newest first.
fn lines(world: &World) -> (Vec<u64>, Vec<u64>) {
    let inventory = Inventory::read(&world.store).unwrap();
    let all = inventory.checkpoints.iter();
    let (gone, line): (Vec<_>, Vec<_>) = all.partition(|own| inventory.is_abandoned(own));
    let versions =
        |all: Vec<&standfast::Manifest>| all.iter().map(|own| own.version.0).collect::<Vec<u64>>();
    (versions(line), versions(gone))
}

#[test]
fn a_run_that_goes_back_overwrites_nothing_newer() {
    let world = world();
    let before = world.store_objects("manifests");
    assert_eq!(world.restart(Some(3)).unwrap().0, 3);
    // Versions that the program chooses meet those of the abandoned line.
    world.checkpoint(4).unwrap();
    assert_eq!(lines(&world), (vec![4, 3], vec![5, 4]));
    let now = world.store_objects("manifests");
    for old in before {
        assert!(now.contains(&old), "{old:?} was replaced");
    }
    let world = world.reopen().unwrap();
    assert_eq!(world.restart(None).map_err(text), Ok((4, vec![])), "the line that goes on");
    assert_eq!(world.restart(Some(5)).map_err(text), Ok((5, vec![])), "by version");
}

#[test]
fn abandoned_ones_stay_and_do_not_count() {
    let world = world();
    world.restart(Some(4)).unwrap();
    for step in 6..6 + 2 * KEEP {
        world.checkpoint(step).unwrap();
    }
    let last = 5 + 2 * KEEP;
    assert_eq!(lines(&world), ((last + 1 - KEEP..=last).rev().collect(), vec![5]));
    assert_eq!(world.restart(Some(5)).map_err(text), Ok((5, vec![])));
    // What it goes on from now is the line; the other is left behind.
    world.checkpoint(100).unwrap();
    let (line, gone) = lines(&world);
    assert_eq!(line, [100, 5]);
    assert_eq!(gone, (last + 1 - KEEP..=last).rev().collect::<Vec<u64>>());
    let world = world.reopen().unwrap();
    assert_eq!(world.restart(None).map_err(text), Ok((100, vec![])));
    world.assert_all_restore("two lines");
}

#[test]
fn a_damaged_line_does_not_fall_back_on_an_abandoned_one() {
    let world = world();
    world.restart(Some(4)).unwrap();
    world.checkpoint(6).unwrap();
    let inventory = Inventory::read(&world.store).unwrap();
    for manifest in inventory.line() {
        let rank = standfast::Rank(0);
        let object = standfast_format::name::image(manifest.version, manifest.attempt, rank);
        world.store.inject(Fault::FlipBit { object, offset: 40, bit: 0 });
    }
    let error = world.restart(None).unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt, "{error}");
    assert_eq!(world.restart(Some(5)).map_err(text), Ok((5, vec![])));
}

/// A newer one that is damaged is left behind like one that was given up: whoever mends it finds it.
#[test]
fn a_damaged_newer_one_is_not_overwritten() {
    let world = world();
    let newest = standfast_format::name::manifest(Version(STEPS), standfast::Level::Local);
    let bytes = standfast_store::Store::get(&world.store, &newest, u64::MAX).unwrap();
    world.store.inject(Fault::FlipBit { object: newest.clone(), offset: 40, bit: 0 });
    let world = world.reopen().unwrap();
    assert_eq!(world.restart(None).unwrap().0, STEPS - 1);
    world.checkpoint(STEPS).unwrap();
    world.store.reset();
    let now = standfast_store::Store::get(&world.store, &newest, u64::MAX).unwrap();
    assert!(now == bytes, "the damaged manifest was replaced");
    let world = world.reopen().unwrap();
    assert_eq!(world.restart(None).map_err(text), Ok((STEPS, vec![])));
}

/// One that could not be read, gone back from on purpose, is abandoned as soon as it can be read.
#[test]
fn an_unread_newer_one_is_abandoned_by_who_goes_back_on_purpose() {
    let world = world();
    world.store.reset();
    let object = name::manifest(Version(5), Level::Local);
    world.store.inject(Fault::Deny { object, kind: Kind::Denied });
    let world = world.reopen().unwrap();
    assert_eq!(world.restart(Some(4)).map_err(text), Ok((4, vec![])));
    world.checkpoint(7).unwrap();
    world.store.reset();
    let world = world.reopen().unwrap();
    assert_eq!(lines(&world).1, [5]);
    assert_eq!(world.restart(None).map_err(text), Ok((7, vec![])));
    assert_eq!(world.restart(Some(5)).map_err(text), Ok((5, vec![])));
}
