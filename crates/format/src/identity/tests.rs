use super::*;

#[test]
fn identities_lead_back_and_damage_is_found() {
    let identity = StoreIdentity([7; 16]);
    let mut bytes = identity.encode();
    assert_eq!(StoreIdentity::decode(&bytes).unwrap(), identity);
    bytes[30] ^= 1;
    assert!(StoreIdentity::decode(&bytes).is_err());
}
