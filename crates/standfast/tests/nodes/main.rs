//! Jobs whose nodes have stores of their own: one checkpoint over all of them, and ranks that come
//! back elsewhere.

mod global;
mod gone;
mod losses;
mod phases;
mod ring;
mod world;

use std::collections::HashSet;

use standfast::config::Loaded;
use standfast::{Job, Kind, Level};
use standfast_comm::Comm;
use standfast_format::name;
use standfast_testkit::{Fault, Op, run_threads};
use world::World;

#[test]
fn ranks_restart_from_the_stores_of_their_nodes() {
    for node_of in [&[0, 1][..], &[0, 0, 1, 1], &[0, 1, 2, 0, 1, 2, 0], &[0, 0, 0, 1]] {
        let world = World::new(node_of);
        world.checkpoint(1..=4);
        assert_eq!(world.restart(), 4);
        for node in 0..world.stores.len() {
            assert_eq!(world.names(node, "manifests").len(), 3, "node {node}, keep is 3");
            let ranks = node_of.iter().filter(|of| **of == node).count();
            assert_eq!(world.names(node, "images").len(), 3 * ranks, "node {node}: its own only");
        }
        // What follows leans on what was restored.
        world.run(|member| {
            member.restart().unwrap();
            member.checkpoint(5).unwrap();
        });
        assert_eq!(world.restart(), 5);
    }
}

#[test]
fn ranks_come_back_on_other_nodes() {
    let mut world = World::new(&[0, 0, 1, 1, 2]);
    world.checkpoint(1..=3);
    for node_of in [[2, 1, 1, 0, 0], [1, 1, 0, 0, 0], [2, 2, 2, 1, 0]] {
        world.node_of = node_of.to_vec();
        // Every store is led by somebody, or what it holds cannot be reached.
        if (0..3).all(|node| node_of.contains(&node)) {
            assert_eq!(world.restart(), 3);
        }
    }
    world.node_of = vec![2, 1, 1, 0, 0];
    world.checkpoint(4..=9);
    assert_eq!(world.restart(), 9);
    world.node_of = vec![0, 0, 1, 1, 2];
    assert_eq!(world.restart(), 9);
}

#[test]
fn a_manifest_in_any_store_counts_and_the_others_get_it() {
    let world = World::new(&[0, 1, 1, 2]);
    world.checkpoint(1..=3);
    let newest = world.names(0, "manifests").pop().unwrap();
    for node in [0, 2] {
        world.stores[node].remove(&newest).unwrap();
    }
    assert_eq!(world.restart(), 3);
    assert!((0..3).all(|node| world.names(node, "manifests").contains(&newest)));
    // One that was damaged in one place, too.
    world.stores[1].put(&newest, b"rubbish").unwrap();
    assert_eq!(world.restart(), 3);
    let bytes = world.stores[0].get(&newest, 1 << 20).unwrap();
    assert_eq!(world.stores[1].get(&newest, 1 << 20).unwrap(), bytes);
}

#[test]
fn what_no_manifest_names_goes_in_every_store() {
    let world = World::new(&[0, 1, 2]).with("keep", "2");
    world.checkpoint(1..=6);
    // Attempts that died before any manifest.
    for (node, store) in world.stores.iter().enumerate() {
        store.put(&format!("segments/{:032x}", 0xabc + node), b"orphan").unwrap();
    }
    let mut manifests = HashSet::new();
    world.run(|member| assert_eq!(member.restart().unwrap(), 6));
    for node in 0..3 {
        manifests.insert(world.names(node, "manifests"));
        assert!(world.names(node, "segments").iter().all(|name| !name.contains("0000abc")));
        assert_eq!(world.names(node, "images").len(), 2);
    }
    assert_eq!(manifests.len(), 1, "all stores have the same ones");
    assert_eq!(manifests.into_iter().next().unwrap().len(), 2);
}

#[test]
fn a_wiped_node_is_told_and_the_job_goes_on() {
    let mut world = World::new(&[0, 1, 2, 2]);
    world.checkpoint(1..=3);
    world.wipe(1);
    let errors = world.run(|member| member.restart().unwrap_err());
    for error in errors {
        assert_eq!(error.kind(), Kind::Corrupt);
        assert!(error.to_string().contains("none of the 3 checkpoints"), "{error}");
    }
    world.checkpoint(4..=7);
    assert_eq!(world.restart(), 7);
}

