use super::*;

#[test]
fn bit_for_bit_another_crate_for_every_length() {
    let secret: [u8; SECRET_BYTES] = std::array::from_fn(|i| (i * 37 + 11) as u8);
    let bytes: Vec<u8> =
        (0..70_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let lengths = (0..5000).chain([8192, 16384, 65535, 65536, 65537]);
    for len in lengths {
        let page = &bytes[len % 61..][..len];
        let expected = xxhash_rust::xxh3::xxh3_128_with_secret(page, &secret);
        assert_eq!(xxh3_128(page, &secret), expected, "length {len}");
    }
}
