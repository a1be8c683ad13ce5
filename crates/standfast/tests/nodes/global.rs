//! Ranks that come back from global storage: all of them, or those whose node has lost its part.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use standfast::{Kind, Level, Restarted, Version};
use standfast_drain::policy::Policy;
use standfast_drain::{Drain, Encoding, Error, Event, Flow, Progress, Until};
use standfast_restart::Inventory;
use standfast_store::{DirStore, Options, Store};
use standfast_testkit::run_threads;
use tempfile::TempDir;

use crate::world::World;

/// A job with global storage in a directory.
fn world(node_of: &[usize], dir: &Path) -> World {
    // Settings of a world live as long as the test program.
    World::new(node_of).with("global", dir.to_str().unwrap().to_owned().leak())
}

fn global(dir: &Path) -> DirStore {
    DirStore::open(dir.join("nodes"), &Options::default()).unwrap()
}

/// Every node drains its own store, one after the other; returns what arrived.
fn drain(world: &World, dir: &Path) -> Vec<u64> {
    let global = global(dir);
    let mut arrived = Vec::new();
    for local in &world.stores {
        let (stop, progress) = (AtomicBool::new(false), Progress::default());
        let flow = Flow::new(&**local, &stop, &progress);
        let codec = "zstd:3".parse().unwrap();
        let encoding = Encoding { codec, threads: 2 };
        let drain = Drain::open(&**local, &global, encoding).unwrap();
        let until = Until { policy: Policy::Newest, follow: false, tries: 0 };
        let mut tell = |event: Event<'_>| match event {
            Event::Arrived(carried, _) => arrived.push(carried.version.0),
            Event::PassedOver(_, error) => {
                assert!(matches!(error, Error::Others { .. }), "{error}")
            }
            Event::Begins(..) => {}
            Event::Waits(error, _) => panic!("{error}"),
        };
        drain.run(&until, &flow, &mut tell).unwrap();
    }
    arrived
}

/// What all ranks were told, which is the same.
fn come_back(world: &World) -> Restarted {
    let mut all = world.run(|member| member.come_back().unwrap());
    assert!(all.iter().all(|one| one.levels == all[0].levels && one.version == all[0].version));
    all.swap_remove(0)
}

#[test]
fn a_job_without_any_node_left_restarts_from_global_and_goes_on() {
    let dir = TempDir::new().unwrap();
    let mut world = world(&[0, 0, 0], dir.path());
    world.checkpoint(1..=4);
    assert_eq!(drain(&world, dir.path()), [4]);
    assert_eq!(come_back(&world).levels, [Level::Local; 3], "the nearest first");
    world.wipe(0);
    let back = come_back(&world);
    assert_eq!((back.version, &back.levels[..]), (Version(4), &[Level::Global; 3][..]));
    assert_eq!(back.notes, ["ranks 0-2 from global"]);
    // What follows leans on nothing that the node does not have, and comes after what was there.
    world.run(|member| {
        member.restart().unwrap();
        member.checkpoint(5).unwrap();
        member.checkpoint(6).unwrap();
    });
    assert_eq!(world.restart(), 6);
    assert_eq!(drain(&world, dir.path()), [6]);
    world.wipe(0);
    assert_eq!(come_back(&world).levels, [Level::Global; 3]);
    // The next one of its own choice is a new one.
    let versions = world.run(|member| member.job.checkpoint(None).unwrap());
    assert_eq!(versions, [Version(7); 3]);
}

#[test]
fn nodes_drain_their_parts_and_a_lost_one_comes_from_global() {
    let dir = TempDir::new().unwrap();
    let mut world = world(&[0, 0, 1, 1, 2], dir.path());
    world.checkpoint(1..=3);
    assert_eq!(drain(&world, dir.path()), [3], "the last node commits for all");
    assert!(global(dir.path()).list("parts").unwrap().is_empty());
    world.wipe(1);
    let back = come_back(&world);
    let (near, far) = (Level::Local, Level::Global);
    assert_eq!(back.levels, [near, near, far, far, near]);
    assert_eq!(back.notes, ["ranks 0-1 from local, ranks 2-3 from global, rank 4 from local"]);
    // The job goes on, and no checkpoint refers to what the node has lost.
    world.run(|member| {
        member.restart().unwrap();
        member.checkpoint(4).unwrap();
    });
    assert_eq!(come_back(&world).levels, [near; 5]);
    assert_eq!(drain(&world, dir.path()), [4]);
    for node in 0..3 {
        world.wipe(node);
    }
    assert_eq!(come_back(&world).levels, [far; 5]);
}

