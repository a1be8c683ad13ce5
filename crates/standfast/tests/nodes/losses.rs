//! What can go wrong with shards and recoveries: each is found, told, and costs no more than it must.

use standfast::{Kind, Level, Version};
use standfast_testkit::{Fault, Op};

use crate::ring::{encode, protected};
use crate::world::World;

/// The shards of a version on a node, by name.
fn shards(world: &World, node: usize, version: u64) -> Vec<String> {
    let prefix = format!("shards/v{version:010}-");
    let all = world.names(node, "shards").into_iter();
    all.filter(|name| name.starts_with(&prefix)).collect()
}

fn copy(world: &World, from: (usize, &str), to: (usize, &str)) {
    let bytes = world.stores[from.0].get(from.1, 1 << 30).unwrap();
    world.stores[to.0].put(to.1, &bytes).unwrap();
}

/// Restarts and returns the step and the notes of all ranks, which are the same.
fn restart_with_notes(world: &World) -> (u64, Vec<String>) {
    let all = world.run(|member| member.restart_with_notes().unwrap());
    assert!(all.iter().all(|one| *one == all[0]), "{all:?}");
    all.into_iter().next().unwrap()
}

#[test]
fn a_stale_shard_under_the_right_name_is_not_used() {
    let mut world = protected(&[0, 1, 2, 3], "2");
    encode(&world, 1..=2);
    // Node 2 keeps shards of nodes 0 and 1; its newest ones are those of the checkpoint before.
    for (old, new) in shards(&world, 2, 1).iter().zip(&shards(&world, 2, 2)) {
        copy(&world, (2, old), (2, new));
    }
    world.wipe(0);
    let (step, notes) = restart_with_notes(&world);
    assert_eq!(step, 2);
    assert!(notes.iter().any(|note| note.contains("an attempt at checkpoint 1")), "{notes:?}");
    // It was made again: the other keeper may go now.
    world.wipe(3);
    world.wipe(0);
    assert_eq!(world.restart(), 2);
}

#[test]
fn a_shard_of_another_group_under_the_right_name_is_not_used() {
    let mut world = protected(&[0, 1, 2, 3], "2");
    encode(&world, 1..=1);
    let (wrong, right) = (shards(&world, 0, 1).remove(0), shards(&world, 2, 1).remove(0));
    copy(&world, (0, &wrong), (2, &right));
    world.wipe(1);
    let (step, notes) = restart_with_notes(&world);
    assert_eq!(step, 1);
    assert!(notes.iter().any(|note| note.contains("not piece")), "{notes:?}");
}

#[test]
fn the_wrong_row_of_the_right_group_is_not_used() {
    let mut world = protected(&[0, 1, 2, 3], "2");
    encode(&world, 1..=1);
    let (wrong, right) = (shards(&world, 3, 1).remove(0), shards(&world, 2, 1).remove(0));
    copy(&world, (3, &wrong), (2, &right));
    world.wipe(0);
    assert_eq!(restart_with_notes(&world).0, 1);
    world.wipe(3);
    assert_eq!(world.restart(), 1, "the right one is back on node 2");
}

#[test]
fn adjacent_groups_lose_half_of_their_nodes_and_not_one_more() {
    let mut world = protected(&[0, 1, 2, 3, 4, 5], "2");
    encode(&world, 1..=2);
    // One node of each of three groups: every group has a member and a shard less.
    [0, 2, 4].iter().for_each(|node| world.wipe(*node));
    assert_eq!(world.restart(), 2);
    // Two of one group and one of the next: a member more than there are shards.
    [0, 1, 2].iter().for_each(|node| world.wipe(*node));
    for error in world.run(|member| member.restart().unwrap_err()) {
        let text = error.to_string();
        assert!(text.contains("group 0.0: the bytes of ranks 0 and 1 are lost"), "{text}");
        assert!(text.contains("1 of its 2 shards are left; 1 more"), "{text}");
    }
}

#[test]
fn the_newest_older_checkpoint_is_taken_where_the_newest_is_lost() {
    let mut world = protected(&[0, 1, 2, 3], "2");
    encode(&world, 1..=3);
    // Of the newest one both shards of the lost node's group are damaged, of the older none.
    for node in [2, 3] {
        for name in shards(&world, node, 3) {
            let mut bytes = world.stores[node].get(&name, 1 << 30).unwrap();
            bytes[40] ^= 1;
            world.stores[node].put(&name, &bytes).unwrap();
        }
    }
    world.wipe(1);
    let passed = world.run(|member| {
        let restarted = member.job.restart().unwrap().unwrap();
        assert_eq!(restarted.version, Version(2));
        restarted.skipped
    });
    for passed in passed {
        assert_eq!(passed.len(), 1);
        assert!(passed[0].1.contains("rank 1 are lost and 0 of its 2 shards"), "{passed:?}");
    }
}

