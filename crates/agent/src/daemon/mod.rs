//! The agent itself: listens, serves ranks, ends when idle.
//!
//! ```text
//! main thread    accepts, beats, looks whether it is idle or told to stop
//! a thread per connection -> sessions (one per job) -> encoder, I/O and commit threads
//! a thread per store that is drained to global storage
//! ```
//! Invariants:
//! - One agent per directory: `agent.lock` is held as long as it lives.
//! - It ends only when no commit runs. A drain that it interrupts the next agent goes on with.
//! - What is counted or entered for a connection is so by a guard: it goes with the connection's thread,
//!   also where that could not be started or has panicked.

mod arrivals;
mod commit;
mod connection;
mod drain;
pub(crate) mod limits;
mod log;
mod pledge;
mod pool;
mod session;
#[cfg(feature = "simulation")]
pub mod simulation;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FlockOperation;
use serde_json::json;
use standfast_format::Kind;

use crate::error::{Error, Result};
use crate::message::{Begin, Failure, GlobalUse, Reply, StoreUse, Token};
use crate::place::Place;
use crate::status::Status;
use crate::wire;
use arrivals::Arrivals;
use drain::{Drains, Errand};
use log::Log;
use session::{Session, refused};

/// How often the agent looks around.
const TICK: Duration = Duration::from_millis(100);
/// How often it tells its ranks that it lives.
const BEAT: Duration = Duration::from_secs(1);

/// Most connections at once; each has a thread.
const CONNECTIONS_MAX: usize = 4096;
/// How long ranks and drains may take to leave an agent that ends, unless a commit runs.
const END_MAX: Duration = Duration::from_secs(10);

/// An agent that listens.
pub struct Daemon {
    place: Place,
    listener: UnixListener,
    idle: Duration,
    shared: Arc<Shared>,
    /// Held until the end.
    _lock: File,
}

/// What all threads of an agent share.
struct Shared {
    sessions: Mutex<HashMap<Token, Arc<Session>>>,
    connections: AtomicUsize,
    arrivals: Arc<Arrivals>,
    stopping: AtomicBool,
    started: Instant,
    beat: Mutex<Instant>,
    log: Log,
    drains: Arc<Drains>,
}

impl Daemon {
    /// Becomes the agent of a directory; `None` if one runs there. It ends by itself after `idle`
    /// without connections.
    pub fn bind(place: &Place, idle: Duration) -> Result<Option<Self>> {
        let lock = place.open_lock()?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            Err(errno) => return Err(Error::os("lock the agent's directory")(errno)),
        }
        let log = Log::new(place.open_log()?);
        log.event("start", json!({ "dir": place.dir(), "idle_s": idle.as_secs() }));
        // Whoever listened there is dead: it would hold the lock.
        let _ = std::fs::remove_file(place.socket());
        let listener = UnixListener::bind(place.socket()).map_err(Error::os("listen"))?;
        listener.set_nonblocking(true).map_err(Error::os("listen"))?;
        let shared = Arc::new(Shared {
            sessions: Mutex::default(),
            connections: AtomicUsize::new(0),
            arrivals: Arc::default(),
            stopping: AtomicBool::new(false),
            started: Instant::now(),
            beat: Mutex::new(Instant::now()),
            drains: Drains::open(place.drains(), &log),
            log,
        });
        let place = place.clone();
        Ok(Some(Self { place, listener, idle, shared, _lock: lock }))
    }

    /// Serves until it is idle or told to stop.
    pub fn run(self) {
        let mut busy = Instant::now();
        loop {
            self.accept();
            self.shared.tick();
            let idle = self.shared.connections.load(Ordering::SeqCst) == 0
                && self.shared.sessions().is_empty()
                && self.shared.drains.are_done();
            if !idle {
                busy = Instant::now();
            }
            let stop = self.shared.stopping.load(Ordering::SeqCst) && !self.shared.is_committing();
            if stop || (idle && busy.elapsed() >= self.idle) {
                break;
            }
        }
        // From here on whoever looks for an agent starts another, once the lock is free.
        let _ = std::fs::remove_file(self.place.socket());
        self.shared.drains.stop();
        self.shared.sessions().values().for_each(|session| session.hang_up());
        let began = Instant::now();
        while self.is_left_work() && (began.elapsed() < END_MAX || self.shared.is_committing()) {
            self.shared.tick();
            std::thread::sleep(TICK / 10);
        }
        self.shared.log.event("end", json!({ "left": self.is_left_work() }));
    }

    /// Whether ranks are still connected to their sessions, or drains under way.
    fn is_left_work(&self) -> bool {
        let connected = self.shared.connections.load(Ordering::SeqCst) > 0;
        (connected && !self.shared.sessions().is_empty()) || !self.shared.drains.are_done()
    }

    fn accept(&self) {
        let mut polled = [PollFd::new(&self.listener, PollFlags::IN)];
        let tick = Timespec { tv_sec: 0, tv_nsec: TICK.as_nanos() as i64 };
        if !matches!(poll(&mut polled, Some(&tick)), Ok(1..)) {
            return;
        }
        while let Ok((stream, _)) = self.listener.accept() {
            self.serve(stream);
        }
    }

    fn serve(&self, stream: UnixStream) {
        let stream = Arc::new(stream);
        let served = match self.shared.has_room() {
            Ok(()) => self.start(&stream),
            Err(why) => Err(why),
        };
        if let Err(why) = served {
            self.shared.log.event("sent away", json!({ "why": why }));
            wire::send_if_room(&stream, &Reply::Refused(Failure::new(Kind::Busy, why)));
        }
    }

    /// Serves a connection in a thread of its own.
    fn start(&self, stream: &Arc<UnixStream>) -> std::result::Result<(), String> {
        stream.set_nonblocking(false).map_err(|error| error.to_string())?;
        let counted = Counted::new(&self.shared);
        let (arrival, for_thread) = (self.shared.arrivals.enter(stream), Arc::clone(stream));
        let serve = move || {
            let shared = &counted.0;
            let served =
                std::panic::AssertUnwindSafe(|| connection::serve(shared, for_thread, arrival));
            if std::panic::catch_unwind(served).is_err() {
                shared.log.event("panic", json!({}));
            }
            shared.sweep();
        };
        let started = std::thread::Builder::new().name("sf-agent-rank".into()).spawn(serve);
        started
            .map(drop)
            .map_err(|error| format!("no thread can be started for this rank: {error}"))
    }

    /// Asks it to end as soon as no commit runs; for signal handlers' threads.
    pub fn stopper(&self) -> impl Fn() + Send + 'static {
        let shared = Arc::clone(&self.shared);
        move || shared.stopping.store(true, Ordering::SeqCst)
    }
}

