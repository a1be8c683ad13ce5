use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

fn hash(of: u32) -> [u8; 16] {
    blake3::hash(&of.to_le_bytes()).as_bytes()[..16].try_into().unwrap()
}

fn catalog() -> Catalog {
    Catalog::new(HashKind::Xxh3, usize::MAX)
}

#[test]
fn a_known_page_is_found_across_segments() {
    let mut catalog = catalog();
    catalog.open_segment(SegmentId([1; 16]));
    let Found::Entered(first) = catalog.find_or_enter(&hash(1)) else { panic!("new") };
    assert_eq!(catalog.find_or_enter(&hash(1)), Found::Known(first));
    catalog.seal_segment();
    catalog.open_segment(SegmentId([2; 16]));
    assert_eq!(catalog.find_or_enter(&hash(1)), Found::Known(first));
    let Found::Entered(second) = catalog.find_or_enter(&hash(2)) else { panic!("new") };
    assert_eq!(second.stored(), Some((1, 0)));
}

#[test]
fn forgotten_segments_answer_no_more() {
    let mut catalog = catalog();
    catalog.open_segment(SegmentId([1; 16]));
    catalog.find_or_enter(&hash(1));
    catalog.seal_segment();
    catalog.forget(|id| id == SegmentId([1; 16]));
    catalog.open_segment(SegmentId([2; 16]));
    assert!(matches!(catalog.find_or_enter(&hash(1)), Found::Entered(_)));
    assert_eq!(catalog.hashes_bytes(), 16);
}

#[test]
fn the_oldest_segments_go_when_the_bound_is_reached() {
    let mut catalog = Catalog::new(HashKind::Xxh3, 48);
    for number in 0..4u8 {
        catalog.open_segment(SegmentId([number; 16]));
        catalog.find_or_enter(&hash(2 * u32::from(number)));
        catalog.find_or_enter(&hash(2 * u32::from(number) + 1));
        catalog.seal_segment();
        assert!(catalog.hashes_bytes() <= 48);
    }
    catalog.open_segment(SegmentId([9; 16]));
    assert!(matches!(catalog.find_or_enter(&hash(7)), Found::Known(_)), "newest stays");
    assert!(matches!(catalog.find_or_enter(&hash(0)), Found::Entered(_)), "oldest is gone");
}

proptest! {
    #[test]
    fn agrees_with_a_plain_map(pages in proptest::collection::vec(0u32..200, 0..600), cut in 1usize..100) {
        let mut catalog = catalog();
        let mut plain: HashMap<u32, PageRef> = HashMap::new();
        for (number, part) in pages.chunks(cut).enumerate() {
            catalog.open_segment(SegmentId([number as u8; 16]));
            for page in part {
                match catalog.find_or_enter(&hash(*page)) {
                    Found::Known(at) => prop_assert_eq!(plain.get(page), Some(&at)),
                    Found::Entered(at) => prop_assert!(plain.insert(*page, at).is_none()),
                }
            }
            catalog.seal_segment();
        }
    }
}