#[test]
fn a_node_that_fails_during_the_recovery_does_not_spoil_the_next_one() {
    let mut world = protected(&[0, 1, 2, 3], "2");
    encode(&world, 1..=2);
    world.wipe(0);
    // The replacement's disk fails at each of its first writes in turn.
    for nth in 0..6 {
        world.run(|member| {
            if member.job.rank().0.0 == 0 {
                let nth = member.faults.calls(Op::Create) + nth;
                member.faults.inject(Fault::Fail { op: Op::Create, nth, kind: Kind::Io });
            }
            // An older checkpoint, or none: never wrong data, which `restart` checks.
            let _ = member.restart();
        });
    }
    assert_eq!(world.restart(), 2);
    world.wipe(3);
    assert_eq!(world.restart(), 2);
}

#[test]
fn a_survivor_that_cannot_be_read_during_the_recovery_counts_as_lost() {
    let mut world = protected(&[0, 1, 2, 3], "2");
    encode(&world, 1..=1);
    world.wipe(0);
    world.run(|member| {
        if member.job.rank().0.0 == 1 {
            // Its own files: from now on they cannot be opened.
            let nth = member.faults.calls(Op::Open);
            for nth in nth..nth + 40 {
                member.faults.inject(Fault::Fail { op: Op::Open, nth, kind: Kind::Io });
            }
        }
        let _ = member.restart();
    });
    assert_eq!(world.restart(), 1);
}

#[test]
fn survivors_take_the_ranks_of_a_lost_node() {
    let mut world = protected(&[0, 1, 2, 3], "2");
    encode(&world, 1..=3);
    // Node 3 is gone for good; its rank comes back on node 0.
    world.wipe(3);
    world.node_of = vec![0, 1, 2, 0];
    assert_eq!(world.restart(), 3);
    // They go on together, and the new checkpoints are protected again.
    world.run(|member| {
        assert_eq!(member.restart().unwrap(), 3);
        for step in 4..=5 {
            member.checkpoint(step).unwrap();
            member.job.wait(Version(step), Level::Ring).unwrap();
        }
    });
    world.wipe(1);
    assert_eq!(world.restart(), 5);
}

#[test]
fn ranks_that_changed_places_are_protected_again() {
    let mut world = protected(&[0, 1, 2, 3], "2");
    encode(&world, 1..=2);
    world.node_of = vec![1, 0, 3, 2];
    world.run(|member| {
        assert_eq!(member.restart().unwrap(), 2);
        for step in 3..=4 {
            member.checkpoint(step).unwrap();
            member.job.wait(Version(step), Level::Ring).unwrap();
        }
    });
    [1, 2].iter().for_each(|node| world.wipe(*node));
    assert_eq!(world.restart(), 4);
}

#[test]
fn ranks_that_moved_without_shards_get_some() {
    // A job that was not protected before; its ranks come back elsewhere, protected now.
    let plain = World::new(&[0, 1, 2, 3]);
    plain.checkpoint(1..=2);
    let mut world = protected(&[0, 1, 2, 3], "2");
    world.stores.clone_from(&plain.stores);
    world.node_of = vec![3, 0, 1, 2];
    world.run(|member| {
        assert_eq!(member.restart().unwrap(), 2);
        for step in 3..=4 {
            member.checkpoint(step).unwrap();
            member.job.wait(Version(step), Level::Ring).unwrap();
        }
    });
    world.wipe(2);
    assert_eq!(world.restart(), 4);
}

#[test]
fn what_cannot_be_protected_says_so() {
    // All ranks on one node.
    let world = World::new(&[0, 0]).with("ring", "auto");
    for notes in world.run(|member| {
        member.checkpoint(1).unwrap();
        member.job.report(Version(1)).unwrap().notes
    }) {
        assert!(notes.iter().any(|note| note.contains("loss of a node")), "{notes:?}");
    }
    // Three nodes are one group.
    let world = World::new(&[0, 1, 2]).with("ring", "auto").with("lab.ring_group", "4");
    encode(&world, 1..=1);
    for notes in world.run(|member| {
        member.checkpoint(2).unwrap();
        let report = member.job.report(Version(2)).unwrap();
        assert_eq!(report.level, Level::Ring);
        report.notes
    }) {
        assert!(notes.iter().any(|note| note.contains("any 1 of its 3 nodes")), "{notes:?}");
    }
    let mut world = world;
    world.wipe(1);
    assert_eq!(world.restart(), 2);
}

#[test]
fn damage_inside_a_file_is_made_good_by_the_ring() {
    for (node, prefix) in [(1, "segments"), (0, "images"), (2, "segments")] {
        let world = protected(&[0, 1, 2, 2], "2");
        encode(&world, 1..=3);
        for name in world.names(node, prefix) {
            let mut bytes = world.stores[node].get(&name, 1 << 30).unwrap();
            // A segment's first block is behind its header.
            let at = if prefix == "segments" { 4096 + 100 } else { bytes.len() / 2 };
            bytes[at] ^= 0x10;
            world.stores[node].put(&name, &bytes).unwrap();
        }
        let (step, notes) = restart_with_notes(&world);
        assert_eq!(step, 3, "{prefix} of node {node}: {notes:?}");
        assert!(notes.iter().any(|note| note.contains("rebuilt from the ring")), "{notes:?}");
        // It is whole again by itself.
        let (step, notes) = restart_with_notes(&world);
        assert_eq!((step, &notes[..]), (3, &[][..]));
    }
}
