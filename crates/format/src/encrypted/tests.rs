use super::*;
use proptest::prelude::*;

fn tail() -> EncryptedTail {
    EncryptedTail { fingerprint: Fingerprint([7; 8]), salt: [8; 24], tag: [9; TAG_BYTES] }
}

proptest! {
    #[test]
    fn lengths_lead_back(plain in prop_oneof![0..300_000_u64, any::<u64>().prop_map(|n| n >> 1)]) {
        prop_assert_eq!(plain_bytes(encrypted_bytes(plain)), Some(plain));
    }

    #[test]
    fn a_length_is_of_one_object_or_none(stored in 0..300_000_u64) {
        if let Some(plain) = plain_bytes(stored) {
            prop_assert_eq!(encrypted_bytes(plain), stored);
        }
    }

    #[test]
    fn any_bytes_are_refused_or_read(bytes: Vec<u8>) {
        prop_assert!(EncryptedTail::decode(&bytes).is_err());
    }
}

#[test]
fn a_tail_leads_back_and_its_mark_and_version_count() {
    let bytes = tail().encode();
    assert_eq!(EncryptedTail::decode(&bytes).unwrap(), tail());
    assert_eq!(EncryptedTail::decode(&[&[1; 100][..], &bytes].concat()).unwrap(), tail());
    for at in 0..16 {
        let mut broken = bytes;
        broken[at] ^= 1;
        assert!(EncryptedTail::decode(&broken).is_err(), "byte {at}");
    }
}

#[test]
fn lengths_that_no_object_has_are_refused() {
    let chunk = CHUNK_BYTES as u64;
    for stored in [0, 63, 65, 64 + 16, 64 + chunk + 1, 64 + chunk + 16] {
        assert_eq!(plain_bytes(stored), None, "{stored}");
    }
    assert_eq!(plain_bytes(64), Some(0));
    assert_eq!(plain_bytes(64 + 17), Some(1));
    assert_eq!(plain_bytes(64 + chunk), Some(CHUNK_PLAIN_BYTES as u64));
}
