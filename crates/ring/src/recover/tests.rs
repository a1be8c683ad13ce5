use std::collections::BTreeSet;

use proptest::prelude::*;
use standfast_comm::{Comm, collective};
use standfast_testkit::run_threads;

use super::*;
use crate::code::Family;
use crate::error::Error;
use crate::tests::job::{BLOCK_BYTES, Lab};
use crate::topology::{GroupId, Piece, Shape, Spread, Topology};

const BLOCK: usize = BLOCK_BYTES as usize;

fn uneven(rank: usize) -> usize {
    [BLOCK + 1, 0, 3 * BLOCK, 700, BLOCK, 1, 2 * BLOCK - 1][rank % 7]
}

/// Loses nodes, recovers, and holds the result against what the topology promised.
fn lose(topology: Topology, failed: &[usize]) {
    let survived = topology.survives(failed).unwrap();
    let lab = Lab::encoded(topology, |rank| uneven(rank).max(1));
    failed.iter().for_each(|node| lab.wipe(*node));
    let ended = lab.recover();
    if survived {
        ended.into_iter().for_each(|ended| _ = ended.unwrap());
        lab.check();
    } else {
        for ended in ended {
            assert!(matches!(ended, Err(Error::NotEnough { .. })), "{failed:?}: {ended:?}");
        }
    }
}

/// All sets of nodes, also those that are too many: recovery and topology agree on every one.
#[test]
fn every_loss_of_small_rings_is_as_promised() {
    for (nodes, k, m) in [(2, 1, 1), (4, 2, 2), (5, 2, 1), (3, 3, 2), (6, 3, 2), (7, 3, 3)] {
        for set in 0u32..1 << nodes {
            let failed: Vec<usize> = (0..nodes).filter(|node| set >> node & 1 == 1).collect();
            lose(Topology::of_nodes(nodes, Shape::new(k, m)).unwrap(), &failed);
        }
    }
}

#[test]
fn a_whole_group_comes_back_and_the_next_loss_is_survived_too() {
    let lab = Lab::encoded(Topology::of_nodes(8, Shape::full(4)).unwrap(), |_| 3 * BLOCK + 5);
    for sector in [0..4, 4..8, 2..6] {
        sector.for_each(|node| lab.wipe(node));
        lab.recover().into_iter().for_each(|ended| _ = ended.unwrap());
        lab.check();
    }
}

#[test]
fn half_of_all_nodes_come_back_when_well_spread() {
    let topology = Topology::of_nodes(16, Shape::full(4)).unwrap();
    let failed: Vec<usize> = (0..16).step_by(2).collect();
    assert!(topology.survives(&failed).unwrap());
    lose(topology, &failed);
}

/// Survivors only: the lost ranks' bytes go to heirs, and what is elsewhere moves to its heir.
#[test]
fn survivors_take_the_place_of_lost_ranks() {
    let lab = Lab::encoded(Topology::of_nodes(6, Shape::full(3)).unwrap(), |rank| 900 + rank * 400);
    // The new job: old ranks 0, 2, 3, 5 are its ranks 0 to 3.
    let old = [0, 2, 3, 5];
    let heirs = [0, 0, 1, 2, 3, 3];
    [1, 4].iter().for_each(|node| lab.wipe(*node));
    let moved = Lab::new(lab.topology.clone(), |rank| lab.bytes_of(rank).len());
    for (new, store) in moved.stores.iter().enumerate() {
        store.pieces().into_iter().for_each(|piece| _ = store.remove(piece));
        let Some(&from) = old.get(new) else { continue };
        let from = &lab.stores[from];
        from.pieces().into_iter().for_each(|piece| store.put(piece, from.get(piece).unwrap()));
    }
    run_threads(4, |comm| moved.recover_on(&comm, &heirs).unwrap());
    for (rank, heir) in heirs.into_iter().enumerate() {
        let found = moved.stores[heir].get(moved.member(rank)).unwrap();
        assert_eq!(found, lab.bytes_of(rank), "rank {rank} at its heir");
    }
}

#[test]
fn members_that_are_elsewhere_move_to_their_heirs() {
    let lab = Lab::encoded(Topology::of_nodes(4, Shape::full(2)).unwrap(), |_| 2 * BLOCK);
    let piece = lab.member(0);
    lab.stores[3].put(piece, lab.stores[0].remove(piece).unwrap());
    lab.recover().into_iter().for_each(|ended| _ = ended.unwrap());
    lab.check();
}

