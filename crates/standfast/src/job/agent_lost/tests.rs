use super::*;

#[test]
fn a_search_becomes_rare() {
    let mut search = Search::new();
    let due: Vec<usize> = (0..200).filter(|_| search.is_due()).collect();
    assert_eq!(due, [0, 2, 6, 14, 30, 62, 126, 190]);
}
