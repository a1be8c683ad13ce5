//! What stays in global storage: the newest ones, and one of so many for ever.
//!
//! Only what the checkpoints that go have named is removed: files that no manifest names may be
//! another node's, on their way.

use std::collections::HashSet;

use standfast_checkpoint::prune::{self, Keep};
use standfast_format::{Kind, name};
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

/// Removes from a store what need not stay. Whoever reads there comes first: then it is left to the
/// next time.
pub(crate) fn apply(store: &dyn Store, retention: Retention) -> Result<()> {
    let inventory = Inventory::read(store)?;
    let Retention { newest, every } = retention;
    if newest == 0 || inventory.checkpoints.len() <= newest {
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
    let going = prune::plan(&inventory, &[], &keep).remove;
    let named = named_by(&inventory, |version| going.contains(&version));
    let objects: Vec<ObjectMeta> =
        objects.into_iter().filter(|object| named.contains(&object.name)).collect();
    prune::execute(store, &prune::plan(&inventory, &objects, &keep))?;
    Ok(())
}

/// Everything that some checkpoints name.
fn named_by(
    inventory: &Inventory,
    wanted: impl Fn(standfast_format::Version) -> bool,
) -> HashSet<String> {
    let mut named = HashSet::new();
    for manifest in inventory.checkpoints.iter().filter(|manifest| wanted(manifest.version)) {
        let (version, attempt) = (manifest.version, manifest.attempt);
        named.insert(name::manifest(version, manifest.level));
        named.extend(manifest.images.iter().map(|own| name::image(version, attempt, own.rank)));
        named.extend(manifest.segments.iter().map(|segment| name::segment(segment.id)));
    }
    named
}
