use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn every_use_is_found_again(
        uses in proptest::collection::vec((0u32..3, 0u32..60, 1u32..9), 0..40),
    ) {
        let mut page = 0;
        let mut uses: Vec<Use> = uses
            .into_iter()
            .map(|(segment, slot, pages)| {
                page += pages;
                Use { slots: Slots { segment, slot, pages }, region: 1, page: page - pages }
            })
            .collect();
        uses.sort_unstable_by_key(|one| one.slots);
        let expected: std::collections::BTreeSet<(u32, u32)> = uses
            .iter()
            .flat_map(|one| (0..one.slots.pages).map(|at| (one.slots.segment, one.slots.slot + at)))
            .collect();
        let remote = Remote::new(Wanted(uses.clone()), 16);
        let pages: u32 = remote.wanted().iter().map(|slots| slots.pages).sum();
        prop_assert_eq!(pages as usize, expected.len(), "each slot once");
        for (at, slot) in expected.iter().enumerate() {
            prop_assert_eq!(remote.slot(at), *slot);
            prop_assert_eq!(remote.find(slot.0, slot.1), at);
        }
        for at in 0..expected.len() {
            let first: Vec<_> = remote.destinations(at).collect();
            let together = remote.neighbours(at, expected.len() - at);
            prop_assert!(together >= 1 && (first.len() == 1 || together == 1));
            for ahead in 1..together {
                let next: Vec<_> = remote.destinations(at + ahead).collect();
                prop_assert_eq!(next, vec![(first[0].0, first[0].1 + ahead)]);
            }
        }
        let mut reached: Vec<usize> = (0..expected.len())
            .flat_map(|at| remote.destinations(at).map(|(_, page)| page).collect::<Vec<_>>())
            .collect();
        reached.sort_unstable();
        prop_assert_eq!(reached, (0..page as usize).collect::<Vec<_>>(), "each use once");
    }
}
