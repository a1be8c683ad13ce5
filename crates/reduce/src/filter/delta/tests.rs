use super::*;
use proptest::prelude::*;

#[test]
fn differences_of_either_sign_become_small_numbers() {
    let src: Vec<u8> = [5_u32, 6, 4, 4].into_iter().flat_map(u32::to_le_bytes).collect();
    let mut dst = vec![0xAA; 18];
    take(4, &[&src[..], &[7, 8]].concat(), &mut dst);
    let expected: Vec<u8> = [10_u32, 2, 3, 0].into_iter().flat_map(u32::to_le_bytes).collect();
    assert_eq!(dst, [&expected[..], &[7, 8]].concat());
}

#[test]
fn a_straight_line_becomes_one_value() {
    let src: Vec<u8> = (0..100_i64).flat_map(|i| (7 - 3 * i).to_le_bytes()).collect();
    let mut dst = vec![0; src.len()];
    take(8, &src, &mut dst);
    assert!(dst[8..].chunks(8).all(|element| element == 5_u64.to_le_bytes()));
}

proptest! {
    #[test]
    fn both_ways_agree_and_lead_back(
        bytes in prop::collection::vec(prop_oneof![Just(0_u8), Just(0xFF), any::<u8>()], 0..999),
        elem in prop::sample::select(vec![4_usize, 8]),
    ) {
        let (mut fast, mut plain) = (vec![0xAA; bytes.len()], vec![0x55; bytes.len()]);
        take(elem, &bytes, &mut fast);
        take_portable(elem, &bytes, &mut plain);
        prop_assert_eq!(&fast, &plain);
        undo(elem, &mut fast);
        prop_assert_eq!(&fast, &bytes);
    }
}
