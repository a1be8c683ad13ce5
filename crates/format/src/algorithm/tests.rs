use super::*;

#[test]
fn numbers_and_names_lead_back() {
    for kind in CodecKind::ALL {
        assert_eq!(CodecKind::from_number(*kind as u8).unwrap(), *kind);
        assert_eq!(CodecKind::from_name(kind.name()), Some(*kind));
    }
    assert!(HashKind::from_number(0).is_err());
    assert!(FilterKind::from_number(9).is_err());
    assert!(HashKind::ALL.iter().all(|kind| kind.bytes() <= HASH_BYTES_MAX));
}
