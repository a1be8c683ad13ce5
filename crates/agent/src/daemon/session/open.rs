//! Opening a session: what a job asks for is checked, its store opened, its encoders started.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};

use serde_json::json;
use standfast_checkpoint::Publisher;
use standfast_format::{BLOCK_BYTES_MAX, Kind, check_page_bytes};
use standfast_gpu::gpu_queue::GpuQueue;
use standfast_reduce::{Offload, PageHasher};
use standfast_restart::Inventory;
use standfast_store::{DirStore, Io, Options, Store};
use standfast_write::{PackSettings, Pipeline, SegmentCore};

use super::{Session, State, refused};
use crate::daemon::log::Log;
use crate::daemon::pool::Pool;
use crate::error::{Error, Result};
use crate::message::{Begin, Packing, StoreUse};

/// Most ranks of a job.
const RANKS_MAX: u32 = 1 << 20;
/// How much the agent's work steps back behind the programs'.
const NICE: i32 = 5;
/// Largest pool that a job may ask for.
const POOL_BYTES_MAX: u64 = 1 << 40;

impl Session {
    /// Opens the job's store for its ranks.
    pub(in crate::daemon) fn open(begin: Begin, lock: OwnedFd, log: &Log) -> Result<Arc<Self>> {
        let store = open_store(&begin.store)?;
        // Nothing is believed of a client that does not hold the store's lock.
        let lock = store.adopt_writer_lock(lock).map_err(|error| refused(error.kind(), &error))?;
        Self::open_on(begin, store, lock, log)
    }

    /// Opens the session on a store.
    pub(in crate::daemon) fn open_on(
        begin: Begin,
        store: Arc<dyn Store>,
        lock: OwnedFd,
        log: &Log,
    ) -> Result<Arc<Self>> {
        let settings = pack_settings(&begin)?;
        let inventory = Inventory::read(&*store).map_err(|error| refused(error.kind(), &error))?;
        if inventory.header.id != begin.store.job {
            return Err(refused(Kind::Invalid, &"the store is another one here than at the rank"));
        }
        let hasher = PageHasher::new(begin.packing.hash, &inventory.header.key);
        let of_lock = rustix::fs::fstat(&lock).map_err(Error::os("look at the lock"))?;
        let units = (settings.pool_bytes / settings.block_bytes).max(2);
        let pool = Pool::new(units, settings.block_bytes)?;
        let publisher = Publisher {
            store: Arc::clone(&store),
            job: begin.store.job,
            hash: begin.packing.hash,
            page_bytes: begin.packing.page_bytes,
            keep: begin.keep,
            node: begin.node.clone(),
            every: if begin.global.is_none() { begin.keep_every } else { 0 },
        };
        let state = State {
            links: BTreeMap::new(),
            gone: BTreeSet::new(),
            broken: false,
            attempt: None,
            ended: VecDeque::new(),
            overflowed: false,
            committing: None,
            inventory: Some(inventory),
            committed: 0,
            failed: 0,
            blocks: 0,
            block_bytes: 0,
        };
        log.event(
            "begin",
            json!({
                "store": begin.store.path, "ranks": begin.ranks.len(), "of": begin.job_ranks,
                "pool": begin.packing.pool_bytes,
            }),
        );
        let gpu = begin.packing.gpu;
        Ok(Arc::new(Self {
            begin,
            publisher,
            pool,
            core: start_core(store, settings, hasher, gpu.then(|| log.clone()))?,
            state: Mutex::new(state),
            changed: Condvar::new(),
            log: log.clone(),
            lock: Mutex::new(Some(lock)),
            lock_id: (of_lock.st_dev, of_lock.st_ino),
        }))
    }
}

/// Checks what a job asks for: the numbers come from another process.
fn pack_settings(begin: &Begin) -> Result<PackSettings> {
    let invalid = |why: &str| refused(Kind::Invalid, &why);
    let Packing { page_bytes, block_bytes, pool_bytes, .. } = begin.packing;
    check_page_bytes("session", page_bytes).map_err(|error| invalid(&error.to_string()))?;
    let block_ok = (block_bytes as usize) <= BLOCK_BYTES_MAX
        && block_bytes > 0
        && block_bytes.is_multiple_of(page_bytes);
    if !block_ok || pool_bytes > POOL_BYTES_MAX {
        return Err(invalid("its block or pool is out of bounds"));
    }
    let ascending = begin.ranks.windows(2).all(|pair| pair[0] < pair[1]);
    let last = begin.ranks.last().is_some_and(|last| *last < begin.job_ranks);
    if !ascending || !last || begin.job_ranks > RANKS_MAX {
        return Err(invalid("its ranks are out of bounds or out of order"));
    }
    let Packing { threads, codec, filter, .. } = &begin.packing;
    Ok(PackSettings {
        pool_bytes: pool_bytes as usize,
        block_bytes: block_bytes as usize,
        page_bytes: page_bytes as usize,
        pipeline: Pipeline::Pipelined,
        threads: (*threads).clamp(1, 64) as usize,
        codec: codec.parse().map_err(|error| refused(Kind::Invalid, &error))?,
        filter: filter.parse().map_err(|error| refused(Kind::Invalid, &error))?,
    })
}

/// Starts the threads that encode and, through them, those that write, with less claim to the
/// processor than ranks have: what the agent does can wait a little, a program cannot.
/// `gpu` is told what becomes of the device that shall encode, if one shall.
fn start_core(
    store: Arc<dyn Store>,
    settings: PackSettings,
    hasher: PageHasher,
    gpu: Option<Log>,
) -> Result<Arc<SegmentCore>> {
    let start = move || {
        // Where it is refused the threads are as any others.
        let _ = rustix::process::nice(NICE);
        let say = |log: Log| move |note| log.event("gpu", json!({ "note": note }));
        let queue = gpu.and_then(|log| GpuQueue::open(say(log)));
        let offload = queue.map(|queue| Arc::new(queue) as Arc<dyn Offload>);
        SegmentCore::start(store, settings, offload, Some(hasher))
    };
    let starting = std::thread::Builder::new().name("sf-start".into()).spawn(start);
    let started = starting.map_err(Error::os("start a thread"))?.join();
    let core = started.map_err(|_| refused(Kind::Bug, &"starting the encoders panicked"))?;
    match core.has_encoders() {
        true => Ok(core),
        false => Err(refused(Kind::Transient, &"no thread can be started to encode")),
    }
}

/// Opens the store of a job, which is there: its lock is held.
fn open_store(store: &StoreUse) -> Result<Arc<DirStore>> {
    if !store.path.starts_with('/') || !Path::new(&store.path).is_dir() {
        return Err(refused(Kind::Unsupported, &"only stores in directories are written here"));
    }
    let io = match store.io.as_str() {
        "auto" => Io::Auto,
        "direct" => Io::Direct,
        "buffered" => Io::Buffered,
        _ => return Err(refused(Kind::Invalid, &"io is none of auto, direct, buffered")),
    };
    let io_threads = store.io_threads.clamp(1, 64) as usize;
    let options = Options { io, io_threads, trust: store.trust.clone(), ..Options::default() };
    let opened = DirStore::open(&store.path, &options);
    opened.map(Arc::new).map_err(|error| refused(error.kind(), &error))
}
