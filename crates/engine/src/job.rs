//! A job: the library's face. Protect memory, checkpoint it, come back to it.
//!
//! A job of several ranks opens its stores together, one for all or one for each node
//! ([`crate::stores`]); every rank writes its own segments and image.
//!
//! Invariants:
//! - One job at a time writes to a store: the writer lock is held from opening to closing.
//! - Opening a store removes what a crashed predecessor left half-made, and nothing else.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use standfast_capture::{Memory, Region, Regions, Requests};
use standfast_comm::{Comm, Concurrency};
use standfast_commit::{Publisher, refresh};
use standfast_format::{
    AttemptId, Kind, Level, Manifest, Rank, SegmentId, StoreHeader, Version, name,
};
use standfast_restart::{Inventory, Rebuild};
use standfast_store::{LockGuard, Store};

use crate::agent;
use crate::ask::Asked;
use crate::checkpoint::capture::Capturer;
use crate::checkpoint::commit::{CommitSettings, Committed, Committer, Work};
use crate::checkpoint::device::{SharedDevice, lock_device};
use crate::checkpoint::draft::{Draft, Order};
use crate::checkpoint::snapshot::UnderWay;
use crate::checkpoint::stop::Captured;
use crate::checkpoint::told::Holdings;
use crate::config::{Loaded, key};
use crate::error::{Error, Result};
use crate::global::{self, Floor};
use crate::identity;
use crate::interval::Pace;
use crate::lazy::Lazy;
use crate::location;
use crate::progress::{Board, Progress};
use crate::protected::Cell;
use crate::report::Report;
use crate::ring;
use crate::room;
use crate::stores::{self, Stores};
use crate::team::Team;

/// A running program's connection to its checkpoints.
///
/// All methods may be called from any thread; checkpoints and restarts are made one at a time.
pub struct Job {
    board: Arc<Board>,
    pub(crate) core: Arc<Mutex<Core>>,
    loaded: Loaded,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) header: StoreHeader,
    opened: Instant,
    pace: Mutex<Pace>,
    /// What a signal asks for, where one may.
    pub(crate) requests: Option<Requests>,
    pub(crate) asked: Option<Asked>,
    pub(crate) stores: Stores,
    pub(crate) multiplier: ring::Multiplier,
    /// Held by the leaders of stores for all.
    _lock: Option<LockGuard>,
}

/// What checkpoints and restarts work on, one at a time.
pub(crate) struct Core {
    pub(crate) regions: Regions,
    /// Memory that safe code may be using: asked before it is read or filled.
    pub(crate) cells: Vec<(String, Arc<dyn Cell>)>,
    pub(crate) team: Team,
    store: Arc<dyn Store>,
    /// The device on which regions lie, once there is one.
    pub(crate) device: Option<SharedDevice>,
    /// `None` while a snapshot is being taken in: it travels with the snapshot.
    capturer: Option<Capturer>,
    under_way: Option<UnderWay>,
    committer: Committer,
    /// A restart whose pages are still arriving.
    pub(crate) lazy: Option<Lazy>,
    /// Memory that the job owns, by region, with its alignment. Goes after the committer, which may
    /// still be reading it.
    pub(crate) allocations: Vec<(String, Memory, usize)>,
    /// `None` while a draft is being committed: it travels with the draft.
    inventory: Option<Inventory>,
    /// What levels beyond the stores of the nodes have seen.
    pub(crate) floor: Floor,
    reports: Vec<Report>,
}

/// How many reports of this process are kept.
const REPORTS: usize = 64;

impl Job {
    /// Opens (or makes) the job's store, from file and environment and these settings.
    pub fn open(settings: &[(&str, &str)]) -> Result<Self> {
        let owned: Vec<(String, String)> =
            settings.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
        Self::open_loaded(Loaded::load(&owned)?)
    }

    /// Opens (or makes) the store of a configuration.
    pub fn open_loaded(loaded: Loaded) -> Result<Self> {
        let config = &loaded.config;
        config.check().map_err(Error::Config)?;
        let store = location::open_job(config)?;
        Self::open_team(loaded, store, Team::solo(), true)
    }

