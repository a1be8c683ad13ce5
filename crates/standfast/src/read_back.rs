//! Filling memory from a checkpoint before a restart returns, from the nearest level of each part.
//!
//! ```text
//! what the nodes hold -> ring: lost files made again -> what they hold now -> plan
//!   -> images -> segments opened where they lie -> references proven -> pages exchanged, read, checked
//! ```
//! A page that many ranks have is read by the one that wrote it, which hands it to the others, also
//! out of global storage; what few want and can reach each reads itself ([`Demand`]). Several threads
//! of each rank read stretches of segments, decode and check them: while some wait for bytes, the
//! others decompress what has come.
//!
//! A plan that fails because something near is damaged is tried again when the ring has made that
//! anew; else it gives way to another in which everything comes from global storage.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use standfast_comm::Step;
use standfast_format::{Image, Kind, Manifest, SegmentId, SegmentRef, name};
use standfast_restart::{MemorySink, Rebuild, read_image};
use standfast_store::{LockGuard, Store};

use crate::config;
use crate::demand::{Demand, Distance};
use crate::device::RegionSink;
use crate::error::{Error, Phase, Result, Stop};
use crate::exchange::{Exchange, Source};
use crate::global;
use crate::job::{Core, Job};
use crate::restart::{Back, check_fit, check_ranks, passable, segments_of, unclaimed};
use crate::ring;
use crate::sources::{self, Found, Held, Plan};
use crate::stores::Holders;

/// Global storage, where a plan needs it.
type Away = Option<(Arc<dyn Store>, LockGuard)>;

impl Job {
    /// Fills memory before it returns.
    pub(crate) fn read_back_eagerly(&self, core: &mut Core, found: &Found) -> Phase<Back> {
        let fits = check_ranks(found.manifest(), core.team.size());
        core.team.agree(Step("restart: ranks"), fits)?;
        let Some(local) = &found.local else { return self.read_planned(core, found, None) };
        let mut notes = Vec::new();
        let looks = found.global.is_some();
        let before = self.held(core, local, looks)?;
        let mut multiplier = self.multiplier.clone();
        match ring::rebuild(&core.team, &*self.store, &self.stores, local, &mut multiplier) {
            Ok(rebuilt) => notes.extend(rebuilt.notes()),
            Err(Stop::Failed(why)) if looks => {
                let own = why.error().kind() != Kind::Bug;
                let [all] = *core.team.all_hold(Step("restart: without ring"), [own])?;
                if !all {
                    return Err(why.into());
                }
                notes.push(format!("the ring did not help: {}", why.error()));
            }
            Err(stop) => return Err(stop),
        }
        let mut near = self.read_planned(core, found, Some(before.clone()));
        if let Err(stop) = near {
            let why = passable(&core.team, stop)?;
            near = match self.mend(core, local)? {
                Some(mended) => {
                    notes.extend(mended);
                    self.read_planned(core, found, Some(before))
                }
                None => Err(why.into()),
            };
        }
        let mut back = match near {
            Err(stop) if looks => {
                let why = passable(&core.team, stop)?;
                core.distrust(segments_of(local))?;
                notes.push(format!("everything from global storage: {}", why.error()));
                let far = Found { local: None, ..found.clone() };
                self.read_planned(core, &far, None)?
            }
            near => near?,
        };
        back.notes.extend(notes);
        back.notes.extend(multiplier.notes());
        Ok(back)
    }

    /// Lets the ring make again what is damaged on the nodes; what was done, if anything.
    fn mend(&self, core: &Core, local: &Manifest) -> Phase<Option<Vec<String>>> {
        let (store, mut multiplier) = (&*self.store, self.multiplier.clone());
        let mended =
            ring::mend(&core.team, store, &self.stores, local, &self.header, &mut multiplier);
        match mended {
            Ok(rebuilt) => Ok((rebuilt.pieces > 0).then(|| rebuilt.notes())),
            // What could not be read tells more than that nothing helps.
            Err(Stop::Failed(_)) => Ok(None),
            Err(lost) => Err(lost),
        }
    }

    /// What the nodes hold of a checkpoint; everything, if nobody has looked.
    fn held(&self, core: &Core, local: &Manifest, looks: bool) -> Phase<Held> {
        if self.stores.are_one() && !looks {
            return Ok(Held::all(local));
        }
        Ok(self.stores.holders(&core.team, &*self.store, local, looks)?.held())
    }

    /// Makes a plan and carries it out. `before`: what the nodes held before the ring was asked;
    /// `None` if they are not asked at all.
    fn read_planned(&self, core: &mut Core, found: &Found, before: Option<Held>) -> Phase<Back> {
        let looks = found.local.is_some() && found.global.is_some();
        let team = &core.team;
        let holders = self.stores.holders(team, &*self.store, found.manifest(), looks)?;
        let plan = match (&found.local, &before) {
            (Some(local), Some(before)) => {
                let unasked = self.stores.are_one() && !looks;
                let now = if unasked { Held::all(local) } else { holders.held() };
                sources::plan(found, before, &now)
            }
            _ => sources::plan(found, &Held::default(), &Held::default()),
        };
        let away = plan
            .needs_global()
            .then(|| global::open(&self.config().config, found.manifest().version));
        let away: Away = team.agree(Step("restart: global"), away.transpose())?;
        let rebuild = self.fill(core, found, &plan, &holders, &away)?;
        let unclaimed = unclaimed(core, &rebuild);
        if plan.needs_global() {
            // No node has these segments: later checkpoints must not refer to them.
            core.distrust(plan.away())?;
        } else if self.config().config.ring == config::Ring::Auto
            && !holders.are_at_home(found.manifest())
        {
            // Shards are made of what a rank's own store has: the next checkpoint leans on nothing
            // that lies elsewhere.
            core.distrust(segments_of(found.manifest()))?;
        } else {
            core.restored(rebuild);
        }
        let notes = match plan.levels.iter().all(|level| *level == standfast_format::Level::Local) {
            true => Vec::new(),
            false => vec![plan.describe()],
        };
        Ok(Back { unclaimed, notes, levels: plan.levels })
    }

