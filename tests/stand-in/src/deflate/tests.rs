//! The codec's reference against an inflater that is not ours.

use standfast_format::CodecKind;
use standfast_gpu::deflate::END_OF_STREAM;
use standfast_testkit::vectors;

use super::*;
use proptest::prelude::*;

fn inflate(stream: &[u8], bytes: usize) -> Vec<u8> {
    let mut out = vec![0; bytes];
    let found = libdeflater::Decompressor::new().deflate_decompress(stream, &mut out);
    assert_eq!(found, Ok(bytes), "a whole Deflate stream");
    out
}

fn compressed(raw: &[u8]) -> usize {
    let each = raw.chunks(CHUNK_BYTES).map(|chunk| {
        let stream = encode_chunk(chunk, FilterKind::None);
        assert!(stream.len() <= chunk.len() + 10, "{} bytes of {}", stream.len(), chunk.len());
        assert!(inflate(&stream, chunk.len()) == chunk);
        stream.len()
    });
    each.sum()
}

#[test]
fn all_vectors_inflate_to_themselves() {
    for (name, raw) in vectors::all() {
        let bytes = compressed(&raw);
        println!("{name}: {} -> {bytes}", raw.len());
    }
}

#[test]
fn parts_make_one_stream() {
    for (_, raw) in vectors::all() {
        let parts = raw.chunks(CHUNK_BYTES).flat_map(encode_part);
        let stream: Vec<u8> = parts.chain(END_OF_STREAM).collect();
        assert!(inflate(&stream, raw.len()) == raw);
    }
}

#[test]
fn matching_is_not_far_from_a_serial_compressor() {
    for (name, raw) in [
        ("records", vectors::records(CHUNK_BYTES * 4, 1)),
        ("mixed pages", vectors::mixed_pages(CHUNK_BYTES * 16, 2)),
        ("noisy f64", vectors::noisy_f64(CHUNK_BYTES * 4, 3)),
        ("bf16 weights", vectors::bf16_weights(CHUNK_BYTES * 4, 4)),
    ] {
        let mut serial = libdeflater::Compressor::new(libdeflater::CompressionLvl::fastest());
        let best: usize = raw
            .chunks(CHUNK_BYTES)
            .map(|chunk| {
                let mut out = vec![0; serial.deflate_compress_bound(chunk.len())];
                serial.deflate_compress(chunk, &mut out).unwrap()
            })
            .sum();
        let ours = compressed(&raw);
        assert!(ours as f64 <= best as f64 * 1.15, "{name}: {ours} bytes, serially {best}");
    }
}

#[test]
fn filtered_chunks_are_blocks_of_the_store() {
    let raw = vectors::noisy_f64(CHUNK_BYTES, 5);
    let plain = encode_chunk(&raw, FilterKind::None).len();
    for filter in [FilterKind::None, FilterKind::Shuffle4, FilterKind::Shuffle8] {
        let stream = encode_chunk(&raw, filter);
        let mut decoder = standfast_reduce::BlockDecoder::new(CHUNK_BYTES);
        let block = decoder.decode(CodecKind::Deflate, filter, &stream, raw.len()).unwrap();
        assert!(block == raw, "{filter}");
    }
    let sorted = encode_chunk(&raw, FilterKind::Shuffle8).len();
    assert!(sorted < plain, "{sorted} bytes by planes, {plain} without");
}

#[test]
fn symbols_are_those_of_the_standard() {
    // RFC 1951 3.2.5: some lengths and distances with their codes, extra bits and values.
    for (length, symbol, extra_bits, extra) in [
        (3, 257, 0, 0),
        (10, 264, 0, 0),
        (12, 265, 1, 1),
        (66, 276, 3, 7),
        (257, 284, 5, 30),
        (258, 285, 0, 0),
    ] {
        assert_eq!(length_symbol(length - 3), Symbol { symbol, extra_bits, extra }, "{length}");
    }
    for (distance, symbol, extra_bits, extra) in
        [(1, 0, 0, 0), (4, 3, 0, 0), (6, 4, 1, 1), (24577, 29, 13, 0), (32768, 29, 13, 8191)]
    {
        assert_eq!(
            distance_symbol(distance - 1),
            Symbol { symbol, extra_bits, extra },
            "{distance}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_chunk_inflates_to_itself(
        raw in proptest::collection::vec(prop_oneof![Just(0_u8), 0..4_u8, any::<u8>()], 1..9000),
    ) {
        compressed(&raw);
    }
}
