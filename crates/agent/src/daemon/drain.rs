//! Draining: checkpoints of this agent's jobs go on to global storage, off the programs' path.
//!
//! ```text
//! session with a global place -> a thread for its store -> Drain::run, whenever manifests changed
//! DIR/drains.json: what is not done yet -> the next agent goes on with it
//! ```
//! A drain outlives its job: it ends when the job is over and nothing is due any more, or when nothing
//! has moved for [`PATIENCE`] since. Then it stays listed, and the next agent tries again.
//!
//! Invariants:
//! - One drain per store, as long as a session relies on it. The list names every drain that may have something left to do.
//! - While a rank or this agent stores a checkpoint of that store nothing is carried
//!   (`standfast_drain::Flow`).

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::json;
use standfast_drain::policy::Policy;
use standfast_drain::{Drain, Encoding, Error, Event, Flow, Priority, Progress, Retention, Until};
use standfast_format::{Kind, name};
use standfast_store::{EncryptedStore, KeySource, Options, Store};
use standfast_sys::keep_signals_away;
use standfast_sys::trust::Trust;

use super::log::Log;
use crate::message::Manner;
use crate::status::DrainStatus;

/// How often a drain looks whether there is something new.
const LOOK: Duration = Duration::from_millis(250);
/// Pauses after failures that may pass.
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// A drain whose job is over and that has not moved a byte for so long is left to the next agent.
const PATIENCE: Duration = Duration::from_secs(600);

/// How a drain has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// Nothing is left.
    Done,
    /// It can never be done.
    Hopeless,
    /// It is still to be done.
    Stopped,
}

/// What is drained where: a line of the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Errand {
    /// The local store: an absolute path.
    pub(super) store: String,
    /// The job's place in global storage.
    pub(super) global: String,
    /// Threads that read and compress.
    pub(super) threads: u32,
    /// Whose files are read, and who may read those that are written.
    #[serde(default)]
    pub(super) trust: Trust,
    /// Checkpoints that stay there: so many of the newest (0: all), and one of so many for ever.
    #[serde(default)]
    pub(super) keep: (u32, u64),
    /// How it is done. An agent of an earlier version has listed none.
    #[serde(default)]
    pub(super) manner: Manner,
}

/// The drains of an agent.
pub(super) struct Drains {
    list: PathBuf,
    log: Log,
    running: Mutex<HashMap<String, Arc<Draining>>>,
    /// Told to end; what is not done stays listed.
    stop: AtomicBool,
}

/// One store's drain.
struct Draining {
    errand: Errand,
    /// Whether a session uses the store.
    has_job: AtomicBool,
    /// Once somebody has asked for it.
    key: OnceLock<KeySource>,
    progress: Progress,
    told: Mutex<Told>,
}

#[derive(Clone, Default)]
struct Told {
    under_way: Option<(u64, u64)>,
    arrived: u64,
    newest: Option<u64>,
    waits_for: Option<String>,
}

impl Drains {
    /// Takes up what an agent before has left in this directory.
    pub(super) fn open(list: PathBuf, log: &Log) -> Arc<Self> {
        let left = std::fs::read(&list).ok();
        let left: Vec<Errand> =
            left.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        let drains = Arc::new(Self {
            list,
            log: log.clone(),
            running: Mutex::default(),
            stop: AtomicBool::new(false),
        });
        for errand in left {
            drains.begin(errand, false);
        }
        drains
    }

    /// Drains a store from now on; `has_job`: a session uses it.
    pub(super) fn begin(self: &Arc<Self>, errand: Errand, has_job: bool) {
        let mut running = self.running();
        if let Some(draining) = running.get(&errand.store) {
            // One that goes elsewhere finishes what it has.
            let same = draining.errand == errand;
            draining.has_job.store(has_job && same, Ordering::SeqCst);
            if same {
                return;
            }
        }
        let store = errand.store.clone();
        let draining = Arc::new(Draining {
            errand,
            has_job: AtomicBool::new(has_job),
            key: OnceLock::new(),
            progress: Progress::default(),
            told: Mutex::default(),
        });
        running.insert(store, Arc::clone(&draining));
        self.write_list(&running);
        drop(running);
        let (drains, for_thread) = (Arc::clone(self), Arc::clone(&draining));
        let started = std::thread::Builder::new()
            .name("sf-agent-drain".into())
            .spawn(move || drains.run(&for_thread));
        if let Err(error) = started {
            self.log.event("drain given up", json!({ "why": error.to_string() }));
            draining.has_job.store(false, Ordering::SeqCst);
            self.forget(&draining, Ended::Stopped);
        }
    }

    /// The session of a store is over.
    pub(super) fn job_is_over(&self, store: &str) {
        if let Some(draining) = self.running().get(store) {
            draining.has_job.store(false, Ordering::SeqCst);
        }
    }

