//! Old checkpoints go, and the files that only they needed.
//!
//! Data: inventory and listing -> [`Proposal`] -> shown by the caller -> locks -> the same plan
//! again? -> carried out.
//!
//! Why the plan is made twice: nobody should be locked out while a person thinks, and nothing
//! may go that was not shown.

use std::collections::HashSet;

use standfast::Version;
use standfast::prune::{self, Keep, Plan};
use standfast_format::{AttemptId, Manifest, SegmentId, SegmentRef, name};
use standfast_restart::Inventory;
use standfast_store::Lock;

use crate::error::{Error, Result};
use crate::place::OpenJob;

/// What would go.
#[derive(Debug)]
pub struct Proposal {
    keep: Keep,
    /// Everything that goes and stays.
    pub plan: Plan,
    /// Segments of removed checkpoints that stay, and the kept checkpoints that need them.
    pub stays: Vec<(SegmentRef, Vec<Version>)>,
}

/// What went.
#[derive(Debug)]
pub struct Pruned {
    /// Files.
    pub objects: usize,
    /// Bytes of what was never sealed.
    pub unsealed_bytes: u64,
}

/// The attempt of a checkpoint that is named by its version and the beginning of its attempt. An
/// abandoned one needs no attempt as long as it is the only one of its version.
pub fn find(job: &OpenJob, version: Version, attempt: &str) -> Result<AttemptId> {
    let inventory = job.inventory()?;
    let is_it =
        |own: &&Manifest| own.version == version && own.attempt.to_string().starts_with(attempt);
    let found: Vec<&Manifest> = inventory.checkpoints.iter().filter(is_it).collect();
    let newest = inventory.checkpoints.first().map(|newest| newest.attempt);
    match found[..] {
        [] => Err(standfast_restart::Unreadable::NoCheckpoint(version).into()),
        [one] if Some(one.attempt) == newest => Err(Error::Newest(version)),
        [one] => Ok(one.attempt),
        [one, ..] => Err(Error::Ambiguous { version, attempt: one.attempt }),
    }
}

/// Plans. Kept in any case: the newest that can be restarted from, and what other nodes keep.
pub fn propose(job: &OpenJob, mut keep: Keep) -> Result<Proposal> {
    let inventory = job.inventory()?;
    for version in &keep.versions {
        inventory.checkpoint(*version)?;
    }
    keep.versions.extend(prune::newest_whole(&inventory, &job.store.list("")?));
    keep.versions.extend(prune::kept_by_others(&*job.store, &inventory, &keep));
    let plan = prune::plan(&inventory, &job.store.list("")?, &keep);
    let stays = stays(&inventory, &plan);
    Ok(Proposal { keep, plan, stays })
}

/// Carries a plan out, if it is still the same.
pub fn prune(job: &OpenJob, proposal: &Proposal) -> Result<Pruned> {
    let Proposal { keep, plan, .. } = proposal;
    let _writer = job.store.lock(Lock::Writer)?;
    let _readers = job.store.lock(Lock::ReadExclusive)?;
    if prune::plan(&job.inventory()?, &job.store.list("")?, keep) != *plan {
        return Err(Error::Changed);
    }
    prune::execute(&*job.store, plan).map_err(standfast::Error::from)?;
    let unsealed_bytes = job.store.discard_unsealed()?;
    let objects = plan.manifests.len() + plan.images.len() + plan.segments.len();
    Ok(Pruned { objects, unsealed_bytes })
}

fn stays(inventory: &Inventory, plan: &Plan) -> Vec<(SegmentRef, Vec<Version>)> {
    let going: HashSet<SegmentId> =
        plan.segments.iter().filter_map(|object| name::parse_segment(&object.name)).collect();
    let mut told = HashSet::new();
    let removed = inventory.checkpoints.iter().filter(|m| plan.going.contains(&m.attempt));
    let staying = removed
        .flat_map(|manifest| &manifest.segments)
        .filter(|segment| !going.contains(&segment.id) && told.insert(segment.id));
    let needed_by = |segment: &SegmentRef| {
        let kept = inventory.checkpoints.iter().filter(|m| !plan.going.contains(&m.attempt));
        kept.filter(|manifest| manifest.segments.iter().any(|own| own.id == segment.id))
            .map(|manifest| manifest.version)
            .collect()
    };
    staying.map(|segment| (*segment, needed_by(segment))).collect()
}