    /// Opens (or makes) the store of a job of several ranks. Every rank calls it with the same
    /// settings and its own end of one communicator, which is duplicated and may be used by the
    /// program as before.
    ///
    /// From then on these calls are collective, that is, made by all ranks in the same order:
    /// [`Job::checkpoint`], [`Job::restart`], [`Job::point`], [`Job::finish`], [`Job::close`], and,
    /// unless the communicator may be used by any thread, [`Job::wait`], [`Job::list`] and
    /// [`Job::report`]. Where one rank fails, all fail.
    pub fn open_comm(loaded: Loaded, comm: &dyn Comm) -> Result<Self> {
        let team = Team::new(comm.duplicate()?);
        let checked = loaded.config.check().map_err(Error::Config);
        team.agree(checked)?;
        agree_on_settings(&team, &loaded)?;
        let config = &loaded.config;
        // The first rank makes the place, the others find it.
        let first = team.is_first().then(|| location::open_job(config));
        let made = first.as_ref().map(|made| made.as_ref().map(|_| ()).map_err(Clone::clone));
        team.tell(made)?;
        let store = match first {
            Some(made) => made,
            None => location::open_job(config),
        };
        let store = team.agree(store)?;
        Self::open_team(loaded, store, team, true)
    }

    /// As [`Job::open_comm`], each rank with its own access to a store: one for all, or one for
    /// each node.
    pub fn open_store_comm(loaded: Loaded, store: Arc<dyn Store>, comm: &dyn Comm) -> Result<Self> {
        let team = Team::new(comm.duplicate()?);
        agree_on_settings(&team, &loaded)?;
        Self::open_team(loaded, store, team, false)
    }

    /// Opens a job on a store of the caller's making.
    pub fn open_store(loaded: Loaded, store: Arc<dyn Store>) -> Result<Self> {
        Self::open_team(loaded, store, Team::solo(), false)
    }

    /// `located`: whether the store is the configured one, which an agent can open too.
    fn open_team(loaded: Loaded, store: Arc<dyn Store>, team: Team, located: bool) -> Result<Self> {
        let config = &loaded.config;
        if located {
            agent::flush(config, &*store);
        }
        let stores::Opened { stores, lock, inventory } =
            stores::open(&team, &store, &config.job, || global::header(config))?;
        let header = inventory.header.clone();
        let board = Arc::new(Board::default());
        let publisher = Publisher {
            store: Arc::clone(&store),
            job: header.id,
            hash: config.hash,
            page_bytes: config.page.0 as u32,
            keep: config.keep,
            node: location::node(config),
            every: if config.global.is_empty() { config.keep_every } else { 0 },
        };
        let ring = team.agree(ring::protection(&team, config, &stores))?;
        let multiplier = ring::Multiplier::new(config.ring_arithmetic);
        let settings = CommitSettings {
            publisher,
            board: Arc::clone(&board),
            stores: stores.clone(),
            ring,
            multiplier: multiplier.clone(),
        };
        let mut capturer = Capturer::new(config, Arc::clone(&store), &header, &team);
        if located {
            match agent::connect(&loaded, &store, &header, lock.as_ref(), &team, &stores)? {
                Ok(link) => capturer.use_agent(link, &stores),
                Err(Some(why)) => capturer.note_no_agent(&why),
                Err(None) => {}
            }
        }
        let background = match team.comm().concurrency() {
            _ if team.size() == 1 => Some(Team::solo()),
            Concurrency::AnyThread => Some(team.duplicate()?),
            Concurrency::CallerOnly => None,
        };
        let mut floor = Floor::default();
        if inventory.checkpoints.is_empty() {
            floor.raise(&global::ask(&team, config, &header, true)?.checkpoints);
        }
        let core = Core {
            regions: Regions::default(),
            cells: Vec::new(),
            device: None,
            capturer: Some(capturer),
            under_way: None,
            committer: Committer::start(settings, background),
            lazy: None,
            allocations: Vec::new(),
            team,
            store: Arc::clone(&store),
            inventory: Some(inventory),
            floor,
            reports: Vec::new(),
        };
        let core = Arc::new(Mutex::new(core));
        let pace = Mutex::new(Pace::new(config));
        let opened = Instant::now();
        let requests = config.signal.map(Requests::by);
        let asked = Some(config.ask.as_str()).filter(|path| !path.is_empty()).and_then(Asked::open);
        Ok(Self {
            board,
            core,
            loaded,
            store,
            header,
            opened,
            pace,
            requests,
            asked,
            stores,
            multiplier,
            _lock: lock,
        })
    }

    /// The configuration in effect.
    pub fn config(&self) -> &Loaded {
        &self.loaded
    }

