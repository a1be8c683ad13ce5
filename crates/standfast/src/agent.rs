//! The node's agent, as a job finds it: started by the first rank, joined by the others.
//!
//! Data: configuration -> the first rank of each store begins a session with its node's agent and
//! hands its store lock over -> the others of that store join by the session's token. Where any of
//! them cannot (another node, no agent, a store without files), all of them write by themselves, and
//! the next report says why.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use standfast_agent::{Begin, GlobalUse, Link, Manner, Member, Packing, Place, StoreUse, Token};
use standfast_comm::{Collective, Step};
use standfast_format::StoreHeader;
use standfast_reduce::PageHasher;
use standfast_store::{KeySource, LockGuard, Store};
use standfast_write::Pipeline;

use crate::config::{Config, Loaded, Write};
use crate::error::{Error, Phase, Result, Stop};
use crate::identity;
use crate::location;
use crate::stores::Stores;

/// How long a job that runs waits for an agent to finish what it has left there.
const FLUSH_MAX: Duration = Duration::from_secs(5);
/// How long one that is opened does: until then its lock is held.
const FLUSH_OPEN_MAX: Duration = Duration::from_secs(600);

/// Lets an agent that runs finish what dead ranks have left it for this store; why it cannot be asked,
/// if that is so. What it has not finished it still holds the lock for, and the lock tells more.
pub(crate) fn flush(config: &Config, store: &dyn Store) -> Option<standfast_agent::Error> {
    let place = Place::existing(location::agent_dir(config).as_deref())?;
    standfast_agent::flush(&place, &path_of(store)?, FLUSH_OPEN_MAX).err()
}

/// Connects all ranks to the agent, if they are to write through it and can. Otherwise the reason.
/// `silent`: it was asked for something just now, and this came of it; nobody waits for it twice.
pub(crate) fn connect(
    loaded: &Loaded,
    store: &Arc<dyn Store>,
    header: &StoreHeader,
    lock: Option<&LockGuard>,
    team: &Collective,
    stores: &Stores,
    silent: Option<standfast_agent::Error>,
) -> Phase<std::result::Result<Link, Option<String>>> {
    let config = &loaded.config;
    if config.pack.write != Write::WagDbi {
        return Ok(Err(None));
    }
    let member = || Member {
        rank: team.rank().0,
        hasher: PageHasher::new(config.pages.hash, &header.key),
        page_bytes: config.pages.bytes.0 as usize,
    };
    let ranks = (stores.own_ranks(), team.size() as u32);
    let begun = stores.lead(|| match silent {
        Some(error) => Err(error.into()),
        None => begin(loaded, &**store, header, lock, ranks, member()),
    });
    let (link, told) = match begun {
        Ok(begun) => {
            let (link, token) = begun.unzip();
            (link, Ok(token.map(|token| token.0)))
        }
        Err(error) => (None, Err(error)),
    };
    let without = |stop: Stop| match stop {
        Stop::Failed(why) => Ok(Err(Some(why.error().to_string()))),
        lost => Err(lost),
    };
    let tokens = match team.gather(Step("agent: begin"), told) {
        Ok(tokens) => tokens,
        Err(stop) => return without(stop),
    };
    let joined = match (link, tokens[stores.leader()]) {
        (Some(link), _) => Ok(link),
        (None, Some(token)) => {
            open_place(config).and_then(|place| Link::join(&place, Token(token), member()))
        }
        (None, None) => unreachable!("a leader has begun or failed"),
    };
    team.agree(Step("agent: join"), joined.map_err(Error::from))
        .map_or_else(without, |link| Ok(Ok(link)))
}

fn begin(
    loaded: &Loaded,
    store: &dyn Store,
    header: &StoreHeader,
    lock: Option<&LockGuard>,
    (ranks, job_ranks): (Vec<u32>, u32),
    member: Member,
) -> Result<(Link, Token)> {
    let config = &loaded.config;
    let unsuited = |why: &str| Error::config(format!("agent = on: {why}"));
    let lock = lock.and_then(LockGuard::file).map(AsFd::as_fd);
    let (Some(lock), Some(path)) = (lock, path_of(store)) else {
        return Err(unsuited("the agent writes only to stores in directories"));
    };
    let place = open_place(config)?;
    // One that this job has left may still be at its last work for it; there is a next time to look.
    standfast_agent::flush(&place, &path, FLUSH_MAX)?;
    standfast_agent::start(&place, &config.agent.command, config.agent.idle.0)?;
    let token = Token(identity::bytes()?);
    let begin = Begin {
        token,
        node: location::node(config),
        store: StoreUse {
            path,
            job: header.id,
            io: config.io_word().into(),
            io_threads: config.node.io_threads as u32,
            trust: config.trust.clone(),
        },
        packing: packing(config, loaded.agent_pool_bytes(ranks.len())),
        ranks,
        job_ranks,
        keep: config.place.keep.newest.unwrap_or(0),
        keep_every: config.keep_every(),
        global: location::of_global(config).map(|place| global_use(config, place)),
    };
    Ok((Link::begin(&place, begin, lock, member)?, token))
}

fn packing(config: &Config, pool_bytes: u64) -> Packing {
    let (page_bytes, pack) = (config.pages.bytes.0, &config.pack);
    let gpu = pack.pipeline == Pipeline::Gpu;
    let of_gpu = standfast_gpu::gpu_queue::BLOCK_BYTES as u64;
    Packing {
        hash: config.pages.hash,
        page_bytes: page_bytes as u32,
        block_bytes: if gpu { page_bytes.max(of_gpu) } else { pack.block.0 } as u32,
        pool_bytes,
        threads: config.threads() as u32,
        codec: match pack.pipeline {
            Pipeline::None => "none".into(),
            Pipeline::Pipelined | Pipeline::Serial | Pipeline::Gpu => pack.codec.to_string(),
        },
        gpu,
        filter: pack.filter.to_string(),
    }
}

fn global_use(config: &Config, place: String) -> GlobalUse {
    let (levels, priority) = (&config.levels, &config.drain.priority);
    let manner = Manner {
        codec: config.drain.codec.to_string(),
        rate: levels.global_rate.map_or(0, |rate| rate.0.0),
        every: levels.drain_every(),
        nice: priority.nice,
        ionice: priority.io.to_string(),
        cpus: priority.cores.to_string(),
        key: levels.global_key.as_ref().map(KeySource::absolute),
    };
    GlobalUse { place, keep: levels.global_keep.newest.unwrap_or(0), manner }
}

fn open_place(config: &Config) -> standfast_agent::Result<Place> {
    Place::open(location::agent_dir(config).as_deref())
}

/// The store's directory as everybody names it, if it is one.
fn path_of(store: &dyn Store) -> Option<String> {
    let path = std::fs::canonicalize(store.describe()).ok()?;
    path.into_os_string().into_string().ok()
}
