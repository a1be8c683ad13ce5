//! Everything a store holds is read and checked; each damaged object is named, with the checkpoints
//! that need it.
//!
//! ```text
//! manifests -> images -> segments (opened, then every block and page, each once) -> references
//! ```

mod check;
mod findings;

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;

use standfast::prune;
use standfast::{Kind, Manifest, Version, mark};
use standfast_format::name;
use standfast_restart::Inventory;
use standfast_store::ObjectMeta;

use crate::error::Result;
use crate::place::OpenJob;
pub use check::verify;
pub use findings::Finding;

/// What was checked and found.
#[derive(Debug, Default)]
pub struct Checked {
    /// One for each damaged object.
    pub findings: Vec<Finding>,
    /// How many checkpoints were checked.
    pub checkpoints: usize,
    /// Those of which all is there.
    pub intact: BTreeSet<Version>,
    /// The others.
    pub damaged: BTreeSet<Version>,
    /// How many segments they need.
    pub segments: usize,
    /// Bytes of segments that were read.
    pub bytes: u64,
}

impl Checked {
    /// Damage outweighs what could not be judged, such as a newer format or a refused access.
    pub fn verdict(&self) -> Kind {
        let is_damage =
            |finding: &&Finding| matches!(finding.kind, Kind::Corrupt | Kind::Missing | Kind::Io);
        match self.findings.iter().find(is_damage) {
            Some(_) => Kind::Corrupt,
            None => self.findings.first().map_or(Kind::Corrupt, |finding| finding.kind),
        }
    }
}

/// How far a check has come, for whoever draws it.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes that will be read.
    pub total: AtomicU64,
    /// Bytes that are done with.
    pub done: AtomicU64,
}

/// The versions asked for, or all: also those whose manifest is damaged.
pub fn wanted(inventory: &Inventory, versions: &[u64]) -> Result<BTreeSet<Version>> {
    let damaged: Vec<Version> = inventory
        .damaged
        .iter()
        .filter_map(|damaged| name::parse_manifest(&damaged.object))
        .map(|name| name.version)
        .collect();
    if versions.is_empty() {
        let intact = inventory.checkpoints.iter().map(|manifest| manifest.version);
        return Ok(intact.chain(damaged).collect());
    }
    let versions: BTreeSet<Version> = versions.iter().copied().map(Version).collect();
    for version in &versions {
        if !damaged.contains(version) {
            inventory.checkpoint(*version)?;
        }
    }
    Ok(versions)
}

/// What became of a mark that a lazy restart has left ([`standfast::mark`]).
#[derive(Debug)]
pub enum MarkState {
    /// The checkpoint is damaged: a restart passes it over.
    Damaged,
    /// Nothing is wrong with it, but its pages were not read.
    Unread,
    /// It is whole: its mark is cleared.
    Cleared,
    /// It is whole, but its mark cannot be cleared.
    Stays(standfast_store::Error),
}

/// A checkpoint that a lazy restart found damaged.
#[derive(Debug)]
pub struct Mark {
    /// Which.
    pub version: Version,
    /// What was found then.
    pub why: String,
    /// What is true now.
    pub state: MarkState,
}

/// Looks at the marked checkpoints among those that were checked, and clears the marks of those that
/// are whole. `read`: their pages were read.
pub fn settle_marks(
    job: &OpenJob,
    inventory: &Inventory,
    checked: &Checked,
    read: bool,
) -> Result<Vec<Mark>> {
    let marked = mark::attempts(&job.store.list(name::MARKS)?);
    let mut marks = Vec::new();
    for manifest in &inventory.checkpoints {
        let Manifest { version, attempt, .. } = *manifest;
        let intact = checked.intact.contains(&version);
        if !marked.contains(&attempt) || !(intact || checked.damaged.contains(&version)) {
            continue;
        }
        let why = mark::find(&*job.store, version, attempt).unwrap_or_default();
        let state = match (intact, read) {
            (false, _) => MarkState::Damaged,
            (true, false) => MarkState::Unread,
            (true, true) => clear(job, manifest),
        };
        marks.push(Mark { version, why, state });
    }
    Ok(marks)
}

/// Clears a mark wherever it lies.
fn clear(job: &OpenJob, manifest: &Manifest) -> MarkState {
    let mut parts = job.parts.iter();
    let failed =
        parts.find_map(|part| mark::clear(&**part, manifest.version, manifest.attempt).err());
    failed.map_or(MarkState::Cleared, MarkState::Stays)
}

/// Files that no manifest names: left by a crash or by a checkpoint under way, or not ours.
pub fn orphans(job: &OpenJob, inventory: &Inventory) -> Result<Vec<ObjectMeta>> {
    let objects = job.store.list("")?;
    let plan = prune::plan(inventory, &objects, &prune::Keep::default());
    let foreign = objects.into_iter().filter(|object| !is_ours(object));
    Ok(plan.images.into_iter().chain(plan.segments).chain(foreign).collect())
}

fn is_ours(object: &ObjectMeta) -> bool {
    name::HEADERS.contains(&object.name.as_str())
        || [name::IDENTITY, name::DRAINS, name::HISTORY].contains(&object.name.as_str())
        || name::parse_ring(&object.name).is_some()
        || name::parse_shard(&object.name).is_some()
        || name::parse_mark(&object.name).is_some()
        || name::parse_manifest(&object.name).is_some()
        || name::parse_image(&object.name).is_some()
        || name::parse_segment(&object.name).is_some()
}
