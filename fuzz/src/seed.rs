//! Seeds: sound inputs, made from a sound store when a target starts.
//!
//! They go to the directory that `STANDFAST_TEST_SEEDS` names, before libFuzzer reads its corpus;
//! so none has to be kept in the repository, and none grows stale.

use std::path::Path;

use standfast_format::{
    Arrival, CodecKind, Drains, Image, Rank, Reference, Run, SEGMENT_FOOTER_BYTES,
    SEGMENT_HEADER_BYTES, SegmentFooter, StoreIdentity, Version,
};
use standfast_reduce::float;
use standfast_stand_in::float::encode;

use crate::envelope::{AS_IT_IS, BODY, body};
use crate::ring;
use crate::sample::SAMPLE;

/// Writes the seeds of a target, if somebody named a directory for them.
pub fn plant(target: &str) {
    let Some(dir) = std::env::var_os("STANDFAST_TEST_SEEDS") else { return };
    for (number, seed) in seeds(target).iter().enumerate() {
        let path = Path::new(&dir).join(format!("seed-{number}"));
        if let Err(error) = std::fs::write(&path, seed) {
            panic!("{}: {error}", path.display());
        }
    }
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    match target {
        "store_header" => framed(objects("store")),
        "drains" => drains_seeds(),
        "identity" => framed([&*StoreIdentity([5; 16]).encode().leak()].into_iter()),
        "topology" => framed(ring::topology_seeds().into_iter().map(|bytes| &*bytes.leak())),
        "shard" => ring::shard_seeds(),
        "manifest" => framed(objects("manifests/")),
        "image" => framed(objects("images/").chain([&*referring_image().leak()])),
        "segment_header" => framed(objects("segments/").map(|b| &b[..SEGMENT_HEADER_BYTES])),
        "segment_index" => objects("segments/").flat_map(index_seeds).collect(),
        "segment_footer" => objects("segments/").flat_map(footer_seeds).collect(),
        "names" => {
            let names = SAMPLE.objects.keys().map(|name| name.clone().into_bytes());
            names.chain(ring::names().map(String::into_bytes)).collect()
        }
        "block" => objects("segments/").flat_map(block_seeds).collect(),
        "float" => float_seeds(),
        "config" => config_seeds(),
        // Damage starts from nothing: the empty list of edits.
        _ => vec![vec![0], vec![7; 64]],
    }
}

fn drains_seeds() -> Vec<Vec<u8>> {
    let mut drains = Drains::default();
    for number in 1..=3 {
        let (from_bytes, to_bytes) = (number << 30, number << 29);
        let version = Version(number);
        drains.push(Arrival { version, from_bytes, to_bytes, elapsed_ns: 1 << 33, arrived_ns: 7 });
    }
    let frame = drains.encode();
    vec![with(&[AS_IT_IS], &frame), with(&[BODY], body(&frame))]
}

fn objects(prefix: &str) -> impl Iterator<Item = &'static [u8]> {
    let found = SAMPLE.objects.iter().filter(move |(name, _)| name.starts_with(prefix));
    found.map(|(_, bytes)| bytes.as_slice())
}

/// An image of the sample, to which all that is stored belongs to another rank.
fn referring_image() -> Vec<u8> {
    let sound = objects("images/").next().expect("the sample has images");
    let (mut image, _) = Image::decode(sound).expect("a sound image");
    let mut references = Vec::new();
    for (number, region) in (0..).zip(&image.regions) {
        let mut page = 0;
        for run in &region.runs {
            if let Run::Stored { pages, .. } = *run {
                let hashes = vec![9; pages as usize * image.hash.bytes()];
                references.push(Reference { region: number, page, owner: Rank(1), hashes });
            }
            page += u64::from(run.pages());
        }
    }
    image.references = Some(references);
    image.encode().0
}

fn with(head: &[u8], bytes: &[u8]) -> Vec<u8> {
    [head, bytes].concat()
}

/// Each as it is, and as a body to be framed.
fn framed(frames: impl Iterator<Item = &'static [u8]>) -> Vec<Vec<u8>> {
    frames.flat_map(|frame| [with(&[AS_IT_IS], frame), with(&[BODY], body(frame))]).collect()
}

fn footer(segment: &[u8]) -> (&[u8], SegmentFooter) {
    let bytes = &segment[segment.len() - SEGMENT_FOOTER_BYTES..];
    let footer = SegmentFooter::decode(bytes, segment.len() as u64);
    (bytes, footer.expect("a sound segment"))
}

fn index_seeds(segment: &'static [u8]) -> Vec<Vec<u8>> {
    let (_, footer) = footer(segment);
    let index = &segment[footer.index_offset as usize..][..footer.index_bytes as usize];
    let offset = (footer.index_offset as u32).to_le_bytes();
    vec![
        with(&[&offset[..], &[AS_IT_IS]].concat(), index),
        with(&[&offset[..], &[BODY]].concat(), body(index)),
    ]
}

fn footer_seeds(segment: &'static [u8]) -> Vec<Vec<u8>> {
    let (bytes, _) = footer(segment);
    let file_bytes = (segment.len() as u64).to_le_bytes();
    vec![
        with(&[&file_bytes[..], &[AS_IT_IS]].concat(), bytes),
        with(&[&file_bytes[..], &[BODY]].concat(), &bytes[8..48]),
    ]
}

/// The blocks of a segment, under every codec and filter.
fn block_seeds(segment: &'static [u8]) -> Vec<Vec<u8>> {
    let (_, footer) = footer(segment);
    let blocks = &segment[SEGMENT_HEADER_BYTES..footer.index_offset as usize];
    let part = &blocks[..blocks.len().min(2000)];
    let codecs = 0..CodecKind::ALL.len() as u8;
    let kinds = codecs.flat_map(|codec| (0..3).map(move |filter| (codec, filter)));
    kinds.map(|(codec, filter)| with(&[codec, filter, 0, 16], part)).collect()
}

/// Numbers of every size: calm ones, noisy ones, and two chunks of them.
fn float_seeds() -> Vec<Vec<u8>> {
    let calm: Vec<u8> = (0..500).flat_map(|i| f64::from(i).to_le_bytes()).collect();
    let noisy: Vec<u8> =
        (0..500).flat_map(|i| (f64::from(i * i % 997) / 7.0).sin().to_le_bytes()).collect();
    let long = vec![3; float::CHUNK_BYTES + 9];
    let all = float::Element::ALL.into_iter();
    all.flat_map(|element| [&calm, &noisy, &long].map(|raw| encode(raw, element))).collect()
}

fn config_seeds() -> Vec<Vec<u8>> {
    let toml: String = standfast::config::KEYS
        .iter()
        .map(|key| format!("{} = \"{}\"\n", key.name, key.default()))
        .collect();
    let options = toml.replace('\n', ";").replace('"', "");
    vec![toml.into_bytes(), options.into_bytes(), b"keep = 3\npage = \"64KiB\"".to_vec()]
}