    /// Whether nothing is left to be done.
    pub(super) fn are_done(&self) -> bool {
        self.running().is_empty()
    }

    /// Ends all of them soon; the next agent goes on.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    pub(super) fn status(&self) -> Vec<DrainStatus> {
        let running = self.running();
        let mut all: Vec<DrainStatus> = running.values().map(|one| one.status()).collect();
        all.sort_by(|a, b| a.store.cmp(&b.store));
        all
    }

    fn run(&self, draining: &Arc<Draining>) {
        keep_signals_away();
        let errand = &draining.errand;
        let event = |event: &str, why: Option<String>| {
            let fields = json!({ "store": errand.store, "to": errand.global, "why": why });
            self.log.event(event, fields);
        };
        event("drain begins", None);
        // Threads that it starts step back as much.
        if let Err(why) = step_back(&errand.manner) {
            event("drain has no priority of its own", Some(why));
        }
        let ended = loop {
            match self.follow(draining, &event) {
                Ok(()) => event("drained", None),
                failed => break failed,
            }
            if self.forget(draining, Ended::Done) {
                return;
            }
        };
        match ended {
            Ok(()) | Err(Error::Stopped) => self.forget(draining, Ended::Stopped),
            Err(error) => {
                event("drain given up", Some(error.to_string()));
                // Trying the same again helps nobody.
                let hopeless =
                    matches!(error.kind(), Kind::Invalid | Kind::Unsupported | Kind::Missing);
                self.forget(draining, if hopeless { Ended::Hopeless } else { Ended::Stopped })
            }
        };
    }

    /// A drain has ended; one that was stopped stays in the list. False if all was done, but a
    /// session has begun to rely on it since it looked for the last time: then it goes on.
    fn forget(&self, draining: &Arc<Draining>, ended: Ended) -> bool {
        let store = &draining.errand.store;
        // Sessions begin under this lock.
        let mut running = self.running();
        let has_job = draining.has_job.load(Ordering::SeqCst);
        if ended == Ended::Done && has_job && !self.stop.load(Ordering::SeqCst) {
            return false;
        }
        // Another one may have taken its place.
        if running.get(store).is_some_and(|other| Arc::ptr_eq(other, draining)) {
            running.remove(store);
            if ended != Ended::Stopped {
                self.write_list(&running);
            }
        }
        true
    }

    /// Carries what is due, again and again, until the job is over and nothing is left.
    fn follow(
        &self,
        draining: &Draining,
        event: &dyn Fn(&str, Option<String>),
    ) -> Result<(), Error> {
        let (mut seen, mut failed) = (None, 0);
        let (mut moved, mut read_before) = (Instant::now(), 0);
        loop {
            let had_job = draining.has_job.load(Ordering::SeqCst);
            let error = match self.pass(draining, &mut seen) {
                Ok(()) if !had_job => return Ok(()),
                Ok(()) => {
                    failed = 0;
                    draining.told().waits_for = None;
                    self.sleep(LOOK)?;
                    continue;
                }
                Err(error) => error,
            };
            let read = draining.progress.read.load(Ordering::Relaxed);
            if had_job || read != read_before {
                (moved, read_before) = (Instant::now(), read);
            }
            let hopeless = !error.may_pass() || moved.elapsed() > PATIENCE;
            if matches!(error, Error::Stopped) || (hopeless && !had_job) {
                return Err(error);
            }
            if failed == 0 {
                event("drain waits", Some(error.to_string()));
            }
            draining.told().waits_for = Some(error.to_string());
            self.sleep(PAUSE_MIN.saturating_mul(1 << failed.min(10)).min(PAUSE_MAX))?;
            failed += 1;
        }
    }

    /// Carries what is due now. `seen`: the manifests after the last complete pass; while they are
    /// the same the target need not be asked.
    fn pass(&self, draining: &Draining, seen: &mut Option<Vec<String>>) -> Result<(), Error> {
        let Errand { store, global, threads, trust, keep: (newest, every), manner } =
            &draining.errand;
        if !std::path::Path::new(store).is_dir() {
            // Somebody has removed the job; nothing is left to be carried.
            return Ok(());
        }
        let local = open(store, trust)?;
        let manifests = list(&*local)?;
        if manifests.is_empty() || seen.as_ref() == Some(&manifests) {
            return Ok(());
        }
        let target = EncryptedStore::wrap(open(global, trust)?, draining.key()?)?;
        let wrong = |error: standfast_reduce::Error| Error::Manner(error.to_string());
        let encoding =
            Encoding { codec: manner.codec.parse().map_err(wrong)?, threads: *threads as usize };
        let rate = Some(manner.rate).filter(|rate| *rate > 0);
        let flow = Flow::new(&*local, &self.stop, &draining.progress).rate(rate);
        let retention = Retention { newest: *newest as usize, every: *every };
        let drain = Drain::open(&*local, &*target, encoding)?.keeping(retention);
        let policy = if manner.every > 0 { Policy::Every(manner.every) } else { Policy::Newest };
        let until = Until { policy, follow: false, tries: 0 };
        let ended = drain.run(&until, &flow, &mut |event| self.take(draining, &event));
        draining.told().under_way = None;
        ended?;
        *seen = Some(manifests);
        Ok(())
    }

    fn take(&self, draining: &Draining, event: &Event<'_>) {
        let mut told = draining.told();
        let store = &draining.errand.store;
        match event {
            Event::Begins(manifest, bytes) => told.under_way = Some((manifest.version.0, *bytes)),
            Event::Arrived(carried, time) => {
                told.arrived += 1;
                told.newest = Some(carried.version.0);
                self.log.event(
                    "arrived",
                    json!({
                        "store": store, "version": carried.version, "from_bytes": carried.from_bytes,
                        "to_bytes": carried.to_bytes, "ms": time.as_millis() as u64,
                    }),
                );
            }
            Event::PassedOver(version, error) => self.log.event(
                "skipped",
                json!({ "store": store, "version": version, "why": error.to_string() }),
            ),
            Event::Waits(error, _) => told.waits_for = Some(error.to_string()),
        }
    }

    fn sleep(&self, time: Duration) -> Result<(), Error> {
        let until = Instant::now() + time;
        while Instant::now() < until {
            if self.stop.load(Ordering::SeqCst) {
                return Err(Error::Stopped);
            }
            std::thread::sleep(Duration::from_millis(20).min(time));
        }
        Ok(())
    }

    /// Writes the list anew, whole or not at all.
    fn write_list(&self, running: &HashMap<String, Arc<Draining>>) {
        let mut errands: Vec<&Errand> = running.values().map(|one| &one.errand).collect();
        errands.sort_by(|a, b| a.store.cmp(&b.store));
        let written = match errands.is_empty() {
            true => std::fs::remove_file(&self.list),
            false => {
                let bytes = serde_json::to_vec(&errands).expect("plain values can be written");
                let new = self.list.with_extension("new");
                let mut options = File::options();
                let options = options.write(true).create(true).truncate(true).mode(0o600);
                let written = options.open(&new).and_then(|mut file| file.write_all(&bytes));
                written.and_then(|()| std::fs::rename(&new, &self.list))
            }
        };
        if let Err(error) = written
            && error.kind() != std::io::ErrorKind::NotFound
        {
            self.log.event("list of drains", json!({ "why": error.to_string() }));
        }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, Arc<Draining>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Draining {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the target's key comes from, if it has one.
    fn key(&self) -> Result<Option<&KeySource>, Error> {
        let Some(text) = &self.errand.manner.key else { return Ok(None) };
        let source = text.parse().map_err(Error::Manner)?;
        Ok(Some(self.key.get_or_init(|| source)))
    }

    fn status(&self) -> DrainStatus {
        let Told { under_way, arrived, newest, waits_for } = self.told().clone();
        let Progress { read, sent, paused_ns } = &self.progress;
        DrainStatus {
            store: self.errand.store.clone(),
            global: self.errand.global.clone(),
            has_job: self.has_job.load(Ordering::SeqCst),
            under_way: under_way.map(|(version, _)| version),
            under_way_bytes: under_way.map_or(0, |(_, bytes)| bytes),
            read_bytes: read.load(Ordering::Relaxed),
            sent_bytes: sent.load(Ordering::Relaxed),
            paused_ms: paused_ns.load(Ordering::Relaxed) / 1_000_000,
            arrived,
            newest,
            waits_for,
        }
    }
}

/// Gives this thread the priority of a drain; what is refused is told.
fn step_back(manner: &Manner) -> Result<(), String> {
    let Manner { nice, ionice, cpus, .. } = manner;
    let priority = Priority { nice: *nice, io: ionice.parse()?, cores: cpus.parse()? };
    priority.take().map_err(|error| error.to_string())
}

fn open(place: &str, trust: &Trust) -> Result<Arc<dyn Store>, Error> {
    let options = Options { trust: trust.clone(), ..Options::default() };
    Ok(standfast_store::open(place, &options)?)
}

fn list(store: &dyn Store) -> Result<Vec<String>, Error> {
    let names = store.list(name::MANIFESTS)?.into_iter().map(|object| object.name);
    let mut names: Vec<String> =
        names.filter(|name| name::parse_manifest(name).is_some()).collect();
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests;
