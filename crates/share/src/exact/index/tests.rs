use super::*;
use proptest::prelude::*;

fn hash(of: u8) -> [u8; 16] {
    blake3::hash(&[of]).as_bytes()[..16].try_into().unwrap()
}

fn id(of: u8) -> SegmentId {
    SegmentId([of; 16])
}

#[derive(Clone, Debug)]
enum Step {
    Enter(u8, u8),
    Forget(u8),
}

fn steps() -> impl proptest::strategy::Strategy<Value = Vec<Step>> {
    let enter = (0u8..6, 0u8..30).prop_map(|(segment, page)| Step::Enter(segment, page));
    let step = prop_oneof![8 => enter, 1 => (0u8..6).prop_map(Step::Forget)];
    proptest::collection::vec(step, 0..200)
}

proptest! {
    #[test]
    fn the_index_answers_as_a_map(steps in steps()) {
        let mut index = HomeIndex::new(16, usize::MAX);
        let mut map: HashMap<u8, (u8, u32)> = HashMap::new();
        for (slot, step) in (0u32..).zip(steps) {
            match step {
                Step::Enter(segment, page) => {
                    index.enter(id(segment), &hash(page), slot);
                    map.insert(page, (segment, slot));
                }
                Step::Forget(segment) => {
                    index.forget(&[id(segment)]);
                    map.retain(|_, (in_segment, _)| *in_segment != segment);
                }
            }
        }
        prop_assert_eq!(index.pages(), map.len());
        for page in 0..30 {
            let found = index.find(&hash(page)).map(|found| (index.id(found.segment), found.slot));
            let want = map.get(&page).map(|(segment, slot)| (id(*segment), *slot));
            prop_assert_eq!(found, want);
        }
        index.forget(&(0..6).map(id).collect::<Vec<_>>());
        prop_assert_eq!((index.pages(), index.bytes(), index.segments()), (0, 0, 0));
    }

    #[test]
    fn the_bound_holds_and_the_newest_stay(
        steps in steps(), room in 0usize..20,
    ) {
        let bytes_max = room * 61 + SEGMENT_BYTES;
        let mut index = HomeIndex::new(16, bytes_max);
        for (slot, step) in (0u32..).zip(steps) {
            if let Step::Enter(segment, page) = step {
                index.enter(id(segment), &hash(page), slot);
                prop_assert!(index.bytes() <= bytes_max);
                let held = |segment: &Segment| segment.hashes.len() + 4 * segment.slots.len();
                let really: usize = index.segments.iter().map(held).sum();
                prop_assert!(really <= index.bytes());
            }
        }
    }
}

#[test]
fn the_oldest_segment_goes_first() {
    let mut index = HomeIndex::new(16, 2 * (SEGMENT_BYTES + 61));
    for segment in 1..=3 {
        index.enter(id(segment), &hash(segment), 0);
    }
    assert_eq!(index.find(&hash(1)), None);
    assert!(index.find(&hash(2)).is_some() && index.find(&hash(3)).is_some());
    // Numbers are used again, and lead to the right segment.
    assert_eq!(index.id(index.find(&hash(3)).unwrap().segment), id(3));
}