#[test]
fn the_ring_comes_before_global_storage() {
    let dir = TempDir::new().unwrap();
    let mut world = world(&[0, 1, 2], dir.path())
        .with("ring", "auto")
        .with("lab.ring_group", "3")
        .with("lab.ring_shards", "1");
    world.checkpoint(1..=2);
    assert_eq!(drain(&world, dir.path()), [2]);
    world.wipe(1);
    assert_eq!(come_back(&world).levels, [Level::Local, Level::Ring, Level::Local]);
    // More than the shards can give back.
    world.wipe(0);
    world.wipe(2);
    let back = come_back(&world);
    assert_eq!(back.version, Version(2));
    assert!(back.levels.contains(&Level::Global), "{back:?}");
}

#[test]
fn a_damaged_node_gives_way_to_global_storage() {
    let dir = TempDir::new().unwrap();
    let world = world(&[0, 0], dir.path());
    world.checkpoint(1..=2);
    drain(&world, dir.path());
    for segment in world.names(0, "segments") {
        let mut bytes = world.stores[0].get(&segment, 1 << 20).unwrap();
        bytes[4200] ^= 1;
        world.stores[0].put(&segment, &bytes).unwrap();
    }
    let back = come_back(&world);
    assert_eq!(back.version, Version(2), "no older one");
    assert!(back.levels.contains(&Level::Global), "{back:?}");
    assert!(back.notes.iter().any(|note| note.contains("everything from global")), "{back:?}");
}

#[test]
fn global_storage_that_does_not_answer_is_no_fresh_start() {
    let dir = TempDir::new().unwrap();
    let world = world(&[0, 0], dir.path());
    world.checkpoint(1..=2);
    // Its place is no directory any more.
    let place = dir.path().join("nodes");
    let _ = std::fs::remove_dir_all(&place);
    std::fs::write(&place, b"no directory").unwrap();
    // It may have a newer one than the nodes: going on would be a step back that nobody sees.
    for error in world.run(|member| member.come_back().map(|_| ()).expect_err("refused")) {
        assert_ne!(error.kind(), Kind::Missing, "{error}");
        assert!(error.to_string().contains("global storage"), "{error}");
    }
    world.run(|member| {
        let back = member.job.restart_from(Version(2)).unwrap();
        assert!(back.notes.iter().any(|note| note.contains("global storage")), "{back:?}");
    });
    let mut empty = world;
    empty.wipe(0);
    let errors = run_threads(2, |comm| empty.member(&comm).err().expect("refused"));
    for error in errors {
        assert_ne!(error.kind(), Kind::Missing, "{error}");
        assert!(error.to_string().contains("global storage"), "{error}");
    }
}

#[test]
fn versions_that_only_global_storage_has_are_found_by_number() {
    let dir = TempDir::new().unwrap();
    let mut world = world(&[0], dir.path());
    world.checkpoint(1..=2);
    drain(&world, dir.path());
    world.wipe(0);
    world.run(|member| {
        let image = member.job.image(Version(2)).unwrap();
        assert!(image.region("field").is_some());
        let mut field = vec![0; image.region("field").unwrap().bytes as usize];
        member.job.read_region(Version(2), "field", &mut field).unwrap();
        assert!(field.iter().any(|byte| *byte != 0));
        assert_eq!(member.job.restart_from(Version(2)).unwrap().levels, [Level::Global]);
        assert_eq!(member.job.restart_from(Version(1)).unwrap_err().kind(), Kind::Missing);
    });
    assert_eq!(Inventory::read(&global(dir.path())).unwrap().checkpoints.len(), 1);
}
