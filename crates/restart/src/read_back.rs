//! Filling memory from a checkpoint before a restart returns, from the nearest level of each part.
//!
//! ```text
//! what the nodes hold -> ring: lost files rebuilt -> what they hold now -> plan
//!   -> images -> segments opened where they lie -> references proven -> pages exchanged, read, checked
//! ```
//! A page that many ranks have is read by the one that wrote it, which hands it to the others, also
//! out of global storage; what few want and can reach each reads itself ([`ReadSharing`]). Several
//! threads of each rank read stretches of segments, decode and check them: while some wait for bytes,
//! the others decompress what has come.
//!
//! A plan that fails because something near is damaged is tried again when the ring has rebuilt that;
//! otherwise it gives way to another in which everything comes from global storage.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;

use standfast_checkpoint::read_image;
use standfast_comm::{Failed, Step};
use standfast_format::{Image, Level, Manifest, SegmentId, SegmentRef, name};
use standfast_store::Store;

use crate::error::{Error, Phase, Result, Stop};
use crate::exchange::{Exchange, SegmentAccess};
use crate::holders::Holders;
use crate::read_sharing::{Distance, ReadSharing};
use crate::rebuild::Rebuild;
use crate::region_sink::{RegionSink, check_ranks};
use crate::restart::{Filled, GlobalStore, Restart, Restored, of_level, segments_of, unless_bug};
use crate::restart_plan::{Candidate, RestartPlan, StoredParts};

/// Global storage, where a plan needs it.
type Away = Option<GlobalStore>;

