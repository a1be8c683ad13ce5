//! Looking at the ring from outside a job: how far a checkpoint has come, what is left of it in the
//! stores at hand, and what a restart would do about the rest.
//!
//! Data: records and files of some stores -> [`Survey`] -> [`Plan`], by the function that a restart
//! plans with.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use standfast_format::{Level, Manifest, Version, name};
use standfast_restart::Inventory;
use standfast_ring::recover::{Claim, Plan, plan};
use standfast_ring::shard::checksum;
use standfast_ring::topology::Piece;
use standfast_ring::{Holding, Options, Shard, Source, Topology};
use standfast_store::Store;

use super::pieces::Pieces;
use super::{RingFiles, files, holding, read_record, stamp};
use crate::error::Result;

/// A file of the ring that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// Its name.
    pub object: String,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not used: {}", self.object, self.why)
    }
}

/// The level that a checkpoint has reached, by what a store says.
pub fn level(store: &dyn Store, manifest: &Manifest) -> Level {
    match store.open(&name::ring(manifest.version, manifest.attempt)) {
        Ok(_) => manifest.level.max(Level::Ring),
        Err(_) => manifest.level,
    }
}

/// The newest checkpoint that has reached level ring, as far as this store knows.
pub(crate) fn newest(store: &dyn Store, inventory: &Inventory) -> Option<Version> {
    let on_ring = |manifest: &&Manifest| level(store, manifest) >= Level::Ring;
    inventory.checkpoints.iter().find(on_ring).map(|manifest| manifest.version)
}

/// The topology that a checkpoint was encoded with; `None` if this store knows of none.
pub fn read(store: &dyn Store, manifest: &Manifest) -> Result<Option<Topology>> {
    let record = read_record(store, &name::ring(manifest.version, manifest.attempt))?;
    Ok(record.map(|bytes| Topology::decode(&bytes)).transpose()?)
}

/// Bytes of every rank's files in a checkpoint: what its shards bring back.
pub fn members_bytes(manifest: &Manifest) -> Vec<u64> {
    let mut all = vec![0u64; manifest.ranks as usize];
    let images = manifest.images.iter().map(|image| (image.rank, image.file_bytes));
    let segments = manifest.segments.iter().map(|segment| (segment.rank, segment.file_bytes));
    for (rank, bytes) in images.chain(segments) {
        // A segment of a rank that the job no longer has is nobody's.
        if let Some(sum) = all.get_mut(rank.0 as usize) {
            *sum = sum.saturating_add(bytes);
        }
    }
    all
}

/// The ranks of a checkpoint whose files are not all there.
pub fn missing_ranks(store: &dyn Store, manifest: &Manifest) -> Result<Vec<usize>> {
    let there = files::lengths(store)?;
    let ranks = 0..manifest.ranks as usize;
    Ok(ranks.filter(|rank| !files::has_member(&there, manifest, *rank)).collect())
}

/// What some stores have of a checkpoint.
pub struct Survey {
    claims: Vec<Claim>,
    /// Files that cannot be used; they count as lost.
    pub unusable: Vec<Unusable>,
}

/// Looks through stores of nodes, which may be fewer than there were. `deep`: reads every block
/// of every file and compares its checksum, as a recovery does.
pub fn survey(
    stores: &[Arc<dyn Store>],
    manifest: &Manifest,
    topology: &Topology,
    deep: bool,
) -> Result<Survey> {
    let mut held = vec![Holding::default(); topology.ranks()];
    let mut unusable = Vec::new();
    for store in stores {
        let mut found = holding(&**store, |_| true, topology, manifest)?;
        if deep {
            check(&**store, manifest, topology, &mut found);
        }
        unusable.append(&mut found.unusable);
        // Each counts for the rank it belongs to, wherever it was found: that is where a restart
        // brings it.
        for member in found.holding.members {
            held[member.0].members.push(member);
        }
        for shard in found.holding.shards {
            let row = shard.header.row as usize;
            held[topology.keeper(shard.header.group, row)].shards.push(shard);
        }
    }
    let claims = held.iter().map(|held| Claim::of(topology, stamp(manifest), held)).collect();
    Ok(Survey { claims, unusable })
}

impl Survey {
    /// What a restart with every rank on its old node, or on the replacement, would do.
    pub fn plan(&self, topology: &Topology) -> Plan {
        let heirs: Vec<usize> = (0..topology.ranks()).collect();
        let block_bytes = Options::default().block_bytes;
        plan(topology, &self.claims, &heirs, &BTreeSet::new(), block_bytes)
    }

    /// The ranks whose files are all there.
    pub fn whole_ranks(&self) -> BTreeSet<usize> {
        let claims = self.claims.iter().enumerate();
        claims.filter(|(_, claim)| !claim.members.is_empty()).map(|(rank, _)| rank).collect()
    }
}

/// Moves what has a damaged block to what cannot be used.
fn check(store: &dyn Store, manifest: &Manifest, topology: &Topology, found: &mut RingFiles) {
    let mut pieces = Pieces::new(store, manifest, topology);
    let RingFiles { holding, unusable } = found;
    holding.shards.retain(|shard| {
        let piece = shard.piece();
        let (at, bytes) = (shard.body_at, shard.header.body_bytes());
        let expected = |block| shard.table.shard(block);
        let why = first_damage(&mut pieces, piece, at..at + bytes, shard, expected);
        let object = files::shard(manifest, piece.group, shard.header.row);
        unusable.extend(why.clone().map(|why| Unusable { object, why }));
        why.is_none()
    });
    let shards = &holding.shards;
    holding.members.retain(|(rank, bytes)| {
        let (group, place) = topology.group_of(*rank);
        // Only a shard of its group knows what a member must be; others are checked as segments.
        let Some(witness) = shards.iter().find(|shard| shard.header.group == group) else {
            return true;
        };
        let piece = Piece { group, index: place as u32 };
        let expected = |block| witness.table.member(block, place);
        let why = first_damage(&mut pieces, piece, 0..*bytes, witness, expected);
        let object = format!("the files of rank {rank}");
        unusable.extend(why.clone().map(|why| Unusable { object, why }));
        why.is_none()
    });
}

/// What is wrong with a stretch of a piece, cut as a shard of its group is cut.
fn first_damage(
    pieces: &mut Pieces<'_>,
    piece: Piece,
    stretch: std::ops::Range<u64>,
    cut: &Shard,
    expected: impl Fn(usize) -> u64,
) -> Option<String> {
    let step = u64::from(cut.header.block_bytes);
    let mut buffer = Vec::new();
    for (block, at) in stretch.clone().step_by(step as usize).enumerate() {
        buffer.resize((stretch.end - at).min(step) as usize, 0);
        if let Err(why) = pieces.read(piece, at, &mut buffer) {
            return Some(why.to_string());
        }
        if checksum(block as u64, &buffer) != expected(block) {
            return Some(format!("block {block} does not match its checksum"));
        }
    }
    None
}
