//! One checkpoint on its way: what the target lacks, in the order of a commit.
//!
//! ```text
//! lock the checkpoint -> header (first time) -> segments -> images -> manifest
//! ```
//! A global target takes no lock: one drain at a time holds [`Lock::Drain`] of the local store, and
//! no one else writes there. A lock in an object store would outlive a killed drain.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use standfast_format::{
    ImageRef, Kind, Level, Manifest, SegmentId, SegmentRef, StoreHeader, Version, name,
};
use standfast_pack::SegmentReader;
use standfast_reduce::{CodecSpec, FilterChoice};
use standfast_restart::{Inventory, read_header, read_image};
use standfast_store::{Lock, LockGuard, Store};

use crate::error::{Error, Result};
use crate::flow::Flow;
use crate::record;
use crate::segment;

/// How blocks are encoded on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding {
    /// Codec and level; a block stays as it is where that is smaller.
    pub codec: CodecSpec,
    /// Filter before the codec.
    pub filter: FilterChoice,
    /// Threads that read, verify and compress.
    pub threads: usize,
}

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
    encoding: Encoding,
    /// What a checkpoint has reached when it has arrived.
    level: Level,
    _alone: LockGuard,
}

impl<'a> Drain<'a> {
    /// Begins to drain a local store to a global one; only one may at a time.
    pub fn open(local: &'a dyn Store, global: &'a dyn Store, encoding: Encoding) -> Result<Self> {
        let header = read_header(local)?;
        let alone = local.lock(Lock::Drain)?;
        Self::checked(Self {
            from: local,
            to: global,
            header,
            encoding,
            level: Level::Global,
            _alone: alone,
        })
    }

    /// Begins to fetch checkpoints from a global store; no job may be using the local one.
    pub fn back(global: &'a dyn Store, local: &'a dyn Store, threads: usize) -> Result<Self> {
        let header = read_header(global)?;
        let alone = local.lock(Lock::Writer)?;
        let encoding = Encoding { codec: CodecSpec::NONE, filter: FilterChoice::Auto, threads };
        Self::checked(Self {
            from: global,
            to: local,
            header,
            encoding,
            level: Level::Local,
            _alone: alone,
        })
    }

    fn checked(self) -> Result<Self> {
        self.check_target()?;
        Ok(self)
    }

    /// What there is to carry.
    pub fn offered(&self) -> Result<Vec<Manifest>> {
        Ok(Inventory::read(self.from)?.checkpoints)
    }

    /// What has arrived.
    pub fn arrived(&self) -> Result<Vec<Manifest>> {
        match Inventory::read(self.to) {
            Ok(inventory) => Ok(inventory.checkpoints),
            Err(standfast_restart::Error::NoStore { .. }) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
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
            Kind::Missing if !self.is_still_here(manifest) => Error::Gone { version },
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
            return Err(Error::Gone { version });
        }
        self.put_header()?;
        let arrived = self.arrived()?;
        let mut left = lack(manifest, &arrived);
        let mut known = known(&arrived);
        let mut carried = Carried { version, segments: 0, from_bytes: 0, to_bytes: 0 };
        for wanted in &manifest.segments {
            if let Entry::Vacant(place) = known.entry(wanted.id) {
                if !go_on(left) {
                    return Err(Error::TooSlow { version });
                }
                place.insert(self.bring(wanted, flow, &mut carried)?);
                left = left.saturating_sub(wanted.file_bytes);
            }
        }
        self.commit(manifest, &known, flow)?;
        Ok(carried)
    }

    /// Sends a segment, unless an earlier drain that did not come to its end has done so.
    fn bring(
        &self,
        wanted: &SegmentRef,
        flow: &Flow<'_>,
        carried: &mut Carried,
    ) -> Result<SegmentRef> {
        flow.pass()?;
        let reader = SegmentReader::open(self.from, self.header.id, wanted)?;
        if let Some(found) = segment::found(self.to, &self.header, reader.index(), wanted)? {
            flow.read(wanted.file_bytes);
            return Ok(found);
        }
        let sent = segment::carry(&reader, wanted, &self.header, self.to, &self.encoding, flow)?;
        carried.segments += 1;
        carried.from_bytes += wanted.file_bytes;
        carried.to_bytes += sent.file_bytes;
        Ok(sent)
    }

    /// Images, then the manifest, both naming the segments as they lie in the target.
    fn commit(
        &self,
        manifest: &Manifest,
        known: &HashMap<SegmentId, SegmentRef>,
        flow: &Flow<'_>,
    ) -> Result<()> {
        let there = |segments: &[SegmentRef]| -> Vec<SegmentRef> {
            segments.iter().map(|own| *known.get(&own.id).unwrap_or(own)).collect()
        };
        let mut images = Vec::with_capacity(manifest.images.len());
        for image in &manifest.images {
            flow.pass()?;
            let rank = image.rank;
            let mut image = read_image(self.from, manifest, rank)?;
            image.segments = there(&image.segments);
            let (bytes, digest) = image.encode();
            self.to.put(&name::image(manifest.version, manifest.attempt, rank), &bytes)?;
            images.push(ImageRef { rank, file_bytes: bytes.len() as u64, digest });
            flow.sent(bytes.len() as u64)?;
        }
        let segments = there(&manifest.segments);
        let manifest = Manifest { level: self.level, images, segments, ..manifest.clone() };
        self.to.put(&name::manifest(manifest.version, self.level), &manifest.encode())?;
        Ok(())
    }

    /// Leaves a note of what arrived in the local store.
    pub(crate) fn note(&self, carried: &Carried, elapsed: Duration) {
        if self.level == Level::Global {
            record::note(self.from, carried, elapsed);
        }
    }

    fn put_header(&self) -> Result<()> {
        if self.check_target()? {
            return Ok(());
        }
        match self.to.put_new(name::STORE, &self.header.encode()) {
            Err(error) if error.kind() == Kind::Busy => self.check_target().map(drop),
            put => Ok(put?),
        }
    }

    /// Whether the target is a store already; one of another job is refused.
    fn check_target(&self) -> Result<bool> {
        match read_header(self.to) {
            Ok(header) if header.id == self.header.id => Ok(true),
            Ok(_) => Err(Error::OtherJob { place: self.to.describe() }),
            Err(standfast_restart::Error::NoStore { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn is_still_here(&self, manifest: &Manifest) -> bool {
        // What cannot be read now is not known to be gone.
        Inventory::read(self.from).map_or(true, |inventory| {
            let mut here = inventory.checkpoints.iter();
            here.any(|own| own.version == manifest.version && own.attempt == manifest.attempt)
        })
    }
}

/// Segments as the checkpoints of a store name them.
fn known(checkpoints: &[Manifest]) -> HashMap<SegmentId, SegmentRef> {
    let all = checkpoints.iter().flat_map(|manifest| &manifest.segments);
    all.map(|segment| (segment.id, *segment)).collect()
}

/// Bytes of segments that a checkpoint needs and a target lacks, as they lie where they come from.
pub fn lack(manifest: &Manifest, global: &[Manifest]) -> u64 {
    let known = known(global);
    let lacking = manifest.segments.iter().filter(|segment| !known.contains_key(&segment.id));
    lacking.map(|segment| segment.file_bytes).sum()
}
