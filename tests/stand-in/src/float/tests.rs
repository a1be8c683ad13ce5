//! The codec's reference: what comes back, how small it gets, what damage does.

use proptest::prelude::*;
use standfast_reduce::float::{CHUNK_HEADER_BYTES, STREAM_HEADER_BYTES, decode};
use standfast_testkit::vectors;

use super::*;

fn round_trip(raw: &[u8], element: Element) -> usize {
    let stream = encode(raw, element);
    assert!(decode(&stream).unwrap() == raw, "{element:?}, {} bytes", raw.len());
    stream.len()
}

#[test]
fn all_vectors_come_back() {
    for (name, raw) in vectors::all() {
        for element in Element::ALL {
            let bytes = round_trip(&raw, element);
            let chunks = raw.len().div_ceil(CHUNK_BYTES);
            let most = raw.len() + chunks * (CHUNK_HEADER_BYTES + 32) + 2 * STREAM_HEADER_BYTES;
            assert!(bytes <= most, "{name} as {element:?}: {bytes} bytes of {}", raw.len());
        }
    }
}

#[test]
fn numbers_get_as_small_as_their_entropy_promises() {
    let bytes = 4 * CHUNK_BYTES;
    let ratio = |raw: &[u8], element| raw.len() as f64 / round_trip(raw, element) as f64;
    let weights = ratio(&vectors::bf16_weights(bytes, 1), Element::Bf16);
    assert!(weights > 1.45, "bf16 weights: {weights}");
    let field = ratio(&vectors::noisy_f64(bytes, 1), Element::F64);
    assert!(field > 1.25, "noisy f64 field: {field}");
    let constant = ratio(&vec![7; bytes], Element::F32);
    assert!(constant > 1000.0, "constant: {constant}");
}

#[test]
fn a_cut_or_changed_stream_is_an_error_or_the_same_length() {
    let raw = vectors::noisy_f64(70_000, 3);
    let stream = encode(&raw, Element::F64);
    for end in (0..stream.len()).step_by(997) {
        assert!(decode(&stream[..end]).is_err(), "cut to {end}");
    }
    for at in (0..stream.len()).step_by(101) {
        let mut changed = stream.clone();
        changed[at] ^= 0x41;
        if let Ok(decoded) = decode(&changed) {
            assert_eq!(decoded.len(), raw.len(), "changed at {at}");
        }
    }
}

#[test]
fn a_stream_that_claims_too_much_is_refused_before_memory_is_taken() {
    let mut stream = encode(&[0; 100], Element::F32);
    stream[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(decode(&stream).is_err());
    // As many sizes as chunks, but nothing in them.
    let mut hollow = stream[..16].to_vec();
    hollow[8..16].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    hollow.resize(16 + (4 << 22), 0);
    assert!(decode(&hollow).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_bytes_come_back(raw in proptest::collection::vec(any::<u8>(), 0..3000), which in 0..3_usize) {
        let element = Element::ALL[which];
        prop_assert_eq!(decode(&encode(&raw, element)).unwrap(), raw);
    }

    #[test]
    fn any_stream_is_survived(mut stream in proptest::collection::vec(any::<u8>(), 0..400)) {
        if stream.len() > 16 {
            stream[..8].copy_from_slice(b"SFF1\x08\0\0\0");
            stream[9..16].fill(0);
        }
        let _ = decode(&stream);
    }
}
