//! Which files make a member, and where shards lie.

use std::collections::HashMap;

use standfast_format::{Manifest, Rank, name};
use standfast_protect::topology::GroupId;
use standfast_store::Store;

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
pub(super) fn lengths(store: &dyn Store) -> Result<HashMap<String, u64>> {
    let mut lengths = HashMap::new();
    for prefix in [name::IMAGES, name::SEGMENTS, name::SHARDS] {
        let objects = store.list(prefix)?.into_iter();
        lengths.extend(objects.map(|object| (object.name, object.bytes)));
    }
    Ok(lengths)
}

/// Whether all files of a member are there. What is inside is checked when it is read.
pub(super) fn has_member(there: &HashMap<String, u64>, manifest: &Manifest, rank: usize) -> bool {
    member(manifest, rank).iter().all(|(name, bytes)| there.get(name) == Some(bytes))
}

/// The name of a shard.
pub(super) fn shard(manifest: &Manifest, group: GroupId, row: u32) -> String {
    name::shard(manifest.version, manifest.attempt, (group.sector, group.level, row))
}
