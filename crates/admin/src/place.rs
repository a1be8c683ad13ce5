//! From names and configuration to an existing store, opened for looking.
//!
//! Data: a [`Place`], file and environment -> [`OpenJob`].
//!
//! Invariants:
//! - Nothing is created: a directory that is not there is an error, and locks are taken only
//!   where a store's header was read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use standfast::config::{Config, Loaded, Origin};
use standfast::{Kind, Manifest, Version, location};
use standfast_format::{StoreHeader, name};
use standfast_restart::{Inventory, Unreadable, read_header};
use standfast_store::{EncryptedStore, Lock, LockGuard, Store, UnionStore};

use crate::error::{Error, Result};
use crate::nodes;

/// Where to look, above file and environment.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// Directory or URL below which every job has its store.
    pub store: Option<String>,
    /// Stores of nodes, looked at together; `{node}` stands for any name.
    pub stores: Vec<String>,
    /// Name of the job.
    pub job: Option<String>,
    /// Where the key of global storage comes from.
    pub global_key: Option<String>,
}

/// A job's store that exists.
pub struct OpenJob {
    /// The job's name.
    pub name: String,
    /// Where it lies, as text.
    pub place: String,
    /// Its settings.
    pub config: Config,
    /// All of it: of the parts together where there are several.
    pub store: Arc<dyn Store>,
    /// The stores that are looked at.
    pub parts: Vec<Arc<dyn Store>>,
    /// The store's header.
    pub header: StoreHeader,
}

/// The effective configuration, with the place on top.
pub fn load(place: &Place) -> Result<Loaded> {
    let options = [("store", &place.store), ("job", &place.job), ("global_key", &place.global_key)];
    let given: Vec<(String, String)> = options
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)))
        .collect();
    Ok(Loaded::load(&given)?)
}

/// Opens the job that is named, or the only one there is.
pub fn open(place: &Place) -> Result<OpenJob> {
    let loaded = load(place)?;
    match place.stores.is_empty() {
        true => open_loaded(&loaded),
        false => open_several(place, &loaded),
    }
}

/// Opens the job of a configuration, or the only one there is.
pub(crate) fn open_loaded(loaded: &Loaded) -> Result<OpenJob> {
    let mut config = loaded.config.clone();
    if *loaded.origin("job") == Origin::Default {
        config.place.job = only_job(&config)?;
    }
    open_job(config)
}

/// Opens the stores of several nodes, as many as there are.
fn open_several(place: &Place, loaded: &Loaded) -> Result<OpenJob> {
    let mut places: Vec<String> = place.store.iter().cloned().collect();
    for pattern in &place.stores {
        places.extend(nodes::expand(pattern)?);
    }
    let mut jobs: Vec<OpenJob> = Vec::new();
    for store in places {
        let mut config = loaded.config.at(store);
        if let Some(first) = jobs.first() {
            config.place.job.clone_from(&first.name);
        } else if *loaded.origin("job") == Origin::Default {
            config.place.job = only_job(&config)?;
        }
        match open_job(config) {
            Ok(job) => jobs.push(job),
            // A replacement's is empty, and that is what there is to see.
            Err(error) if error.kind() == Kind::Missing => {}
            Err(error) => return Err(error),
        }
    }
    together(jobs, place)
}

fn together(mut jobs: Vec<OpenJob>, place: &Place) -> Result<OpenJob> {
    if let Some(other) = jobs.iter().find(|other| other.header.id != jobs[0].header.id) {
        let (one, other) = (jobs[0].place.clone(), other.place.clone());
        return Err(Error::DifferentRuns { one, other });
    }
    let parts: Vec<Arc<dyn Store>> = jobs.iter().map(|job| Arc::clone(&job.store)).collect();
    let places: Vec<String> = jobs.iter().map(|job| job.place.clone()).collect();
    let first = match jobs.is_empty() {
        true => return Err(Error::NoStores(place.stores.join(", "))),
        false => jobs.swap_remove(0),
    };
    let store = Arc::new(UnionStore::new(parts.clone()));
    Ok(OpenJob { place: places.join(", "), store, parts, ..first })
}

/// Opens the store of a configured job. One that is encrypted needs the key of global storage, which
/// itself must be encrypted where there is a key.
pub fn open_job(config: Config) -> Result<OpenJob> {
    let place = location::of_job(&config);
    if let Some(dir) = directory(&place)?
        && !dir.is_dir()
    {
        return Err(no_such_job(&config));
    }
    let mut store = location::open_job(&config)?;
    let key = config.levels.global_key.as_ref();
    if key.is_some() && (config.is_global() || is_encrypted(&*store)) {
        store = EncryptedStore::wrap(store, key)?;
    }
    let header = read_header(&*store)?;
    let parts = vec![Arc::clone(&store)];
    Ok(OpenJob { name: config.place.job.clone(), place, config, store, parts, header })
}

