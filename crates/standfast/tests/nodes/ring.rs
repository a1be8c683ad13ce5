//! Nodes lost with their stores, and what the ring brings back.

use std::ops::RangeInclusive;

use standfast::{Kind, Level, Version};
use standfast_testkit::Fault;

use crate::world::{Member, World};

pub(crate) fn protected(node_of: &[usize], group: &'static str) -> World {
    World::new(node_of).with("ring", "auto").with("lab.ring_group", group)
}

/// Takes the checkpoints of these steps, and waits until they are on the ring.
pub(crate) fn encode(world: &World, steps: RangeInclusive<u64>) {
    world.run(|member| {
        for step in steps.clone() {
            member.checkpoint(step).unwrap();
            member.job.wait(Version(step), Level::Ring).unwrap();
        }
        member.job.close().unwrap();
    });
}

#[test]
fn lost_nodes_come_back_and_the_next_loss_is_survived_too() {
    let mut world = protected(&[0, 1, 2, 3], "2");
    encode(&world, 1..=4);
    for lost in [&[0][..], &[3], &[0, 1], &[1, 2], &[2, 3], &[1, 3], &[0]] {
        lost.iter().for_each(|node| world.wipe(*node));
        assert_eq!(world.restart(), 4, "without nodes {lost:?}");
        for node in 0..4 {
            assert_eq!(world.names(node, "manifests").len(), 3);
            assert!(!world.names(node, "shards").is_empty(), "node {node} keeps shards again");
        }
    }
}

#[test]
fn with_the_products_of_a_gpu_nodes_come_back_and_its_lack_is_noted_once() {
    let mut world = protected(&[0, 1, 2, 3], "2").with("lab.ring_arithmetic", "gpu");
    let lack =
        standfast_gpu::Gpu::open().err().map(|why| format!("the ring: no GPU is used: {why}"));
    let told = |notes: &[String]| -> Vec<String> {
        notes.iter().filter(|note| note.starts_with("the ring: ")).cloned().collect()
    };
    let noted = world.run(|member| {
        let notes = (1..=2).map(|step| {
            member.checkpoint(step).unwrap();
            member.job.wait(Version(step), Level::Ring).unwrap();
            told(&member.job.report(Version(step)).unwrap().notes)
        });
        let notes: Vec<Vec<String>> = notes.collect();
        member.job.close().unwrap();
        notes
    });
    let expected: Vec<String> = lack.into_iter().collect();
    assert!(noted.iter().all(|notes| *notes == [expected.clone(), vec![]]), "{noted:?}");
    [0, 1].iter().for_each(|node| world.wipe(*node));
    let back = world.run(|member| member.restart_with_notes().unwrap());
    for (rank, (step, notes)) in back.iter().enumerate() {
        assert_eq!(*step, 2);
        // Who only receives multiplies nothing.
        assert_eq!(told(notes), if rank < 2 { vec![] } else { expected.clone() }, "rank {rank}");
    }
}

#[test]
fn nodes_with_several_and_unequal_ranks_come_back() {
    let mut world = protected(&[0, 0, 1, 2, 2, 2, 3], "2");
    encode(&world, 1..=2);
    for lost in [&[0][..], &[2], &[2, 3], &[0, 2]] {
        lost.iter().for_each(|node| world.wipe(*node));
        assert_eq!(world.restart(), 2, "without nodes {lost:?}");
    }
}

#[test]
fn two_groups_lose_nodes_at_once() {
    let mut world = protected(&[0, 1, 2, 3, 4, 5, 6, 7], "4");
    encode(&world, 1..=2);
    [0, 1, 4, 5].iter().for_each(|node| world.wipe(*node));
    assert_eq!(world.restart(), 2);
    (4..8).for_each(|node| world.wipe(node));
    assert_eq!(world.restart(), 2, "a whole sector");
}

#[test]
fn too_great_a_loss_is_told_and_an_older_checkpoint_taken() {
    let mut world = protected(&[0, 1, 2, 3], "2");
    encode(&world, 1..=1);
    (0..3).for_each(|node| world.wipe(node));
    for error in world.run(|member| member.restart().unwrap_err()) {
        assert_eq!(error.kind(), Kind::Corrupt);
        assert!(error.to_string().contains("are lost and 1 of its"), "{error}");
    }
    // The next checkpoints are whole; one that is lost later is skipped for an older one.
    encode(&world, 2..=3);
    let newest = world.names(0, "rings").pop().unwrap();
    for node in 0..4 {
        world.stores[node].remove(&newest).unwrap();
    }
    let images: Vec<String> = world.names(1, "images");
    world.stores[1].remove(images.last().unwrap()).unwrap();
    assert_eq!(world.restart(), 2);
}

