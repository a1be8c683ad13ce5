use super::*;
use crate::block::BlockEncoder;
use crate::filter::FilterChoice;
use standfast_format::CodecKind;
use std::sync::Arc;

const BLOCK: usize = 128 << 10;

fn text() -> Vec<u8> {
    let words = ["rank", "page", "of", "the", "block", "is", "written", "before"];
    let mut state = 1_u32;
    let mut text = Vec::new();
    while text.len() < BLOCK {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.extend_from_slice(words[(state >> 29) as usize].as_bytes());
        text.push(b' ');
    }
    text.truncate(BLOCK);
    text
}

/// The codec of most of the blocks after many were encoded at a store of this rate.
fn usual(store_mbps: f64) -> CodecKind {
    let adaptive = Arc::new(Adaptive::new(2, 2, false));
    adaptive.storing(Some(1e-6 / store_mbps), None);
    let mut encoder = BlockEncoder::adaptive(Arc::clone(&adaptive), FilterChoice::Auto, BLOCK);
    let text = text();
    let mut counts = std::collections::HashMap::new();
    for turn in 0..200 {
        let codec = encoder.encode(&text, 0).codec;
        *counts.entry(codec).or_insert(0) += usize::from(turn >= 100);
    }
    counts.into_iter().max_by_key(|(_, count)| *count).expect("some were encoded").0
}

#[test]
fn a_slow_store_gets_a_strong_codec_and_a_fast_one_none() {
    assert_eq!(usual(1.0), CodecKind::Zstd);
    assert_eq!(usual(1e9), CodecKind::None);
}

#[test]
fn noise_is_passed_on_and_counted() {
    let adaptive = Arc::new(Adaptive::new(1, 1, false));
    let mut encoder = BlockEncoder::adaptive(Arc::clone(&adaptive), FilterChoice::Auto, BLOCK);
    let mut state = 1_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    })
    .take(BLOCK)
    .collect();
    for _ in 0..20 {
        assert_eq!(encoder.encode(&noise, 0).codec, CodecKind::None);
    }
    let classes = lock(&adaptive.state).knowledge.classes();
    assert!(classes.last().expect("noise is the last").weight > 0.99);
}

#[test]
fn what_a_fast_store_takes_as_it_is_is_hardly_looked_at() {
    let adaptive = Arc::new(Adaptive::new(2, 2, false));
    let mut encoder = BlockEncoder::adaptive(Arc::clone(&adaptive), FilterChoice::Auto, BLOCK);
    let text = text();
    adaptive.storing(Some(1e-15), None);
    for _ in 0..100 {
        encoder.encode(&text, 0);
    }
    let looks = (0..80).filter(|_| !adaptive.passes()).count();
    assert_eq!(looks, 80 / LOOK_BLOCKS as usize);
    // The store becomes slow: the blocks that are still looked at tell what to do.
    adaptive.storing(Some(1e-6), None);
    let codecs: Vec<CodecKind> = (0..100).map(|_| encoder.encode(&text, 0).codec).collect();
    assert_eq!(codecs[99], CodecKind::Zstd);
}

#[test]
fn blocks_for_slow_codecs_are_looked_at_closely() {
    let text = text();
    for (store_mbps, is_slow) in [(1.0, true), (1e9, false)] {
        let adaptive = Arc::new(Adaptive::new(2, 2, false));
        adaptive.storing(Some(1e-6 / store_mbps), None);
        let mut encoder = BlockEncoder::adaptive(Arc::clone(&adaptive), FilterChoice::Auto, BLOCK);
        for _ in 0..50 {
            encoder.encode(&text, 0);
        }
        assert_eq!(adaptive.slow.load(Ordering::Relaxed), is_slow, "{store_mbps} MB/s");
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
    ) -> Option<(CodecKind, standfast_format::FilterKind)> {
        out.resize(raw.len() / 2, 0);
        Some((CodecKind::Float, standfast_format::FilterKind::None))
    }
}

#[test]
fn a_device_competes_with_the_encoders_of_this_process() {
    for (store_mbps, expected) in [(1.0, CodecKind::Zstd), (1500.0, CodecKind::Float)] {
        let adaptive = Arc::new(Adaptive::new(1, 1, false));
        adaptive.storing(Some(1e-6 / store_mbps), None);
        let mut encoder = BlockEncoder::adaptive(Arc::clone(&adaptive), FilterChoice::Auto, BLOCK)
            .offloaded(Some(Arc::new(Halving)));
        let text = text();
        // Windows of 256 blocks: as numbers, as bytes, here, then the best.
        let codecs: Vec<CodecKind> = (0..800).map(|_| encoder.encode(&text, 8).codec).collect();
        assert_eq!(codecs[0], CodecKind::Float);
        assert_ne!(codecs[600], CodecKind::Float);
        assert_eq!(codecs[799], expected, "a store of {store_mbps} MB/s");
    }
}
