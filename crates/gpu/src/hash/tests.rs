use super::*;

#[test]
fn the_secret_is_that_of_the_known_answers() {
    let key: [u8; 32] = std::array::from_fn(|i| i as u8);
    let hasher = DeviceHasher::new(&key);
    // The first and the last word of `secret` in crates/reduce/tests/vectors/hash.txt, and
    // the run that starts at byte 11.
    assert_eq!(hasher.keys[0].to_le_bytes(), [0xfd, 0x84, 0xee, 0xa1, 0x59, 0x1a, 0xe9, 0x73]);
    assert_eq!(hasher.keys[23].to_le_bytes()[7], 0x06);
    let bytes: Vec<u8> = hasher.keys[..24].iter().flat_map(|word| word.to_le_bytes()).collect();
    assert_eq!(hasher.keys[32].to_le_bytes(), bytes[11..19]);
    assert_eq!(hasher.keys[24].to_le_bytes(), bytes[121..129]);
    assert_eq!(hasher.keys[40].to_le_bytes(), bytes[117..125]);
}

#[test]
fn odd_pages_are_refused() {
    for page_bytes in [0, 512, 3000, 1 << 21] {
        assert!(check_page_bytes(page_bytes).is_err(), "{page_bytes}");
    }
    assert!(check_page_bytes(4096).is_ok());
}
