use super::*;

#[test]
fn ranges_join_where_they_overlap() {
    assert_eq!(merged(vec![5..9, 0..3, 2..4, 9..10]), [0..4, 5..9, 9..10]);
}
