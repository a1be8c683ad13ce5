//! One checkpoint on its way: what the target lacks, in the order of a commit.
//!
//! ```text
//! lock the checkpoint, and the target against pruning -> header (first time) -> segments -> images
//!   -> is everything there? -> manifest
//! ```
//! Where nodes have stores of their own each node drains its own, and they never talk:
//!
//! ```text
//! own images to parts/ -> own segments -> are all nodes' segments and parts there? then commit
//! ```
//! Whoever finds everything there commits; if several do, they write the same. Images wait in
//! `parts/` as they are locally, for only who commits knows how all segments are named there.
//!
//! Invariants:
//! - A node looks for what others bring after it has brought all of its own: of nodes that drain at
//!   the same time the last one finds everything, and nobody has to come back.
//! - A manifest is written after a fresh listing has shown every segment it names, under a lock that
//!   keeps prunes out. A prune that came between is noticed, and what it took is brought again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use standfast_format::{
    Image, ImageRef, Kind, Level, Manifest, Rank, SegmentId, SegmentRef, StoreHeader, Version, name,
};
use standfast_reduce::CodecSpec;
use standfast_restart::{
    Inventory, Unreadable, check_manifests, complete_header, decode_image, history, read_header,
};
use standfast_store::{Lock, LockGuard, Store};
use standfast_write::SegmentReader;

use crate::encoding::{Codecs, Encoding};
use crate::error::{Error, Result};
use crate::flow::Flow;
use crate::record;
use crate::retain::{self, Retention};
use crate::segment::{self, Passage};

/// A checkpoint that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// Which one.
    pub version: Version,
    /// Segments that were sent, not counting those that were there.
    pub segments: usize,
    /// What those segments take where they came from.
    pub from_bytes: u64,
    /// What they take where they are now.
    pub to_bytes: u64,
}

/// A store and the place its checkpoints are carried to.
pub struct Drain<'a> {
    from: &'a dyn Store,
    to: &'a dyn Store,
    header: StoreHeader,
    codecs: Codecs,
    /// What a checkpoint has reached when it has arrived.
    level: Level,
    retention: Retention,
    _alone: LockGuard,
}

impl<'a> Drain<'a> {
    /// Begins to drain a local store to a global one; only one may at a time.
    pub fn open(local: &'a dyn Store, global: &'a dyn Store, encoding: Encoding) -> Result<Self> {
        let header = read_header(local)?;
        let alone = local.lock(Lock::Drain)?;
        Self::checked(local, global, header, encoding, Level::Global, alone)
    }

    /// Begins to fetch checkpoints from a global store; no job may be using the local one.
    pub fn back(global: &'a dyn Store, local: &'a dyn Store, threads: usize) -> Result<Self> {
        let header = read_header(global)?;
        let alone = local.lock(Lock::Writer)?;
        let codec = CodecSpec::NONE.into();
        let encoding = Encoding { codec, threads };
        Self::checked(global, local, header, encoding, Level::Local, alone)
    }

    fn checked(
        from: &'a dyn Store,
        to: &'a dyn Store,
        header: StoreHeader,
        encoding: Encoding,
        level: Level,
        alone: LockGuard,
    ) -> Result<Self> {
        let codecs = Codecs::new(encoding);
        let retention = Retention::default();
        let drain = Self { from, to, header, codecs, level, retention, _alone: alone };
        drain.check_target()?;
        Ok(drain)
    }

    /// Prunes the target whenever a checkpoint has arrived. What is to stay for ever is carried
    /// even where it is stale.
    pub fn keeping(mut self, retention: Retention) -> Self {
        self.retention = retention;
        self
    }

    /// How much is kept there.
    pub(crate) fn retention(&self) -> Retention {
        self.retention
    }

    /// Removes from the target what need not stay.
    pub(crate) fn retain(&self) -> Result<()> {
        retain::apply(self.to, self.retention)
    }

    /// What there is to carry: what is abandoned is not.
    pub fn offered(&self) -> Result<Vec<Manifest>> {
        let inventory = known_inventory(self.from)?;
        Ok(inventory.line().cloned().collect())
    }

