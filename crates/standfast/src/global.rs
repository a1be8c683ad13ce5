//! The global level as a job sees it: what is there, and where its own numbers must go on.
//!
//! Data: setting `global` -> the first rank looks -> all are told.
//!
//! Looking is bounded by the client's patience. Global storage that does not answer may have a newer
//! checkpoint than the nodes, of a run elsewhere, so that is an error: going back because a network
//! was down would throw away what was reached. Who names a version does not mind; then it is a remark.

use std::sync::Arc;

use standfast_checkpoint::Holdings;
use standfast_comm::{Collective, Step};
use standfast_format::{Abandoned, History, Kind, Manifest, StoreHeader, Version};
use standfast_restart::{Damaged, Inventory, read_header};
use standfast_store::{Lock, LockGuard, Store};

use crate::config::Config;
use crate::error::{Cause, Error, Phase, Result, Stop};
use crate::history;
use crate::location;

/// What global storage offers.
#[derive(Debug, Default)]
pub(crate) struct Offer {
    /// Newest first.
    pub(crate) checkpoints: Vec<Manifest>,
    /// Manifests there that cannot be read.
    pub(crate) damaged: Vec<Damaged>,
    /// What it says of the job's starts.
    pub(crate) history: Option<History>,
    /// Why nobody knows what there is.
    pub(crate) unknown: Option<String>,
}

/// The largest numbers that a level has seen, and those that this run has left behind: new checkpoints
/// come after them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Floor {
    pub(crate) version: u64,
    pub(crate) sequence: u64,
    /// What this run has abandoned when it went back.
    pub(crate) abandons: Option<Abandoned>,
}

impl Floor {
    /// Takes in what there is.
    pub(crate) fn raise(&mut self, checkpoints: &[Manifest]) {
        for manifest in checkpoints {
            self.version = self.version.max(manifest.version.0);
            self.sequence = self.sequence.max(manifest.sequence);
        }
    }

    /// The run goes on from this place in the order of commits, of which `last` is the last one.
    pub(crate) fn go_back(&mut self, sequence: u64, last: u64) {
        self.abandons = (sequence < last).then(|| Abandoned { first: sequence + 1, last });
    }

    /// The version after all of these.
    pub(crate) fn next(&self, largest: Option<Version>) -> Version {
        let largest = largest.map_or(0, |version| version.0).max(self.version);
        Version(largest.saturating_add(1))
    }
}

/// The header of the job in global storage, which a store that is new takes over: then it is the
/// same job, and what it stores can be drained there.
pub(crate) fn header(config: &Config) -> Result<Option<StoreHeader>> {
    let Some(store) = reach(config)? else { return Ok(None) };
    match read_header(&*store) {
        Ok(header) => Ok(Some(header)),
        Err(standfast_restart::Unreadable::NoStore(_)) => Ok(None),
        Err(error) => Err(unreachable(config, &error.into())),
    }
}

/// Asks global storage, if there is one. `must`: whether it must answer.
pub(crate) fn ask(
    team: &Collective,
    config: &Config,
    header: &StoreHeader,
    must: bool,
) -> Phase<Offer> {
    if config.levels.global.is_none() {
        return Ok(Offer::default());
    }
    let first = || {
        let found = look(config, header)?;
        Ok(found.map(|found| (Holdings::of(&found), history::of_global(config, header))))
    };
    let told = match team.tell(Step("global"), first) {
        Ok(told) => told.into_inner(),
        Err(Stop::Failed(why)) if !must => {
            let unknown = Some(why.error().to_string());
            return Ok(Offer { unknown, ..Offer::default() });
        }
        Err(stop) => return Err(stop),
    };
    let Some((told, history)) = told else { return Ok(Offer::default()) };
    let mut inventory =
        Inventory { header: header.clone(), checkpoints: Vec::new(), damaged: Vec::new() };
    told.take_in(&mut inventory);
    let damaged = inventory.damaged.into_iter();
    let damaged = damaged
        .map(|Damaged { object, error }| Damaged {
            object: format!("{object} in global storage"),
            error,
        })
        .collect();
    Ok(Offer { checkpoints: inventory.checkpoints, damaged, history, unknown: None })
}

/// What is there; `None` if nothing ever was.
pub(crate) fn look(config: &Config, header: &StoreHeader) -> Result<Option<Inventory>> {
    let Some(store) = reach(config)? else { return Ok(None) };
    match Inventory::read(&*store) {
        Ok(inventory) if inventory.header.id == header.id => Ok(Some(inventory)),
        Ok(_) => Err(Cause::OtherJob { place: store.describe() }.into()),
        Err(standfast_restart::Unreadable::NoStore(_)) => Ok(None),
        Err(error) => Err(unreachable(config, &error.into())),
    }
}

fn reach(config: &Config) -> Result<Option<Arc<dyn Store>>> {
    location::open_global(config).map_err(|error| unreachable(config, &error))
}

fn unreachable(config: &Config, error: &Error) -> Error {
    let (place, kind) = (config.levels.global.clone().unwrap_or_default(), error.kind());
    Cause::Global { place, kind, why: error.to_string() }.into()
}

/// Opens global storage to read a checkpoint, which is not pruned meanwhile.
pub(crate) fn open(config: &Config, version: Version) -> Result<(Arc<dyn Store>, LockGuard)> {
    let store = reach(config)?;
    let store = store.ok_or_else(|| Error::config("global: it is not set".into()))?;
    let lock = match store.lock(Lock::Keep(version.0)) {
        Ok(lock) => lock,
        // Who may only read there needs no leave; nor does a reader wait for a prune that asks.
        Err(error) if matches!(error.kind(), Kind::Denied | Kind::Busy) => {
            LockGuard::new(Lock::Keep(version.0), ())
        }
        Err(error) => return Err(unreachable(config, &error.into())),
    };
    Ok((store, lock))
}
