//! Across checkpoints: pages of earlier ones are found by every rank.

use std::collections::{BTreeSet, HashMap};

use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn earlier_checkpoints_are_found_by_everybody(
        first in jobs(), seed in any::<u64>(), commit: bool,
    ) {
            // The second checkpoint: other ranks hold some of the pages, and there are new ones.
        let size = first.len();
        let shift = (seed as usize) % size;
        let second: Pages = (0..size)
            .map(|rank| first[(rank + shift) % size].iter().map(|page| page + 20).collect())
            .collect();
        let outcomes = run_threads(size, |comm| {
            let mut strategy = Exact::with_index(HashKind::Xxh3, usize::MAX);
            let rank = comm.rank();
            let before = checkpoint(&mut strategy, &comm, HashKind::Xxh3, &first[rank], 1);
            if commit { strategy.commit() } else { strategy.abort() }
            let after = checkpoint(&mut strategy, &comm, HashKind::Xxh3, &second[rank], 2);
            (before, after)
        });
        let (before, after): (Vec<Outcome>, Vec<Outcome>) = outcomes.into_iter().unzip();
        assert_found(&first, &before);
        assert_found(&second, &after);
        let known: HashMap<u32, (SegmentId, u32)> = match commit {
            true => before.iter().flat_map(|outcome| outcome.stored.clone()).collect(),
            false => HashMap::new(),
        };
        let all: BTreeSet<u32> = second.iter().flatten().copied().collect();
        let new = all.iter().filter(|page| !known.contains_key(page)).count();
        prop_assert_eq!(stored_pages(&after), new);
        for (page, place) in after.iter().flat_map(|outcome| &outcome.old) {
            prop_assert_eq!(known.get(page), Some(place));
        }
    }
}

#[test]
fn loaded_segments_are_known_until_they_are_forgotten() {
    let ranks = 7;
    let stored: Vec<u32> = (0..210).collect();
    let segment = |rank: usize| segment_id(9, rank, 0);
    let outcomes = run_threads(ranks, |comm| {
        let rank = comm.rank();
        let mut strategy = Exact::with_index(HashKind::Xxh3, usize::MAX);
        let own = hashes(HashKind::Xxh3, &stored[rank * 30..][..30]);
        strategy.load(&comm, &[(segment(rank), &own)]).unwrap();
        let known = strategy.index().unwrap().pages();
        // Everybody comes with everything.
        let found = checkpoint(&mut strategy, &comm, HashKind::Xxh3, &stored, 1);
        strategy.abort();
        strategy.forget(&[segment(3)]);
        let less = checkpoint(&mut strategy, &comm, HashKind::Xxh3, &stored, 2);
        (known, found, less)
    });
    assert_eq!(outcomes.iter().map(|(known, _, _)| known).sum::<usize>(), 210);
    for (_, found, less) in &outcomes {
        assert_eq!((found.old.len(), less.old.len()), (210, 180));
        for (page, place) in &found.old {
            assert_eq!(*place, (segment(*page as usize / 30), page % 30));
        }
    }
    let again: usize = outcomes.iter().map(|(_, _, less)| less.stored.len()).sum();
    assert_eq!(again, 30, "the pages of the forgotten segment are stored once more");
}
