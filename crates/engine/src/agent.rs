//! The node's agent, as a job finds it: started by the first rank, joined by the others.
//!
//! Data: configuration -> the first rank begins a session and hands its store lock over -> the others
//! join by the session's token. Where any of them cannot (another node, no agent, a store without
//! files), all of them write by themselves, and the next report says why.

use std::os::fd::AsFd;
use std::sync::Arc;

use standfast_agent::{Begin, Link, Member, Place, Token};
use standfast_format::StoreHeader;
use standfast_pack::Pipeline;
use standfast_reduce::PageHasher;
use standfast_store::{LockGuard, Store};

use crate::config::{Config, Write, key};
use crate::error::{Error, Result};
use crate::identity;
use crate::location;
use crate::team::Team;

/// Lets an agent that runs finish what dead ranks have left it for this store.
pub(crate) fn flush(config: &Config, store: &dyn Store) {
    if let (Some(place), Some(path)) =
        (Place::existing(location::agent_dir(config).as_deref()), path_of(store))
    {
        // What it has not finished it still holds the lock for, and the lock tells more.
        let _ = standfast_agent::flush(&place, &path);
    }
}

/// Connects all ranks to the agent, if they are to write through it and can. Otherwise the reason.
/// Collective.
pub(crate) fn connect(
    config: &Config,
    store: &Arc<dyn Store>,
    header: &StoreHeader,
    lock: Option<&LockGuard>,
    team: &Team,
) -> Result<std::result::Result<Link, Option<String>>> {
    if config.write != Write::WagDbi {
        return Ok(Err(None));
    }
    let member = || Member {
        rank: team.rank().0,
        hasher: PageHasher::new(config.hash, &header.key),
        page_bytes: config.page.0 as usize,
    };
    let first = team.is_first().then(|| begin(config, &**store, header, lock, team, member()));
    let (mut link, told) = match first {
        Some(Ok((link, token))) => (Some(link), Some(Ok(token.0))),
        Some(Err(error)) => (None, Some(Err(error))),
        None => (None, None),
    };
    let token = match team.tell(told) {
        Ok(token) => Token(token),
        Err(error) => return Ok(Err(Some(error.to_string()))),
    };
    let joined = match link.take() {
        Some(link) => Ok(link),
        None => open_place(config).and_then(|place| Link::join(&place, token, member())),
    };
    Ok(team.agree(joined.map_err(Error::from)).map_err(|error| Some(error.to_string())))
}

fn begin(
    config: &Config,
    store: &dyn Store,
    header: &StoreHeader,
    lock: Option<&LockGuard>,
    team: &Team,
    member: Member,
) -> Result<(Link, Token)> {
    let unsuited = |why: &str| Error::Config(format!("write = wag-dbi: {why}"));
    let lock = lock.and_then(LockGuard::file).map(AsFd::as_fd);
    let (Some(lock), Some(path)) = (lock, path_of(store)) else {
        return Err(unsuited("the agent writes only to stores in directories"));
    };
    let place = open_place(config)?;
    standfast_agent::start(&place, &config.agent_command, config.agent_idle.0)?;
    let token = Token(identity::bytes()?);
    let show = |name| key(name).map(|key| (key.show)(config)).unwrap_or_default();
    let begin = Begin {
        token,
        store: path,
        job: header.id,
        io: show("io"),
        io_threads: config.io_threads as u32,
        ranks: team.size() as u32,
        hash: config.hash,
        page_bytes: config.page.0 as u32,
        block_bytes: config.block.0 as u32,
        pool_bytes: config.pool.0,
        threads: config.threads() as u32,
        codec: match config.pipeline {
            Pipeline::None => "none".into(),
            Pipeline::Pipelined | Pipeline::Serial => show("codec"),
        },
        filter: show("filter"),
        keep: config.keep,
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
