//! The stores of a job: one that all ranks reach, or one for each node.
//!
//! Ranks that find the same identity in their store share it; the first of them leads it: it holds
//! the lock, cleans up, writes manifests and prunes. All stores of a job have the same header and
//! the same manifests; a segment or an image is in the store of the rank that wrote it.
//!
//! ```text
//! open:    identities -> who shares -> headers agree -> manifests merged -> each store brought
//!          up to date -> what all nodes have pledged committed -> each store cleaned
//! commit:  segments and images durable everywhere -> first rank's manifest -> the other leaders'
//! prune:   manifests go in every store -> agreed -> files that nothing names go
//! restart: what each store holds -> who is asked for what
//! ```
//! Invariants:
//! - A manifest found in any store counts: what it names was durable before the first was written,
//!   and is removed only after the last is gone.

mod open;

use std::ops::Deref;

use standfast_comm::{Collective, Step};
use standfast_format::{Kind, Manifest, SegmentId, Version, name};
use standfast_restart::{Inventory, StoreGroups};
use standfast_store::{Lock, Store};

pub(crate) use self::open::{Opened, discard_orphans, look_again, open};
use crate::error::{Phase, Result, Stop};
use crate::mark;
use crate::naming;
use crate::prune::{self, Keep, Plan};

/// The stores of this job's ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stores(StoreGroups);

impl Deref for Stores {
    type Target = StoreGroups;

    fn deref(&self) -> &StoreGroups {
        &self.0
    }
}

impl Stores {
    fn find(team: &Collective, store: &dyn Store) -> Phase<Self> {
        // A program of one rank has nobody to share with.
        if team.size() == 1 {
            return Ok(Self(StoreGroups::new(0, &[()])));
        }
        let identities = naming::identities(team, store)?;
        Ok(Self(StoreGroups::new(team.rank().0 as usize, &identities)))
    }

    /// Does something on leaders only.
    pub(crate) fn lead<T>(&self, run: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
        self.0.lead(run)
    }

    /// Writes a manifest that is in the first rank's store to all others. The checkpoint exists
    /// already; returns why some could not be told of it. They are at the next opening.
    pub(crate) fn spread(
        &self,
        team: &Collective,
        store: &dyn Store,
        manifest: &Manifest,
        inventory: &Inventory,
    ) -> Phase<Vec<String>> {
        let write = || {
            if team.is_first() {
                return Ok(());
            }
            Ok(store.put(&inventory.object_of(manifest), &manifest.encode())?)
        };
        let why = self.lead(write).err().map(|error| error.to_string());
        let all = team.collect(Step("spread"), why)?;
        let note = |(rank, why): (usize, Option<String>)| {
            Some(format!("the store of rank {rank} has no manifest of it yet: {}", why?))
        };
        Ok(all.into_inner().into_iter().enumerate().filter_map(note).collect())
    }

    /// Prunes every store: manifests everywhere first. What the leader of one store wants to keep
    /// stays in all of them. Returns the segments that are gone, or may be, and why something stayed.
    pub(crate) fn prune(
        &self,
        team: &Collective,
        store: &dyn Store,
        mut keep: Keep,
        inventory: &mut Inventory,
    ) -> Phase<(Vec<SegmentId>, Vec<String>)> {
        let stayed = |stop: Stop| match stop {
            Stop::Failed(why) => {
                let why = format!("older checkpoints were not pruned: {}", why.error());
                Ok((Vec::new(), vec![why]))
            }
            lost => Err(lost),
        };
        // What is marked on one node is damaged for all.
        let marked = self.lead(|| {
            let marks = mark::attempts(&store.list(name::MARKS)?);
            Ok(marks.into_iter().collect::<Vec<_>>())
        });
        match team.gather(Step("prune: marks"), marked) {
            Ok(all) => keep.marked = all.into_inner().into_iter().flatten().flatten().collect(),
            Err(stop) => return stayed(stop),
        }
        let needed = match self.is_leader() {
            true => {
                let others = prune::kept_by_others(store, inventory, &keep);
                keep.versions.iter().copied().chain(others).collect::<Vec<Version>>()
            }
            false => Vec::new(),
        };
        keep.versions = team.collect(Step("prune: needed"), needed)?.concat();
        let planned = self.lead(|| {
            // Somebody reads (a verify, an export): nothing is taken away from under them.
            let lock = match store.lock(Lock::ReadExclusive) {
                Ok(lock) => lock,
                Err(error) if error.kind() == Kind::Busy => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            Ok(Some((lock, prune::plan(inventory, &store.list("")?, &keep))))
        });
        let busy = matches!(&planned, Ok(Some(None)));
        let [ready] = *team.all_hold(Step("prune: readers"), [!busy])?;
        let planned = match team.agree(Step("prune: plan"), planned) {
            Ok(planned) if ready => planned.flatten(),
            Ok(_) => return Ok((Vec::new(), Vec::new())),
            Err(stop) => return stayed(stop),
        };
        let plan = planned.as_ref().map(|(_, plan)| plan);
        let manifests = |plan: &Plan| Plan { images: vec![], segments: vec![], ..plan.clone() };
        let run = |part: Option<Plan>| {
            part.map_or(Ok(()), |part| Ok(prune::execute(store, &part).map(drop)?))
        };
        if let Err(stop) = team.agree(Step("prune: manifests"), run(plan.map(manifests))) {
            return stayed(stop);
        }
        let going = prune::plan(inventory, &[], &keep).going;
        inventory.checkpoints.retain(|manifest| !going.contains(&manifest.attempt));
        let files = |plan: &Plan| Plan { manifests: vec![], ..plan.clone() };
        let notes = run(plan.map(files)).err();
        let notes = notes.map(|error| format!("files of older checkpoints stay: {error}"));
        let removed: Vec<SegmentId> = plan.map_or(vec![], |plan| plan.segment_ids().collect());
        let all = team.collect(Step("prune: files"), (removed, notes))?;
        let (removed, notes): (Vec<_>, Vec<_>) = all.into_inner().into_iter().unzip();
        Ok((removed.concat(), notes.into_iter().flatten().collect()))
    }
}
