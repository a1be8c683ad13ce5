use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn granules_cut_a_range_without_gaps(page in 0usize..2000, pages in 1usize..3000) {
        let range = (5 << 30) + page * 4096..(5 << 30) + (page + pages) * 4096;
        let table = Table::new(std::slice::from_ref(&range), std::iter::empty());
        let shielded = &table.ranges[0];
        let mut at = range.start;
        for number in 0..shielded.granules.len() {
            let granule = shielded.granule(number);
            prop_assert_eq!(granule.start, at);
            prop_assert!(!granule.is_empty() && granule.len() <= GRANULE);
            prop_assert_eq!(table.find(granule.end - 1), Some((0, number)));
            let block = table.block(0, number);
            prop_assert!(block.contains(&number));
            let first = shielded.granule(block.start).start;
            let last = shielded.granule(block.end - 1).end;
            prop_assert_eq!(first / BLOCK, (last - 1) / BLOCK);
            at = granule.end;
        }
        prop_assert_eq!(at, range.end);
    }

    #[test]
    fn a_reader_gives_everything_up_once(page in 0usize..700, pages in 1usize..3000, step in 1usize..900) {
        let range = (5 << 30) + page * 4096..(5 << 30) + (page + pages) * 4096;
        let mut table = Table::new(std::slice::from_ref(&range), std::iter::empty());
        let mut next = 0;
        let stops = range.clone().step_by(step * 4096).chain([usize::MAX]);
        for before in stops {
            if let Some(fresh) = table.passed(0, before) {
                prop_assert_eq!(fresh.start, next);
                next = fresh.end;
                let stretch = table.end(0, fresh);
                prop_assert!(stretch.end <= before, "nothing beyond the reader");
                prop_assert!(stretch.end.is_multiple_of(BLOCK) || stretch.end == range.end);
            }
        }
        prop_assert_eq!(next, table.ranges[0].granules.len());
    }
}

#[test]
fn what_is_given_back_is_lost_unless_it_was_read() {
    let range = 0..4 * GRANULE;
    let mut table = Table::new(std::slice::from_ref(&range), std::iter::empty());
    table.end(0, 0..2);
    table.removed(&(0..2 * GRANULE));
    table.removed(&(9 * GRANULE..10 * GRANULE));
    assert!(!table.lost);
    table.removed(&(2 * GRANULE - 4096..2 * GRANULE + 4096));
    assert!(table.lost);
}
