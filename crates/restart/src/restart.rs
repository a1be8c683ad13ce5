//! Restarting: the newest checkpoint that can be restored, or a given one, back into memory.
//!
//! Data: what all levels have, newest first ([`crate::merge`]) -> image -> does it fit the protected
//! regions? -> pages, each part from the nearest level that has it ([`crate::read_back`]), or later
//! ([`crate::lazy`]), unless the checkpoint is distrusted ([`crate::distrust`]).
//!
//! The ranks of a job go back together: to the newest checkpoint that all of them can restore.
//!
//! Invariants:
//! - A region receives only verified pages. After an error regions hold a mixture of old and new
//!   pages: the program must not continue with them.

use std::sync::Arc;

use standfast_comm::{Collective, Failed, Step};
use standfast_format::{Kind, Level, Manifest, SegmentId, StoreHeader, Version};
use standfast_store::{LockGuard, Store};

use crate::distrust::Distrust;
use crate::error::{Error, Phase, Result, Stop};
use crate::lazy::{Lazy, LazyStart, eager_note};
use crate::rebuild::Rebuild;
use crate::region_sink::Destinations;
use crate::restart_plan::Candidate;
use crate::stores::StoreGroups;

/// How to restart. The same on all ranks, but for the threads.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Threads that read and decode.
    pub threads: usize,
    /// Whether pages may be loaded after the program continues.
    pub lazy: bool,
    /// Whether later checkpoints may refer only to what lies in the store of the rank that wrote it.
    pub refer_at_home: bool,
}

/// Global storage, open to read a checkpoint, which is not pruned meanwhile.
pub type GlobalStore = (Arc<dyn Store>, LockGuard);

/// What a restart of this rank works with.
pub struct Restart<'a> {
    /// The ranks of the job.
    pub ranks: &'a Collective,
    /// Which of them share a store.
    pub stores: &'a StoreGroups,
    /// The store of this one.
    pub store: &'a Arc<dyn Store>,
    /// The header that all stores have.
    pub header: &'a StoreHeader,
    /// The memory to fill.
    pub memory: Destinations<'a>,
    /// Makes lost files again.
    pub ring: &'a dyn Ring,
    /// Opens global storage.
    pub global: &'a dyn Fn(Version) -> Result<GlobalStore>,
    /// How.
    pub way: Way,
    /// Filled on the way: segments that later checkpoints must not refer to, also after a failure.
    pub distrusted: Vec<SegmentId>,
}

/// Files that other nodes have redundancy for. All ranks call it together.
pub trait Ring {
    /// Makes again what the nodes have lost of a checkpoint.
    fn rebuild(&self, manifest: &Manifest) -> Phase<RingRebuilt>;

    /// The same after every rank has looked into its files: what is damaged is as good as lost.
    fn mend(&self, manifest: &Manifest) -> Phase<RingRebuilt>;
}

/// What the ring has made again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RingRebuilt {
    /// Members and shards, on all ranks.
    pub pieces: usize,
    /// What the program should know of it.
    pub notes: Vec<String>,
}

/// A checkpoint that is back.
pub struct Restored {
    /// Regions that the program has not protected.
    pub unclaimed: Vec<String>,
    /// What else it should know.
    pub notes: Vec<String>,
    /// The farthest level that each rank's part came from, by rank.
    pub levels: Vec<Level>,
    /// What memory was filled from.
    pub memory: Filled,
}

/// How memory was filled.
pub enum Filled {
    /// As a whole. Later checkpoints may refer to what it was filled from, if it is given.
    Completely(Option<Box<Rebuild>>),
    /// Its pages are being loaded.
    Lazily(Lazy),
}

/// Checkpoints or manifests that were not used, newest first, with the reason.
pub type Skipped = Vec<(String, String)>;

