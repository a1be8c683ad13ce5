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

mod holders;
mod open;

use standfast_comm::{Collective, Step};
use standfast_format::{Kind, Level, Manifest, SegmentId, Version, name};
use standfast_restart::Inventory;
use standfast_store::{Lock, Store};

pub(crate) use self::holders::Holders;
pub(crate) use self::open::{Opened, discard_orphans, open};
use crate::error::{Phase, Result, Stop};
use crate::mark;
use crate::naming;
use crate::prune::{self, Keep, Plan};

/// Which rank has which store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stores {
    rank: usize,
    /// The store of every rank, numbered in the order of their first ranks.
    of: Vec<usize>,
    /// The first rank of every store.
    leaders: Vec<usize>,
}

impl Stores {
    fn find(team: &Collective, store: &dyn Store) -> Phase<Self> {
        // A program of one rank has nobody to share with.
        if team.size() == 1 {
            return Ok(Self { rank: 0, of: vec![0], leaders: vec![0] });
        }
        Ok(Self::group(team.rank().0 as usize, &naming::identities(team, store)?))
    }

    fn group<T: PartialEq>(rank: usize, identities: &[T]) -> Self {
        let (mut of, mut leaders) = (Vec::new(), Vec::<usize>::new());
        for (rank, own) in identities.iter().enumerate() {
            let known = leaders.iter().position(|leader| identities[*leader] == *own);
            of.push(known.unwrap_or(leaders.len()));
            if known.is_none() {
                leaders.push(rank);
            }
        }
        Self { rank, of, leaders }
    }

    /// Whether all ranks share one store.
    pub(crate) fn are_one(&self) -> bool {
        self.leaders.len() == 1
    }

    fn own(&self) -> usize {
        self.of[self.rank]
    }

    /// The first rank of this rank's store.
    pub(crate) fn leader(&self) -> usize {
        self.leaders[self.own()]
    }

    /// The ranks that share this rank's store.
    pub(crate) fn own_ranks(&self) -> Vec<u32> {
        let own = |(rank, store): (usize, &usize)| (*store == self.own()).then_some(rank as u32);
        self.of.iter().enumerate().filter_map(own).collect()
    }

    /// Whether a rank has the same store as this one.
    pub(crate) fn is_here(&self, rank: usize) -> bool {
        self.of.get(rank) == Some(&self.own())
    }

    fn is_leader(&self) -> bool {
        self.leaders[self.own()] == self.rank
    }

    /// Whether this rank speaks for what another one has written into this rank's store: that rank
    /// itself does where it shares the store, else the leader.
    pub(crate) fn answers_for(&self, rank: usize) -> bool {
        match self.of.get(rank) {
            Some(store) if *store == self.own() => rank == self.rank,
            _ => self.is_leader(),
        }
    }

    /// Does something on leaders only.
    pub(crate) fn lead<T>(&self, run: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
        if self.is_leader() { run().map(Some) } else { Ok(None) }
    }

    /// Writes a manifest that is in the first rank's store to all others. The checkpoint exists
    /// already; returns why some could not be told of it. They are at the next opening.
    pub(crate) fn spread(
        &self,
        team: &Collective,
        store: &dyn Store,
        manifest: &Manifest,
    ) -> Phase<Vec<String>> {
        let write = || {
            if team.is_first() {
                return Ok(());
            }
            let object = name::manifest(manifest.version, Level::Local);
            Ok(store.put(&object, &manifest.encode())?)
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
        let going = prune::plan(inventory, &[], &keep).remove;
        inventory.checkpoints.retain(|manifest| !going.contains(&manifest.version));
        let files = |plan: &Plan| Plan { manifests: vec![], ..plan.clone() };
        let notes = run(plan.map(files)).err();
        let notes = notes.map(|error| format!("files of older checkpoints stay: {error}"));
        let removed: Vec<SegmentId> = plan.map_or(vec![], |plan| plan.segment_ids().collect());
        let all = team.collect(Step("prune: files"), (removed, notes))?;
        let (removed, notes): (Vec<_>, Vec<_>) = all.into_inner().into_iter().unzip();
        Ok((removed.concat(), notes.into_iter().flatten().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_with_one_identity_share_and_their_first_leads() {
        let stores = Stores::group(3, &["a", "b", "a", "b", "c"]);
        assert_eq!(stores.of, [0, 1, 0, 1, 2]);
        assert_eq!(stores.leaders, [0, 1, 4]);
        assert!(!stores.is_leader() && !stores.are_one());
        assert!(Stores::group(1, &["b", "a", "b"]).is_leader());
        assert!(Stores::group(2, &["b", "b", "b"]).are_one());
    }
}
