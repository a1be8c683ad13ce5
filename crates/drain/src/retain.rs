//! What stays in global storage: the newest ones, and one of so many for ever.
//!
//! Only what the checkpoints that go have named is removed: files that no manifest names may be
//! another node's, on their way.

use std::collections::BTreeSet;

use standfast_checkpoint::prune::{self, Keep};
use standfast_format::{AttemptId, Kind, Manifest, name};
use standfast_restart::Inventory;
use standfast_store::{Lock, ObjectMeta, Store};

use crate::error::Result;

/// How much is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// So many of the newest; 0: all.
    pub newest: usize,
    /// Of so many, counted over all checkpoints of the job, one for ever; 0: none.
    pub every: u64,
}

impl Retention {
    /// Whether a checkpoint would stay beside those that have arrived. One that would go at once is
    /// not worth carrying: it would be due again, for ever.
    pub(crate) fn keeps(self, manifest: &Manifest, arrived: &[Manifest]) -> bool {
        let newest = arrived.iter().max_by_key(|other| other.sequence);
        let counts = |other: &&Manifest| {
            other.sequence > manifest.sequence
                && !newest.is_some_and(|newest| newest.abandons(other.sequence))
        };
        let newer = arrived.iter().filter(counts).count();
        let for_ever = self.every > 0 && manifest.sequence.is_multiple_of(self.every);
        self.newest == 0 || newer < self.newest || for_ever
    }
}

/// Removes from a store what need not stay. Whoever reads there comes first: then it is left to the
/// next time.
pub(crate) fn apply(store: &dyn Store, retention: Retention) -> Result<()> {
    let inventory = Inventory::read(store)?;
    let Retention { newest, every } = retention;
    if newest == 0 || inventory.line().count() <= newest {
        return Ok(());
    }
    let _alone = match store.lock(Lock::ReadExclusive) {
        Ok(lock) => lock,
        Err(error) if matches!(error.kind(), Kind::Busy | Kind::Unsupported) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let objects = store.list("")?;
    let mut keep = Keep { newest, every, ..Keep::default() };
    // Never the only one that can be restarted from.
    keep.versions.extend(prune::newest_whole(&inventory, &objects));
    keep.versions.extend(prune::kept_by_others(store, &inventory, &keep));
    let going = prune::plan(&inventory, &[], &keep).going;
    let named = named_by(&inventory, |attempt| going.contains(attempt));
    // Of manifests all names count: whose one without attempt is follows from the others.
    let is_wanted = |name: &str| named.contains(name) || name::parse_manifest(name).is_some();
    let objects: Vec<ObjectMeta> =
        objects.into_iter().filter(|object| is_wanted(&object.name)).collect();
    prune::execute(store, &prune::plan(&inventory, &objects, &keep))?;
    Ok(())
}

/// Everything that some checkpoints name.
fn named_by(inventory: &Inventory, wanted: impl Fn(&AttemptId) -> bool) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for manifest in inventory.checkpoints.iter().filter(|manifest| wanted(&manifest.attempt)) {
        let (version, attempt) = (manifest.version, manifest.attempt);
        named.insert(name::manifest(version, manifest.level));
        named.insert(name::manifest_of(version, attempt, manifest.level));
        named.extend(manifest.images.iter().map(|own| name::image(version, attempt, own.rank)));
        named.extend(manifest.segments.iter().map(|segment| name::segment(segment.id)));
    }
    named
}