impl Restart<'_> {
    /// Restores the newest of some checkpoints that can be restored. Otherwise tells why none can.
    pub fn newest(
        &mut self,
        candidates: &[Candidate],
        mut skipped: Skipped,
    ) -> Phase<std::result::Result<(Manifest, Skipped, Restored), Skipped>> {
        let mut newer_failed = false;
        for (at, one) in candidates.iter().enumerate() {
            let version = one.manifest().version;
            match self.restore(one, newer_failed) {
                Ok(restored) => return Ok(Ok((one.manifest().clone(), skipped, restored))),
                Err(stop) => {
                    let older = candidates.get(at + 1).map(|older| older.manifest().version);
                    let unread = |stop: Stop| stop.map(|error| error.unread(version, older));
                    let why = proven(self.ranks, stop).map_err(unread)?;
                    skipped.push((format!("checkpoint {version}"), why.error().to_string()));
                    newer_failed = true;
                }
            }
        }
        Ok(Err(skipped))
    }

    /// Restores one checkpoint. `newer_failed`: whether a newer one was found damaged before.
    pub fn restore(&mut self, candidate: &Candidate, newer_failed: bool) -> Phase<Restored> {
        let restored = self.read(candidate, newer_failed);
        if let Err(Stop::Failed(why)) = &restored {
            // What one rank finds damaged no rank may refer to.
            if why.error().is_of_segment() || self.ranks.size() > 1 {
                self.distrusted.extend(segments_of(candidate.manifest()));
            }
        }
        restored
    }

    fn read(&mut self, candidate: &Candidate, newer_failed: bool) -> Phase<Restored> {
        let distrust = self.distrust(candidate, newer_failed)?;
        let why_eager = match (&candidate.local, &distrust) {
            (Some(local), None) => match self.start_lazily(local)? {
                LazyStart::Begun(restored) => return Ok(restored),
                LazyStart::Eager(why) => why,
            },
            (_, distrust) => distrust.as_ref().map(Distrust::to_string),
        };
        let mut restored = self.read_completely(candidate)?;
        restored.notes.extend(why_eager.iter().map(|why| eager_note(why)));
        if let (Some(local), Some(Distrust::Marked(_))) = (&candidate.local, distrust) {
            self.clear_mark(local, &mut restored);
        }
        Ok(restored)
    }
}

/// The failure, where all ranks' failures prove damage or loss: an older checkpoint is the best that
/// is left. Going back for any other reason would lose what is there.
fn proven(ranks: &Collective, stop: Stop) -> Phase<Failed<Error>> {
    all_failed(ranks, stop, Step("restart: proven"), Kind::is_proof)
}

/// The failure, where another level of the same checkpoint may do better: also where this one is only
/// out of reach.
pub(crate) fn of_level(ranks: &Collective, stop: Stop) -> Phase<Failed<Error>> {
    all_failed(ranks, stop, Step("restart: of a level"), |kind| {
        kind.is_proof() || matches!(kind, Kind::Io | Kind::Denied | Kind::Transient)
    })
}

/// The failure, where whatever a level failed with, another may do better.
pub(crate) fn unless_bug(ranks: &Collective, stop: Stop) -> Phase<Failed<Error>> {
    all_failed(ranks, stop, Step("restart: without ring"), |kind| kind != Kind::Bug)
}

/// The failure, if no rank failed otherwise than by reading, with kinds that count.
fn all_failed(
    ranks: &Collective,
    stop: Stop,
    step: Step,
    counts: impl Fn(Kind) -> bool,
) -> Phase<Failed<Error>> {
    let Stop::Failed(why) = stop else { return Err(stop) };
    let own = !matches!(why.error(), Error::Device(_)) && counts(why.error().kind());
    let [all] = *ranks.all_hold(step, [own])?;
    if all { Ok(why) } else { Err(why.into()) }
}

/// The segments of a checkpoint: which of them is damaged, the first failure does not tell.
pub fn segments_of(manifest: &Manifest) -> impl Iterator<Item = SegmentId> {
    manifest.segments.iter().map(|segment| segment.id)
}
