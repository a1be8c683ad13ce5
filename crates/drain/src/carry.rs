//! One checkpoint on its way: what the target lacks, in the order of a commit.
//!
//! ```text
//! lock the checkpoint -> header (first time) -> segments -> images -> manifest
//! ```
//! The target takes no lock: one drain at a time holds [`Lock::Drain`] of the local store, and no
//! one else writes there. A lock in an object store would outlive a killed drain.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use standfast_format::{
    ImageRef, Kind, Level, Manifest, SegmentId, SegmentRef, StoreHeader, Version, name,
};
use standfast_pack::SegmentReader;
use standfast_reduce::{CodecSpec, FilterChoice};
use standfast_restart::{Inventory, read_header, read_image};
use standfast_store::{Lock, LockGuard, Store};

use crate::error::{Error, Result};
use crate::flow::Flow;
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
    /// What those segments took in the local store.
    pub local_bytes: u64,
    /// What they take in the target.
    pub global_bytes: u64,
}

/// A local store and the place its checkpoints are drained to.
pub struct Drain<'a> {
    local: &'a dyn Store,
    global: &'a dyn Store,
    header: StoreHeader,
    encoding: Encoding,
    _alone: LockGuard,
}

impl<'a> Drain<'a> {
    /// Begins to drain one store to another; only one may at a time.
    pub fn open(
        local: &'a dyn Store,
        global: &'a dyn Store,
        encoding: Encoding,
    ) -> Result<Self> {
        let header = read_header(local)?;
        let alone = local.lock(Lock::Drain)?;
        let drain = Self { local, global, header, encoding, _alone: alone };
        drain.check_target()?;
        Ok(drain)
    }

    /// What the local store offers now.
    pub fn local(&self) -> Result<Vec<Manifest>> {
        Ok(Inventory::read(self.local)?.checkpoints)
    }

    /// What has arrived.
    pub fn global(&self) -> Result<Vec<Manifest>> {
        match Inventory::read(self.global) {
            Ok(inventory) => Ok(inventory.checkpoints),
            Err(standfast_restart::Error::NoStore { .. }) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// Carries one checkpoint over. What the target has already is not sent again.
    pub fn carry(&self, manifest: &Manifest, flow: &Flow<'_>) -> Result<Carried> {
        let version = manifest.version;
        let _kept = self.local.lock(Lock::Keep(version.0))?;
        self.carry_locked(manifest, flow).map_err(|error| match error.kind() {
            Kind::Missing if !self.is_still_here(manifest) => Error::Gone { version },
            _ => error,
        })
    }

    fn carry_locked(&self, manifest: &Manifest, flow: &Flow<'_>) -> Result<Carried> {
        let version = manifest.version;
        if !self.is_still_here(manifest) {
            return Err(Error::Gone { version });
        }
        self.put_header()?;
        let mut known = known(&self.global()?);
        let mut carried = Carried { version, segments: 0, local_bytes: 0, global_bytes: 0 };
        for wanted in &manifest.segments {
            if let Entry::Vacant(place) = known.entry(wanted.id) {
                place.insert(self.bring(wanted, flow, &mut carried)?);
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
        let reader = SegmentReader::open(self.local, self.header.id, wanted)?;
        if let Some(found) = segment::found(self.global, &self.header, reader.index(), wanted)? {
            flow.read(wanted.file_bytes);
            return Ok(found);
        }
        let sent =
            segment::carry(&reader, wanted, &self.header, self.global, &self.encoding, flow)?;
        carried.segments += 1;
        carried.local_bytes += wanted.file_bytes;
        carried.global_bytes += sent.file_bytes;
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
            let mut image = read_image(self.local, manifest, rank)?;
            image.segments = there(&image.segments);
            let (bytes, digest) = image.encode();
            self.global.put(&name::image(manifest.version, manifest.attempt, rank), &bytes)?;
            images.push(ImageRef { rank, file_bytes: bytes.len() as u64, digest });
            flow.sent(bytes.len() as u64)?;
        }
        let segments = there(&manifest.segments);
        let manifest = Manifest { level: Level::Global, images, segments, ..manifest.clone() };
        self.global.put(&name::manifest(manifest.version, Level::Global), &manifest.encode())?;
        Ok(())
    }

    fn put_header(&self) -> Result<()> {
        if self.check_target()? {
            return Ok(());
        }
        match self.global.put_new(name::STORE, &self.header.encode()) {
            Err(error) if error.kind() == Kind::Busy => self.check_target().map(drop),
            put => Ok(put?),
        }
    }

    /// Whether the target is a store already; one of another job is refused.
    fn check_target(&self) -> Result<bool> {
        match read_header(self.global) {
            Ok(header) if header.id == self.header.id => Ok(true),
            Ok(_) => Err(Error::OtherJob { place: self.global.describe() }),
            Err(standfast_restart::Error::NoStore { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn is_still_here(&self, manifest: &Manifest) -> bool {
        // What cannot be read now is not known to be gone.
        Inventory::read(self.local).map_or(true, |inventory| {
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

/// Bytes of segments that a checkpoint needs and a target lacks, as they lie in the local store.
pub fn lack(manifest: &Manifest, global: &[Manifest]) -> u64 {
    let known = known(global);
    let lacking = manifest.segments.iter().filter(|segment| !known.contains_key(&segment.id));
    lacking.map(|segment| segment.file_bytes).sum()
}
