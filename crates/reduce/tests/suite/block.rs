//! What the block encoder promises beyond coming back: the raw escape, and bounds.

use crate::data;

use standfast_format::{CodecKind, FilterKind, Kind};
use standfast_reduce::{
    BlockDecoder, BlockEncoder, CodecSpec, Encoded, Error, FILTERS_ALLOWED, FilterChoice,
};

const BLOCK: usize = 128 << 10;

fn encoder(codec: &str, filter: &str) -> BlockEncoder {
    BlockEncoder::new(codec.parse().unwrap(), filter.parse().unwrap(), BLOCK)
}

fn is_the_raw_block(stored: Encoded<'_>, raw: &[u8]) -> bool {
    stored.codec == CodecKind::None
        && stored.filter == FilterKind::None
        && std::ptr::eq(stored.bytes, raw)
}

#[test]
fn what_does_not_compress_is_handed_out_without_a_copy() {
    let noise = data::random(BLOCK);
    for codec in ["none", "lz4", "zstd:1", "deflate:1"] {
        for filter in FILTERS_ALLOWED.split(", ") {
            let mut encoder = encoder(codec, filter);
            for raw in [&noise[..], &noise[..4096], &noise[..1], &[]] {
                assert!(is_the_raw_block(encoder.encode(raw, 0), raw), "{codec} {filter}");
            }
        }
    }
}

#[test]
fn a_block_is_compressed_from_a_saving_of_one_part_in_32() {
    for codec in ["lz4", "zstd:1", "deflate:1"] {
        let mut encoder = encoder(codec, "none");
        let mut seen = [false; 2];
        for quiet in (0..BLOCK / 8).step_by(512) {
            let mut raw = data::random(BLOCK);
            raw[..quiet].fill(0);
            let stored = encoder.encode(&raw, 0);
            if stored.codec == CodecKind::None {
                assert!(is_the_raw_block(stored, &raw));
                assert!(quiet < BLOCK / 32 + 1024, "{codec} left {quiet} quiet bytes");
            } else {
                assert!(stored.bytes.len() + BLOCK / 32 <= BLOCK, "{codec} {quiet}");
            }
            seen[usize::from(stored.codec == CodecKind::None)] = true;
        }
        assert_eq!(seen, [true, true], "{codec}");
    }
}

#[test]
fn the_filter_follows_the_data_and_the_hint() {
    for codec in ["lz4", "zstd:1", "deflate:1"] {
        let mut encoder = encoder(codec, "auto");
        let filter = encoder.encode(&data::noisy(BLOCK), 0).filter;
        assert!(matches!(filter, FilterKind::Shuffle8 | FilterKind::Delta8), "{filter}");
        assert_eq!(encoder.encode(&data::text(BLOCK), 0).filter, FilterKind::None);
        let floats: Vec<u8> =
            (0..BLOCK / 4).flat_map(|i| (1.0 + i as f32 * 1e-5).to_le_bytes()).collect();
        let filter = encoder.encode(&floats, 0).filter;
        assert!(matches!(filter, FilterKind::Shuffle4 | FilterKind::Delta4), "{filter}");
        // A hint narrows the choice, it does not force it.
        assert_eq!(encoder.encode(&data::text(BLOCK), 8).filter, FilterKind::None);
        let filter = encoder.encode(&floats, 8).filter;
        assert!(!matches!(filter, FilterKind::Shuffle4 | FilterKind::Delta4), "{filter}");
    }
}

#[test]
#[should_panic(expected = "a block of 101 bytes")]
fn a_block_beyond_the_bound_is_the_callers_mistake() {
    BlockEncoder::new(CodecSpec::NONE, FilterChoice::Auto, 100).encode(&[0; 101], 0);
}

#[test]
fn a_raw_block_is_decoded_without_a_copy() {
    let raw = data::random(5000);
    let mut decoder = BlockDecoder::new(BLOCK);
    let back = decoder.decode(CodecKind::None, FilterKind::None, &raw, raw.len()).unwrap();
    assert!(std::ptr::eq(back, &raw[..]));
}

#[test]
fn lengths_that_the_record_cannot_mean_are_refused() {
    let mut decoder = BlockDecoder::new(4096);
    for codec in CodecKind::ALL {
        for filter in FilterKind::ALL {
            for raw_bytes in [4097, usize::MAX] {
                let error = decoder.decode(*codec, *filter, &[1, 2, 3], raw_bytes).unwrap_err();
                assert_eq!(error, Error::TooLarge { raw_bytes, block_bytes_max: 4096 });
                assert_eq!(error.kind(), Kind::Corrupt);
            }
        }
    }
    let error = decoder.decode(CodecKind::None, FilterKind::Shuffle8, &[0; 10], 11).unwrap_err();
    assert_eq!(error.to_string(), "block decodes as none to 10 bytes, its record says 11");
}

#[test]
fn errors_name_the_codec() {
    let mut decoder = BlockDecoder::new(4096);
    for codec in [CodecKind::Lz4, CodecKind::Zstd, CodecKind::Deflate, CodecKind::Float] {
        let error = decoder.decode(codec, FilterKind::None, &[0xFF; 50], 4096).unwrap_err();
        assert!(error.to_string().contains(codec.name()), "{error}");
    }
}
