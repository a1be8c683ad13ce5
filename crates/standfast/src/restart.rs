//! Restarting a job: what the facade gives to [`standfast_restart::Restart`], and what becomes of it.
//!
//! A checkpoint that is proven to be damaged is skipped for the next older one, and the reason is
//! told. One that cannot be read for another reason, or that does not fit the program, is an error
//! instead: going back further would lose it, or hide a mistake.
//!
//! A run that goes back abandons what is newer ([`Abandoned`]): its own checkpoints come after them in
//! the order of commits, and no restart chooses them unless they are asked for by version.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use standfast_capture::Access;
use standfast_comm::Step;
use standfast_format::{Image, Kind, Level, Manifest, Rank, SegmentId, Version};
use standfast_restart::{
    Candidate, Damaged, Destinations, Filled, Inventory, MemorySink, Rebuild, Restart, Restored,
    Skipped, Stop, Way, merge, read_image, segments_of, split_line,
};
use standfast_store::{Lock, Store};

use crate::config::{self, Choice};
use crate::error::{Cause, Error, Phase, Result};
use crate::global;
use crate::job::{Core, Job};
use crate::ring;
use crate::stores;

/// How many places in the order of commits a manifest that cannot be read may stand behind the last
/// that can: if it becomes readable, it must not come before what is committed meanwhile.
const SEQUENCES_UNREAD: u64 = 1 << 10;

/// The checkpoint that was read, those that were skipped for it, and its regions.
type Found = (Manifest, Skipped, Restored);

/// What a restart came back to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Restarted {
    /// The checkpoint that was restored.
    pub version: Version,
    /// Newer checkpoints that could not be used, newest first, with the reason.
    pub skipped: Vec<(String, String)>,
    /// Regions of the checkpoint that the program has not protected.
    pub unclaimed: Vec<String>,
    /// What else the program should know: which levels the ranks came back from, where that is not
    /// the nearest one, or why pages did not arrive lazily.
    pub notes: Vec<String>,
    /// The farthest level that each rank's part came from, by rank.
    pub levels: Vec<Level>,
}

/// The last place in the order of commits that any checkpoint may have.
fn last_place(inventory: &Inventory, offer: &global::Offer, candidates: &[Candidate]) -> u64 {
    let unread = inventory.damaged.iter().chain(&offer.damaged).filter(|one| !one.is_proven());
    let known = candidates.first().map_or(0, |newest| newest.manifest().sequence);
    known.saturating_add((unread.count() as u64).saturating_mul(SEQUENCES_UNREAD))
}

impl Restarted {
    /// For whoever tells of restarts.
    #[doc(hidden)]
    pub fn of(version: Version) -> Self {
        let (skipped, unclaimed) = (Vec::new(), Vec::new());
        Self { version, skipped, unclaimed, notes: Vec::new(), levels: Vec::new() }
    }
}

impl Job {
    /// Restores every protected region from the newest checkpoint that is intact. `None`: there is
    /// no checkpoint yet, or the job has finished: a fresh start.
    pub fn restart(&self) -> Result<Option<Restarted>> {
        match self.restart_or_reason() {
            Err(error) if error.is_fresh() => Ok(None),
            restarted => restarted.map(Some),
        }
    }

    /// The same, with the reason of a fresh start as an error.
    #[doc(hidden)]
    pub fn restart_or_reason(&self) -> Result<Restarted> {
        let restarted = self.restart_to(None);
        let restarted = restarted
            .and_then(|found| found.ok_or_else(|| Error::no_checkpoint(self.header.job.clone())));
        let failed = restarted.as_ref().err();
        self.starts().failed = failed.is_some_and(|error| !error.is_fresh());
        if let Some(anew) = failed.filter(|error| error.is_anew() && self.rank().0 == Rank(0)) {
            eprintln!("standfast: {anew}");
        }
        restarted
    }

    /// Restores every protected region from this checkpoint, wherever a level has it
    /// ([`Kind::Missing`](crate::Kind::Missing) if none has).
    pub fn restart_from(&self, version: Version) -> Result<Restarted> {
        let restarted = self.restart_to(Some(version));
        let missing = |error: &Error| error.kind() == Kind::Missing;
        self.starts().failed = restarted.as_ref().is_err_and(|error| !missing(error));
        restarted?.ok_or_else(|| Cause::UnknownVersion { version }.into())
    }

    /// Whether a lazy restart is still loading and verifying pages behind the program.
    pub fn is_loading(&self) -> bool {
        self.core().lazy.as_ref().is_some_and(|lazy| !lazy.is_done())
    }

