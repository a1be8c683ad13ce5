//! Restarting a job: the newest checkpoint that is whole, or a given one, back into memory.
//!
//! Data: what all levels have, newest first -> image -> does it fit the protected regions? -> rebuild
//! ([`crate::read_back`]), each part from the nearest level that has it.
//!
//! The ranks of a job go back together: to the newest checkpoint that all of them can restore.
//!
//! A damaged checkpoint is passed over for the next older one, and the reason is told. One that
//! does not fit the program is an error instead: going back further would hide a mistake.
//!
//! With `restart = lazy` pages arrive later ([`crate::arrive`]), unless the checkpoint is in doubt
//! ([`crate::doubt`]).
//!
//! Invariants:
//! - A region receives only verified pages. After an error regions hold a mixture of old and new
//!   pages: the program must not go on with them.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use standfast_comm::{Collective, Failed, Step};
use standfast_format::{Image, Kind, Level, Manifest, Rank, SegmentId, Version};
use standfast_restart::{Inventory, MemorySink, Rebuild, read_image};
use standfast_store::{Lock, Store};

use crate::arrive::{Arrival, eager_note};
use crate::doubt::Doubt;
use crate::error::{Error, Phase, Result, Stop};
use crate::global;
use crate::job::{Core, Job};
use crate::sources::{self, Found};

/// What a restart came back to.
#[derive(Clone, Debug)]
pub struct Restarted {
    /// The checkpoint that was restored.
    pub version: Version,
    /// Newer checkpoints that could not be used, newest first, with the reason.
    pub passed_over: Vec<(String, String)>,
    /// Regions of the checkpoint that the program has not protected.
    pub unclaimed: Vec<String>,
    /// What else the program should know: which levels the ranks came back from, where that is not
    /// the nearest one, or why pages did not arrive lazily.
    pub notes: Vec<String>,
    /// The farthest level that each rank's part came from, by rank.
    pub levels: Vec<Level>,
}

/// What is to be told of a checkpoint that was read back.
pub(crate) struct Back {
    pub(crate) unclaimed: Vec<String>,
    pub(crate) notes: Vec<String>,
    pub(crate) levels: Vec<Level>,
}

impl Job {
    /// Restores every protected region from a checkpoint: the given one, or the newest that is
    /// whole. `Kind::Missing` means that there is nothing to restart from: a fresh start.
    pub fn restart(&self, version: Option<Version>) -> Result<Restarted> {
        let _busy = standfast_checkpoint::busy::hold(&*self.store);
        let mut core = self.core();
        core.settle();
        self.can_talk()?;
        core.rest_tracking();
        let cells = core.cells.clone();
        let ready = || {
            core.inventory()?;
            let lock = self.store.lock(Lock::ReadShared)?;
            Ok((lock, crate::protected::hold_all_mut(&cells)?))
        };
        let _held = core.team.agree(Step("restart"), ready())?;
        Ok(self.restart_together(&mut core, version)?)
    }

    fn restart_together(&self, core: &mut Core, version: Option<Version>) -> Phase<Restarted> {
        let version = agree_on_version(&core.team, version)?;
        let nothing_near = core.inventory()?.checkpoints.is_empty();
        let config = &self.config().config;
        let offer = global::ask(&core.team, config, &self.header, nothing_near)?;
        core.floor.raise(&offer.checkpoints);
        let found = sources::merge(core.inventory()?, &offer.checkpoints);
        let mut restarted = match version {
            Some(version) => {
                let one = found.into_iter().find(|found| found.manifest().version == version);
                // It says why the nodes have none.
                let one = one.map_or_else(|| only_local(core.inventory()?, version), Ok);
                let one = core.team.agree(Step("restart: checkpoint"), one)?;
                let back = self.restore(core, &one, false)?;
                restarted(version, Vec::new(), back)
            }
            None => self.restart_newest(core, found, offer.damaged)?,
        };
        let unknown = offer.unknown.map(|why| format!("global storage was not asked: {why}"));
        restarted.notes.extend(unknown);
        Ok(restarted)
    }

    fn restart_newest(
        &self,
        core: &mut Core,
        found: Vec<Found>,
        damaged_far: Vec<(String, String)>,
    ) -> Phase<Restarted> {
        let mut passed_over: Vec<(String, String)> = core
            .inventory()?
            .damaged
            .iter()
            .map(|damaged| (damaged.object.clone(), damaged.error.to_string()))
            .collect();
        passed_over.extend(damaged_far);
        let mut newer_failed = false;
        for one in found {
            let version = one.manifest().version;
            match self.restore(core, &one, newer_failed) {
                Ok(back) => return Ok(restarted(version, passed_over, back)),
                Err(stop) => {
                    let why = passable(&core.team, stop)?;
                    passed_over.push((format!("checkpoint {version}"), why.error().to_string()));
                    newer_failed = true;
                }
            }
        }
        let job = self.header.job.clone();
        let none = match passed_over.is_empty() {
            true => Error::NoCheckpoint { job },
            false => Error::NoneRestorable { job, reasons: passed_over },
        };
        core.team.agree(Step("restart: none"), Err(none))
    }