impl Restart<'_> {
    /// Fills memory before it returns.
    pub(crate) fn read_completely(&mut self, candidate: &Candidate) -> Phase<Restored> {
        let Manifest { version, ranks, .. } = *candidate.manifest();
        let fits = check_ranks(version, ranks, self.ranks.size());
        self.ranks.agree(Step("restart: ranks"), fits)?;
        let Some(local) = &candidate.local else { return self.read_planned(candidate, None) };
        let mut notes = Vec::new();
        let looks = candidate.global.is_some();
        let before = self.stored(local, looks)?;
        // A level that failed without having lost anything: the end counts as proven only without.
        let mut unsure = None;
        match self.ring.rebuild(local) {
            Ok(rebuilt) => notes.extend(rebuilt.notes),
            Err(stop) if looks => {
                let why = unless_bug(self.ranks, stop)?;
                notes.push(format!("rebuilding from the ring failed: {}", why.error()));
                unsure = self.unproven(why)?;
            }
            Err(stop) => return Err(stop),
        }
        let mut near = self.read_planned(candidate, Some(before.clone()));
        if let Err(stop) = near {
            let why = of_level(self.ranks, stop)?;
            near = match self.mend(local, &mut unsure)? {
                Some(mended) => {
                    notes.extend(mended);
                    self.read_planned(candidate, Some(before))
                }
                None => Err(why.into()),
            };
        }
        let read = match near {
            Err(stop) if looks => {
                let why = of_level(self.ranks, stop)?;
                self.distrusted.extend(segments_of(local));
                notes.push(format!("everything from global storage: {}", why.error()));
                unsure = unsure.or(self.unproven(why)?);
                let far = Candidate { local: None, ..candidate.clone() };
                self.read_planned(&far, None)
            }
            near => near,
        };
        match (read, unsure) {
            (Ok(mut restored), _) => {
                restored.notes.extend(notes);
                Ok(restored)
            }
            (Err(Stop::Failed(_)), Some(unsure)) => Err(unsure.into()),
            (Err(stop), _) => Err(stop),
        }
    }

    /// The failure, unless it proves damage or loss on every rank that failed.
    fn unproven(&self, why: Failed<Error>) -> Phase<Option<Failed<Error>>> {
        let own = why.error().kind().is_proof();
        let [all] = *self.ranks.all_hold(Step("restart: unproven"), [own])?;
        Ok((!all).then_some(why))
    }

    /// Lets the ring rebuild what is damaged on the nodes; what was done, if anything.
    fn mend(
        &self,
        local: &Manifest,
        unsure: &mut Option<Failed<Error>>,
    ) -> Phase<Option<Vec<String>>> {
        match self.ring.mend(local) {
            Ok(rebuilt) => Ok((rebuilt.pieces > 0).then_some(rebuilt.notes)),
            // What could not be read tells more than that nothing helps.
            Err(Stop::Failed(why)) => {
                *unsure = unsure.take().or(self.unproven(why)?);
                Ok(None)
            }
            Err(lost) => Err(lost),
        }
    }

    /// What the nodes hold of a checkpoint; everything, if nobody has looked.
    fn stored(&self, local: &Manifest, looks: bool) -> Phase<StoredParts> {
        if self.stores.are_one() && !looks {
            return Ok(StoredParts::all(local));
        }
        Ok(self.stores.holders(self.ranks, &**self.store, local, looks)?.held())
    }

    /// Makes a plan and carries it out. `before`: what the nodes held before the ring was asked;
    /// `None` if they are not asked at all.
    fn read_planned(
        &mut self,
        candidate: &Candidate,
        before: Option<StoredParts>,
    ) -> Phase<Restored> {
        let looks = candidate.local.is_some() && candidate.global.is_some();
        let manifest = candidate.manifest();
        let holders = self.stores.holders(self.ranks, &**self.store, manifest, looks)?;
        let plan = match (&candidate.local, &before) {
            (Some(local), Some(before)) => {
                let unasked = self.stores.are_one() && !looks;
                let now = if unasked { StoredParts::all(local) } else { holders.held() };
                RestartPlan::new(candidate, before, &now)
            }
            _ => RestartPlan::new(candidate, &StoredParts::default(), &StoredParts::default()),
        };
        let away = plan.needs_global().then(|| (self.global)(manifest.version)).transpose();
        let away: Away = self.ranks.agree(Step("restart: global"), away)?;
        let rebuild = self.fill(candidate, &plan, &holders, &away)?;
        let unclaimed = self.memory.unclaimed(&rebuild);
        let memory = if plan.needs_global() {
            // No node has these segments: later checkpoints must not refer to them.
            self.distrusted.extend(plan.away());
            None
        } else if self.way.refer_at_home && !holders.are_at_home(manifest) {
            // Shards are made of what a rank's own store has: the next checkpoint refers to nothing
            // that lies elsewhere.
            self.distrusted.extend(segments_of(manifest));
            None
        } else {
            Some(Box::new(rebuild))
        };
        let notes = match plan.levels.iter().all(|level| *level == Level::Local) {
            true => Vec::new(),
            false => vec![plan.describe()],
        };
        let memory = Filled::Completely(memory);
        Ok(Restored { unclaimed, notes, levels: plan.levels, memory })
    }

    /// Opens what the plan says, proves it and fills memory.
    fn fill(
        &self,
        candidate: &Candidate,
        plan: &RestartPlan,
        holders: &Holders<'_>,
        away: &Away,
    ) -> Phase<Rebuild> {
        let ranks = self.ranks;
        let (rank, size) = (ranks.rank(), ranks.size());
        let threads = self.way.threads;
        let image = self.planned_image(candidate, plan, holders, away)?;
        let store_of = |segment: &SegmentRef| -> &dyn Store {
            match away {
                Some((global, _)) if plan.is_away(segment) => &**global,
                _ => &**self.store,
            }
        };
        let sharing = ReadSharing::sum(ranks, image.as_ref().ok())?;
        let is_shared = |segment: &SegmentRef| sharing.is_shared(segment, Distance::Near);
        // What few ranks want each reads itself. What another one wrote and cannot be opened here
        // may still be read by its writer; for all else it makes no difference, and on an object
        // store every look is a request.
        let missing: BTreeSet<SegmentId> = image
            .iter()
            .flat_map(|image| &image.segments)
            .filter(|segment| segment.rank != rank && (segment.rank.0 as usize) < size)
            .filter(|segment| !plan.is_away(segment) && !is_shared(segment))
            .filter(|segment| self.store.open(&name::segment(segment.id)).is_err())
            .map(|segment| segment.id)
            .collect();
        let owner_of = |segment: &SegmentRef| match plan.is_away(segment) {
            true => holders.reader_of_global(segment, sharing.is_shared(segment, Distance::Far)),
            false => {
                holders.reader_of(segment, is_shared(segment) || missing.contains(&segment.id))
            }
        };
        let opened = || {
            let image = image?;
            self.memory.check_fit(&image)?;
            let is_own = |segment: &SegmentRef| owner_of(segment) == rank.0 as usize;
            let own = |segment: &SegmentRef| is_own(segment).then(|| store_of(segment));
            Rebuild::open_sharing(self.header, image, threads, own)
        };
        let unproven = ranks.agree(Step("restart: open"), opened())?;
        let (hash, page_bytes) = (unproven.image().hash, unproven.image().page_bytes);
        let access =
            SegmentAccess { store_of: &store_of, header: self.header, hash, page_bytes, threads };
        let mut exchange = match size {
            1 => None,
            _ => Some(Exchange::start(ranks, access, &unproven, owner_of)?),
        };
        let hashes = exchange.as_ref().map_or(Ok(Ok(Vec::new())), Exchange::hashes)?;
        let proven = hashes.and_then(|hashes| unproven.prove(hashes));
        let served = exchange.as_ref().map_or(Ok(()), Exchange::check);
        let rebuild = ranks.agree(Step("restart: prove"), served.and(proven))?;
        let regions = &rebuild.image().regions;
        let wanted: Vec<bool> = regions
            .iter()
            .map(|region| self.memory.regions().get(&region.name).is_some())
            .collect();
        let sink = RegionSink::new(self.memory, regions);
        let sink = ranks.agree(Step("restart: destinations"), sink)?;
        let fetched = match &mut exchange {
            Some(exchange) => exchange.pages(&rebuild, &sink, |region| wanted[region])?,
            None => Ok(()),
        };
        let own = rebuild
            .rebuild(&sink, |region| wanted[region], &AtomicU64::new(0))
            .map_err(Error::from);
        ranks.agree(Step("restart: pages"), own.and(fetched).and(sink.finish()))?;
        drop(sink);
        drop(exchange);
        Ok(rebuild)
    }

    /// This rank's image from where the plan says. What this rank fails with is the inner result.
    fn planned_image(
        &self,
        candidate: &Candidate,
        plan: &RestartPlan,
        holders: &Holders<'_>,
        away: &Away,
    ) -> Phase<Result<Image>> {
        let ranks = self.ranks;
        let near = match &candidate.local {
            Some(local) => Some(holders.image(ranks, &**self.store, local)?),
            None => None,
        };
        let image = match (near, away, &candidate.global) {
            (_, Some((store, _)), Some(global)) if plan.is_image_away(ranks.rank()) => {
                read_image(&**store, global, ranks.rank()).map_err(Error::from)
            }
            (Some(near), ..) => near,
            (None, ..) => unreachable!("what no node has comes from global storage"),
        };
        Ok(image.map(|image| plan.resolve(image)))
    }
}
