use super::*;
use proptest::prelude::*;

const TEST: Sort = Sort { mark: *b"SFTEST\0\0", what: "test" };

#[test]
fn a_newer_version_is_named_as_such() {
    let bytes = seal_version(TEST, FORMAT_VERSION + 1, b"body");
    assert!(matches!(open(TEST, &bytes), Err(Error::Version { .. })));
}

proptest! {
    #[test]
    fn bodies_lead_back(body: Vec<u8>, behind: Vec<u8>) {
        let mut bytes = seal(TEST, &body);
        prop_assert_eq!(open(TEST, &bytes).unwrap().body, &body[..]);
        let whole = bytes.len();
        bytes.extend_from_slice(&behind);
        prop_assert_eq!(open_prefix(TEST, &bytes).unwrap().bytes, whole);
        prop_assert_eq!(open(TEST, &bytes).is_ok(), behind.is_empty());
    }

    #[test]
    fn every_flipped_bit_is_found(body in proptest::collection::vec(any::<u8>(), 0..64), at: proptest::sample::Index, bit in 0u8..8) {
        let mut bytes = seal(TEST, &body);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(open(TEST, &bytes).is_err());
    }

    #[test]
    fn every_cut_is_found(body in proptest::collection::vec(any::<u8>(), 0..64), at: proptest::sample::Index) {
        let bytes = seal(TEST, &body);
        prop_assert!(open(TEST, &bytes[..at.index(bytes.len())]).is_err());
    }

    #[test]
    fn garbage_never_panics(bytes: Vec<u8>) {
        let _ = open_prefix(TEST, &bytes);
    }
}
