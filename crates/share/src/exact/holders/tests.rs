use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn sets_come_back(
        sets in proptest::collection::vec(
            (proptest::collection::btree_set(0u32..70, 2..20), 1u32..1000), 0..9),
    ) {
        let mut classes = Classes::default();
        for (holders, pages) in &sets {
            classes.add(&Vec::from_iter(holders.iter().copied()), u64::from(*pages));
        }
        let bytes = classes.encode(70);
        let mut back = Classes::default();
        let added = back.add_encoded(Reader::new(&bytes, 0, 0), 70).unwrap();
        prop_assert_eq!(added.len(), classes.len());
        prop_assert_eq!(&back.holders, &classes.holders);
        prop_assert_eq!(&back.counts, &classes.counts);
        // Cut off anywhere, it is refused or ends between two classes.
        for end in 0..bytes.len() {
            let mut part = Classes::default();
            if let Ok(added) = part.add_encoded(Reader::new(&bytes[..end], 0, 0), 70) {
                prop_assert!(added.len() < classes.len());
            }
        }
    }

    #[test]
    fn garbage_is_refused_or_in_bounds(bytes: Vec<u8>) {
        let mut classes = Classes::default();
        if classes.add_encoded(Reader::new(&bytes, 0, 0), 9).is_ok() {
            prop_assert!(classes.holders.iter().all(|rank| *rank < 9));
        }
    }
}