fn is_encrypted(store: &dyn Store) -> bool {
    matches!(read_header(store), Err(Unreadable::Encrypted { .. }))
}

impl OpenJob {
    /// The checkpoints.
    pub fn inventory(&self) -> Result<Inventory> {
        Ok(Inventory::read(&*self.store)?)
    }

    /// Keeps prune away while data are read.
    pub fn lock(&self) -> Result<LockGuard> {
        Ok(self.store.lock(Lock::ReadShared)?)
    }

    /// Threads to read and check with.
    pub fn threads(&self) -> usize {
        self.config.node.io_threads.max(self.config.threads())
    }
}

/// A given checkpoint, or the newest.
pub fn choose(inventory: &Inventory, version: Option<u64>) -> Result<&Manifest> {
    match version {
        Some(version) => Ok(inventory.checkpoint(Version(version))?),
        None => inventory
            .checkpoints
            .first()
            .ok_or_else(|| Error::NoCheckpoint(inventory.header.job.clone())),
    }
}

/// The jobs below the configured place, sorted.
pub fn jobs(config: &Config) -> Result<Vec<String>> {
    let mut jobs = match directory(&config.place.store)? {
        Some(dir) => jobs_of_directory(&dir)?,
        None => jobs_of_objects(config)?,
    };
    jobs.sort();
    Ok(jobs)
}

fn jobs_of_directory(dir: &Path) -> Result<Vec<String>> {
    let unreadable = |source| Error::Unreadable { place: dir.display().to_string(), source };
    let mut jobs = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let Ok(job) = entry.file_name().into_string() else { continue };
        if name::check_job(&job).is_ok() && is_store(&entry.path()) {
            jobs.push(job);
        }
    }
    Ok(jobs)
}

/// Whether a directory looks like the store of a job, also where its header is gone.
fn is_store(dir: &Path) -> bool {
    name::HEADERS.iter().any(|header| dir.join(header).is_file())
        || dir.join(name::MANIFESTS).is_dir() && dir.join(name::SEGMENTS).is_dir()
}

fn jobs_of_objects(config: &Config) -> Result<Vec<String>> {
    let root = standfast_store::open(&config.place.store, &location::options(config))?;
    let jobs = root.list("")?.into_iter().filter_map(|object| {
        let (job, rest) = object.name.split_once('/')?;
        let is_file = name::HEADERS.contains(&rest) || name::parse_manifest(rest).is_some();
        (is_file && name::check_job(job).is_ok()).then(|| job.to_owned())
    });
    let jobs: BTreeSet<String> = jobs.collect();
    Ok(jobs.into_iter().collect())
}

fn only_job(config: &Config) -> Result<String> {
    let mut jobs = jobs(config)?;
    match jobs.len() {
        0 => Err(no_jobs(config)),
        1 => Ok(jobs.remove(0)),
        _ => Err(Error::SeveralJobs { store: config.place.store.clone(), jobs }),
    }
}

/// There is a place, but no job in it.
pub(crate) fn no_jobs(config: &Config) -> Error {
    Error::NoJobs { store: config.place.store.clone(), is_job: within_a_store(&config.place.store) }
}

fn no_such_job(config: &Config) -> Error {
    let others = jobs(config).unwrap_or_default();
    if others.is_empty() && within_a_store(&config.place.store).is_some() {
        return no_jobs(config);
    }
    Error::NoSuchJob { store: config.place.store.clone(), job: config.place.job.clone(), others }
}

/// Parent and name, if the location itself is one job's store.
fn within_a_store(location: &str) -> Option<(PathBuf, String)> {
    let dir = directory(location).ok()??;
    let dir = dir.canonicalize().ok()?;
    let job = dir.file_name()?.to_str()?.to_owned();
    is_store(&dir).then(|| (dir.parent().unwrap_or(&dir).into(), job))
}

/// Whether the kernel releases a store's locks when their holder dies: object stores keep them.
pub fn forgets_the_dead(location: &str) -> bool {
    !location.starts_with("object-file:") && matches!(directory(location), Ok(Some(_)))
}

/// The directory behind a location; `None` for one of another machine.
fn directory(location: &str) -> Result<Option<PathBuf>> {
    if location.starts_with("memory:") {
        return Err(Error::InMemory);
    }
    for scheme in ["file://", "object-file://"] {
        if let Some(path) = location.strip_prefix(scheme) {
            return Ok(Some(path.into()));
        }
    }
    let is_url = location.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty()
            && scheme.bytes().all(|b| b.is_ascii_lowercase() || b == b'-' || b.is_ascii_digit())
    });
    Ok((!is_url).then(|| location.into()))
}

#[cfg(test)]
mod tests;