    /// Protects memory under a name. `elem` is the size of its elements (8 for doubles) or 0 if
    /// unknown; it only helps compression.
    ///
    /// # Safety
    /// Until [`Job::unprotect`] the memory must stay mapped, readable and writable. While
    /// [`Job::checkpoint`], [`Job::restart`] or [`Job::recover`] runs, no other thread may write
    /// to it, and while a restart fills it, no other thread may read it either.
    pub unsafe fn protect(&self, name: &str, start: *mut u8, bytes: usize, elem: u8) -> Result<()> {
        // SAFETY: the caller vouches for the memory.
        Ok(unsafe { self.core().regions.protect(name, start, bytes, elem) }?)
    }

    /// Ends the protection of a region.
    pub fn unprotect(&self, name: &str) -> Result<()> {
        self.core().unprotect(name)
    }

    /// Takes a checkpoint of every protected region and returns its version as soon as the
    /// program may go on. `None` takes the version after the largest so far. A version that
    /// exists is replaced when the new one is durable.
    ///
    /// The call waits while the previous checkpoint is still being written, and while the pool
    /// is full. [`Job::wait`] tells when the checkpoint is durable. If an earlier checkpoint
    /// failed and nobody has asked for its fate, the call takes none and tells that failure
    /// ([`Error::Earlier`]); the next call takes one again.
    pub fn checkpoint(&self, version: Option<Version>) -> Result<Version> {
        self.take(&mut self.core(), version)
    }

    /// How far a checkpoint has come.
    pub fn poll(&self, version: Version) -> Result<Progress> {
        if let Some(progress) = self.board.get(version) {
            return Ok(progress);
        }
        self.stored_level(version).map(Progress::Done)
    }

    /// Waits until a checkpoint has reached a level; fails if it failed.
    pub fn wait(&self, version: Version, level: Level) -> Result<()> {
        if self.board.knows(version) {
            let mut core = self.core();
            // Nobody else could bring it further.
            if level > Level::Memory && core.finishes_in_calls() {
                core.settle();
            }
            drop(core);
            return self.board.wait(version, level);
        }
        let reached = self.stored_level(version)?;
        if reached < level {
            return Err(Error::Unreachable { version, reached, wanted: level });
        }
        Ok(())
    }

    /// The report of a checkpoint that this process has made durable.
    pub fn report(&self, version: Version) -> Result<Report> {
        let mut core = self.core();
        core.settle();
        let found = core.reports.iter().rev().find(|report| report.version == version);
        found.cloned().ok_or(Error::UnknownVersion { version })
    }

    /// The committed checkpoints, newest first.
    pub fn list(&self) -> Vec<Manifest> {
        let mut core = self.core();
        core.settle();
        core.inventory().checkpoints.clone()
    }

    /// How changed pages are found: `uffd`, `mprotect` or `hash`.
    pub fn tracker(&self) -> &'static str {
        self.core().settled_capturer().tracker()
    }

    /// Memory that bookkeeping holds, in bytes: the catalog of stored pages and the hashes by
    /// position. The pool comes on top.
    pub fn bookkeeping_bytes(&self) -> usize {
        self.core().settled_capturer().bytes()
    }

    /// Finishes what is under way and closes the store; fails with a failure that no call has
    /// told yet.
    pub fn close(self) -> Result<()> {
        self.finish()
    }

    /// Waits for what is under way; fails with a failure that no call has told yet.
    pub fn finish(&self) -> Result<()> {
        self.core().settle();
        self.board.untold().map_or(Ok(()), Err)
    }

    /// This rank and how many there are.
    pub fn rank(&self) -> (Rank, usize) {
        let core = self.core();
        (core.team.rank(), core.team.size())
    }

    pub(crate) fn core(&self) -> MutexGuard<'_, Core> {
        lock(&self.core)
    }

    /// Takes a checkpoint and notes how long the program was held up.
    pub(crate) fn take(&self, core: &mut Core, version: Option<Version>) -> Result<Version> {
        let _busy = standfast_commit::busy::hold(&*self.store);
        let begun = self.since_open();
        core.settle();
        self.can_talk()?;
        let ready = self.board.untold().map_or(Ok(()), Err);
        let taken = core.checkpoint(version, ready, &self.board);
        let version = taken.inspect_err(|error| self.board.lose(error))?;
        let held_up = self.since_open();
        if core.team.is_first() {
            self.learn_drains();
        }
        self.pace().taken(version, begun, held_up);
        if let Some(requests) = &self.requests {
            requests.answer();
        }
        if let Some(asked) = &self.asked {
            asked.answer(version.0);
        }
        Ok(version)
    }

    /// Fails if other ranks could not be reached while a checkpoint was committed: calls of all
    /// ranks make no sense any more.
    pub(crate) fn can_talk(&self) -> Result<()> {
        self.board.can_talk()
    }

    /// Whether a checkpoint of this process is still being written.
    pub(crate) fn is_under_way(&self, version: Version) -> bool {
        self.board.is_under_way(version)
    }

    pub(crate) fn pace(&self) -> MutexGuard<'_, Pace> {
        // Its few fields are whole at any time.
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn since_open(&self) -> Duration {
        self.opened.elapsed()
    }

    fn stored_level(&self, version: Version) -> Result<Level> {
        match self.store.open(&name::manifest(version, Level::Local)) {
            Ok(_) => {
                let inventory = Inventory::read(&*self.store)?;
                Ok(ring::level(&*self.store, inventory.checkpoint(version)?))
            }
            Err(error) if error.kind() == Kind::Missing => Err(Error::UnknownVersion { version }),
            Err(error) => Err(error.into()),
        }
    }
}

