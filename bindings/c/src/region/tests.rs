use super::*;

#[test]
fn every_type_has_a_size_and_no_other_number_is_one() {
    for number in 0..=14 {
        let (size, elem) = layout(number).unwrap();
        assert!(elem == 0 || size.is_multiple_of(usize::from(elem)), "{number}");
    }
    assert_eq!(layout(sf_type::SF_F64 as c_int), Some((8, 8)));
    assert_eq!(layout(sf_type::SF_C64 as c_int), Some((16, 8)));
    assert!(layout(-1).is_none() && layout(15).is_none());
}
