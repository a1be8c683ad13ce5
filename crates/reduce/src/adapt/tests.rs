use super::*;
use crate::block::{BlockDecoder, BlockEncoder};
use crate::filter::FilterChoice;
use standfast_format::{CodecKind, FilterKind};

const BLOCK: usize = 128 << 10;

fn random() -> impl Iterator<Item = u64> {
    let mut state = 1_u64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 32
    })
}

fn noise() -> Vec<u8> {
    random().take(BLOCK).map(|number| number as u8).collect()
}

fn field() -> Vec<u8> {
    let value = |(at, noise): (usize, u64)| {
        300.0 + (at as f64 * 1e-4).sin() + 1e-9 * noise as f64 / f64::from(u32::MAX)
    };
    (0..BLOCK / 8).zip(random()).map(value).flat_map(f64::to_le_bytes).collect()
}

fn encoder(store_mbps: f64) -> BlockEncoder {
    let adaptive = Arc::new(Adaptive::new(2, false));
    adaptive.storing(1e-6 / store_mbps);
    BlockEncoder::adaptive(adaptive, FilterChoice::Auto, BLOCK)
}

#[test]
fn every_choice_stores_the_block() {
    let mut decoder = BlockDecoder::new(BLOCK);
    for store_mbps in [0.1, 1e3, 1e9] {
        let mut encoder = encoder(store_mbps);
        for raw in [noise(), field(), vec![7; BLOCK], vec![1; 5], Vec::new()] {
            for _ in 0..40 {
                let done = encoder.encode(&raw, 0);
                let back = decoder.decode(done.codec, done.filter, done.bytes, raw.len());
                assert!(back.is_ok_and(|back| back == raw));
            }
        }
    }
}

#[test]
fn noise_is_stored_as_it_is_and_a_field_never_is() {
    for store_mbps in [1.0, 1e9] {
        let mut encoder = encoder(store_mbps);
        for _ in 0..40 {
            assert_eq!(encoder.encode(&noise(), 0).codec, CodecKind::None);
            assert_ne!(encoder.encode(&field(), 0).codec, CodecKind::None);
        }
    }
}

/// A device that halves every block in no time.
struct Halving;

impl crate::Offload for Halving {
    fn callers(&self) -> usize {
        1
    }

    fn encode(
        &self,
        _: u32,
        raw: &[u8],
        _: u8,
        out: &mut Vec<u8>,
    ) -> Option<(CodecKind, FilterKind)> {
        out.resize(raw.len() / 2, 0);
        Some((CodecKind::Float, FilterKind::None))
    }
}

#[test]
fn a_device_competes_with_the_encoders_of_this_process() {
    // The store alone decides: a block of one value is nothing here, half of it there.
    let mut encoder = encoder(1e-3).offloaded(Some(Arc::new(Halving)));
    let raw = vec![7; BLOCK];
    // Windows of 256 blocks: as numbers, as bytes, here, then the best.
    let codecs: Vec<CodecKind> = (0..800).map(|_| encoder.encode(&raw, 8).codec).collect();
    assert_eq!(codecs[0], CodecKind::Float);
    assert_ne!(codecs[600], CodecKind::Float);
    assert_ne!(codecs[799], CodecKind::Float);
}