/// A connection that counts as one until this is dropped.
struct Counted(Arc<Shared>);

impl Counted {
    fn new(shared: &Arc<Shared>) -> Self {
        shared.connections.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(shared))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Shared {
    /// Whether one more connection can be served; if not, why.
    fn has_room(&self) -> std::result::Result<(), String> {
        if self.connections.load(Ordering::SeqCst) >= CONNECTIONS_MAX {
            return Err(format!("it has {CONNECTIONS_MAX} connections, and takes no more"));
        }
        limits::exhausted().map_or(Ok(()), Err)
    }

    fn tick(&self) {
        self.sweep();
        let mut beat = self.beat.lock().unwrap_or_else(PoisonError::into_inner);
        if beat.elapsed() < BEAT {
            return;
        }
        *beat = Instant::now();
        drop(beat);
        let sessions: Vec<Arc<Session>> = self.sessions().values().cloned().collect();
        sessions.iter().for_each(|session| session.beat());
    }

    /// Forgets sessions that are over; their locks and pools go with them.
    fn sweep(&self) {
        let mut sessions = self.sessions();
        let over: Vec<Token> = sessions
            .iter()
            .filter(|(_, session)| session.is_over())
            // Before anybody can see that it is over.
            .inspect(|(_, session)| {
                session.release();
                self.log.event("over", json!({ "store": session.begin.store.path }));
            })
            .map(|(token, _)| *token)
            .collect();
        let gone: Vec<Arc<Session>> =
            over.iter().filter_map(|token| sessions.remove(token)).collect();
        drop(sessions);
        for session in gone {
            // The next life of the job may have begun already.
            if self.of_store(&session.begin.store.path).is_empty() {
                self.drains.job_is_over(&session.begin.store.path);
            }
        }
    }

    fn begin(&self, begin: Begin, lock: OwnedFd) -> Result<Arc<Session>> {
        if self.stopping.load(Ordering::SeqCst) {
            return Err(refused(Kind::Busy, &"the agent is about to end"));
        }
        let token = begin.token;
        let session = Session::open(begin, lock, &self.log)?;
        self.sweep();
        let mut sessions = self.sessions();
        // Copies of one lock are one lock.
        if sessions.values().any(|other| other.shares_lock(&session)) {
            return Err(refused(Kind::Busy, &"another session writes to this store"));
        }
        match sessions.entry(token) {
            Entry::Vacant(place) => drop(place.insert(Arc::clone(&session))),
            Entry::Occupied(_) => return Err(Error::Protocol("a session begins twice")),
        }
        drop(sessions);
        let Begin { store, packing, keep_every, global, .. } = session.begin.clone();
        if let Some(GlobalUse { place, keep, manner }) = global {
            let (threads, keep) = (packing.threads.clamp(1, 64), (keep, keep_every));
            let StoreUse { path, trust, .. } = store;
            let errand = Errand { store: path, global: place, threads, trust, keep, manner };
            self.drains.begin(errand, true);
        }
        Ok(session)
    }

    fn find(&self, token: Token) -> Result<Arc<Session>> {
        let found = self.sessions().get(&token).cloned();
        found.ok_or_else(|| refused(Kind::Missing, &"the job's session is not with this agent"))
    }

    fn of_store(&self, store: &str) -> Vec<Arc<Session>> {
        let sessions = self.sessions();
        sessions.values().filter(|session| session.begin.store.path == store).cloned().collect()
    }

    fn is_committing(&self) -> bool {
        self.sessions().values().any(|session| session.is_committing())
    }

    fn stop(&self, now: bool) -> Reply {
        let connected: usize = self.sessions().values().map(|session| session.connected()).sum();
        if connected > 0 && !now {
            let why = format!("{connected} ranks use it; they go on without it if it is ended");
            return Reply::Refused(Failure::new(Kind::Busy, why));
        }
        self.stopping.store(true, Ordering::SeqCst);
        self.log.event("stop", json!({ "connected": connected }));
        Reply::Stopping
    }

    fn status(&self) -> Status {
        let written = standfast_store::written();
        let beat = self.beat.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
        Status {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").into(),
            uptime_s: self.started.elapsed().as_secs(),
            beat_ms: beat.as_millis() as u64,
            stopping: self.stopping.load(Ordering::SeqCst),
            writes: written.writes,
            written_bytes: written.bytes,
            sessions: self.sessions().values().map(|session| session.status()).collect(),
            drains: self.drains.status(),
        }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<Token, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
