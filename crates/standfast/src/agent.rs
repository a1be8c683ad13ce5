//! The node's agent, as a job finds it: started by the first rank, joined by the others.
//!
//! Data: configuration -> the first rank of each store begins a session with its node's agent and
//! hands its store lock over -> the others of that store join by the session's token. Where any of
//! them cannot (another node, no agent, a store without files), all of them write by themselves, and
//! the next report says why.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use standfast_agent::{Begin, Link, Manner, Member, Place, Token};
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
    if config.write != Write::WagDbi {
        return Ok(Err(None));
    }
    let member = || Member {
        rank: team.rank().0,
        hasher: PageHasher::new(config.hash, &header.key),
        page_bytes: config.page.0 as usize,
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
    standfast_agent::start(&place, &config.agent_command, config.agent_idle.0)?;
    let token = Token(identity::bytes()?);
    let begin = Begin {
        token,
        node: location::node(config),
        store: path,
        job: header.id,
        io: config.io_word().into(),
        io_threads: config.io_threads as u32,
        trust: config.trust.clone(),
        pool_bytes: loaded.agent_pool_bytes(ranks.len()),
        ranks,
        job_ranks,
        hash: config.hash,
        page_bytes: config.page.0 as u32,
        block_bytes: match config.pipeline {
            Pipeline::Gpu => config.page.0.max(standfast_gpu::gpu_queue::BLOCK_BYTES as u64) as u32,
            _ => config.block.0 as u32,
        },
        threads: config.threads() as u32,
        codec: match config.pipeline {
            Pipeline::None => "none".into(),
            Pipeline::Pipelined | Pipeline::Serial | Pipeline::Gpu => config.codec.to_string(),
        },
        gpu: config.pipeline == Pipeline::Gpu,
        filter: config.filter.to_string(),
        keep: config.keep,
        global: match config.global.is_empty() {
            true => String::new(),
            false => location::of_global(config),
        },
        keep_global: config.keep_global,
        keep_every: config.keep_every,
        manner: Manner {
            codec: config.drain_codec.to_string(),
            rate: config.drain_rate.0,
            every: config.drain_every,
            nice: config.drain_nice,
            ionice: config.drain_ionice.to_string(),
            cpus: config.drain_cpus.to_string(),
            key: config.global_key.as_ref().map(KeySource::absolute),
        },
    };
    Ok((Link::begin(&place, begin, lock, member)?, token))
}

fn open_place(config: &Config) -> standfast_agent::Result<Place> {
    Place::open(location::agent_dir(config).as_deref())
}

/// The store's directory as everybody names it, if it is one.
fn path_of(store: &dyn Store) -> Option<String> {
    let path = std::fs::canonicalize(store.describe()).ok()?;
    path.into_os_string().into_string().ok()
}
