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
//! - All methods that take a team are collective.

use std::collections::HashMap;
use std::sync::Arc;

use standfast_format::{
    Image, Kind, Level, Manifest, Rank, SegmentId, SegmentRef, StoreHeader, Version, name,
};
use standfast_restart::{Inventory, decode_image, read_image};
use standfast_store::{Lock, LockGuard, Store};

use crate::checkpoint::told::Holdings;
use crate::error::{Error, Result};
use crate::naming::{self, Header};
use crate::pledges;
use crate::prune::{self, Keep, Plan};
use crate::sources::Held;
use crate::team::Team;

/// Which rank has which store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stores {
    rank: usize,
    /// The store of every rank, numbered in the order of their first ranks.
    of: Vec<usize>,
    /// The first rank of every store.
    leaders: Vec<usize>,
}

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
    team: &Team,
    store: &Arc<dyn Store>,
    job: &str,
    elsewhere: impl FnOnce() -> Result<Option<StoreHeader>>,
) -> Result<Opened> {
    let shared = store;
    let store = &**store;
    let stores = Stores::find(team, store)?;
    let found = stores.lead(|| take_over(store));
    let told = match &found {
        Ok(found) => Ok(found.as_ref().map(|found| found.header.told(team))),
        Err(error) => Err(error.clone()),
    };
    let headers = team.gather_all(told)?;
    let found = found?;
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
    let held = team.gather_all(held)?;
    let mut inventory = match own? {
        Some(own) if stores.are_one() => own,
        own => {
            let merged = merge(header, &held);
            if !stores.are_one() {
                let updated = own.map_or(Ok(()), |own| bring_up_to_date(store, &own, &merged));
                team.agree(updated)?;
            }
            merged
        }
    };
    pledges::redeem(team, shared, &stores, &mut inventory)?;
    let cleaned = stores.lead(|| discard_orphans(store, &inventory));
    team.agree(cleaned)?;
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

impl Stores {
    fn find(team: &Team, store: &dyn Store) -> Result<Self> {
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
        team: &Team,
        store: &dyn Store,
        manifest: &Manifest,
    ) -> Result<Vec<String>> {
        let write = || {
            if team.is_first() {
                return Ok(());
            }
            let object = name::manifest(manifest.version, Level::Local);
            Ok(store.put(&object, &manifest.encode())?)
        };
        let why = self.lead(write).err().map(|error| error.to_string());
        let all = team.gather_all(Ok(why))?;
        let note = |(rank, why): (usize, Option<String>)| {
            Some(format!("the store of rank {rank} has no manifest of it yet: {}", why?))
        };
        Ok(all.into_iter().enumerate().filter_map(note).collect())
    }

    /// Prunes every store: manifests everywhere first. What the leader of one store wants to keep
    /// stays in all of them. Returns the segments that are gone, or may be, and why something stayed.
    pub(crate) fn prune(
        &self,
        team: &Team,
        store: &dyn Store,
        mut keep: Keep,
        inventory: &mut Inventory,
    ) -> Result<(Vec<SegmentId>, Vec<String>)> {
        let needed = self.lead(|| {
            let others = prune::kept_by_others(store, inventory, &keep);
            Ok(keep.versions.iter().copied().chain(others).collect::<Vec<Version>>())
        })?;
        let needed = team.gather_all(Ok(needed.unwrap_or_default()))?;
        keep.versions = needed.concat();
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
        let [ready] = team.all_hold([!busy])?;
        let stayed = |error: Error| {
            (Vec::new(), vec![format!("older checkpoints were not pruned: {error}")])
        };
        let planned = match team.agree(planned) {
            Ok(planned) if ready => planned.flatten(),
            Ok(_) => return Ok((Vec::new(), Vec::new())),
            Err(error) => return Ok(stayed(error)),
        };
        let plan = planned.as_ref().map(|(_, plan)| plan);
        let manifests = |plan: &Plan| Plan { images: vec![], segments: vec![], ..plan.clone() };
        let run = |part: Option<Plan>| {
            part.map_or(Ok(()), |part| Ok(prune::execute(store, &part).map(drop)?))
        };
        if let Err(error) = team.agree(run(plan.map(manifests))) {
            return Ok(stayed(error));
        }
        let going = prune::plan(inventory, &[], &keep).remove;
        inventory.checkpoints.retain(|manifest| !going.contains(&manifest.version));
        let files = |plan: &Plan| Plan { manifests: vec![], ..plan.clone() };
        let notes = run(plan.map(files)).err();
        let notes = notes.map(|error| format!("files of older checkpoints stay: {error}"));
        let removed: Vec<SegmentId> = plan.map_or(vec![], |plan| plan.segment_ids().collect());
        let all = team.gather_all(Ok((removed, notes)))?;
        let (removed, notes): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        Ok((removed.concat(), notes.into_iter().flatten().collect()))
    }

    /// What every store has of a checkpoint. Where all ranks share one store nobody looks, unless
    /// it matters (`look`): whoever opens what is missing will find out.
    pub(crate) fn holders(
        &self,
        team: &Team,
        store: &dyn Store,
        manifest: &Manifest,
        look: bool,
    ) -> Result<Holders<'_>> {
        let mut holders =
            Holders { stores: self, segments: HashMap::new(), images: HashMap::new() };
        if self.are_one() && !look {
            return Ok(holders);
        }
        let all = team.gather_all(self.lead(|| held_of(store, manifest)))?;
        for (rank, held) in all.into_iter().enumerate() {
            let Some((segments, images)) = held else { continue };
            for id in segments {
                holders.segments.entry(id).or_default().push(self.of[rank]);
            }
            for image in images {
                holders.images.entry(image).or_default().push(self.of[rank]);
            }
        }
        Ok(holders)
    }
}

