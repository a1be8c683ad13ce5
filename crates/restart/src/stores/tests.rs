use super::*;

#[test]
fn ranks_with_one_identity_share_and_their_first_leads() {
    let stores = StoreGroups::new(3, &["a", "b", "a", "b", "c"]);
    assert_eq!(stores.of, [0, 1, 0, 1, 2]);
    assert_eq!(stores.leaders, [0, 1, 4]);
    assert!(!stores.is_leader() && !stores.are_one());
    assert!(StoreGroups::new(1, &["b", "a", "b"]).is_leader());
    assert!(StoreGroups::new(2, &["b", "b", "b"]).are_one());
}