    fn restart_to(&self, version: Option<Version>) -> Result<Option<Restarted>> {
        let _busy = standfast_checkpoint::busy::hold(&*self.store);
        let mut core = self.core();
        core.settle();
        self.can_talk()?;
        core.rest_tracking();
        let cells = core.cells.clone();
        let ready = || {
            core.inventory()?;
            core.regions.check_mapped(Access::Fill)?;
            let lock = self.store.lock(Lock::ReadShared)?;
            Ok((lock, crate::protected::hold_all_mut(&cells)?))
        };
        let (_lock, mut held) = core.team.agree(Step("restart"), ready())?;
        let restarted = self.restart_together(&mut core, version);
        core.warm();
        let restarted = restarted?;
        if let Some(restarted) = &restarted {
            let version = restarted.version;
            let loaded = held.iter_mut().try_for_each(|one| one.filled(version));
            core.team.agree(Step("restart: state"), loaded)?;
        }
        Ok(restarted)
    }

    fn restart_together(
        &self,
        core: &mut Core,
        version: Option<Version>,
    ) -> Phase<Option<Restarted>> {
        core.regions.find_undumped();
        let wish = self.agree_on_wish(&core.team, version)?;
        self.read_again(core)?;
        let (candidates, offer) = self.look_around(core, wish.version.is_none())?;
        let last = last_place(core.inventory()?, &offer, &candidates);
        let candidates = self.choose_among(core, wish, candidates)?;
        let (found, distrusted) = self.read_back(core, wish.version, candidates, offer.damaged)?;
        core.distrust(distrusted.into_iter())?;
        if matches!(found, Ok(None)) {
            self.begin(core)?;
        }
        let found = core.team.agree(Step("restart: found"), found)?;
        let Some((manifest, skipped, restored)) = found else { return Ok(None) };
        let Manifest { version, sequence, .. } = manifest;
        core.floor.go_back(sequence, last);
        let differ = self.go_on(core, sequence)?;
        self.pace().start_again(self.since_open());
        let Restored { unclaimed, mut notes, levels, memory } = restored;
        match memory {
            Filled::Completely(rebuild) => rebuild.into_iter().for_each(|one| core.restored(*one)),
            Filled::Lazily(lazy) => core.lazy = Some(lazy),
        }
        notes.extend(self.multiplier.notes());
        let unknown = offer.unknown.map(|why| format!("global storage was not asked: {why}"));
        notes.extend(unknown);
        let unread = self.starts().unread.take();
        notes.extend(unread.map(|why| format!("whether the job has finished is not known: {why}")));
        if let Some(differ) = differ {
            eprintln!("standfast: {differ}");
        }
        Ok(Some(Restarted { version, skipped, unclaimed, notes, levels }))
    }

    /// The checkpoints of all levels, newest first, and what global storage says. `newest`: the newest
    /// of them is wanted, so that global storage must answer.
    pub(crate) fn look_around(
        &self,
        core: &mut Core,
        newest: bool,
    ) -> Phase<(Vec<Candidate>, global::Offer)> {
        let nothing_near = core.inventory()?.checkpoints.is_empty();
        let config = &self.config().config;
        let mut offer = global::ask(&core.team, config, &self.header, newest || nothing_near)?;
        core.floor.raise(&offer.checkpoints);
        self.starts().learn(offer.history.take());
        Ok((merge(core.inventory()?, &offer.checkpoints), offer))
    }

    /// Asks the stores again where something could not be read before: it may have passed.
    fn read_again(&self, core: &mut Core) -> Phase<()> {
        let is_read = core.inventory()?.unread().is_none();
        let [all_read] = *core.team.all_hold(Step("restart: unread"), [is_read])?;
        if !all_read {
            let fresh = stores::look_again(&core.team, &*self.store, &self.stores, &self.header)?;
            core.replace_inventory(fresh);
        }
        Ok(())
    }