    fn restore(&self, core: &mut Core, found: &Found, newer_failed: bool) -> Phase<Back> {
        let back = match self.read_back(core, found, newer_failed) {
            Err(Stop::Failed(why)) => {
                // What one rank finds damaged no rank may lean on.
                if is_of_segment(why.error()) || core.team.size() > 1 {
                    core.distrust(segments_of(found.manifest()))?;
                }
                return Err(why.into());
            }
            back => back?,
        };
        self.pace().start_again(self.since_open());
        Ok(back)
    }

    fn read_back(&self, core: &mut Core, found: &Found, newer_failed: bool) -> Phase<Back> {
        let doubt = self.doubt(core, found, newer_failed)?;
        let why_eager = match (&found.local, &doubt) {
            (Some(local), None) => match self.arrive(core, local)? {
                Arrival::Begun(back) => return Ok(back),
                Arrival::None(why) => why,
            },
            (_, doubt) => doubt.as_ref().map(Doubt::to_string),
        };
        let mut back = self.read_back_eagerly(core, found)?;
        back.notes.extend(why_eager.iter().map(|why| eager_note(why)));
        if let (Some(local), Some(Doubt::Marked(_))) = (&found.local, doubt) {
            self.dispel(local, &mut back);
        }
        Ok(back)
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
        let (store, manifest) = self.nearest(version)?;
        let image = read_image(&*store, &manifest, rank)?;
        let at = image.regions.iter().position(|found| found.name == region);
        let at = at.ok_or_else(|| no_region(version, region))?;
        let bytes = image.regions[at].bytes;
        if bytes != buf.len() as u64 {
            let given = buf.len();
            let why = format!("region {region:?} has {bytes} bytes, the buffer has {given}");
            return Err(Error::Unfit { version, why });
        }
        self.read_region(&*store, image, at, buf).inspect_err(|error| {
            if is_of_segment(error) && Arc::ptr_eq(&store, &self.store) {
                self.core().suspects.extend(segments_of(&manifest));
            }
        })
    }

    fn read_region(
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
    pub(crate) fn restart_threads(&self, sharing: usize) -> usize {
        let config = &self.config().config;
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let share = if config.threads == 0 { cores / sharing } else { 0 };
        config.io_threads.max(config.threads()).max(share)
    }
}

fn restarted(version: Version, passed_over: Vec<(String, String)>, back: Back) -> Restarted {
    let Back { unclaimed, notes, levels } = back;
    Restarted { version, passed_over, unclaimed, notes, levels }
}

/// The regions of an image that the program has not protected.
pub(crate) fn unclaimed(core: &Core, rebuild: &Rebuild) -> Vec<String> {
    let regions = rebuild.image().regions.iter();
    let left = regions.filter(|region| core.regions.get(&region.name).is_none());
    left.map(|region| region.name.clone()).collect()
}

/// The failure, where something else may do better, such as an older checkpoint: no rank's failure
/// is of a kind that going back would only hide.
pub(crate) fn passable(team: &Collective, stop: Stop) -> Phase<Failed<Error>> {
    let Stop::Failed(why) = stop else { return Err(stop) };
    let of_store = !matches!(why.error(), Error::Device(_));
    let kind = why.error().kind();
    let own = of_store && matches!(kind, Kind::Corrupt | Kind::Missing | Kind::Io);
    let [all] = *team.all_hold(Step("restart: passable"), [own])?;
    if all { Ok(why) } else { Err(why.into()) }
}

fn only_local(inventory: &Inventory, version: Version) -> Result<Found> {
    Ok(Found { local: Some(inventory.checkpoint(version)?.clone()), global: None })
}

/// All ranks must go back to one checkpoint.
fn agree_on_version(team: &Collective, version: Option<Version>) -> Phase<Option<Version>> {
    let all = team.collect(Step("restart: version"), version)?;
    Ok(all.map(common_version).decide()?.into_inner())
}

fn common_version(all: Vec<Option<Version>>) -> Result<Option<Version>> {
    match all.iter().position(|other| *other != all[0]) {
        None => Ok(all[0]),
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

/// The segments of a checkpoint: which of them is damaged, the first failure does not tell.
pub(crate) fn segments_of(manifest: &Manifest) -> impl Iterator<Item = SegmentId> {
    manifest.segments.iter().map(|segment| segment.id)
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
