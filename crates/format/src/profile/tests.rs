use super::*;
use proptest::prelude::*;

#[test]
fn sizes_fall_into_their_classes() {
    for (bytes, class) in [(0, 0), (63, 0), (64, 1), (4095, 3), (4096, 4), (2 << 20, 9)] {
        assert_eq!(Tally::class_of(bytes), class, "{bytes}");
    }
    assert_eq!(Tally::class_of(u64::MAX), WRITE_CLASSES - 1);
}

#[test]
fn unknown_classes_are_left_out() {
    let count = WriteCount { count: 1, bytes: 2, ns: 3 };
    let bytes = postcard::to_stdvec(&vec![(200_u8, count), (3, count)]).unwrap();
    let tally: Tally = postcard::from_bytes(&bytes).unwrap();
    assert_eq!(tally.total(), count);
}

proptest! {
    #[test]
    fn tallies_lead_back(sizes in prop::collection::vec((any::<u64>(), any::<u64>()), 0..40)) {
        let (mut tally, mut twice) = (Tally::default(), Tally::default());
        sizes.iter().for_each(|(bytes, ns)| tally.add(*bytes, *ns));
        let bytes = postcard::to_stdvec(&tally).unwrap();
        prop_assert_eq!(&postcard::from_bytes::<Tally>(&bytes).unwrap(), &tally);
        twice.join(&tally);
        twice.join(&tally);
        prop_assert_eq!(twice.total().count, 2 * sizes.len() as u64);
    }
}
