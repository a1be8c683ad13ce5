//! What the fuzz targets do with their bytes: one function a target, one target a decoder.
//!
//! Digests guard everything that is stored, so arbitrary bytes would never get past them. The
//! first byte of an input says what the rest is: the bytes as they are, or a body that is put
//! into a sound envelope first. Either way a decoder may refuse; it may not panic, and what it
//! accepts must lead back to itself.
//!
//! `run.sh` builds and runs all targets on a stable toolchain; `cargo fuzz run TARGET` works too.

mod config;
mod envelope;
mod ring;
mod sample;
pub mod seed;
mod whole_store;

use standfast_format::{
    CodecKind, Drains, FilterKind, Image, Manifest, Pledge, SegmentFooter, SegmentHeader,
    SegmentIndex, StoreHeader, StoreIdentity, name,
};
use standfast_reduce::{BlockDecoder, BlockEncoder, CodecSpec, FilterChoice, float};

pub use config::config;
use envelope::Sort;
pub use ring::{shard, topology};
pub use whole_store::whole_store;

/// The store header.
pub fn store_header(data: &[u8]) {
    let Some(bytes) = envelope::open(Sort::Store, data) else { return };
    if let Ok(header) = StoreHeader::decode(&bytes) {
        assert!(StoreHeader::decode(&header.encode()) == Ok(header));
    }
}

/// What drains told.
pub fn drains(data: &[u8]) {
    let Some(bytes) = envelope::open(Sort::Drains, data) else { return };
    if let Ok(drains) = Drains::decode(&bytes) {
        assert!(drains.since(drains.count).is_empty());
        assert_eq!(Drains::decode(&drains.encode()), Ok(drains));
    }
}

/// The identity of a node's store.
pub fn identity(data: &[u8]) {
    let Some(bytes) = envelope::open(Sort::Identity, data) else { return };
    if let Ok(identity) = StoreIdentity::decode(&bytes) {
        assert!(StoreIdentity::decode(&identity.encode()) == Ok(identity));
    }
}

/// A manifest.
pub fn manifest(data: &[u8]) {
    let Some(bytes) = envelope::open(Sort::Manifest, data) else { return };
    if let Ok(manifest) = Manifest::decode(&bytes) {
        assert!(manifest.images.iter().all(|image| manifest.image(image.rank) == Some(image)));
        assert_eq!(Manifest::decode(&manifest.encode()), Ok(manifest));
    }
}

/// A pledge.
pub fn pledge(data: &[u8]) {
    let Some(bytes) = envelope::open(Sort::Pledge, data) else { return };
    if let Ok(pledge) = Pledge::decode(&bytes) {
        let segments = pledge.segments.len();
        assert!(pledge.streams.iter().all(|stream| (stream.segment as usize) < segments));
        assert_eq!(Pledge::decode(&pledge.encode()), Ok(pledge));
    }
}

/// An image.
pub fn image(data: &[u8]) {
    let Some(bytes) = envelope::open(Sort::Image, data) else { return };
    if let Ok((image, _)) = Image::decode(&bytes) {
        let (again, digest) = image.encode();
        assert_eq!(Image::decode(&again), Ok((image, digest)));
    }
}

/// The header of a segment.
pub fn segment_header(data: &[u8]) {
    let Some(bytes) = envelope::open(Sort::SegmentHeader, data) else { return };
    if let Ok(header) = SegmentHeader::decode(&bytes) {
        assert_eq!(SegmentHeader::decode(&header.encode()), Ok(header));
    }
}

/// The index of a segment, at an offset that the first bytes say.
pub fn segment_index(data: &[u8]) {
    let Some((offset, data)) = data.split_first_chunk::<4>() else { return };
    let offset = u64::from(u32::from_le_bytes(*offset));
    let Some(bytes) = envelope::open(Sort::SegmentIndex, data) else { return };
    if let Ok((index, _)) = SegmentIndex::decode(&bytes, offset) {
        (0..index.slots()).for_each(|slot| assert!(!index.hash_of(slot).is_empty()));
        let (again, digest) = index.encode();
        assert_eq!(SegmentIndex::decode(&again, offset), Ok((index, digest)));
    }
}

