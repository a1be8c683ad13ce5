use proptest::prelude::*;
use standfast_comm::Comm;
use standfast_model::ring::Groups;
use standfast_testkit::run_threads;

use super::*;

fn shape(k: usize, m: usize, spread: Spread) -> Shape {
    Shape { spread, ..Shape::new(k, m) }
}

/// Everything a topology promises, whatever the job looks like.
fn check(topology: &Topology) {
    let m = topology.shape().m;
    let mut keepers_seen = Vec::new();
    for group in topology.ring() {
        let members = topology.members(group);
        assert!(members.len() >= topology.shape().k);
        let nodes = topology.sector_nodes(group.sector as usize);
        for (place, rank) in members.iter().enumerate() {
            let Some(rank) = *rank else { continue };
            assert_eq!(topology.group_of(rank), (group, place));
            assert_eq!(topology.node_of(rank), nodes.start + place);
        }
        let mut keeper_nodes: Vec<usize> =
            (0..m).map(|row| topology.keeper_node(group, row)).collect();
        if topology.sectors() > 1 {
            assert!(keeper_nodes.iter().all(|node| !nodes.contains(node)), "shards live elsewhere");
            assert_ne!(topology.next(group).sector, group.sector);
        }
        keeper_nodes.sort_unstable();
        keeper_nodes.dedup();
        assert_eq!(keeper_nodes.len(), m, "each shard on a node of its own");
        for row in 0..m {
            let piece = Piece { group, index: (members.len() + row) as u32 };
            keepers_seen.push((topology.keeper(group, row), piece));
        }
    }
    let mut kept: Vec<(usize, Piece)> = (0..topology.ranks())
        .flat_map(|rank| topology.kept_by(rank).into_iter().map(move |piece| (rank, piece)))
        .collect();
    kept.sort_unstable();
    keepers_seen.sort_unstable();
    assert_eq!(kept, keepers_seen, "both sides agree on who keeps what");
}

/// The example of the paper: 8 nodes, 2 processes each, groups of 4: G1 - G3 - G2 - G4.
#[test]
fn the_ring_of_the_paper_is_interleaved() {
    let node_of: Vec<u32> = (0..16).map(|rank| rank / 2).collect();
    let topology = Topology::new(&node_of, Shape::full(4)).unwrap();
    let ring: Vec<(u32, u32)> = topology.ring().map(|g| (g.sector, g.level)).collect();
    assert_eq!(ring, [(0, 0), (1, 0), (0, 1), (1, 1)]);
    for (at, group) in topology.ring().enumerate() {
        let next = topology.next(group);
        assert_eq!((next.sector, next.level), ring[(at + 1) % 4]);
    }
    // A module of three nodes fails, and any four nodes, and a whole sector.
    assert!(topology.survives(&[0, 1, 2]).unwrap());
    assert_eq!(topology.chance(4, 0, 0), Chance { survived: 1.0, sets: 70, exact: true });
    assert!(topology.survives(&[4, 5, 6, 7]).unwrap());
    assert!(!topology.survives(&[0, 4, 5, 6, 7]).unwrap());
}

#[test]
fn half_of_all_nodes_may_fail_when_well_spread() {
    let topology = Topology::of_nodes(64, Shape::full(8)).unwrap();
    let every_other: Vec<usize> = (0..64).step_by(2).collect();
    assert!(topology.survives(&every_other).unwrap());
    let whole_sectors: Vec<usize> = (0..64).filter(|node| node / 8 % 2 == 0).collect();
    assert!(topology.survives(&whole_sectors).unwrap());
}

/// The planner's model and this topology count the same sets.
#[test]
fn the_model_counts_the_same_losses() {
    for (nodes, k, m) in [(12, 4, 2), (12, 3, 3), (13, 4, 4), (11, 3, 1), (8, 8, 3), (14, 5, 2)] {
        let topology = Topology::of_nodes(nodes, Shape::new(k, m)).unwrap();
        let groups = Groups::new(nodes as u64, k as u64, m as u64).unwrap();
        assert_eq!(topology.worst_case() as u64, groups.worst_case());
        for set in 0u32..1 << nodes {
            let failed: Vec<usize> = (0..nodes).filter(|node| set >> node & 1 == 1).collect();
            let theirs: Vec<u64> = failed.iter().map(|&node| node as u64).collect();
            let ours = topology.survives(&failed).unwrap();
            assert_eq!(ours, groups.survives(&theirs).unwrap(), "{nodes} {k} {m} {failed:?}");
        }
        for failures in 0..=8 {
            let ours = topology.chance(failures, 0, 0);
            let theirs = groups.survival(failures as u64);
            assert!(ours.exact && (ours.survived - theirs).abs() < 1e-9, "{nodes} {k} {m}");
        }
    }
}