#[test]
fn damage_anywhere_is_an_erasure() {
    let topology = || Topology::of_nodes(6, Shape::full(3)).unwrap();
    let shard_of = |topology: &Topology, row: usize| {
        let group = GroupId { sector: 0, level: 0 };
        let piece = Piece { group, index: 3 + row as u32 };
        (topology.keeper(group, row), piece)
    };
    // In the table (found on opening), in the body (found on reading), in a member.
    const TABLE_BYTES: usize = 24 + 3 * 4 * 8 + 32;
    for from_end in [0, 40, TABLE_BYTES + 10, TABLE_BYTES + 2500] {
        let lab = Lab::encoded(topology(), |_| 3 * BLOCK);
        let (keeper, piece) = shard_of(&lab.topology, 0);
        lab.damage(keeper, piece, from_end);
        lab.wipe(0);
        let ended = lab.recover();
        let opened = from_end > TABLE_BYTES;
        for ended in ended {
            assert_eq!(ended.unwrap().damaged, if opened { vec![piece] } else { vec![] });
        }
        lab.check();
    }
    let lab = Lab::encoded(topology(), |_| 3 * BLOCK);
    lab.damage(1, lab.member(1), 100);
    lab.wipe(0);
    for ended in lab.recover() {
        assert_eq!(ended.unwrap().damaged, [lab.member(1)]);
    }
    lab.check();
}

#[test]
fn damage_beyond_the_shards_is_said_and_nothing_wrong_is_written() {
    let lab = Lab::encoded(Topology::of_nodes(4, Shape::new(2, 1)).unwrap(), |_| 3 * BLOCK);
    lab.damage(1, lab.member(1), 10);
    lab.wipe(0);
    for ended in lab.recover() {
        assert!(
            matches!(ended, Err(Error::NotEnough { ref lost, shards: 1, .. }) if lost.len() == 2),
            "{ended:?}"
        );
    }
    assert_eq!(lab.stores[0].get(lab.member(0)), None);
}

/// A shard whose own checksums are right and whose bytes are not: only the result betrays it.
#[test]
fn a_forged_shard_is_found_by_its_result() {
    let lab = Lab::encoded(Topology::of_nodes(4, Shape::new(2, 1)).unwrap(), |_| BLOCK);
    let group = GroupId { sector: 0, level: 0 };
    let piece = Piece { group, index: 2 };
    let keeper = lab.topology.keeper(group, 0);
    let shard = lab.stores[keeper].shard(piece).unwrap();
    let body = vec![5; BLOCK];
    let mut table = crate::shard::Table::new(2);
    let members = [shard.table.member(0, 0), shard.table.member(0, 1)];
    table.push(crate::shard::checksum(0, &body), &members);
    lab.stores[keeper].put(piece, [shard.header.encode(), body, table.encode()].concat());
    lab.wipe(0);
    let ended = lab.recover();
    assert!(matches!(ended[0], Err(Error::Mismatch { .. })), "{:?}", ended[0]);
    assert!(ended[1..].iter().all(|ended| matches!(ended, Err(Error::Peer { rank: 0, .. }))));
    assert_eq!(lab.stores[0].get(lab.member(0)), None);
}

#[test]
fn shards_of_another_checkpoint_are_not_used() {
    let lab = Lab::encoded(Topology::of_nodes(4, Shape::new(2, 1)).unwrap(), |_| BLOCK);
    let group = GroupId { sector: 0, level: 0 };
    let keeper = lab.topology.keeper(group, 0);
    let piece = Piece { group, index: 2 };
    let mut shard = lab.stores[keeper].shard(piece).unwrap();
    shard.header.stamp = crate::tests::job::stamp(2);
    let mut file = lab.stores[keeper].get(piece).unwrap();
    let body = file.split_off(shard.body_at as usize);
    lab.stores[keeper].put(piece, [shard.header.encode(), body].concat());
    lab.wipe(0);
    for ended in lab.recover() {
        assert!(matches!(ended, Err(Error::NotEnough { shards: 0, .. })), "{ended:?}");
    }
}

