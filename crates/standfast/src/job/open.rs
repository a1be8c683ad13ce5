//! Opening a job: stores, agent and committer, for one rank or for a team.
//!
//! Data: settings -> the place of the store -> [`Job`], the same on all ranks.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use standfast_capture::{Regions, Requests};
use standfast_comm::{Collective, Comm, Step};
use standfast_commit::Publisher;
use standfast_store::Store;

use super::Job;
use super::core::Core;
use crate::agent;
use crate::ask::Asked;
use crate::checkpoint::capture::Capturer;
use crate::checkpoint::commit::CommitSettings;
use crate::checkpoint::committer::Committer;
use crate::config::{Loaded, key};
use crate::error::{Error, Phase, Result};
use crate::global::{self, Floor};
use crate::interval::Pace;
use crate::location;
use crate::progress::Board;
use crate::ring;
use crate::stores;

/// Settings that shape what ranks write together, and in which calls they talk.
const COMMON_SETTINGS: [&str; 17] = [
    "store",
    "job",
    "page",
    "hash",
    "mode",
    "strategy",
    "threshold",
    "capture",
    "restart",
    "keep",
    "local_bytes",
    "global",
    "ring",
    "ring_group",
    "ring_shards",
    "ring_arithmetic",
    "write",
];

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
        Ok(Self::open_ranks(loaded, store, Collective::solo(), true)?)
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
        let team = Collective::new(comm.duplicate()?);
        let store = open_place(&team, &loaded)?;
        Ok(Self::open_ranks(loaded, store, team, true)?)
    }

    /// As [`Job::open_comm`], each rank with its own access to a store: one for all, or one for
    /// each node.
    pub fn open_store_comm(loaded: Loaded, store: Arc<dyn Store>, comm: &dyn Comm) -> Result<Self> {
        let team = Collective::new(comm.duplicate()?);
        agree_on_settings(&team, &loaded)?;
        Ok(Self::open_ranks(loaded, store, team, false)?)
    }

    /// Opens a job on a store of the caller's making.
    pub fn open_store(loaded: Loaded, store: Arc<dyn Store>) -> Result<Self> {
        Ok(Self::open_ranks(loaded, store, Collective::solo(), false)?)
    }

    /// `located`: whether the store is the configured one, which an agent can open too.
    fn open_ranks(
        loaded: Loaded,
        store: Arc<dyn Store>,
        team: Collective,
        located: bool,
    ) -> Phase<Self> {
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
        let ring = ring::protection(&team, config, &stores)?;
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
        let background = team.beside()?;
        let mut floor = Floor::default();
        if inventory.checkpoints.is_empty() {
            floor.raise(&global::ask(&team, config, &header, true)?.checkpoints);
        }
        let core = Core {
            regions: Regions::default(),
            cells: Vec::new(),
            device: None,
            capturer: Some(capturer),
            search: None,
            under_way: None,
            committer: Committer::start(settings, background),
            lazy: None,
            allocations: Vec::new(),
            team,
            store: Arc::clone(&store),
            inventory: Some(inventory),
            suspects: Vec::new(),
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
            lock,
        })
    }
}

/// The configured store: the first rank makes the place, the others find it.
fn open_place(team: &Collective, loaded: &Loaded) -> Phase<Arc<dyn Store>> {
    let config = &loaded.config;
    team.agree(Step("open: check"), config.check().map_err(Error::Config))?;
    agree_on_settings(team, loaded)?;
    let mut made = None;
    team.tell(Step("open: place"), || {
        made = Some(location::open_job(config)?);
        Ok::<_, Error>(())
    })?;
    let store = made.map_or_else(|| location::open_job(config), Ok);
    team.agree(Step("open: store"), store)
}

/// All ranks must open the job with the same settings, where they shape what is common.
fn agree_on_settings(team: &Collective, loaded: &Loaded) -> Phase<()> {
    let show = |name: &str| key(name).map(|key| (key.show)(&loaded.config)).unwrap_or_default();
    let own: Vec<String> = COMMON_SETTINGS.iter().map(|name| show(name)).collect();
    let first = team.tell(Step("open: settings"), || Ok::<_, Error>(own.clone()))?;
    let differing =
        COMMON_SETTINGS.iter().zip(own.iter().zip(first.iter())).find(|(_, (a, b))| a != b);
    let same = match differing {
        None => Ok(()),
        Some((name, (own, first))) => Err(Error::Disagree(format!(
            "{name} is {first:?} on rank 0 and {own:?} on rank {}",
            team.rank()
        ))),
    };
    team.agree(Step("open: same settings"), same)
}
