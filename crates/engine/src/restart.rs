//! Restarting a job: the newest checkpoint that is whole, or a given one, back into memory.
//!
//! Data: inventory, newest first -> image -> does it fit the protected regions? -> rebuild.
//!
//! The ranks of a job go back together: to the newest checkpoint that all of them can restore.
//!
//! A damaged checkpoint is passed over for the next older one, and the reason is told. One that
//! does not fit the program is an error instead: going back further would hide a mistake.
//!
//! With `restart = lazy` pages arrive later ([`crate::arrive`]).
//!
//! Invariants:
//! - A region receives only verified pages. After an error regions hold a mixture of old and new
//!   pages: the program must not go on with them.

use std::sync::atomic::AtomicU64;

use standfast_format::{Image, Kind, Manifest, Rank, SegmentRef, Version};
use standfast_restart::{Inventory, MemorySink, Rebuild, read_image};
use standfast_store::Lock;

use crate::arrive::{Arrival, eager_note};
use crate::config;
use crate::device::RegionSink;
use crate::error::{Error, Result};
use crate::exchange::{Exchange, Source};
use crate::job::{Core, Job};
use crate::ring;
use crate::team::Team;

/// What a restart came back to.
#[derive(Clone, Debug)]
pub struct Restarted {
    /// The checkpoint that was restored.
    pub version: Version,
    /// Newer checkpoints that could not be used, newest first, with the reason.
    pub passed_over: Vec<(String, String)>,
    /// Regions of the checkpoint that the program has not protected.
    pub unclaimed: Vec<String>,
    /// What else the program should know, such as why pages did not arrive lazily.
    pub notes: Vec<String>,
}

/// What is to be told of a checkpoint that was read back.
pub(crate) struct Back {
    pub(crate) unclaimed: Vec<String>,
    pub(crate) notes: Vec<String>,
}

impl Job {
    /// Restores every protected region from a checkpoint: the given one, or the newest that is
    /// whole. `Kind::Missing` means that there is nothing to restart from: a fresh start.
    pub fn restart(&self, version: Option<Version>) -> Result<Restarted> {
        let _busy = standfast_commit::busy::hold(&*self.store);
        let mut core = self.core();
        core.settle();
        core.rest_tracking();
        let cells = core.cells.clone();
        let ready = || {
            let lock = self.store.lock(Lock::ReadShared)?;
            Ok((lock, crate::protected::hold_all_mut(&cells)?))
        };
        let _held = core.team.agree(ready())?;
        agree_on_version(&core, version)?;
        match version {
            Some(version) => {
                let manifest = core.inventory().checkpoint(version)?.clone();
                let Back { unclaimed, notes } = self.restore(&mut core, &manifest)?;
                Ok(Restarted { version, passed_over: Vec::new(), unclaimed, notes })
            }
            None => self.restart_newest(&mut core),
        }
    }

    fn restart_newest(&self, core: &mut Core) -> Result<Restarted> {
        let inventory = core.inventory();
        let mut passed_over: Vec<(String, String)> = inventory
            .damaged
            .iter()
            .map(|damaged| (damaged.object.clone(), damaged.error.to_string()))
            .collect();
        for manifest in inventory.checkpoints.clone() {
            let version = manifest.version;
            match self.restore(core, &manifest) {
                Ok(Back { unclaimed, notes }) => {
                    return Ok(Restarted { version, passed_over, unclaimed, notes });
                }
                // Nobody else can be asked.
                Err(error @ Error::Comm(_)) => return Err(error),
                Err(error) if passable(&core.team, &error)? => {
                    passed_over.push((format!("checkpoint {version}"), error.to_string()));
                }
                Err(error) => return Err(error),
            }
        }
        let job = self.header.job.clone();
        if passed_over.is_empty() {
            return Err(Error::NoCheckpoint { job });
        }
        Err(Error::NoneRestorable { job, reasons: passed_over })
    }

    fn restore(&self, core: &mut Core, manifest: &Manifest) -> Result<Back> {
        let back = self.read_back(core, manifest).inspect_err(|error| {
            // What one rank finds damaged no rank may lean on, and all must agree on that.
            if is_of_segment(error) || core.team.size() > 1 {
                core.distrust(manifest);
            }
        })?;
        self.pace().start_again(self.since_open());
        Ok(back)
    }

