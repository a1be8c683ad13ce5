use super::covered;

#[test]
fn overlapping_ranges_count_once() {
    assert_eq!(covered(vec![]), 0);
    assert_eq!(covered(vec![(5, 9), (0, 3), (2, 6), (8, 9)]), 9);
}
