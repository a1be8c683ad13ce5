//! Which files make a member, and where shards lie.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use standfast_format::{Manifest, Rank, SegmentRef, StoreHeader, name};
use standfast_restart::{check_segment, read_image};
use standfast_ring::topology::GroupId;
use standfast_store::Store;
use standfast_write::SegmentReader;

use super::Unusable;
use crate::error::Result;

/// The files of a rank's member, in order, with their lengths.
pub(super) fn member(manifest: &Manifest, rank: usize) -> Vec<(String, u64)> {
    let rank = Rank(rank as u32);
    let image = manifest
        .image(rank)
        .map(|image| (name::image(manifest.version, manifest.attempt, rank), image.file_bytes));
    let segments = manifest.segments.iter().filter(|segment| segment.rank == rank);
    let segments = segments.map(|segment| (name::segment(segment.id), segment.file_bytes));
    image.into_iter().chain(segments).collect()
}

/// Bytes of a rank's member.
pub(super) fn member_bytes(manifest: &Manifest, rank: usize) -> u64 {
    member(manifest, rank).iter().fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes))
}

/// The length of every object that may be part of a piece.
pub(super) fn lengths(store: &dyn Store) -> Result<BTreeMap<String, u64>> {
    let mut lengths = BTreeMap::new();
    for prefix in [name::IMAGES, name::SEGMENTS, name::SHARDS] {
        let objects = store.list(prefix)?.into_iter();
        lengths.extend(objects.map(|object| (object.name, object.bytes)));
    }
    Ok(lengths)
}

/// Whether all files of a member are there. What is inside is checked when it is read.
pub(super) fn has_member(there: &BTreeMap<String, u64>, manifest: &Manifest, rank: usize) -> bool {
    member(manifest, rank).iter().all(|(name, bytes)| there.get(name) == Some(bytes))
}

/// What is wrong with a member whose files are all there, found by reading all of it.
pub(super) fn damage(
    store: &dyn Store,
    header: &StoreHeader,
    manifest: &Manifest,
    rank: usize,
) -> Option<Unusable> {
    let rank = Rank(rank as u32);
    let unusable = |object: String, why: String| Some(Unusable { object, why });
    if let Err(error) = read_image(store, manifest, rank) {
        return unusable(name::image(manifest.version, manifest.attempt, rank), error.to_string());
    }
    for segment in manifest.segments.iter().filter(|segment| segment.rank == rank) {
        if let Some(why) = damage_of_segment(store, header, segment) {
            return unusable(name::segment(segment.id), why);
        }
    }
    None
}

fn damage_of_segment(
    store: &dyn Store,
    header: &StoreHeader,
    segment: &SegmentRef,
) -> Option<String> {
    let reader = match SegmentReader::open(store, header.id, segment) {
        Ok(reader) => reader,
        Err(error) => return Some(error.to_string()),
    };
    let first = OnceLock::new();
    check_segment(&reader, header, 1, &AtomicU64::new(0), |error| {
        // One is enough.
        let _ = first.set(error.to_string());
    });
    first.into_inner()
}

/// The name of a shard.
pub(super) fn shard(manifest: &Manifest, group: GroupId, row: u32) -> String {
    name::shard(manifest.version, manifest.attempt, (group.sector, group.level, row))
}
