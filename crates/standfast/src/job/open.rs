//! Opening a job: stores, agent and committer, for one rank or for a team.
//!
//! Data: settings -> the place of the store -> [`Job`], the same on all ranks.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use standfast_capture::{Regions, Requests};
use standfast_checkpoint::Publisher;
use standfast_comm::{Collective, Comm, Step};
use standfast_store::Store;
use standfast_take::Remembered;

use super::core::{Core, Stage};
use super::start::Starts;
use super::{Asked, Job};
use crate::agent;
use crate::checkpoint::commit::CommitSettings;
use crate::checkpoint::committer::Committer;
use crate::checkpoint::settings;
use crate::config::{Choice, Loaded, WhenFull};
use crate::error::{Error, Phase, Result};
use crate::global::{self, Floor};
use crate::history;
use crate::interval::Pace;
use crate::location;
use crate::progress::Board;
use crate::ring;
use crate::run_request::RequestWatch;
use crate::space::Limit;
use crate::stores;

impl Job {
    /// Opens (or makes) the job's store, from file and environment and these settings.
    pub fn open(settings: &[(&str, &str)]) -> Result<Self> {
        let owned: Vec<(String, String)> =
            settings.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
        Self::open_loaded(Loaded::load(&owned)?)
    }

    /// Opens (or makes) the store of a configuration.
    #[doc(hidden)]
    pub fn open_loaded(loaded: Loaded) -> Result<Self> {
        loaded.check_job()?;
        let config = &loaded.config;
        let store = location::open_job(config)?;
        Ok(Self::open_ranks(loaded, store, Collective::solo(), true)?)
    }

    /// Opens (or makes) the store of a job of several ranks: [`JobBuilder::open_comm`](super::JobBuilder).
    #[doc(hidden)]
    pub fn open_comm(mut loaded: Loaded, comm: &dyn Comm) -> Result<Self> {
        let team = Collective::new(comm.duplicate()?);
        let store = open_place(&team, &mut loaded)?;
        Ok(Self::open_ranks(loaded, store, team, true)?)
    }

    /// As [`Job::open_comm`], each rank with its own access to a store: one for all, or one for
    /// each node.
    #[doc(hidden)]
    pub fn open_store_comm(
        mut loaded: Loaded,
        store: Arc<dyn Store>,
        comm: &dyn Comm,
    ) -> Result<Self> {
        let team = Collective::new(comm.duplicate()?);
        agree_on_settings(&team, &mut loaded)?;
        Ok(Self::open_ranks(loaded, store, team, false)?)
    }

    /// Opens a job on a store of the caller's making.
    #[doc(hidden)]
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
        let silent = if located { agent::flush(config, &*store) } else { None };
        let stores::Opened { stores, lock, inventory } =
            stores::open(&team, &store, &config.place.job, || global::header(config))?;
        let header = inventory.header.clone();
        let known = history::agree(&team, &stores, &*store, &header)?;
        let mut starts = Starts::new(known, config.timing.from);
        let board = Arc::new(Board::default());
        let publisher = Publisher {
            store: Arc::clone(&store),
            job: header.id,
            hash: config.pages.hash,
            page_bytes: config.pages.bytes.0 as u32,
            keep: config.place.keep.newest.unwrap_or(0),
            node: location::node(config),
            every: if config.levels.global.is_none() { config.keep_every() } else { 0 },
        };
        let ring = ring::protection(&team, config, &stores)?;
        team.agree(Step("open: ring"), check_ring(&loaded, &ring))?;
        let multiplier = ring::Multiplier::new(config.ring.arithmetic);
        let commit = CommitSettings {
            rank: team.rank(),
            publisher,
            board: Arc::clone(&board),
            stores: stores.clone(),
            limit: Limit {
                bytes: config.place.keep.bytes.map_or(0, |bytes| bytes.0),
                waits: config.node.when_full == WhenFull::Wait,
            },
            ring,
            multiplier: multiplier.clone(),
        };
        let (taking, tracker) = (settings::of(config), settings::tracker(config));
        let mut memory = Remembered::new(taking, tracker, Arc::clone(&store), &header, &team);
        if located {
            match agent::connect(&loaded, &store, &header, lock.as_ref(), &team, &stores, silent)? {
                Ok(link) => memory.use_agent(link, stores.own_ranks().len()),
                Err(Some(why)) => memory.note_no_agent(&why),
                Err(None) => {}
            }
        }
        let background = team.beside()?;
        let mut floor = Floor::default();
        if inventory.checkpoints.is_empty() {
            let offer = global::ask(&team, config, &header, true)?;
            floor.raise(&offer.checkpoints);
            starts.learn(offer.history);
        }
        let core = Core {
            regions: Regions::default(),
            cells: Vec::new(),
            device: None,
            stage: Stage::Idle(Box::new(memory), inventory),
            search: None,
            committer: Committer::start(commit, background),
            lazy: None,
            allocations: Vec::new(),
            team,
            suspects: Vec::new(),
            floor,
            reports: Vec::new(),
        };
        let core = Arc::new(Mutex::new(core));
        let pace = Mutex::new(Pace::new(config));
        let opened = Instant::now();
        let run = Some(config.node.run_request.as_str()).filter(|path| !path.is_empty());
        let run = run.and_then(RequestWatch::open);
        let asked = Asked { signal: config.timing.signal.map(Requests::by), run };
        let starts = Mutex::new(starts);
        Ok(Self {
            board,
            core,
            loaded,
            store,
            header,
            opened,
            pace,
            starts,
            asked,
            stores,
            multiplier,
            lock,
        })
    }
}

