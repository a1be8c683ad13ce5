//! The conformance suite of codecs: one set of demands, run by every codec with every filter.
//!
//! Timings are nobody's business here; speed is measured by `examples/reduce_speed.rs`.

use crate::data;

use proptest::prelude::*;
use standfast_format::{CodecKind, FilterKind, Kind};
use standfast_reduce::{BlockDecoder, BlockEncoder, Codec, CodecSpec, FilterChoice, codec};

const BLOCK_BYTES_MAX: usize = 1 << 20;

/// Every codec that compresses; where it has levels, some that work in different ways. What devices
/// write is tested with their reference, in `tests/stand-in`.
fn specs() -> Vec<CodecSpec> {
    ["none", "lz4", "zstd:-7", "zstd:1", "zstd:9", "deflate:1", "deflate:6"]
        .into_iter()
        .map(|text| text.parse().unwrap())
        .collect()
}

fn choices() -> Vec<FilterChoice> {
    let fixed = FilterKind::ALL.iter().copied().map(FilterChoice::Fixed);
    fixed.chain([FilterChoice::Auto]).collect()
}

/// Enough for any codec's worst case at the lengths used here.
fn roomy(len: usize) -> Vec<u8> {
    vec![0xAA; len + len / 8 + 1024]
}

fn compress(codec: &mut dyn Codec, bytes: &[u8]) -> Vec<u8> {
    let mut packed = roomy(bytes.len());
    let len = codec.compress(bytes, &mut packed).expect("room for the worst case");
    packed.truncate(len);
    packed
}

#[test]
fn what_is_compressed_comes_back() {
    for spec in specs() {
        let (mut writer, mut reader) = (codec(spec), codec(CodecSpec::usual(spec.kind)));
        for (name, bytes) in data::samples() {
            let packed = compress(writer.as_mut(), &bytes);
            let mut back = vec![0x55; bytes.len()];
            reader.decompress(&packed, &mut back).unwrap_or_else(|e| panic!("{spec} {name}: {e}"));
            assert!(back == bytes, "{spec} {name}");
        }
    }
}

#[test]
fn the_same_input_gives_the_same_output() {
    let (first, second) = (data::noisy(50_000), data::text(70_000));
    for spec in specs() {
        let mut used = codec(spec);
        let alone = compress(used.as_mut(), &first);
        compress(used.as_mut(), &second);
        assert!(compress(used.as_mut(), &first) == alone, "{spec}");
        assert!(compress(codec(spec).as_mut(), &first) == alone, "{spec}");
    }
}

#[test]
fn a_small_destination_is_respected() {
    for spec in specs() {
        let mut codec = codec(spec);
        for (name, bytes) in data::samples() {
            if bytes.is_empty() || bytes.len() == BLOCK_BYTES_MAX {
                continue; // nothing to refuse; nothing new at five times the time
            }
            let needed = compress(codec.as_mut(), &bytes).len();
            for room in [0, 1, needed / 2, needed - 1] {
                let mut frame = vec![0xAA; room + 64];
                let fitted = codec.compress(&bytes, &mut frame[..room]);
                // Less room may make a codec choose other, shorter means; never more than fits.
                assert!(fitted.is_none_or(|len| len <= room), "{spec} {name} {room}");
                assert!(frame[room..].iter().all(|byte| *byte == 0xAA), "{spec} {name} {room}");
            }
        }
    }
}

#[test]
fn a_wrong_length_is_an_error() {
    for spec in specs() {
        let mut codec = codec(spec);
        for (name, bytes) in data::samples() {
            let packed = compress(codec.as_mut(), &bytes);
            let mut longer = vec![0; bytes.len() + 1];
            let error = codec.decompress(&packed, &mut longer).expect_err(&name);
            assert_eq!(error.kind(), Kind::Corrupt, "{spec} {name}");
            if let Some(shorter) = bytes.len().checked_sub(1) {
                let error = codec.decompress(&packed, &mut longer[..shorter]).expect_err(&name);
                assert_eq!(error.kind(), Kind::Corrupt, "{spec} {name}");
            }
        }
    }
}

