//! Opening the stores of a job: who shares one, what they hold together, what a predecessor left.

use std::sync::Arc;

use standfast_checkpoint::Holdings;
use standfast_comm::{Collective, Step};
use standfast_format::{Kind, Level, Manifest, StoreHeader, name};
use standfast_restart::Inventory;
use standfast_store::{Lock, LockGuard, Store};

use super::Stores;
use crate::error::{Phase, Result};
use crate::naming::{self, Header};
use crate::pledges;
use crate::prune::{self, Keep};

/// A job's stores, ready for use.
pub(crate) struct Opened {
    pub(crate) stores: Stores,
    /// Held by leaders.
    pub(crate) lock: Option<LockGuard>,
    pub(crate) inventory: Inventory,
}

/// What a leader has found before anything is agreed.
struct Found {
    lock: LockGuard,
    header: Header,
}

/// Opens the stores of all ranks, each given by its own rank.
/// `elsewhere`: the header that the job has in global storage, asked for where no store has one.
pub(crate) fn open(
    team: &Collective,
    store: &Arc<dyn Store>,
    job: &str,
    elsewhere: impl FnOnce() -> Result<Option<StoreHeader>>,
) -> Phase<Opened> {
    let shared = store;
    let store = &**store;
    let stores = Stores::find(team, store)?;
    let found = stores.lead(|| take_over(store));
    let told = match &found {
        Ok(found) => Ok(found.as_ref().map(|found| found.header.told(team))),
        Err(error) => Err(error.clone()),
    };
    let headers = team.gather(Step("open: headers"), told)?;
    // All have succeeded.
    let found = found.ok().flatten();
    let own = found.as_ref().map(|found| &found.header);
    let header = naming::common_header(team, own, headers, job, elsewhere)?;
    let own = stores.lead(|| {
        own.map_or(Ok(()), |own| own.complete(store, &header))?;
        store.discard_unsealed()?;
        Ok(Inventory::read(store)?)
    });
    let held = match &own {
        Ok(own) => Ok(own.as_ref().map(Holdings::of)),
        Err(error) => Err(error.clone()),
    };
    let held = team.gather(Step("open: holdings"), held)?;
    let mut inventory = match own.ok().flatten() {
        Some(own) if stores.are_one() => own,
        own => {
            let merged = merge(header, &held);
            if !stores.are_one() {
                let updated = own.map_or(Ok(()), |own| bring_up_to_date(store, &own, &merged));
                team.agree(Step("open: manifests"), updated)?;
            }
            merged
        }
    };
    pledges::redeem(team, shared, &stores, &mut inventory)?;
    let cleaned = stores.lead(|| discard_orphans(store, &inventory));
    team.agree(Step("open: left-overs"), cleaned)?;
    Ok(Opened { stores, lock: found.map(|found| found.lock), inventory })
}

/// Takes the writer's lock of a store.
fn take_over(store: &dyn Store) -> Result<Found> {
    let lock = store.lock(Lock::Writer)?;
    Ok(Found { lock, header: Header::read(store)? })
}

/// What the stores hold together: the newest of every version.
fn merge(header: StoreHeader, held: &[Option<Holdings>]) -> Inventory {
    let mut merged = Inventory { header, checkpoints: Vec::new(), damaged: Vec::new() };
    let age = |manifest: &Manifest| (manifest.sequence, manifest.taken_ns);
    for holdings in held.iter().flatten() {
        let mut one =
            Inventory { header: merged.header.clone(), checkpoints: vec![], damaged: vec![] };
        holdings.take_in(&mut one);
        for manifest in one.checkpoints {
            let same = |other: &&mut Manifest| other.version == manifest.version;
            match merged.checkpoints.iter_mut().find(same) {
                Some(other) if age(other) < age(&manifest) => *other = manifest,
                Some(_) => {}
                None => merged.checkpoints.push(manifest),
            }
        }
        merged.damaged.extend(one.damaged);
    }
    let found =
        |version| merged.checkpoints.iter().any(|manifest| Some(manifest.version) == version);
    merged.damaged.retain(|damaged| !found(damaged.version()));
    merged.damaged.sort_by(|a, b| a.object.cmp(&b.object));
    merged.damaged.dedup_by(|a, b| a.object == b.object);
    merged.checkpoints.sort_by_key(|manifest| std::cmp::Reverse(age(manifest)));
    merged
}

/// Writes the manifests that this store lacks: it was not there, or its leader had died before.
fn bring_up_to_date(store: &dyn Store, own: &Inventory, merged: &Inventory) -> Result<()> {
    for manifest in &merged.checkpoints {
        if !own.checkpoints.iter().any(|other| other.attempt == manifest.attempt) {
            store.put(&name::manifest(manifest.version, Level::Local), &manifest.encode())?;
        }
    }
    Ok(())
}

/// Removes sealed files that no manifest names: a predecessor died between steps of a commit or
/// of a prune.
pub(crate) fn discard_orphans(store: &dyn Store, inventory: &Inventory) -> Result<()> {
    let keep = Keep { drop_pledges: true, ..Keep::default() };
    let plan = prune::plan(inventory, &store.list("")?, &keep);
    if plan.is_empty() {
        return Ok(());
    }
    // Somebody reads: left-overs can wait.
    match store.lock(Lock::ReadExclusive) {
        Ok(_lock) => Ok(prune::execute(store, &plan).map(|_| ())?),
        Err(error) if error.kind() == Kind::Busy => Ok(()),
        Err(error) => Err(error.into()),
    }
}