#[test]
fn damaged_shards_and_members_are_found_and_made_again() {
    let mut world = protected(&[0, 1, 2, 3], "2");
    encode(&world, 1..=1);
    world.wipe(0);
    // One of the two shards of the lost group, in its middle.
    let spoil = |world: &World, node: usize, prefix: &str| {
        let name = world.names(node, prefix).pop().unwrap();
        let mut bytes = world.stores[node].get(&name, 1 << 30).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x40;
        world.stores[node].put(&name, &bytes).unwrap();
    };
    spoil(&world, 2, "shards");
    assert_eq!(world.restart(), 1);
    // A damaged segment of a node that lives, beside a lost node.
    world.wipe(2);
    spoil(&world, 3, "segments");
    assert_eq!(world.restart(), 1);
}

#[test]
fn shards_go_with_their_checkpoint() {
    let world = protected(&[0, 1, 2, 3], "2").with("keep", "2");
    encode(&world, 1..=5);
    for node in 0..4 {
        assert_eq!(world.names(node, "rings").len(), 2, "node {node}");
        let versions: std::collections::HashSet<String> = world
            .names(node, "shards")
            .iter()
            .filter_map(|name| name.split('/').nth(1).map(str::to_owned))
            .collect();
        assert_eq!(versions.len(), 2, "node {node}");
    }
    assert_eq!(world.restart(), 5);
}

#[test]
fn a_node_that_fails_while_encoding_leaves_a_local_checkpoint() {
    let mut world = protected(&[0, 1, 2, 3], "2");
    encode(&world, 1..=1);
    world.run(|member| {
        encode_without_shards(&member, 3..=3);
        let notes = member.job.report(Version(3)).unwrap().notes;
        assert!(notes.iter().any(|note| note.contains("loss of a node")), "{notes:?}");
    });
    assert_eq!(world.restart(), 3, "all nodes are there");
    world.wipe(1);
    assert_eq!(world.restart(), 2, "only older ones are on the ring");
}

/// Takes checkpoint 2, which gets to the ring, and others, which do not: a node can keep no shards.
fn encode_without_shards(member: &Member, steps: RangeInclusive<u64>) {
    let reached = |step| {
        member.checkpoint(step).unwrap();
        member.job.wait(Version(step), Level::Ring)
    };
    reached(2).unwrap();
    if member.job.rank().0.0 == 2 {
        member.faults.inject(Fault::Refuse { under: "shards/".into(), kind: Kind::Full });
    }
    for step in steps {
        assert_eq!(reached(step).unwrap_err().kind(), Kind::Unsupported, "step {step}");
    }
}

#[test]
fn the_newest_on_the_ring_stays_while_newer_ones_do_not_get_there() {
    let mut world = protected(&[0, 1, 2, 3], "2").with("keep", "2");
    encode(&world, 1..=1);
    world.run(|member| encode_without_shards(&member, 3..=6));
    for node in 0..4 {
        assert_eq!(world.names(node, "manifests").len(), 3, "node {node}: 2, 5 and 6");
    }
    assert_eq!(world.restart(), 6, "all nodes are there");
    world.wipe(1);
    assert_eq!(world.restart(), 2, "what is on the ring");
    // One that gets there takes its place.
    encode(&world, 7..=9);
    assert_eq!(world.names(0, "manifests").len(), 2);
}

#[test]
fn a_bounded_store_lets_the_newest_on_the_ring_go_last() {
    let world = protected(&[0, 1, 2, 3], "2").with("keep", "200KiB");
    encode(&world, 1..=1);
    world.run(|member| encode_without_shards(&member, 3..=6));
    let versions = |world: &World| {
        world.run(|member| {
            let list = member.job.list();
            list.iter().map(|manifest| manifest.version.0).collect::<Vec<u64>>()
        })
    };
    let left = &versions(&world)[0];
    assert!(left.len() < 6 && left.contains(&2) && left.contains(&6), "{left:?}");
}