    /// What has arrived.
    pub fn arrived(&self) -> Result<Vec<Manifest>> {
        match known_inventory(self.to) {
            Ok(inventory) => Ok(inventory.checkpoints),
            Err(Unreadable::NoStore(_)) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// Brings the history to a target that has this job, if it is newer than a revision that is known
    /// there; returns its revision. It comes before checkpoints: they are read by it.
    pub(crate) fn carry_history(&self, known: u64) -> Result<u64> {
        // One that cannot be read is no reason to keep checkpoints from getting away.
        let Ok(Some(history)) = history::read(self.from, &self.header) else { return Ok(known) };
        if history.revision > known && self.to.open(name::STORE).is_ok() {
            history::update(self.to, &self.header, &history)?;
            return Ok(history.revision);
        }
        Ok(known)
    }

    /// Carries one checkpoint over. What the target has already is not sent again.
    pub fn carry(&self, manifest: &Manifest, flow: &Flow<'_>) -> Result<Carried> {
        self.carry_while(manifest, flow, &|_| true)
    }

    /// The same, but gives it up between two segments if, told the bytes that are still to be
    /// dealt with, `go_on` says no.
    pub fn carry_while(
        &self,
        manifest: &Manifest,
        flow: &Flow<'_>,
        go_on: &dyn Fn(u64) -> bool,
    ) -> Result<Carried> {
        let version = manifest.version;
        let _kept = self.from.lock(Lock::Keep(version.0))?;
        self.carry_locked(manifest, flow, go_on).map_err(|error| match error.kind() {
            Kind::Missing if !self.is_still_here(manifest) => Error::Gone(version),
            _ => error,
        })
    }

    fn carry_locked(
        &self,
        manifest: &Manifest,
        flow: &Flow<'_>,
        go_on: &dyn Fn(u64) -> bool,
    ) -> Result<Carried> {
        let version = manifest.version;
        if !self.is_still_here(manifest) {
            return Err(Error::Gone(version));
        }
        self.put_header()?;
        self.carry_history(0)?;
        let _stays = self.hold_target()?;
        let own = self.own_ranks(manifest)?;
        let is_part = own.len() < manifest.images.len();
        if is_part {
            self.put_parts(manifest, &own, flow)?;
        }
        let arrived = self.arrived()?;
        let mut left = lack(manifest, &arrived);
        let mut known = known(&arrived);
        let there = self.segments_there()?;
        known.retain(|id, segment| there.get(id) == Some(&segment.file_bytes));
        let mut of_others = Vec::new();
        let mut carried = Carried { version, segments: 0, from_bytes: 0, to_bytes: 0 };
        for wanted in &manifest.segments {
            if known.contains_key(&wanted.id) {
                continue;
            }
            if !go_on(left) {
                return Err(Error::TooSlow(version));
            }
            match self.bring(wanted, is_part, flow, &mut carried)? {
                Some(landed) => drop(known.insert(wanted.id, landed)),
                None => of_others.push(wanted),
            }
            left = left.saturating_sub(wanted.file_bytes);
        }
        let mut missing = 0;
        for wanted in of_others {
            match segment::landed(self.to, &self.header, wanted)? {
                Some(landed) => drop(known.insert(wanted.id, landed)),
                None => missing += 1,
            }
        }
        let images = self.images(manifest, &own)?;
        missing += images.iter().filter(|image| image.is_none()).count();
        if missing > 0 {
            return Err(Error::Others { version, missing });
        }
        self.commit(manifest, images.into_iter().flatten(), &known, flow)?;
        if is_part {
            self.remove_parts(manifest);
        }
        Ok(carried)
    }

    /// Keeps prunes away from what a checkpoint leans on. Where there are no locks, listing before
    /// the commit must do.
    fn hold_target(&self) -> Result<Option<LockGuard>> {
        match self.to.lock(Lock::ReadShared) {
            Ok(lock) => Ok(Some(lock)),
            Err(error) if error.kind() == Kind::Unsupported => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The ranks whose images are here. All of them, unless nodes have stores of their own.
    fn own_ranks(&self, manifest: &Manifest) -> Result<BTreeSet<Rank>> {
        let images = self.from.list(name::IMAGES)?.into_iter();
        let images = images.filter_map(|object| name::parse_image(&object.name));
        let own = images.filter(|(_, attempt, _)| *attempt == manifest.attempt);
        Ok(own.map(|(_, _, rank)| rank).collect())
    }

    /// Brings a segment to the target, unless it is there already, whoever has left it; `None` if
    /// another node must do that, or has done it.
    fn bring(
        &self,
        wanted: &SegmentRef,
        is_part: bool,
        flow: &Flow<'_>,
        carried: &mut Carried,
    ) -> Result<Option<SegmentRef>> {
        flow.pass()?;
        let reader = match SegmentReader::open(self.from, self.header.id, wanted) {
            Ok(reader) => reader,
            Err(error) if is_part && error.kind() == Kind::Missing => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if let Some(found) = segment::found(self.to, &self.header, reader.index(), wanted)? {
            flow.read(wanted.file_bytes);
            return Ok(Some(found));
        }
        let (header, codecs) = (&self.header, &self.codecs);
        let passage = Passage { from: &reader, header, codecs, flow };
        let sent = passage.carry(wanted, self.to)?;
        carried.segments += 1;
        carried.from_bytes += wanted.file_bytes;
        carried.to_bytes += sent.file_bytes;
        Ok(Some(sent))
    }

    /// Lays this node's images out for whoever will commit.
    fn put_parts(&self, manifest: &Manifest, own: &BTreeSet<Rank>, flow: &Flow<'_>) -> Result<()> {
        for image in manifest.images.iter().filter(|image| own.contains(&image.rank)) {
            flow.pass()?;
            let (version, attempt) = (manifest.version, manifest.attempt);
            let bytes =
                self.from.get(&name::image(version, attempt, image.rank), image.file_bytes)?;
            self.to.put(&name::part(version, attempt, image.rank), &bytes)?;
            flow.sent(bytes.len() as u64)?;
        }
        Ok(())
    }

    /// The images of all ranks, own ones and those that other nodes have laid out.
    fn images(&self, manifest: &Manifest, own: &BTreeSet<Rank>) -> Result<Vec<Option<Image>>> {
        let (version, attempt) = (manifest.version, manifest.attempt);
        let read = |image: &ImageRef| {
            let (store, object) = match own.contains(&image.rank) {
                true => (self.from, name::image(version, attempt, image.rank)),
                false => (self.to, name::part(version, attempt, image.rank)),
            };
            match store.get(&object, image.file_bytes) {
                Ok(bytes) => Ok(Some(decode_image(&bytes, manifest, image.rank)?)),
                Err(error) if error.kind() == Kind::Missing && !own.contains(&image.rank) => {
                    Ok(None)
                }
                Err(error) => Err(error.into()),
            }
        };
        manifest.images.iter().map(read).collect()
    }

    /// Images, then the manifest, both naming the segments as they lie in the target.
    fn commit(
        &self,
        manifest: &Manifest,
        found: impl Iterator<Item = Image>,
        known: &BTreeMap<SegmentId, SegmentRef>,
        flow: &Flow<'_>,
    ) -> Result<()> {
        let there = |segments: &[SegmentRef]| -> Vec<SegmentRef> {
            segments.iter().map(|own| *known.get(&own.id).unwrap_or(own)).collect()
        };
        let mut images = Vec::with_capacity(manifest.images.len());
        for mut image in found {
            flow.pass()?;
            let rank = image.rank;
            image.segments = there(&image.segments);
            let (bytes, digest) = image.encode();
            self.to.put(&name::image(manifest.version, manifest.attempt, rank), &bytes)?;
            images.push(ImageRef { rank, file_bytes: bytes.len() as u64, digest });
            flow.sent(bytes.len() as u64)?;
        }
        let segments = there(&manifest.segments);
        self.check_there(manifest, &segments)?;
        let manifest = Manifest { level: self.level, images, segments, ..manifest.clone() };
        let object = Inventory::read(self.to)?.object_of(&manifest);
        Ok(self.to.put(&object, &manifest.encode())?)
    }

    /// Leaves a note of what arrived in the local store.
    pub(crate) fn note(&self, carried: &Carried, elapsed: Duration) {
        if self.level == Level::Global {
            record::note(self.from, carried, elapsed);
        }
    }

    /// The segments in the target, with their lengths.
    fn segments_there(&self) -> Result<BTreeMap<SegmentId, u64>> {
        let objects = self.to.list(name::SEGMENTS)?.into_iter();
        Ok(objects
            .filter_map(|object| Some((name::parse_segment(&object.name)?, object.bytes)))
            .collect())
    }

    /// Looks once more whether every segment is there.
    fn check_there(&self, manifest: &Manifest, segments: &[SegmentRef]) -> Result<()> {
        let there = self.segments_there()?;
        let lost = |segment: &&SegmentRef| there.get(&segment.id) != Some(&segment.file_bytes);
        match segments.iter().filter(lost).count() {
            0 => Ok(()),
            missing => Err(Error::Pruned { version: manifest.version, missing }),
        }
    }

    /// What waited for the commit is no longer needed; what stays is an orphan for prune.
    fn remove_parts(&self, manifest: &Manifest) {
        for image in &manifest.images {
            let object = name::part(manifest.version, manifest.attempt, image.rank);
            let _ = self.to.remove(&object);
        }
    }

    fn put_header(&self) -> Result<()> {
        let is_store = self.check_target()?;
        match complete_header(self.to, &self.header) {
            // Copies that a store lacks are written another time.
            Err(_) if is_store => Ok(()),
            Err(error) if error.kind() == Kind::Busy => self.check_target().map(drop),
            put => Ok(put?),
        }
    }

    /// Whether the target is a store already; one of another job is refused.
    fn check_target(&self) -> Result<bool> {
        match read_header(self.to) {
            Ok(header) if header.id == self.header.id => {
                check_manifests(self.to)?;
                Ok(true)
            }
            Ok(_) => Err(Error::OtherJob(self.to.describe())),
            Err(Unreadable::NoStore(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn is_still_here(&self, manifest: &Manifest) -> bool {
        // What cannot be read now is not known to be gone.
        known_inventory(self.from).map_or(true, |inventory| {
            inventory.checkpoints.iter().any(|own| own.attempt == manifest.attempt)
        })
    }

    /// Attempts of which other nodes have laid out images: the same ones should go next, or nodes
    /// that each take their newest might never meet.
    pub(crate) fn begun_by_others(&self, own: &[Manifest]) -> Result<BTreeSet<Version>> {
        let parts = self.to.list(name::PARTS)?.into_iter();
        let parts = parts.filter_map(|object| name::parse_part(&object.name));
        let attempts: BTreeSet<_> = parts.map(|(_, attempt, _)| attempt).collect();
        let begun = own.iter().filter(|manifest| attempts.contains(&manifest.attempt));
        Ok(begun.map(|manifest| manifest.version).collect())
    }
}

/// What a store holds. A manifest that cannot be read is not one that is absent.
fn known_inventory(store: &dyn Store) -> std::result::Result<Inventory, Unreadable> {
    let inventory = Inventory::read(store)?;
    match inventory.unread() {
        Some(unread) => Err(unread.error.clone()),
        None => Ok(inventory),
    }
}

/// Segments as the checkpoints of a store name them.
fn known(checkpoints: &[Manifest]) -> BTreeMap<SegmentId, SegmentRef> {
    let all = checkpoints.iter().flat_map(|manifest| &manifest.segments);
    all.map(|segment| (segment.id, *segment)).collect()
}

/// Bytes of segments that a checkpoint needs and a target lacks, as they lie where they come from.
pub fn lack(manifest: &Manifest, global: &[Manifest]) -> u64 {
    let known = known(global);
    let lacking = manifest.segments.iter().filter(|segment| !known.contains_key(&segment.id));
    lacking.map(|segment| segment.file_bytes).sum()
}