    fn read_back(&self, core: &mut Core, manifest: &Manifest) -> Result<Back> {
        let why_eager = match self.arrive(core, manifest)? {
            Arrival::Begun(back) => return Ok(back),
            Arrival::None(why) => why,
        };
        let mut back = self.read_back_eagerly(core, manifest)?;
        back.notes.extend(why_eager.iter().map(|why| eager_note(why)));
        Ok(back)
    }

    /// Fills memory before it returns; ranks hand each other the pages that they keep for others.
    fn read_back_eagerly(&self, core: &mut Core, manifest: &Manifest) -> Result<Back> {
        let team = &core.team;
        let (rank, size) = (team.rank(), team.size());
        let threads = self.restart_threads(size);
        // The same on all ranks.
        check_ranks(manifest, size)?;
        let rebuilt = ring::rebuild(team, &*self.store, &self.stores, manifest)?;
        let holders = self.stores.holders(team, &*self.store, manifest)?;
        let image = holders.image(team, &*self.store, manifest)?;
        let owner_of = |segment: &SegmentRef| holders.reader_of(segment);
        let opened = || {
            let image = image?;
            check_fit(core, &image)?;
            let is_remote = |segment: &SegmentRef| owner_of(segment) != rank.0 as usize;
            let store = &*self.store;
            Ok(Rebuild::open_sharing(store, &self.header, image, threads, is_remote)?)
        };
        let unproven = team.agree(opened())?;
        let (hash, page_bytes) = (unproven.image().hash, unproven.image().page_bytes);
        let source =
            Source { store: &*self.store, header: &self.header, hash, page_bytes, threads };
        let mut exchange = match size {
            1 => None,
            _ => Some(Exchange::start(team, source, &unproven, owner_of)?),
        };
        let hashes = exchange.as_ref().map_or(Ok(Vec::new()), Exchange::hashes);
        let proven = hashes.and_then(|hashes| Ok(unproven.prove(hashes)?));
        let served = exchange.as_ref().map_or(Ok(()), Exchange::check);
        let rebuild = team.agree(served.and(proven))?;
        let unclaimed = unclaimed(core, &rebuild);
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
        let sink = team.agree(sink)?;
        let fetched = match &mut exchange {
            Some(exchange) => exchange.pages(&rebuild, &sink, |region| wanted[region]),
            None => Ok(()),
        };
        let own = rebuild
            .rebuild(&sink, |region| wanted[region], &AtomicU64::new(0))
            .map_err(Error::from);
        team.agree(own.and(fetched).and(sink.finish()))?;
        drop(sink);
        drop(exchange);
        match self.config().config.ring {
            // Shards are made of what a rank's own store has: the next checkpoint leans on nothing
            // that lies elsewhere.
            config::Ring::Auto if !holders.are_at_home(manifest) => core.distrust(manifest),
            _ => core.restored(rebuild),
        }
        Ok(Back { unclaimed, notes: rebuilt.notes() })
    }

    /// Size of a region of this rank in a checkpoint.
    pub fn recovered_bytes(&self, version: Version, region: &str) -> Result<u64> {
        let image = self.image(version)?;
        let found = image.region(region).ok_or_else(|| no_region(version, region))?;
        Ok(found.bytes)
    }

    /// The image of this rank in a checkpoint: names and sizes of its regions.
    pub fn image(&self, version: Version) -> Result<Image> {
        let rank = self.core().team.rank();
        self.image_of(version, rank)
    }

    /// The image of any rank in a checkpoint, also of a job that had more ranks or fewer.
    pub fn image_of(&self, version: Version, rank: Rank) -> Result<Image> {
        let mut core = self.core();
        if core.settle_alone() {
            let manifest = core.inventory().checkpoint(version)?;
            return Ok(read_image(&*self.store, manifest, rank)?);
        }
        drop(core);
        // One is under way that only all ranks together can finish: the store knows the others.
        let inventory = Inventory::read(&*self.store)?;
        Ok(read_image(&*self.store, inventory.checkpoint(version)?, rank)?)
    }

    /// Reads one region of a checkpoint into a buffer of its size.
    pub fn recover(&self, version: Version, region: &str, buf: &mut [u8]) -> Result<()> {
        let rank = self.core().team.rank();
        self.recover_of(version, rank, region, buf)
    }