    /// Reads one checkpoint, or the newest that can be restored; also tells which segments later
    /// checkpoints must not refer to, whatever came of it. All ranks get the same outcome.
    fn read_back(
        &self,
        core: &Core,
        version: Option<Version>,
        candidates: Vec<Candidate>,
        damaged_far: Vec<Damaged>,
    ) -> Phase<(Result<Option<Found>>, Vec<SegmentId>)> {
        let config = &self.config().config;
        let device = || core.fill_device();
        let owns_pages = |name: &str| core.owns_pages(name);
        let ring = ring::RestartRing {
            ranks: &core.team,
            store: &*self.store,
            stores: &self.stores,
            header: &self.header,
            multiplier: &self.multiplier,
        };
        let mut restart = Restart {
            ranks: &core.team,
            stores: &self.stores,
            store: &self.store,
            header: &self.header,
            // SAFETY: `protect` obliges raw regions to be left alone during this call and to stay
            // mapped until `unprotect`, which waits for pages that are still to be loaded; the cells
            // of safe regions are held for writing.
            memory: unsafe { Destinations::new(&core.regions, &owns_pages, &device) },
            ring: &ring,
            global: &|version| global::open(config, version).map_err(Error::into_restart),
            way: Way {
                threads: self.restart_threads(core.team.size()),
                lazy: config.timing.restart == Choice::Set(config::Restart::Lazy),
                refer_at_home: config.levels.has_ring(),
            },
            distrusted: Vec::new(),
        };
        let (line, abandoned) = split_line(candidates);
        let found = match version {
            Some(version) => {
                let all = line.into_iter().chain(abandoned);
                let one = all.into_iter().find(|one| one.manifest().version == version);
                // It says why the nodes have none.
                let one = one.map_or_else(|| only_local(core.inventory()?, version), Ok);
                let one = core.team.agree(Step("restart: checkpoint"), one)?;
                let restored = restart.restore(&one, false);
                restored.map(|restored| Ok((one.manifest().clone(), Skipped::new(), restored)))
            }
            None => {
                let damaged: Vec<&Damaged> =
                    core.inventory()?.damaged.iter().chain(&damaged_far).collect();
                let readable = all_read(&damaged, line.first());
                core.team.agree(Step("restart: manifests"), readable)?;
                let skipped = damaged.iter().map(|one| (one.object.clone(), one.error.to_string()));
                restart.newest(&line, skipped.collect())
            }
        };
        let found = match found {
            Ok(Ok(found)) => Ok(Some(found)),
            Ok(Err(skipped)) if skipped.is_empty() => Ok(None),
            Ok(Err(reasons)) => Err(Error::none_restorable(self.header.job.clone(), reasons)),
            Err(Stop::Failed(why)) => Err(self.not_fresh(version, why.error().clone().into())),
            Err(lost) => return Err(lost.map(Error::from)),
        };
        Ok((found, restart.distrusted))
    }

    /// A newest checkpoint of which an object is missing here, while another rank failed otherwise, is
    /// no fresh start.
    fn not_fresh(&self, version: Option<Version>, error: Error) -> Error {
        match (version, error.kind()) {
            (None, Kind::Missing) => {
                let reasons = vec![("the newest".into(), error.to_string())];
                Error::none_restorable(self.header.job.clone(), reasons)
            }
            _ => error,
        }
    }

    /// Size of a region of this rank in a checkpoint.
    pub fn region_bytes(&self, version: Version, region: &str) -> Result<u64> {
        let image = self.image(version)?;
        let found = image.region(region).ok_or_else(|| no_region(version, region))?;
        Ok(found.bytes)
    }

    /// Names and sizes of the regions of any rank in a checkpoint, also of a job that had more ranks
    /// or fewer.
    pub fn regions_of(&self, version: Version, rank: Rank) -> Result<Vec<(String, u64)>> {
        let regions = self.image_of(version, rank)?.regions;
        Ok(regions.into_iter().map(|region| (region.name, region.bytes)).collect())
    }

    /// The image of this rank in a checkpoint: names and sizes of its regions.
    #[doc(hidden)]
    pub fn image(&self, version: Version) -> Result<Image> {
        let rank = self.core().team.rank();
        self.image_of(version, rank)
    }

    /// The image of any rank in a checkpoint, also of a job that had more ranks or fewer.
    #[doc(hidden)]
    pub fn image_of(&self, version: Version, rank: Rank) -> Result<Image> {
        let (store, manifest) = self.nearest(version)?;
        Ok(read_image(&*store, &manifest, rank)?)
    }

