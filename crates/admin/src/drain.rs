//! Checkpoints to global storage and back.
//!
//! Data: the job's store and a target -> [`Drain`] -> an event per checkpoint that arrived.
//!
//! Needs nothing of the job: it may run, may have ended, may have been killed.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use standfast::config::Config;
use standfast::{Manifest, Version, location};
use standfast_drain::Drain;
use standfast_restart::Inventory;
use standfast_store::{EncryptedStore, Store};

use crate::error::{Error, Result};
use crate::place::{self, OpenJob, Place};

pub use standfast_drain::policy::Policy;
pub use standfast_drain::{
    Carried, Cores, Encoding, Error as DrainError, Event, Flow, IoPriority, Priority, Progress,
    Retention, Until,
};
pub use standfast_restart::read_drains;

/// Opens the target and carries what is due. Who follows a job waits for a target that cannot be
/// opened yet; anybody else is told at once.
pub fn drain(
    job: &OpenJob,
    to: &str,
    (encoding, retention): (Encoding, Retention),
    until: &Until,
    flow: &Flow<'_>,
    tell: &mut dyn FnMut(Event<'_>),
) -> standfast_drain::Result<()> {
    let opening = Until { tries: 0, ..*until };
    let tell = &mut |event: Event<'_>| tell(event);
    let config = job.config.at(to);
    let (place, options) = (location::of_job(&config), location::options(&config));
    let open = || {
        let target = standfast_store::open(&place, &options)?;
        Ok(EncryptedStore::wrap(target, config.levels.global_key.as_ref())?)
    };
    let target = opening.persist(flow, tell, open)?;
    let open = || Drain::open(&*job.store, &*target, encoding);
    let drain = opening.persist(flow, tell, open)?.keeping(retention);
    drain.run(until, flow, tell)
}

/// A checkpoint in global storage, and the store it would come back to.
pub struct Fetch {
    source: OpenJob,
    local: Arc<dyn Store>,
    manifest: Manifest,
}

impl Fetch {
    /// Finds a checkpoint, the newest if none is named. `from` is the setting `global` if left out.
    pub fn open(place: &Place, from: Option<&str>, version: Option<u64>) -> Result<Self> {
        let loaded = place::load(place)?;
        let from = from.or(loaded.config.levels.global.as_deref()).filter(|from| !from.is_empty());
        let from = from.ok_or(Error::NoGlobal("fetch from"))?.to_owned();
        let mut far = loaded.clone();
        (far.config.place.store, far.config.levels.global) = (from.clone(), Some(from));
        let source = place::open_loaded(&far)?;
        let config = loaded.config.of_job(&source.name);
        let local = location::open_job(&config)?;
        let inventory = source.inventory()?;
        let manifest = place::choose(&inventory, version)?.clone();
        Ok(Self { source, local, manifest })
    }

    /// Which checkpoint.
    pub fn version(&self) -> Version {
        self.manifest.version
    }

    /// Brings it back. `lacking` is told how many bytes are to come.
    pub fn run(
        &self,
        stop: &AtomicBool,
        progress: &Progress,
        lacking: impl FnOnce(u64),
    ) -> Result<Carried> {
        let flow = Flow::new(&*self.local, stop, progress);
        let fetch = Drain::back(&*self.source.store, &*self.local, self.source.threads())?;
        lacking(standfast_drain::lack(&self.manifest, &fetch.arrived()?));
        Ok(fetch.carry(&self.manifest, &flow)?)
    }
}

/// The checkpoints of a node and of global storage, for whoever starts a program there.
pub struct Near {
    global: Arc<dyn Store>,
    local: Arc<dyn Store>,
    threads: usize,
    /// What the node has, newest first.
    pub here: Vec<Manifest>,
}

impl Near {
    /// Opens both; `None` where there is no global storage.
    pub fn look(config: &Config) -> Result<Option<Self>> {
        let Some(global) = location::open_global(config)? else { return Ok(None) };
        let local = location::open_job(config)?;
        let here = checkpoints(&*local)?;
        Ok(Some(Self { global, local, threads: config.threads(), here }))
    }

    /// What global storage has, newest first.
    pub fn there(&self) -> Result<Vec<Manifest>> {
        checkpoints(&*self.global)
    }

    /// Brings a checkpoint to the node.
    pub fn bring(&self, wanted: &Manifest) -> Result<()> {
        let (stop, progress) = (AtomicBool::new(false), Progress::default());
        let flow = Flow::new(&*self.local, &stop, &progress);
        Drain::back(&*self.global, &*self.local, self.threads)?.carry(wanted, &flow)?;
        Ok(())
    }
}

/// Newest first; none where there is no store yet.
fn checkpoints(store: &dyn Store) -> Result<Vec<Manifest>> {
    match Inventory::read(store) {
        Ok(inventory) => Ok(inventory.checkpoints),
        Err(standfast_restart::Unreadable::NoStore(_)) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}