    /// Reads one region of any rank in a checkpoint into a buffer of its size: how a program comes
    /// back with another number of ranks. Each rank may ask for what it likes, when it likes.
    pub fn recover_of(
        &self,
        version: Version,
        rank: Rank,
        region: &str,
        buf: &mut [u8],
    ) -> Result<()> {
        let image = self.image_of(version, rank)?;
        let at = image.regions.iter().position(|found| found.name == region);
        let at = at.ok_or_else(|| no_region(version, region))?;
        let bytes = image.regions[at].bytes;
        if bytes != buf.len() as u64 {
            let given = buf.len();
            let why = format!("region {region:?} has {bytes} bytes, the buffer has {given}");
            return Err(Error::Unfit { version, why });
        }
        self.read_region(image, at, buf).inspect_err(|error| {
            let mut core = self.core();
            if !core.settle_alone() {
                return;
            }
            // It may have been pruned in the meantime, and then nothing leans on it.
            let manifest = core.inventory().checkpoint(version).ok().cloned();
            if let Some(manifest) = manifest.filter(|_| is_of_segment(error)) {
                core.distrust(&manifest);
            }
        })
    }

    fn read_region(&self, image: Image, at: usize, buf: &mut [u8]) -> Result<()> {
        let _lock = self.store.lock(Lock::ReadShared)?;
        // Any number of ranks may be asking.
        let threads = self.restart_threads(usize::MAX);
        let rebuild = Rebuild::open(&*self.store, &self.header, image, threads)?;
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
    pub(crate) fn restart_threads(&self, sharing: usize) -> usize {
        let config = &self.config().config;
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let share = if config.threads == 0 { cores / sharing } else { 0 };
        config.io_threads.max(config.threads()).max(share)
    }
}

/// The regions of an image that the program has not protected.
pub(crate) fn unclaimed(core: &Core, rebuild: &Rebuild) -> Vec<String> {
    let regions = rebuild.image().regions.iter();
    let left = regions.filter(|region| core.regions.get(&region.name).is_none());
    left.map(|region| region.name.clone()).collect()
}

/// Whether an older checkpoint may do better: no rank's failure is of a kind that going back would
/// only hide.
fn passable(team: &Team, error: &Error) -> Result<bool> {
    let of_store = !matches!(error, Error::Device(_));
    let own = of_store && matches!(error.kind(), Kind::Corrupt | Kind::Missing | Kind::Io);
    let [all] = team.all_hold([own])?;
    Ok(all)
}

/// All ranks must go back to one checkpoint.
fn agree_on_version(core: &Core, version: Option<Version>) -> Result<()> {
    let all = core.team.gather_all(Ok(version))?;
    match all.iter().position(|other| *other != all[0]) {
        None => Ok(()),
        Some(rank) => {
            let name = |version: Option<Version>| {
                version.map_or("the newest checkpoint".into(), |version| {
                    format!("checkpoint {version}")
                })
            };
            let (first, other) = (name(all[0]), name(all[rank]));
            Err(Error::Disagree(format!("rank 0 restarts from {first}, rank {rank} from {other}")))
        }
    }
}

/// A restart brings every rank back to its own image.
pub(crate) fn check_ranks(manifest: &Manifest, size: usize) -> Result<()> {
    if manifest.ranks as usize == size {
        return Ok(());
    }
    let (then, version) = (manifest.ranks, manifest.version);
    let why = format!(
        "it was taken by {then} ranks and this job has {size}; read its regions rank by rank to spread them anew"
    );
    Err(Error::Unfit { version, why })
}

/// Whether a segment, not only metadata, could not be read.
fn is_of_segment(error: &Error) -> bool {
    use standfast_restart::Error as E;
    matches!(error, Error::Restart(E::Pack(_) | E::Page { .. }))
}

fn no_region(version: Version, region: &str) -> Error {
    standfast_restart::Error::NoRegion { version, region: region.into() }.into()
}

/// Every protected region must be in the image, with its size.
pub(crate) fn check_fit(core: &Core, image: &Image) -> Result<()> {
    for region in core.regions.iter() {
        let unfit = |why: String| Err(Error::Unfit { version: image.version, why });
        match image.region(region.name()) {
            None => return unfit(format!("it has no region {:?}", region.name())),
            Some(found) if found.bytes != region.bytes() as u64 => {
                return unfit(format!(
                    "region {:?} has {} bytes there and {} here",
                    region.name(),
                    found.bytes,
                    region.bytes()
                ));
            }
            Some(_) => {}
        }
    }
    Ok(())
}