    /// A checkpoint and the store to read it from: the own one, or global storage.
    fn nearest(&self, version: Version) -> Result<(Arc<dyn Store>, Manifest)> {
        let mut core = self.core();
        let own = match core.settle_alone() {
            true => core.inventory()?.checkpoint(version).cloned(),
            // One is under way that only all ranks together can finish: the store knows the others.
            false => Inventory::read(&*self.store)
                .and_then(|inventory| inventory.checkpoint(version).cloned()),
        };
        drop(core);
        let error = match own {
            Ok(manifest) => return Ok((Arc::clone(&self.store), manifest)),
            Err(error) => error,
        };
        let config = &self.config().config;
        let far = global::look(config, &self.header)?;
        let far = far.and_then(|far| far.checkpoint(version).cloned().ok());
        match (far, crate::location::open_global(config)?) {
            (Some(manifest), Some(store)) => Ok((store, manifest)),
            _ => Err(error.into()),
        }
    }

    /// Reads one region of a checkpoint into a buffer of its size.
    pub fn read_region(&self, version: Version, region: &str, buf: &mut [u8]) -> Result<()> {
        let rank = self.core().team.rank();
        self.read_region_of(version, rank, region, buf)
    }

    /// Reads one region of any rank in a checkpoint into a buffer of its size: how a program comes
    /// back with another number of ranks. Each rank may ask for what it likes, when it likes.
    pub fn read_region_of(
        &self,
        version: Version,
        rank: Rank,
        region: &str,
        buf: &mut [u8],
    ) -> Result<()> {
        let (store, manifest) = self.nearest(version)?;
        let image = read_image(&*store, &manifest, rank)?;
        let at = image.regions.iter().position(|found| found.name == region);
        let at = at.ok_or_else(|| no_region(version, region))?;
        let bytes = image.regions[at].bytes;
        if bytes != buf.len() as u64 {
            let given = buf.len();
            let why = format!("region {region:?} has {bytes} bytes, the buffer has {given}");
            return Err(Cause::Unfit { version, why }.into());
        }
        self.read_stored(&*store, image, at, buf).inspect_err(|error| {
            if error.cause().is_of_segment() && Arc::ptr_eq(&store, &self.store) {
                self.core().suspects.extend(segments_of(&manifest));
            }
        })
    }

    fn read_stored(
        &self,
        store: &dyn Store,
        image: Image,
        at: usize,
        buf: &mut [u8],
    ) -> Result<()> {
        let _lock = self.store.lock(Lock::ReadShared)?;
        // Any number of ranks may be asking.
        let threads = self.restart_threads(usize::MAX);
        let rebuild = Rebuild::open(store, &self.header, image, threads)?;
        let mut destinations: Vec<Option<&mut [u8]>> =
            rebuild.image().regions.iter().map(|_| None).collect();
        destinations[at] = Some(buf);
        rebuild
            .rebuild(&MemorySink::new(destinations), |region| region == at, &AtomicU64::new(0))
            .map_err(standfast_restart::Error::from)?;
        Ok(())
    }

    /// Each thread waits for the disk half of its time: as many as reads shall be in flight. Where
    /// nobody says how many, all cores decode: the program waits. `sharing`: ranks that do the same
    /// at the same time, at most.
    fn restart_threads(&self, sharing: usize) -> usize {
        let config = &self.config().config;
        let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let share = if config.node.threads == 0 { cores() / sharing } else { 0 };
        config.node.io_threads.max(config.threads()).max(share)
    }
}

/// Going back is only right where everything newer is proven to be damaged: a manifest that nobody
/// could read may be the newest.
fn all_read(damaged: &[&Damaged], newest: Option<&Candidate>) -> Result<()> {
    let Some(unread) = damaged.iter().find(|one| !one.is_proven()) else { return Ok(()) };
    let (kind, why) = (unread.error.kind(), unread.error.to_string());
    let older = newest.map(|newest| newest.manifest().version);
    Err(standfast_restart::Error::Unread { what: unread.object.clone(), kind, why, older }.into())
}

fn only_local(inventory: &Inventory, version: Version) -> Result<Candidate> {
    Ok(Candidate { local: Some(inventory.checkpoint(version)?.clone()), global: None })
}

/// All ranks must go back to one checkpoint.
pub(crate) fn common_version(all: &[Option<Version>]) -> Result<Option<Version>> {
    match all.iter().position(|other| *other != all[0]) {
        None => Ok(all[0]),
        Some(rank) => {
            let name = |version: Option<Version>| {
                version.map_or("the newest checkpoint".into(), |version| {
                    format!("checkpoint {version}")
                })
            };
            let (first, other) = (name(all[0]), name(all[rank]));
            Err(Error::disagree(format!("rank 0 restarts from {first}, rank {rank} from {other}")))
        }
    }
}

fn no_region(version: Version, region: &str) -> Error {
    standfast_restart::Error::NoRegion { version, region: region.into() }.into()
}
