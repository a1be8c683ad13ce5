use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn rounds_cover_every_slot_once(
        runs in proptest::collection::vec((0u32..3, 0u32..100, 1u32..20), 0..20),
        pages in 1usize..30,
    ) {
        let list: Vec<Slots> = runs
            .into_iter()
            .map(|(segment, slot, pages)| Slots { segment, slot, pages })
            .collect();
        let each = |list: &[Slots]| -> Vec<(u32, u32)> {
            let of = |slots: &Slots| {
                let segment = slots.segment;
                (slots.slot..slots.slot + slots.pages).map(move |slot| (segment, slot))
            };
            list.iter().flat_map(of).collect()
        };
        let rounds = count(&list).div_ceil(pages);
        let parts: Vec<Vec<Slots>> =
            (0..rounds).map(|round| part_of(&list, round * pages, pages)).collect();
        prop_assert!(parts.iter().all(|part| count(part) <= pages));
        prop_assert_eq!(each(&parts.concat()), each(&list));
    }
}