/// The configured store: the first rank makes the place, the others find it.
fn open_place(team: &Collective, loaded: &mut Loaded) -> Phase<Arc<dyn Store>> {
    agree_on_settings(team, loaded)?;
    let config = &loaded.config;
    let mut made = None;
    team.tell(Step("open: place"), || {
        made = Some(location::open_job(config)?);
        Ok::<_, Error>(())
    })?;
    let store = made.map_or_else(|| location::open_job(config), Ok);
    team.agree(Step("open: store"), store)
}

/// A rank's node, and the settings that shape what is common.
type Common = (String, Vec<(String, String)>);

/// All ranks must open the job with the same settings, where they shape what is common. Then each
/// gets its part of its node's memory.
fn agree_on_settings(team: &Collective, loaded: &mut Loaded) -> Phase<()> {
    let node = location::node(&loaded.config);
    let own = loaded.common().map(|common| (node.clone(), common));
    let all = team.gather(Step("open: settings"), own)?.map(same_settings).decide()?;
    let here = all.iter().filter(|(other, _)| *other == node).count();
    let shared = loaded.share_memory(here);
    let checked = shared.and_then(|()| loaded.check_job());
    team.agree(Step("open: check"), checked)
}

fn same_settings(all: Vec<Common>) -> Result<Vec<Common>> {
    let first = &all[0].1;
    for (rank, (_, words)) in all.iter().enumerate() {
        let differing = words.iter().zip(first).find(|(own, first)| own != first);
        if let Some(((name, own), (_, first))) = differing {
            return Err(Error::disagree(format!(
                "rank {rank} has {name} = {own}, rank 0 has {name} = {first}: \
                 all ranks need the same value"
            )));
        }
    }
    Ok(all)
}

/// A number of losses that the user asks for must be survived, or nothing begins.
fn check_ring(loaded: &Loaded, ring: &ring::Protection) -> Result<()> {
    let Choice::Set(losses) = loaded.settings.levels.ring else { return Ok(()) };
    let losses = losses.get();
    match ring {
        ring::Protection::Off => Ok(()),
        ring::Protection::Unable(_) => Err(Error::config(format!(
            "ring = {losses} needs a store per node: put {{node}} in store, or set ring = off"
        ))),
        ring::Protection::On(topology) => {
            let (nodes, needed) = (topology.nodes(), 2 * losses as usize);
            if nodes >= needed {
                return Ok(());
            }
            Err(Error::config(format!(
                "ring = {losses} needs {needed} nodes; this job has {nodes}: use ring = {}",
                nodes / 2
            )))
        }
    }
}