/// The footer of a segment, in a file of a length that the first bytes say.
pub fn segment_footer(data: &[u8]) {
    let Some((file_bytes, data)) = data.split_first_chunk::<8>() else { return };
    let file_bytes = u64::from_le_bytes(*file_bytes);
    let Some(bytes) = envelope::open_footer(data) else { return };
    if let Ok(footer) = SegmentFooter::decode(&bytes, file_bytes) {
        assert!(footer.index_offset + footer.index_bytes < file_bytes);
        assert_eq!(SegmentFooter::decode(&footer.encode(), file_bytes), Ok(footer));
    }
}

/// Names of objects, jobs and regions.
pub fn names(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Some(parsed) = name::parse_manifest(text) {
        assert_eq!(parsed.object(), text);
    }
    if let Some((version, attempt, rank)) = name::parse_image(text) {
        assert_eq!(name::image(version, attempt, rank), text);
    }
    if let Some((version, attempt)) = name::parse_pledge(text) {
        assert_eq!(name::pledge(version, attempt), text);
    }
    if let Some((version, attempt)) = name::parse_ring(text) {
        assert_eq!(name::ring(version, attempt), text);
    }
    if let Some((version, attempt, place)) = name::parse_shard(text) {
        assert_eq!(name::shard(version, attempt, place), text);
    }
    if let Some(id) = name::parse_segment(text) {
        assert_eq!(name::segment(id), text);
    }
    if standfast_store::check_name(text, "here").is_ok() {
        let path = std::path::Path::new(text);
        assert!(path.components().all(|part| matches!(part, std::path::Component::Normal(_))));
        standfast_store::check_prefix(text, "here").expect("a name is a prefix");
    }
    let _ = name::check_region(text);
    if name::check_job(text).is_ok() {
        assert!(!text.contains('/') && !text.starts_with('.'));
    }
}

/// Blocks of every codec and filter: hostile ones, and some of our own.
pub fn block(data: &[u8]) {
    const BLOCK_BYTES_MAX: usize = 1 << 16;
    let [codec, filter, low, high, stored @ ..] = data else { return };
    let codec = CodecKind::ALL[usize::from(*codec) % CodecKind::ALL.len()];
    let filter = FilterKind::ALL[usize::from(*filter) % FilterKind::ALL.len()];
    let raw_bytes = usize::from(u16::from_le_bytes([*low, *high]));
    let mut decoder = BlockDecoder::new(BLOCK_BYTES_MAX);
    if let Ok(raw) = decoder.decode(codec, filter, stored, raw_bytes) {
        assert_eq!(raw.len(), raw_bytes);
    }
    let raw = &stored[..stored.len().min(BLOCK_BYTES_MAX)];
    for choice in [FilterChoice::Auto, FilterChoice::Fixed(filter)] {
        let mut encoder = BlockEncoder::new(CodecSpec::usual(codec), choice, BLOCK_BYTES_MAX);
        let encoded = encoder.encode(raw, 8);
        assert!(encoded.bytes.len() <= raw.len());
        let back = decoder.decode(encoded.codec, encoded.filter, encoded.bytes, raw.len());
        assert_eq!(back.expect("our own block"), raw);
    }
}

/// Streams of the float codec: hostile ones, and the same bytes as numbers of every size.
pub fn float(data: &[u8]) {
    const RAW_BYTES_MAX: u64 = 1 << 20;
    if let Ok(parsed) = float::parse(data) {
        if parsed.raw_bytes <= RAW_BYTES_MAX {
            let mut raw = vec![0; parsed.raw_bytes as usize];
            let decoded = float::decode_into(data, &mut raw);
            assert_eq!(float::decode(data).ok(), decoded.is_ok().then_some(raw));
        }
    }
    for element in float::Element::ALL {
        let stream = standfast_stand_in::float::encode(data, element);
        assert_eq!(float::decode(&stream).expect("our own stream"), data);
    }
}