pub(crate) fn lock(core: &Mutex<Core>) -> MutexGuard<'_, Core> {
    // A panic elsewhere leaves the table of regions whole; a checkpoint cut short by it is
    // simply not there.
    core.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Core {
    pub(crate) fn unprotect(&mut self, name: &str) -> Result<()> {
        self.wait_taken();
        let region = self.regions.get(name).and_then(Region::device);
        self.regions.unprotect(name)?;
        if let (Some(region), Some(device)) = (region, &self.device) {
            lock_device(device).release(region);
        }
        self.cells.retain(|(of, _)| of != name);
        Ok(())
    }

    /// Whether a region lies on pages of its own.
    pub(crate) fn owns_pages(&self, name: &str) -> bool {
        self.cells.iter().any(|(of, _)| of == name)
            || self.allocations.iter().any(|(of, ..)| of == name)
    }

    /// Waits until everything of a lazy restart has arrived, and takes it in.
    fn finish_arrival(&mut self) {
        if let Some(lazy) = self.lazy.take() {
            let rebuild = lazy.finish();
            self.restored(rebuild);
        }
    }

    /// Waits until nobody reads or fills memory any more: it may be gone right after this.
    pub(crate) fn wait_taken(&mut self) {
        self.finish_arrival();
        if let Some(under_way) = &self.under_way {
            under_way.wait_taken();
        }
    }

    /// Waits for the checkpoint under way, if any, and takes in what became of it; the progress
    /// board tells it to the program.
    pub(crate) fn settle(&mut self) {
        self.finish_arrival();
        if self.inventory.is_some() {
            return;
        }
        let (settled, inventory) = self.committer.settle(&self.team);
        self.inventory = Some(inventory);
        if let Some(under_way) = self.under_way.take() {
            self.capturer = Some(under_way.capturer());
        }
        match settled.outcome {
            Ok(Committed { segments, removed, places, report }) => {
                self.capturer().committed(&segments, &removed, &places);
                self.reports.push(report);
                if self.reports.len() > REPORTS {
                    self.reports.remove(0);
                }
            }
            Err(_) => self.capturer().forget_attempt(&settled.begun),
        }
    }

    /// Takes in that a checkpoint could not be read back: later ones must not lean on what is
    /// damaged. Which of its segments that is, the first failure does not tell.
    pub(crate) fn distrust(&mut self, manifest: &Manifest) {
        self.capturer().distrust(manifest.segments.iter().map(|segment| segment.id));
    }

    /// Takes in that no node has these segments: later checkpoints must not lean on them.
    pub(crate) fn distrust_segments(&mut self, segments: impl Iterator<Item = SegmentId>) {
        self.capturer().distrust(segments);
    }

    /// Remembers what a restart has put into memory.
    pub(crate) fn restored(&mut self, rebuild: Rebuild) {
        self.capturer().restored(rebuild);
    }

    /// Prepares for memory being overwritten as a whole.
    pub(crate) fn rest_tracking(&mut self) {
        self.capturer().rest();
    }

    fn capturer(&mut self) -> &mut Capturer {
        self.capturer.as_mut().expect("settled")
    }

    fn settled_capturer(&mut self) -> &Capturer {
        if self.capturer.is_none() {
            self.settle();
        }
        self.capturer()
    }

    pub(crate) fn inventory(&self) -> &Inventory {
        self.inventory.as_ref().expect("settled")
    }

    /// Whether a checkpoint is finished inside of the program's calls only.
    fn finishes_in_calls(&self) -> bool {
        self.team.size() > 1 && self.team.comm().concurrency() == Concurrency::CallerOnly
    }

    /// Settles if this rank can do that by itself; false if all ranks must come together for it.
    pub(crate) fn settle_alone(&mut self) -> bool {
        let together = self.finishes_in_calls() && self.inventory.is_none();
        if !together {
            self.settle();
        }
        !together
    }

    /// Whether a checkpoint waits for a call of the program to be finished in.
    pub(crate) fn can_settle(&self) -> bool {
        self.finishes_in_calls() && self.inventory.is_none() && self.committer.is_ready()
    }

    /// `ready`: whether this rank may take one at all.
    fn checkpoint(
        &mut self,
        version: Option<Version>,
        ready: Result<()>,
        board: &Board,
    ) -> Result<Version> {
        let cells = self.cells.clone();
        let held = ready.and_then(|()| crate::protected::hold_all(&cells));
        let (held, ready) = match held {
            Ok(held) => (Some(held), Ok(())),
            Err(error) => (None, Err(error)),
        };
        let lost = self.capturer().agent_lost();
        let wanted = ready.and_then(|()| self.choose(version));
        let (mut order, agent_lost) = agree_on_attempt(&self.team, wanted, lost.is_some())?;
        if agent_lost {
            order = self.order_without_agent(version, lost)?;
        }
        self.make_room()?;
        let work = match self.capture(order) {
            Err(error) if self.agent_is_gone(&error)? => {
                let lost = self.capturer().agent_lost();
                order = self.order_without_agent(version, lost)?;
                self.capture(order)?
            }
            work => work?,
        };
        let Order { version, sequence, .. } = order;
        drop(held);
        board.set(version, Progress::Reached(Level::Memory));
        let inventory = self.inventory.take().expect("settled");
        self.committer.submit(work, sequence, inventory);
        Ok(version)
    }
}