#[test]
fn drawn_chances_are_near_the_models() {
    for (nodes, k, m, failures) in [(1000, 8, 2, 12), (10_000, 4, 4, 100), (997, 8, 8, 200)] {
        let topology = Topology::of_nodes(nodes, Shape::new(k, m)).unwrap();
        let chance = topology.chance(failures, 20_000, 7);
        let model = Groups::new(nodes as u64, k as u64, m as u64).unwrap();
        let expected = model.survival(failures as u64);
        assert!(!chance.exact);
        // Five standard deviations.
        let bound = 5.0 * (expected * (1.0 - expected) / 20_000.0).sqrt() + 1e-9;
        assert!((chance.survived - expected).abs() <= bound, "{chance:?} {expected}");
    }
}

#[test]
fn any_m_nodes_may_fail_for_all_small_shapes() {
    for (k, m) in (1..=6).flat_map(|k| (1..=k).map(move |m| (k, m))) {
        for spread in [Spread::First, Spread::Rotated] {
            let nodes = 2 * k + 1;
            let node_of: Vec<u32> = (0..3 * nodes as u32).map(|rank| rank / 3).collect();
            let topology = Topology::new(&node_of, shape(k, m, spread)).unwrap();
            for failures in 0..=topology.worst_case() {
                assert_eq!(topology.chance(failures, 0, 0).survived, 1.0, "{k} {m} {spread:?}");
            }
        }
    }
}

#[test]
fn the_outlook_asks_for_no_more_repairs_than_needed() {
    let topology = Topology::of_nodes(12, Shape::new(4, 2)).unwrap();
    assert_eq!(topology.outlook(&[], &[]).unwrap(), Outlook::Local);
    assert_eq!(topology.outlook(&[0, 1], &[1]).unwrap(), Outlook::Fast);
    // Three of a sector, one without its disk: one must come back.
    let Outlook::Slow { repair } = topology.outlook(&[0, 1, 2], &[0]).unwrap() else {
        panic!("three losses are too many for two shards")
    };
    assert_eq!(repair, [2]);
    assert!(topology.survives(&[0, 1]).unwrap());
    let lost = topology.outlook(&[0, 1, 2], &[0, 1, 2]).unwrap();
    assert!(matches!(lost, Outlook::Lost { members: 3, shards: 2, .. }), "{lost:?}");
    // All power gone, all disks kept.
    let all: Vec<usize> = (0..12).collect();
    let Outlook::Slow { repair } = topology.outlook(&all, &[]).unwrap() else { panic!() };
    assert!(repair.len() < 12);
    let away: Vec<usize> = all.into_iter().filter(|node| !repair.contains(node)).collect();
    assert!(topology.survives(&away).unwrap());
}

#[test]
fn jobs_that_cannot_be_are_refused() {
    assert!(Topology::new(&[], Shape::full(2)).is_err());
    assert!(Topology::new(&[0, 2], Shape::full(2)).is_err());
    assert!(Topology::new(&[0, 1], Shape::new(2, 3)).is_err());
    assert!(Topology::new(&[0, 1], Shape::new(0, 0)).is_err());
    assert!(Topology::of_nodes(129, Shape::full(128)).is_err());
    assert!(Topology::of_nodes(4, Shape::full(2)).unwrap().survives(&[4]).is_err());
}

#[test]
fn nodes_are_found_by_name() {
    let found = run_threads(6, |comm| {
        let name = ["beta", "alpha", "beta", "gamma", "alpha", "beta"][comm.rank()];
        discover(&comm, name).unwrap().of
    });
    assert!(found.iter().all(|node_of| node_of == &[0, 1, 0, 2, 1, 0]));
    let refused = run_threads(3, |comm| {
        let name = if comm.rank() == 1 { "x".repeat(5000) } else { "x".into() };
        discover(&comm, &name).unwrap_err().to_string()
    });
    assert!(refused.iter().all(|text| text.contains("rank 1")), "{refused:?}");
}

proptest! {
    #[test]
    fn any_job_is_grouped(
        ranks_per_node in proptest::collection::vec(1usize..5, 1..40), k in 1usize..9,
        less in 0usize..8, rotated: bool,
    ) {
        let node_of: Vec<u32> = ranks_per_node
            .iter()
            .enumerate()
            .flat_map(|(node, &ranks)| std::iter::repeat_n(node as u32, ranks))
            .collect();
        let spread = if rotated { Spread::Rotated } else { Spread::First };
        let shape = shape(k, k.saturating_sub(less).max(1), spread);
        let topology = Topology::new(&node_of, shape).unwrap();
        check(&topology);
        let again = Topology::decode(&topology.encode()).unwrap();
        prop_assert_eq!(again.encode(), topology.encode());
    }

    #[test]
    fn damaged_topologies_are_found(at: proptest::sample::Index, bit in 0u8..8) {
        let mut bytes = Topology::of_nodes(9, Shape::full(3)).unwrap().encode();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(Topology::decode(&bytes).is_err());
    }
}