/// The segments and images of a checkpoint that a store has.
fn held_of(store: &dyn Store, manifest: &Manifest) -> Result<(Vec<SegmentId>, Vec<Rank>)> {
    let wanted: HashMap<SegmentId, u64> =
        manifest.segments.iter().map(|segment| (segment.id, segment.file_bytes)).collect();
    let segments = store.list(name::SEGMENTS)?.into_iter();
    let segments =
        segments.filter_map(|object| Some((name::parse_segment(&object.name)?, object.bytes)));
    let images = store.list(name::IMAGES)?.into_iter();
    let images = images.filter_map(|object| name::parse_image(&object.name));
    let own = images.filter(|(version, attempt, _)| {
        (*version, *attempt) == (manifest.version, manifest.attempt)
    });
    Ok((
        segments.filter(|(id, bytes)| wanted.get(id) == Some(bytes)).map(|(id, _)| id).collect(),
        own.map(|(_, _, rank)| rank).collect(),
    ))
}

/// Which stores have what a checkpoint names.
pub(crate) struct Holders<'a> {
    stores: &'a Stores,
    segments: HashMap<SegmentId, Vec<usize>>,
    images: HashMap<Rank, Vec<usize>>,
}

impl Holders<'_> {
    /// What any of them has, if somebody looked.
    pub(crate) fn held(&self) -> Held {
        Held {
            segments: self.segments.keys().copied().collect(),
            images: self.images.keys().copied().collect(),
        }
    }

    /// The rank that reads a segment of global storage for this one: its writer for all, so that a
    /// page that many ranks have comes over the network once; else each for itself.
    pub(crate) fn reader_of_global(&self, segment: &SegmentRef, is_shared: bool) -> usize {
        let writer = segment.rank.0 as usize % self.stores.of.len();
        if is_shared { writer } else { self.stores.rank }
    }

    /// The rank that reads a segment for this one: this one itself if it can reach it and few want
    /// its pages; else its writer where that can reach it, so that pages of many ranks are
    /// read once. Where nobody has it, this rank: it will find it missing.
    pub(crate) fn reader_of(&self, segment: &SegmentRef, is_shared: bool) -> usize {
        let Stores { rank, of, leaders } = self.stores;
        let writer = segment.rank.0 as usize;
        if self.stores.are_one() {
            return if is_shared && writer < of.len() { writer } else { *rank };
        }
        let Some(stores) = self.segments.get(&segment.id) else { return *rank };
        let has = |store: &usize| stores.contains(store);
        let is_here = has(&self.stores.own());
        match of.get(writer) {
            _ if is_here && !is_shared => *rank,
            Some(store) if has(store) => writer,
            _ if is_here => *rank,
            _ => leaders[stores[0]],
        }
    }

    /// Whether every segment is in the store of the rank that wrote it.
    pub(crate) fn are_at_home(&self, manifest: &Manifest) -> bool {
        let Stores { of, .. } = self.stores;
        self.stores.are_one()
            || manifest.segments.iter().all(|segment| {
                let (home, stores) =
                    (of.get(segment.rank.0 as usize), self.segments.get(&segment.id));
                home.zip(stores).is_some_and(|(home, stores)| stores.contains(home))
            })
    }

    /// This rank's image, from its own store or from whoever has it. Fails at once only when ranks
    /// cannot talk: all else is the inner result.
    pub(crate) fn image(
        &self,
        team: &Team,
        store: &dyn Store,
        manifest: &Manifest,
    ) -> Result<Result<Image>> {
        let own = team.rank();
        let at_home = || read_image(store, manifest, own).map_err(Error::from);
        let none = Vec::new();
        let stores_of = |rank: usize| self.images.get(&Rank(rank as u32)).unwrap_or(&none);
        let is_away = |rank: &usize| {
            let stores = stores_of(*rank);
            !stores.is_empty() && !stores.contains(&self.stores.of[*rank])
        };
        if self.stores.are_one() || !(0..team.size()).any(|rank| is_away(&rank)) {
            return Ok(at_home());
        }
        let send = |rank: usize| {
            let serves =
                is_away(&rank) && self.stores.leaders[stores_of(rank)[0]] == own.0 as usize;
            let object = name::image(manifest.version, manifest.attempt, Rank(rank as u32));
            let bytes = manifest.image(Rank(rank as u32)).map_or(0, |image| image.file_bytes);
            match serves {
                // One that cannot be read is told by sending nothing.
                true => store.get(&object, bytes).unwrap_or_default(),
                false => Vec::new(),
            }
        };
        let told = team.comm().all_to_all((0..team.size()).map(send).collect())?;
        if !is_away(&(own.0 as usize)) {
            return Ok(at_home());
        }
        let from = self.stores.leaders[stores_of(own.0 as usize)[0]];
        Ok(decode_image(&told[from], manifest, own).map_err(Error::from))
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

    #[test]
    fn a_segment_is_read_by_its_writer_or_by_who_has_it() {
        let stores = Stores::group(2, &["a", "a", "b", "c"]);
        let id = |byte| SegmentId([byte; 16]);
        let segments = HashMap::from([(id(1), vec![0]), (id(2), vec![1, 2]), (id(3), vec![2])]);
        let holders = Holders { stores: &stores, segments, images: HashMap::new() };
        let reader = |byte, rank, is_shared| {
            let index = standfast_format::Digest([0; 32]);
            let reference =
                SegmentRef { id: id(byte), rank: Rank(rank), slots: 1, file_bytes: 1, index };
            holders.reader_of(&reference, is_shared)
        };
        assert_eq!(reader(1, 1, true), 1, "its writer reaches it");
        assert_eq!(reader(1, 2, true), 0, "written here, found elsewhere");
        assert_eq!(reader(2, 0, true), 2, "this rank has it itself");
        assert_eq!(reader(2, 3, true), 3, "both have it, and its pages are wanted by many");
        assert_eq!(reader(2, 3, false), 2, "both have it, and its pages are wanted once");
        assert_eq!(reader(1, 1, false), 1, "its pages are wanted once, but it is not here");
        assert_eq!(reader(3, 9, true), 3, "its writer is no more");
        assert_eq!(reader(9, 1, true), 2, "nobody has it");
    }
}
