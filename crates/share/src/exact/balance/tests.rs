use super::*;
use proptest::prelude::*;

/// Highest load after balancing, having checked that every page was given away once.
fn highest(loads: &[u64], sets: &[(Vec<u32>, u64)], first: usize) -> u64 {
    let mut classes = Classes::default();
    for (holders, pages) in sets {
        classes.add(holders, *pages);
    }
    let given = balance(loads.iter().map(|load| *load as f64).collect(), &classes, first);
    let mut loads = loads.to_vec();
    for class in 0..classes.len() {
        let range = classes.range(class);
        assert_eq!(given[range.clone()].iter().sum::<u64>(), classes.counts[class]);
        for at in range {
            loads[classes.holders[at] as usize] += given[at];
        }
    }
    *loads.iter().max().unwrap()
}

/// The least possible highest load, page by page: a page that finds all its holders full
/// pushes other pages on (augmenting paths); the limit grows until all fit.
fn best(loads: &[u64], sets: &[(Vec<u32>, u64)]) -> u64 {
    let pages: Vec<&Vec<u32>> =
        sets.iter().flat_map(|(set, n)| std::iter::repeat_n(set, *n as usize)).collect();
    let mut limit = *loads.iter().max().unwrap();
    'limit: loop {
        let mut at: Vec<Vec<usize>> = vec![Vec::new(); loads.len()];
        for page in 0..pages.len() {
            let mut tried = vec![false; loads.len()];
            if !place(page, &pages, loads, limit, &mut at, &mut tried) {
                limit += 1;
                continue 'limit;
            }
        }
        return limit;
    }
}

fn place(
    page: usize,
    pages: &[&Vec<u32>],
    loads: &[u64],
    limit: u64,
    at: &mut Vec<Vec<usize>>,
    tried: &mut [bool],
) -> bool {
    for rank in pages[page].iter().map(|rank| *rank as usize) {
        if std::mem::replace(&mut tried[rank], true) {
            continue;
        }
        if loads[rank] + (at[rank].len() as u64) < limit {
            at[rank].push(page);
            return true;
        }
        for held in 0..at[rank].len() {
            let other = at[rank][held];
            if place(other, pages, loads, limit, at, tried) {
                at[rank][held] = page;
                return true;
            }
        }
    }
    false
}

#[test]
fn a_page_of_everybody_is_spread_evenly() {
    for ranks in 1..20 {
        let all: Vec<u32> = (0..ranks).collect();
        let highest = highest(&vec![0; ranks as usize], &[(all, 1000)], 3 % ranks as usize);
        assert_eq!(highest, 1000u64.div_ceil(u64::from(ranks)));
    }
}

#[test]
fn chains_are_levelled() {
    // 0-1, 1-2, ... 8-9: all pages come in at one end, and must be handed on one by one.
    let mut sets: Vec<(Vec<u32>, u64)> = (0..9).map(|rank| (vec![rank, rank + 1], 10)).collect();
    sets[0].1 = 100;
    let total: u64 = sets.iter().map(|(_, pages)| pages).sum();
    assert_eq!(highest(&[0; 10], &sets, 0), best(&[0; 10], &sets));
    assert!(best(&[0; 10], &sets) >= total / 10);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn nothing_is_better(
        loads in proptest::collection::vec(0u64..30, 7),
        sets in proptest::collection::vec(
            (proptest::collection::btree_set(0u32..7, 2..7), 1u64..20), 0..8),
        first in 0usize..7,
    ) {
        let sets: Vec<(Vec<u32>, u64)> =
            sets.into_iter().map(|(set, n)| (Vec::from_iter(set), n)).collect();
        prop_assert_eq!(highest(&loads, &sets, first), best(&loads, &sets));
    }
}
