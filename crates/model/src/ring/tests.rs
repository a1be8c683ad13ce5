use super::*;
use proptest::prelude::*;

fn enumerated(groups: &Groups, nodes: u64, failures: u32) -> f64 {
    let (mut alive, mut all) = (0u64, 0u64);
    for set in 0u32..1 << nodes {
        if set.count_ones() != failures {
            continue;
        }
        let failed: Vec<u64> = (0..nodes).filter(|n| set >> n & 1 == 1).collect();
        all += 1;
        alive += u64::from(groups.survives(&failed).unwrap());
    }
    alive as f64 / all as f64
}

#[test]
fn the_chance_is_the_enumerated_one() {
    for (nodes, k, m) in [(12, 4, 2), (12, 3, 3), (13, 4, 4), (11, 3, 1), (8, 8, 3), (14, 5, 2)] {
        let groups = Groups::new(nodes, k, m).unwrap();
        for failures in 0..=8 {
            let ours = groups.survival(u64::from(failures));
            let seen = enumerated(&groups, nodes, failures);
            assert!((ours - seen).abs() < 1e-9, "{nodes} {k} {m} {failures}: {ours} {seen}");
        }
    }
}

#[test]
fn the_usual_group_leaves_two_groups_and_suffices() {
    assert_eq!([1, 2, 3, 4, 6, 7].map(usual_group), [1, 1, 1, 2, 3, 3]);
    for nodes in [8, 13, 64, 1000, 10_000] {
        let k = usual_group(nodes);
        assert!((GROUP_USUAL..=GROUP_MAX).contains(&k) && 2 * k <= nodes, "{nodes}: {k}");
    }
    assert_eq!(usual_group(10_000), GROUP_USUAL);
}

#[test]
fn whole_groups_may_fail_when_neighbours_stand() {
    let groups = Groups::new(16, 4, 4).unwrap();
    let mut failed = vec![4, 5, 6, 7, 12, 13, 14, 15];
    assert!(groups.survives(&failed).unwrap());
    failed.push(0);
    assert!(!groups.survives(&failed).unwrap());
}

#[test]
fn more_shards_than_nodes_are_refused_by_name() {
    let text = Groups::new(8, 2, 3).unwrap_err().to_string();
    assert!(text.starts_with("m is 3, but k is 2"), "{text}");
    assert!(Groups::new(4, 8, 1).is_err());
    assert!(Groups::new(8, 4, 2).unwrap().survives(&[8]).is_err());
}

proptest! {
    #[test]
    fn more_shards_never_hurt(k in 2u64..10, failures in 1u64..10, groups in 2u64..400) {
        let nodes = k * groups + 1;
        let mut before = 0.0;
        for m in 1..=k {
            let now = Groups::new(nodes, k, m).unwrap().survival(failures.min(nodes));
            prop_assert!(now >= before - 1e-9);
            before = now;
        }
    }
}