impl Core {
    /// Captures all regions. Collective.
    fn capture(&mut self, order: Order) -> Result<Work> {
        let inventory = self.inventory.as_ref().expect("settled");
        let capturer = self.capturer.as_mut().expect("settled");
        // SAFETY: `protect` obliges raw regions to be left alone during this call, and the cells
        // of safe regions are held for reading. Memory goes only after `unprotect`, which waits.
        let frozen = unsafe { capturer.freeze(&self.regions, order, inventory, &self.team) }?;
        if let Some(frozen) = frozen {
            return Ok(self.take_in_behind(order, |capturer, team| capturer.take_in(frozen, team)));
        }
        let device = self.device.as_ref();
        // SAFETY: as above.
        let captured =
            unsafe { capturer.capture(&self.regions, order, inventory, &self.team, device) };
        Ok(match captured? {
            Captured::Draft(draft) => Work::Draft(draft),
            Captured::Staged(staged) => {
                self.take_in_behind(order, |capturer, _| capturer.take_in_staged(*staged))
            }
        })
    }

    /// Whether a capture that failed on all ranks did so where one has lost its agent: without
    /// agents it may succeed, and memory is still as it was. Collective.
    fn agent_is_gone(&mut self, error: &Error) -> Result<bool> {
        if error.is_out_of_reach() {
            return Ok(false);
        }
        let has_agent = self.capturer().agent_lost().is_none();
        let [all_have] = self.team.all_hold([has_agent])?;
        Ok(!all_have)
    }

    /// Goes on without the agent, and orders anew: the store may hold more than this rank knew.
    /// Collective.
    fn order_without_agent(
        &mut self,
        version: Option<Version>,
        lost: Option<Error>,
    ) -> Result<Order> {
        self.dismiss_agent(lost)?;
        let wanted = self.choose(version);
        Ok(agree_on_attempt(&self.team, wanted, false)?.0)
    }

    /// Work for the committer: what is left to take in, with the capturer that does it.
    fn take_in_behind(
        &mut self,
        order: Order,
        take_in: impl FnOnce(&mut Capturer, Option<&Team>) -> Result<Draft> + Send + 'static,
    ) -> Work {
        let capturer = self.capturer.take().expect("settled");
        let (work, under_way) = UnderWay::start(order, capturer, take_in);
        self.under_way = Some(under_way);
        work
    }

