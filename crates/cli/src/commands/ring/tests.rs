use super::list;

#[test]
fn long_runs_are_written_short() {
    assert_eq!(list(&[3]), "3");
    assert_eq!(list(&[0, 1, 2]), "0, 1, 2");
    assert_eq!(list(&[4, 5, 6, 7]), "4-7");
    assert_eq!(list(&[4, 5, 6, 8]), "4, 5, 6, 8");
}