#[test]
fn truncated_bytes_never_pass_as_the_whole() {
    for spec in specs() {
        let mut codec = codec(spec);
        for bytes in [data::text(9000), data::noisy(9000), vec![0; 9000], data::random(9000)] {
            let packed = compress(codec.as_mut(), &bytes);
            let mut back = vec![0; bytes.len()];
            for len in (0..packed.len()).step_by(packed.len() / 200 + 1) {
                let result = codec.decompress(&packed[..len], &mut back);
                assert!(result.is_err(), "{spec}: {len} of {} bytes", packed.len());
            }
        }
    }
}

#[test]
fn every_codec_with_every_filter_makes_blocks_that_decode() {
    let mut decoder = BlockDecoder::new(BLOCK_BYTES_MAX);
    let samples = data::samples();
    for spec in specs() {
        for choice in choices() {
            let mut encoder = BlockEncoder::new(spec, choice, BLOCK_BYTES_MAX);
            for ((name, bytes), hint) in samples.iter().zip([0, 4, 8, 99].into_iter().cycle()) {
                let stored = encoder.encode(bytes, hint);
                assert!(stored.bytes.len() <= bytes.len(), "{spec} {choice} {name}");
                assert!(stored.codec == spec.kind || stored.codec == CodecKind::None);
                let back = decoder
                    .decode(stored.codec, stored.filter, stored.bytes, bytes.len())
                    .unwrap_or_else(|e| panic!("{spec} {choice} {name}: {e}"));
                assert!(back == *bytes, "{spec} {choice} {name}");
            }
        }
    }
}

fn any_codec() -> impl Strategy<Value = CodecKind> {
    prop::sample::select(CodecKind::ALL)
}

/// One that compresses: devices write the others.
fn any_compressing() -> impl Strategy<Value = CodecKind> {
    let all = CodecKind::ALL.iter().copied();
    prop::sample::select(all.filter(|kind| *kind != CodecKind::Float).collect::<Vec<_>>())
}

fn any_filter() -> impl Strategy<Value = FilterKind> {
    prop::sample::select(FilterKind::ALL)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_bytes_come_back(
        bytes in prop::collection::vec(prop_oneof![Just(0_u8), 0_u8..4, any::<u8>()], 0..6000),
        kind in any_codec(),
        filter in any_filter(),
    ) {
        let choice = FilterChoice::Fixed(filter);
        let mut encoder = BlockEncoder::new(CodecSpec::usual(kind), choice, 6000);
        let stored = encoder.encode(&bytes, 0);
        let mut decoder = BlockDecoder::new(6000);
        let back = decoder.decode(stored.codec, stored.filter, stored.bytes, bytes.len());
        prop_assert_eq!(back.unwrap(), &bytes[..]);
    }

    /// Garbage gives an error or some bytes of the right number, within bounds.
    #[test]
    fn garbage_is_survived(
        stored in prop::collection::vec(any::<u8>(), 0..600),
        raw_bytes in 0_usize..5000,
        kind in any_codec(),
        filter in any_filter(),
    ) {
        let mut decoder = BlockDecoder::new(4096);
        match decoder.decode(kind, filter, &stored, raw_bytes) {
            Ok(raw) => prop_assert_eq!(raw.len(), raw_bytes),
            Err(error) => prop_assert_eq!(error.kind(), Kind::Corrupt),
        }
    }

    /// Flipped bits give an error or some bytes of the right number, within bounds, and leave
    /// the decoder fit for the next block.
    #[test]
    fn flipped_bits_are_survived(
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..8), 1..8),
        which in 0_usize..4,
        kind in any_compressing(),
        filter in any_filter(),
    ) {
        let bytes = match which {
            0 => data::text(20_000),
            1 => data::smooth(20_000),
            2 => data::mixed(20_000),
            _ => vec![7; 20_000],
        };
        let packed = compress(codec(CodecSpec::usual(kind)).as_mut(), &bytes);
        let mut damaged = packed.clone();
        for (at, bit) in flips {
            damaged[at.index(packed.len())] ^= 1_u8 << bit;
        }
        let mut decoder = BlockDecoder::new(bytes.len());
        match decoder.decode(kind, filter, &damaged, bytes.len()) {
            Ok(raw) => prop_assert_eq!(raw.len(), bytes.len()),
            Err(error) => prop_assert_eq!(error.kind(), Kind::Corrupt),
        }
        let good = decoder.decode(kind, FilterKind::None, &packed, bytes.len());
        prop_assert!(good.unwrap() == bytes);
    }
}