#[test]
fn a_store_that_cannot_take_the_manifest_gets_it_later() {
    let world = World::new(&[0, 1]);
    world.checkpoint(1..=1);
    world.run(|member| {
        let (rank, _) = member.job.rank();
        if rank.0 == 1 {
            // The first is its image.
            member.faults.reset();
            member.faults.inject(Fault::Fail { op: Op::Put, nth: 1, kind: Kind::Full });
        }
        member.checkpoint(2).unwrap();
        let notes = member.job.report(standfast::Version(2)).unwrap().notes;
        assert!(notes.iter().any(|note| note.contains("store of rank 1")), "{notes:?}");
    });
    assert_eq!(world.names(1, "manifests").len(), 1);
    assert_eq!(world.restart(), 2);
    assert_eq!(world.names(1, "manifests").len(), 2);
}

#[test]
fn stores_of_different_runs_are_not_mixed() {
    let (one, other) = (World::new(&[0, 1]), World::new(&[0, 1]));
    one.checkpoint(1..=1);
    other.checkpoint(1..=1);
    let mut mixed = World::new(&[0, 1]);
    mixed.stores = vec![one.stores[0].clone(), other.stores[1].clone()];
    let errors = run_threads(2, |comm| mixed.member(&comm).err().expect("refused").to_string());
    assert!(errors.iter().all(|error| error.contains("different runs")), "{errors:?}");
    assert_eq!(one.restart(), 1);
}

#[test]
fn a_store_whose_name_is_damaged_gets_another() {
    let world = World::new(&[0, 0, 1, 1, 1]);
    world.checkpoint(1..=2);
    for object in ["identity", "store"] {
        let whole = world.stores[1].get(object, 1 << 20).unwrap();
        let mut flipped = whole.clone();
        flipped[20] ^= 0x5a;
        for damaged in [&whole[..9], &[], &flipped] {
            world.stores[1].put(object, damaged).unwrap();
            assert_eq!(world.restart(), 2, "{object}");
            assert_eq!(world.stores[1].get(object, 1 << 20).unwrap().len(), whole.len());
        }
    }
    world.checkpoint(3..=5);
    assert_eq!(world.restart(), 5);
}

#[test]
fn a_header_that_nobody_has_any_more_is_an_error() {
    let world = World::new(&[0, 1]);
    world.checkpoint(1..=1);
    let whole = world.stores[0].get("store", 1 << 20).unwrap();
    for store in &world.stores {
        for header in name::HEADERS {
            store.put(header, &whole[..40]).unwrap();
        }
    }
    let errors = run_threads(2, |comm| world.member(&comm).err().expect("refused"));
    assert!(errors.iter().all(|error| error.kind() == Kind::Corrupt), "{errors:?}");
    assert_eq!(world.stores[1].get("store", 1 << 20).unwrap(), &whole[..40], "left as it was");
}

#[test]
fn a_place_with_the_nodes_name_is_a_store_for_each_node() {
    let dir = tempfile::tempdir().unwrap();
    let store = format!("{}/{{node}}", dir.path().display());
    let opened = |comm: &dyn Comm| {
        let node = format!("n{}", comm.rank() / 2);
        let settings = [("store", store.as_str()), ("job", "heat"), ("lab.node", &node)];
        let settings: Vec<(String, String)> =
            settings.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
        Job::open_comm(Loaded::load(&settings).unwrap(), comm).unwrap()
    };
    run_threads(4, |comm| {
        let job = opened(&comm);
        let field = job.alloc::<u64>("field", 3000).unwrap();
        field.write().fill(comm.rank() as u64 + 1);
        let version = job.checkpoint(None).unwrap();
        job.wait(version, Level::Local).unwrap();
    });
    for node in ["n0", "n1"] {
        assert!(dir.path().join(node).join("heat/store").is_file());
    }
    run_threads(4, |comm| {
        let job = opened(&comm);
        let field = job.alloc::<u64>("field", 3000).unwrap();
        job.restart().unwrap().unwrap();
        assert!(field.read().iter().all(|word| *word == comm.rank() as u64 + 1));
    });
}
