//! Opening the stores of a job: who shares one, what they hold together, what a predecessor left.

use std::collections::BTreeSet;
use std::sync::Arc;

use standfast_checkpoint::{Holdings, check_manifests_strictly};
use standfast_comm::{Collective, Step};
use standfast_format::{Kind, Manifest, StoreHeader, name};
use standfast_restart::{Damaged, Inventory, Unreadable, complete_header};
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
struct Claimed {
    lock: LockGuard,
    header: Header,
    /// That all manifests of the store are gone.
    lost: Option<Unreadable>,
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
        store.discard_unsealed()?;
        Ok(Inventory::survey(store, header.clone())?)
    });
    let completed = |header: &StoreHeader, none| {
        found.as_ref().map_or(Ok(()), |found| complete(store, found, header, none))
    };
    let mut inventory = gather(team, store, &stores, header, own, completed)?;
    pledges::redeem(team, shared, &stores, &mut inventory)?;
    let cleaned = stores.lead(|| discard_orphans(store, &inventory));
    team.agree(Step("open: left-overs"), cleaned)?;
    Ok(Opened { stores, lock: found.map(|found| found.lock), inventory })
}

/// Asks the stores once more what they hold.
pub(crate) fn look_again(
    team: &Collective,
    store: &dyn Store,
    stores: &Stores,
    header: &StoreHeader,
) -> Phase<Inventory> {
    let own = stores.lead(|| Ok(Inventory::read(store)?));
    gather(team, store, stores, header.clone(), own, |_, _| Ok(()))
}

/// What the stores hold together, each found by its leader; all of them are brought up to date.
/// `complete` writes the header where it is missing, knowing whether no store has a manifest.
fn gather(
    team: &Collective,
    store: &dyn Store,
    stores: &Stores,
    header: StoreHeader,
    own: Result<Option<Inventory>>,
    complete: impl FnOnce(&StoreHeader, bool) -> Result<()>,
) -> Phase<Inventory> {
    let held = match &own {
        Ok(own) => Ok(own.as_ref().map(Holdings::of)),
        Err(error) => Err(error.clone()),
    };
    let held = team.gather(Step("open: holdings"), held)?;
    let none = held.iter().flatten().all(Holdings::is_empty);
    team.agree(Step("open: header"), complete(&header, none))?;
    match own.ok().flatten() {
        Some(own) if stores.are_one() => Ok(own),
        own => {
            let merged = merge(header, &held);
            if !stores.are_one() {
                let updated = own.map_or(Ok(()), |own| bring_up_to_date(store, &own, &merged));
                team.agree(Step("open: manifests"), updated)?;
            }
            Ok(merged)
        }
    }
}

/// Takes the writer's lock of a store.
fn take_over(store: &dyn Store) -> Result<Claimed> {
    let lock = store.lock(Lock::Writer)?;
    let lost = match check_manifests_strictly(store) {
        Err(error @ Unreadable::NoManifests(_)) => Some(error),
        checked => checked.map(|()| None)?,
    };
    Ok(Claimed { lock, header: Header::read(store)?, lost })
}

/// Writes the header and its copies where they are missing. `none`: no store has a manifest, so nothing
/// replaces those that this one has lost.
fn complete(store: &dyn Store, claimed: &Claimed, header: &StoreHeader, none: bool) -> Result<()> {
    if let (Some(lost), true) = (&claimed.lost, none) {
        return Err(lost.clone().into());
    }
    let completed = complete_header(store, header);
    // A full disk keeps nobody from a restart: copies are written at the next opening.
    match &claimed.header {
        Header::Whole(_) if !none => Ok(()),
        _ => Ok(completed?),
    }
}

/// What the stores hold together: of every version the newest in each line.
fn merge(header: StoreHeader, held: &[Option<Holdings>]) -> Inventory {
    let mut merged = Inventory { header, checkpoints: Vec::new(), damaged: Vec::new() };
    let age = |manifest: &Manifest| (manifest.sequence, manifest.taken_ns);
    for holdings in held.iter().flatten() {
        let mut one =
            Inventory { header: merged.header.clone(), checkpoints: vec![], damaged: vec![] };
        holdings.take_in(&mut one);
        for manifest in one.checkpoints {
            if !merged.checkpoints.iter().any(|other| other.attempt == manifest.attempt) {
                merged.checkpoints.push(manifest);
            }
        }
        merged.damaged.extend(one.damaged);
    }
    let found = |damaged: &Damaged| {
        let name = name::parse_manifest(&damaged.object);
        merged.checkpoints.iter().any(|own| name.is_some_and(|name| name.is_of(own)))
    };
    merged.damaged.retain(|damaged| !found(damaged));
    merged.damaged.sort_by(|a, b| a.object.cmp(&b.object));
    merged.damaged.dedup_by(|a, b| a.object == b.object);
    merged.checkpoints.sort_by_key(|manifest| std::cmp::Reverse(age(manifest)));
    let mut versions = BTreeSet::new();
    let newest = merged.checkpoints.first().cloned();
    let is_abandoned = |own: &Manifest| newest.as_ref().is_some_and(|it| it.abandons(own.sequence));
    merged.checkpoints.retain(|own| is_abandoned(own) || versions.insert(own.version));
    merged
}

/// Writes the manifests that this store lacks: it was not there, or its leader had died before.
fn bring_up_to_date(store: &dyn Store, own: &Inventory, merged: &Inventory) -> Result<()> {
    for manifest in &merged.checkpoints {
        if own.checkpoints.iter().any(|other| other.attempt == manifest.attempt) {
            continue;
        }
        let is_it = |damaged: &&Damaged| {
            name::parse_manifest(&damaged.object).is_some_and(|name| name.is_of(manifest))
        };
        let object = match own.damaged.iter().find(is_it) {
            // It is there, and may be read next time.
            Some(damaged) if !damaged.is_proven() => continue,
            // Its own copy, damaged.
            Some(damaged) if merged.has_one(manifest.version) => damaged.object.clone(),
            _ => own.object_of(manifest),
        };
        store.put(&object, &manifest.encode())?;
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