    /// Opens what the plan says, proves it and fills memory.
    fn fill(
        &self,
        core: &Core,
        found: &Found,
        plan: &Plan,
        holders: &Holders<'_>,
        away: &Away,
    ) -> Phase<Rebuild> {
        let team = &core.team;
        let (rank, size) = (team.rank(), team.size());
        let threads = self.restart_threads(size);
        let image = self.planned_image(core, found, plan, holders, away)?;
        let store_of = |segment: &SegmentRef| -> &dyn Store {
            match away {
                Some((global, _)) if plan.is_away(segment) => &**global,
                _ => &*self.store,
            }
        };
        let demand = Demand::sum(team, image.as_ref().ok())?;
        let is_shared = |segment: &SegmentRef| demand.is_shared(segment, Distance::Near);
        // What few ranks want each reads itself. What another one wrote and cannot be opened here
        // may still be read by its writer; for all else it makes no difference, and on an object
        // store every look is a request.
        let missing: HashSet<SegmentId> = image
            .iter()
            .flat_map(|image| &image.segments)
            .filter(|segment| segment.rank != rank && (segment.rank.0 as usize) < size)
            .filter(|segment| !plan.is_away(segment) && !is_shared(segment))
            .filter(|segment| self.store.open(&name::segment(segment.id)).is_err())
            .map(|segment| segment.id)
            .collect();
        let owner_of = |segment: &SegmentRef| match plan.is_away(segment) {
            true => holders.reader_of_global(segment, demand.is_shared(segment, Distance::Far)),
            false => {
                holders.reader_of(segment, is_shared(segment) || missing.contains(&segment.id))
            }
        };
        let opened = || {
            let image = image?;
            check_fit(core, &image)?;
            let is_own = |segment: &SegmentRef| owner_of(segment) == rank.0 as usize;
            let own = |segment: &SegmentRef| is_own(segment).then(|| store_of(segment));
            Ok(Rebuild::open_sharing(&self.header, image, threads, own)?)
        };
        let unproven = team.agree(Step("restart: open"), opened())?;
        let (hash, page_bytes) = (unproven.image().hash, unproven.image().page_bytes);
        let source =
            Source { store_of: &store_of, header: &self.header, hash, page_bytes, threads };
        let mut exchange = match size {
            1 => None,
            _ => Some(Exchange::start(team, source, &unproven, owner_of)?),
        };
        let hashes = exchange.as_ref().map_or(Ok(Ok(Vec::new())), Exchange::hashes)?;
        let proven = hashes.and_then(|hashes| Ok(unproven.prove(hashes)?));
        let served = exchange.as_ref().map_or(Ok(()), Exchange::check);
        let rebuild = team.agree(Step("restart: prove"), served.and(proven))?;
        let regions = &rebuild.image().regions;
        let destinations = regions
            .iter()
            .map(|region| {
                let own = core.regions.get(&region.name)?;
                // SAFETY: `protect` obliges raw regions to be left alone during this call, and
                // the cells of safe regions are held for writing.
                Some(unsafe { own.memory_mut() })
            })
            .collect();
        let wanted: Vec<bool> =
            regions.iter().map(|region| core.regions.get(&region.name).is_some()).collect();
        let sink = RegionSink::new(MemorySink::new(destinations), core, regions);
        let sink = team.agree(Step("restart: destinations"), sink)?;
        let fetched = match &mut exchange {
            Some(exchange) => exchange.pages(&rebuild, &sink, |region| wanted[region])?,
            None => Ok(()),
        };
        let own = rebuild
            .rebuild(&sink, |region| wanted[region], &AtomicU64::new(0))
            .map_err(Error::from);
        team.agree(Step("restart: pages"), own.and(fetched).and(sink.finish()))?;
        drop(sink);
        drop(exchange);
        Ok(rebuild)
    }

    /// This rank's image from where the plan says. What this rank fails with is the inner result.
    fn planned_image(
        &self,
        core: &Core,
        found: &Found,
        plan: &Plan,
        holders: &Holders<'_>,
        away: &Away,
    ) -> Phase<Result<Image>> {
        let team = &core.team;
        let near = match &found.local {
            Some(local) => Some(holders.image(team, &*self.store, local)?),
            None => None,
        };
        let image = match (near, away, &found.global) {
            (_, Some((store, _)), Some(global)) if plan.is_image_away(team.rank()) => {
                read_image(&**store, global, team.rank()).map_err(Error::from)
            }
            (Some(near), ..) => near,
            (None, ..) => unreachable!("what no node has comes from global storage"),
        };
        Ok(image.map(|image| plan.resolve(image)))
    }
}