#[test]
fn hostile_claims_are_typed_errors() {
    let topology = Topology::of_nodes(4, Shape::full(2)).unwrap();
    let group = GroupId { sector: 0, level: 0 };
    let beyond = GroupId { sector: 9, level: u32::MAX };
    let shard = |piece, member_bytes| ShardClaim { piece, block_bytes: 1024, member_bytes };
    let claims = [
        Claim { members: vec![(Piece { group: beyond, index: 0 }, 5)], shards: vec![] },
        Claim { members: vec![(Piece { group, index: 2 }, 5)], shards: vec![] },
        Claim { members: vec![(Piece { group, index: 0 }, u64::MAX)], shards: vec![] },
        Claim { members: vec![], shards: vec![shard(Piece { group, index: 4 }, vec![1, 1])] },
        Claim { members: vec![], shards: vec![shard(Piece { group, index: 2 }, vec![1; 9])] },
    ];
    let mut hostile: Vec<Vec<u8>> = claims.iter().map(Claim::encode).collect();
    hostile.extend([vec![0xff; 40], vec![]]);
    for hostile in hostile {
        let lab = Lab::encoded(topology.clone(), |_| 100);
        let ended = run_threads(4, |comm| {
            if comm.rank() == 2 {
                collective::all_gather(&comm, &hostile).unwrap();
                return None;
            }
            lab.recover_on(&comm, &[0, 1, 2, 3]).err()
        });
        for (rank, ended) in ended.into_iter().enumerate().filter(|(rank, _)| *rank != 2) {
            assert!(matches!(ended, Some(Error::Message { from: 2, .. })), "{rank}: {ended:?}");
        }
    }
}

#[test]
fn heirs_must_exist() {
    let lab = Lab::encoded(Topology::of_nodes(2, Shape::full(1)).unwrap(), |_| 100);
    let ended = run_threads(2, |comm| lab.recover_on(&comm, &[0, 2]).err());
    assert!(ended.iter().all(|error| matches!(error, Some(Error::Invalid { .. }))));
}

/// The rule that makes a star safe: a rank has one message each way in a slot.
fn check_slots(plan: &Plan) {
    let mut seen = BTreeSet::new();
    for (group, slots) in plan.groups.iter().zip(slots::slots(plan)) {
        for (target, to) in group.targets.iter().enumerate() {
            for (source, from) in group.sources.iter().enumerate() {
                let (Some(from), Some(to)) = (from.rank, to.rank) else { continue };
                let slot = slots[target * group.sources.len() + source];
                assert!(seen.insert((slot, false, from)) && seen.insert((slot, true, to)));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_job_recovers_from_any_loss(
        ranks_per_node in proptest::collection::vec(1usize..4, 2..12), k in 1usize..6,
        less in 0usize..5, rotated: bool, cauchy: bool, lost: u64,
    ) {
        let node_of: Vec<u32> = ranks_per_node
            .iter()
            .enumerate()
            .flat_map(|(node, &ranks)| std::iter::repeat_n(node as u32, ranks))
            .collect();
        let shape = Shape {
            k,
            m: k.saturating_sub(less).max(1),
            spread: if rotated { Spread::Rotated } else { Spread::First },
            family: if cauchy { Family::Cauchy } else { Family::Vandermonde },
        };
        let topology = Topology::new(&node_of, shape).unwrap();
        // About a third of the nodes.
        let failed: Vec<usize> =
            (0..topology.nodes()).filter(|node| lost >> (2 * node) & 3 == 0).collect();
        lose(topology, &failed);
    }

    #[test]
    fn plans_of_large_jobs_are_safe(
        nodes in 20usize..200, k in 2usize..9, seed: u64, share in 1u64..8,
    ) {
        let topology = Topology::of_nodes(nodes, Shape::full(k)).unwrap();
        let is_lost = |node: usize| (seed.rotate_left(node as u32 * 7) ^ node as u64) % 8 < share;
        let claims: Vec<Claim> = (0..nodes)
            .map(|rank| {
                if is_lost(rank) {
                    return Claim::default();
                }
                let (group, place) = topology.group_of(rank);
                let shard = |piece: Piece| {
                    let k = topology.members(piece.group).len();
                    ShardClaim { piece, block_bytes: 1024, member_bytes: vec![9; k] }
                };
                Claim {
                    members: vec![(Piece { group, index: place as u32 }, 9)],
                    shards: topology.kept_by(rank).into_iter().map(shard).collect(),
                }
            })
            .collect();
        let heirs: Vec<usize> = (0..nodes).collect();
        let plan = plan(&topology, &claims, &heirs, &BTreeSet::new(), 1024);
        let failed: Vec<usize> = (0..nodes).filter(|node| is_lost(*node)).collect();
        prop_assert_eq!(plan.lost.is_empty(), topology.survives(&failed).unwrap());
        check_slots(&plan);
        for group in &plan.groups {
            prop_assert_eq!(group.sources.len(), group.member_bytes.len());
        }
    }

    #[test]
    fn claims_lead_back_and_garbage_never_panics(bytes: Vec<u8>) {
        let topology = Topology::of_nodes(4, Shape::full(2)).unwrap();
        if let Ok(claim) = Claim::decode(&topology, 0, &bytes) {
            prop_assert_eq!(Claim::decode(&topology, 0, &claim.encode()).unwrap(), claim);
        }
    }
}
