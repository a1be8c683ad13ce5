use super::*;
use crate::random::Random;
use std::cell::Cell;

/// Merges tables by recursive doubling and counts the comparisons of all sorts of one rank.
fn comparisons(ranks: u64, threshold: usize) -> u64 {
    let count = Cell::new(0u64);
    let mut random = Random::new(ranks);
    let mut fresh = || -> Vec<u64> { (0..threshold).map(|_| random.below(1 << 40)).collect() };
    let mut table = fresh();
    for _ in 0..doublings(ranks) {
        // Tables arrive keyed by hash, in no order of frequency.
        let mut union: Vec<u64> = table.iter().copied().chain(fresh()).collect();
        union.sort_unstable_by(|a, b| {
            count.set(count.get() + 1);
            b.cmp(a)
        });
        union.truncate(threshold);
        table = union;
    }
    count.get()
}

#[test]
fn counted_work_stays_within_a_constant_of_the_formula() {
    let unit = CollectiveDedup::new(0.0, 1.0).unwrap();
    for ranks in [2, 16, 1000] {
        for threshold in [64u64, 1024, 8192] {
            let bound = unit.time_s(0, ranks, threshold).unwrap();
            let ratio = comparisons(ranks, threshold as usize) as f64 / bound;
            // A sort of 2 T entries takes about 2 T lg(2 T) comparisons.
            assert!((0.8..3.0).contains(&ratio), "{ranks} {threshold}: {ratio}");
        }
    }
}

#[test]
fn one_rank_pays_for_its_pages_only() {
    let cost = CollectiveDedup::new(1e-6, 1e-8).unwrap();
    assert_eq!(cost.time_s(1000, 1, 100).unwrap(), 1e-3);
    assert!(cost.time_s(1, 0, 1).unwrap_err().to_string().contains("ranks"));
    assert!(CollectiveDedup::new(-1.0, 0.0).is_err());
}
