//! Within one checkpoint: what is stored, by whom, and whether it is found.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn exact_stores_every_page_once(pages in jobs()) {
        let outcomes = run(&pages, HashKind::Xxh3, exact);
        assert_found(&pages, &outcomes);
        prop_assert_eq!(stored_pages(&outcomes), distinct(&pages));
        // What had a choice is what several ranks hold.
        let mut holders: BTreeMap<u32, u32> = BTreeMap::new();
        pages.iter().flatten().for_each(|page| *holders.entry(*page).or_default() += 1);
        let shared = holders.values().filter(|holders| **holders > 1).count() as u64;
        prop_assert_eq!(outcomes.iter().map(|one| one.shares.chosen).sum::<u64>(), shared);
    }

    #[test]
    fn top_k_refers_only_to_what_is_stored(pages in jobs(), threshold in 1u32..200) {
        let outcomes = run(&pages, HashKind::Xxh3, || top_k(threshold));
        assert_found(&pages, &outcomes);
        prop_assert!(stored_pages(&outcomes) >= distinct(&pages));
        if threshold as usize >= distinct(&pages) {
            prop_assert_eq!(stored_pages(&outcomes), distinct(&pages), "all duplicates are seen");
        }
    }
}

#[test]
fn owners_are_balanced_as_far_as_holders_allow() {
    for size in SIZES {
        let ranks = size as u32;
        // Alike, and with one rank that has far more than its share to store anyway.
        for extra in [0, 900] {
            let own = |rank: u32| 100 + if rank == 0 { extra } else { 0 };
            let pages = regular(ranks, own, 200, 700);
            let outcomes = run(&pages, HashKind::Xxh3, exact);
            let total = distinct(&pages) as f64;
            assert_eq!(stored_pages(&outcomes) as f64, total);
            let forced = f64::from(100 + extra);
            let highest = outcomes.iter().map(|one| one.shares.stored).max().unwrap() as f64;
            // A rank that is full already takes nothing more; the others share the rest.
            let average = total / f64::from(ranks);
            assert!(highest <= (1.1 * average).max(forced).ceil(), "{size} {extra}: {highest}");
            if extra == 0 {
                let chosen: Vec<u64> = outcomes.iter().map(|one| one.shares.chosen).collect();
                let mean = chosen.iter().sum::<u64>() as f64 / f64::from(ranks);
                let most = *chosen.iter().max().unwrap() as f64;
                assert!(most <= (1.1 * mean).ceil(), "{size}: {chosen:?}");
            }
        }
    }
}

#[test]
fn many_holder_sets_are_balanced_home_by_home() {
    // So many different sets that they are not gathered.
    let ranks = 16;
    let mut pages: Pages = vec![Vec::new(); ranks];
    let mut noise = 1u64;
    for page in 0..20_000 {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(page);
        let set = (noise >> 40) as u16 | 1 << (noise >> 60) | 1 << (page % 16);
        (0..ranks)
            .filter(|rank| set & (1 << rank) != 0)
            .for_each(|rank| pages[rank].push(page as u32));
    }
    // And a rank that has a lot to do already.
    pages[3].extend((0..1500).map(|page| 100_000 + page));
    let outcomes = run(&pages, HashKind::Xxh3, exact);
    assert_found(&pages, &outcomes);
    assert_eq!(stored_pages(&outcomes), 21_500);
    let most = outcomes.iter().map(|one| one.shares.stored).max().unwrap();
    assert!(most as f64 <= 1.1 * 1500.0f64.max(21_500.0 / 16.0), "{most}");
}

#[test]
fn identical_ranks_share_one_copy_evenly() {
    for size in SIZES {
        let pages: Pages = vec![(0..4096).collect(); size];
        for (name, make) in [("exact", exact as fn() -> _), ("top-k", || top_k(4096))] {
            let outcomes = run(&pages, HashKind::Xxh3, make);
            assert_found(&pages, &outcomes);
            assert_eq!(stored_pages(&outcomes), 4096, "{name}");
            let most = outcomes.iter().map(|one| one.shares.stored).max().unwrap() as f64;
            let average = 4096.0 / size as f64;
            assert!(most <= (1.02 * average).ceil(), "{name}, {size} ranks: {most}");
        }
    }
}

#[test]
fn all_ranks_see_the_same_and_twice_the_same() {
    let pages = regular(7, |rank| 10 * rank, 20, 50);
    for make in [exact as fn() -> _, || top_k(90)] {
        let fates = |outcomes: Vec<Outcome>| -> Vec<Vec<Fate>> {
            outcomes.into_iter().map(|outcome| outcome.fates).collect()
        };
        let first = fates(run(&pages, HashKind::Xxh3, make));
        assert_eq!(first, fates(run(&pages, HashKind::Xxh3, make)));
        // Holders of one page name one owner.
        let mut owners: HashMap<u32, BTreeSet<u32>> = HashMap::new();
        for (rank, (fates, pages)) in (0u32..).zip(first.iter().zip(&pages)) {
            for (fate, page) in fates.iter().zip(pages) {
                if let Fate::Theirs { owner } = fate {
                    owners.entry(*page).or_default().insert(*owner);
                    assert_ne!(*owner, rank);
                }
            }
        }
        assert!(owners.values().all(|owners| owners.len() == 1));
    }
}

#[test]
fn every_kind_of_hash_is_served() {
    let pages = regular(5, |_| 7, 9, 11);
    for kind in [HashKind::Xxh3, HashKind::Sha1, HashKind::Blake3] {
        for exact in [true, false] {
            let outcomes = run(&pages, kind, || match exact {
                true => Box::new(Exact::new(kind)),
                false => Box::new(TopK::new(kind, Threshold::fixed(1000))),
            });
            assert_found(&pages, &outcomes);
            assert_eq!(stored_pages(&outcomes), distinct(&pages));
        }
    }
}

#[test]
fn without_shared_pages_little_is_said() {
    let pages = regular(8, |_| 100, 0, 0);
    let outcomes = run(&pages, HashKind::Xxh3, exact);
    assert_found(&pages, &outcomes);
    for outcome in &outcomes {
        // Out to the homes, and one sum over eight ranks.
        assert_eq!(outcome.shares.rounds, 1 + 3);
        assert!(outcome.shares.sent_bytes <= 16 * 100 + 3 * 8 * 18);
    }
}

#[test]
fn an_adaptive_threshold_grows_into_the_job_and_stays_correct() {
    let pages = regular(5, |_| 50, 30, 200);
    let stored = run_threads(5, |comm| {
        let threshold = Threshold::adaptive(64, 4096, 1.0, 1.0);
        let mut strategy = TopK::new(HashKind::Xxh3, threshold);
        let mine = &pages[comm.rank()];
        (0..3)
            .map(|attempt| {
                checkpoint(&mut strategy, &comm, HashKind::Xxh3, mine, attempt).stored.len()
            })
            .collect::<Vec<usize>>()
    });
    // Money is no object, so all distinct pages are followed at once.
    let last: usize = stored.iter().map(|counts| counts[2]).sum();
    assert_eq!(last, distinct(&pages));
}