    /// The version that a call asks for, and its place in the order of commits.
    fn choose(&self, version: Option<Version>) -> Result<(Version, u64)> {
        let inventory = self.inventory();
        let version = version.unwrap_or_else(|| self.floor.next(inventory.version_max()));
        let newest = inventory.checkpoints.first().map_or(0, |manifest| manifest.sequence);
        let sequence = newest.max(self.floor.sequence).saturating_add(1);
        if version.0 == 0 { Err(Error::VersionZero) } else { Ok((version, sequence)) }
    }

    /// Lets old checkpoints go where the next one may not fit beside them. Collective.
    fn make_room(&mut self) -> Result<()> {
        let inventory = self.inventory.as_mut().expect("settled");
        let capturer = self.capturer.as_mut().expect("settled");
        let (stores, bytes) = (self.committer.stores(), self.regions.bytes());
        let config = capturer.config();
        let made = room::make(&self.team, &*self.store, stores, config, inventory, bytes)?;
        if !made.is_empty() {
            capturer.committed(&[], &made, &[]);
        }
        Ok(())
    }

    /// Goes on without the agent, which this or another rank has lost. Collective.
    fn dismiss_agent(&mut self, lost: Option<Error>) -> Result<()> {
        let inventory = self.inventory.as_mut().expect("settled");
        // What the agent did last, the store knows, and the first rank asks for all.
        let first = self.team.is_first().then(|| {
            refresh(&*self.store, inventory);
            Ok(Holdings::of(inventory))
        });
        self.team.tell(first)?.take_in(inventory);
        let why = lost.map_or_else(|| "another rank has lost it".into(), |lost| lost.to_string());
        let capturer = self.capturer.as_mut().expect("settled");
        capturer.dismiss_agent(&self.team, &why);
        // No agent writes for this job any more, once all ranks have left theirs.
        self.team.agree(Ok(()))?;
        let cleaned = self.committer.stores().lead(|| {
            let _ = self.store.discard_unsealed();
            stores::discard_orphans(&*self.store, inventory)
        });
        // What stays goes with the next opening.
        self.team.agree(cleaned.map(drop).or(Ok(())))
    }
}

/// All ranks must ask for one version; the first one's attempt and clock count. Also tells whether
/// any rank has lost the agent; versions may then differ, for ranks know different things.
fn agree_on_attempt(
    team: &Team,
    wanted: Result<(Version, u64)>,
    agent_lost: bool,
) -> Result<(Order, bool)> {
    let own = wanted.and_then(|(version, sequence)| {
        let attempt = AttemptId(identity::bytes()?);
        Ok((Order { version, attempt, taken_ns: identity::now_ns(), sequence }, agent_lost))
    });
    let all = team.gather_all(own)?;
    let agent_lost = all.iter().any(|(_, lost)| *lost);
    let versions: Vec<Version> = all.iter().map(|(order, _)| order.version).collect();
    match versions.iter().position(|version| *version != versions[0]) {
        Some(rank) if !agent_lost => Err(Error::Disagree(format!(
            "rank 0 takes checkpoint {}, rank {rank} takes checkpoint {}",
            versions[0], versions[rank]
        ))),
        _ => Ok((all[0].0, agent_lost)),
    }
}

/// Settings that shape what ranks write together, and in which calls they talk.
const COMMON_SETTINGS: [&str; 15] = [
    "store",
    "job",
    "page",
    "hash",
    "mode",
    "strategy",
    "threshold",
    "capture",
    "restart",
    "global",
    "ring",
    "ring_group",
    "ring_shards",
    "ring_arithmetic",
    "write",
];

fn agree_on_settings(team: &Team, loaded: &Loaded) -> Result<()> {
    let show = |name: &str| key(name).map(|key| (key.show)(&loaded.config)).unwrap_or_default();
    let own: Vec<String> = COMMON_SETTINGS.iter().map(|name| show(name)).collect();
    let first = team.tell(team.is_first().then(|| Ok(own.clone())))?;
    let differing = COMMON_SETTINGS.iter().zip(own.iter().zip(&first)).find(|(_, (a, b))| a != b);
    team.agree(match differing {
        None => Ok(()),
        Some((name, (own, first))) => Err(Error::Disagree(format!(
            "{name} is {first:?} on rank 0 and {own:?} on rank {}",
            team.rank()
        ))),
    })
}
