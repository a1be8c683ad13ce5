//! From options and configuration to an existing store, opened for looking.
//!
//! Data: `--store`, `--stores`, `--job`, file and environment -> [`OpenJob`].
//!
//! Invariants:
//! - Nothing is created: a directory that is not there is an error, and locks are taken only
//!   where a store's header was read.

mod nodes;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use standfast::config::{Config, Loaded, Origin};
use standfast::{Kind, Manifest, Version, location};
use standfast_format::{StoreHeader, name};
use standfast_restart::{Inventory, read_header};
use standfast_store::{Lock, LockGuard, Store, UnionStore};

use crate::args::Global;
use crate::failure::{Failure, Result};

/// A job's store that exists.
pub(crate) struct OpenJob {
    /// The job's name.
    pub(crate) name: String,
    /// Where it lies, as text.
    pub(crate) place: String,
    pub(crate) config: Config,
    /// All of it: of the parts together where there are several.
    pub(crate) store: Arc<dyn Store>,
    /// The stores that are looked at.
    pub(crate) parts: Vec<Arc<dyn Store>>,
    pub(crate) header: StoreHeader,
}

/// The effective configuration, with the command's own options on top.
pub(crate) fn load(global: &Global) -> Result<Loaded> {
    let options = [("store", &global.store), ("job", &global.job)];
    let given: Vec<(String, String)> = options
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)))
        .collect();
    Ok(Loaded::load(&given)?)
}

/// Opens the job that is named, or the only one there is.
pub(crate) fn open(global: &Global) -> Result<OpenJob> {
    let loaded = load(global)?;
    let mut config = loaded.config.clone();
    if !global.stores.is_empty() {
        return open_several(global, &loaded);
    }
    if *loaded.origin("job") == Origin::Default {
        config.job = only_job(&config)?;
    }
    open_job(config)
}

/// Opens the stores of several nodes, as many as there are.
fn open_several(global: &Global, loaded: &Loaded) -> Result<OpenJob> {
    let mut places: Vec<String> = global.store.iter().cloned().collect();
    for pattern in &global.stores {
        places.extend(nodes::expand(pattern)?);
    }
    let mut jobs: Vec<OpenJob> = Vec::new();
    for place in places {
        let mut config = Config { store: place, ..loaded.config.clone() };
        if let Some(first) = jobs.first() {
            config.job.clone_from(&first.name);
        } else if *loaded.origin("job") == Origin::Default {
            config.job = only_job(&config)?;
        }
        match open_job(config) {
            Ok(job) => jobs.push(job),
            // A replacement's is empty, and that is what there is to see.
            Err(failure) if failure.kind() == Some(Kind::Missing) => {}
            Err(failure) => return Err(failure),
        }
    }
    together(jobs, global)
}

fn together(mut jobs: Vec<OpenJob>, global: &Global) -> Result<OpenJob> {
    let none = || {
        let places = global.stores.join(", ");
        Failure::new(Kind::Missing, format!("no store of a job in {places}"))
            .advise("name the places with --stores, the job with --job")
    };
    if let Some(other) = jobs.iter().find(|other| other.header.id != jobs[0].header.id) {
        let why = format!("{} and {} are of different runs", jobs[0].place, other.place);
        return Err(Failure::new(Kind::Invalid, why));
    }
    let parts: Vec<Arc<dyn Store>> = jobs.iter().map(|job| Arc::clone(&job.store)).collect();
    let places: Vec<String> = jobs.iter().map(|job| job.place.clone()).collect();
    let first = if jobs.is_empty() { return Err(none()) } else { jobs.swap_remove(0) };
    let store = Arc::new(UnionStore::new(parts.clone()));
    Ok(OpenJob { place: places.join(", "), store, parts, ..first })
}

/// Opens the store of a configured job.
pub(crate) fn open_job(config: Config) -> Result<OpenJob> {
    let place = location::of_job(&config);
    if let Some(dir) = directory(&place)?
        && !dir.is_dir()
    {
        return Err(no_such_job(&config));
    }
    let store = location::open_job(&config)?;
    let header = read_header(&*store)?;
    let parts = vec![Arc::clone(&store)];
    Ok(OpenJob { name: config.job.clone(), place, config, store, parts, header })
}

impl OpenJob {
    /// The checkpoints.
    pub(crate) fn inventory(&self) -> Result<Inventory> {
        Ok(Inventory::read(&*self.store)?)
    }

    /// Keeps prune away while data are read.
    pub(crate) fn lock(&self) -> Result<LockGuard> {
        Ok(self.store.lock(Lock::ReadShared)?)
    }

    /// Threads to read and check with.
    pub(crate) fn threads(&self) -> usize {
        self.config.io_threads.max(self.config.threads())
    }
}

/// A given checkpoint, or the newest.
pub(crate) fn choose(inventory: &Inventory, version: Option<u64>) -> Result<&Manifest> {
    match version {
        Some(version) => Ok(inventory.checkpoint(Version(version))?),
        None => inventory.checkpoints.first().ok_or_else(|| {
            Failure::new(
                Kind::Missing,
                format!("job {:?} has no checkpoint that can be read", inventory.header.job),
            )
        }),
    }
}

/// The jobs below the configured place, sorted.
pub(crate) fn jobs(config: &Config) -> Result<Vec<String>> {
    let mut jobs = match directory(&config.store)? {
        Some(dir) => jobs_of_directory(&dir)?,
        None => jobs_of_objects(config)?,
    };
    jobs.sort();
    Ok(jobs)
}

fn jobs_of_directory(dir: &Path) -> Result<Vec<String>> {
    let unreadable = |error| {
        Failure::os("look into", dir.display(), error)
            .advise("name the place with --store (or STANDFAST_STORE, or standfast.toml)")
    };
    let mut jobs = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let Ok(job) = entry.file_name().into_string() else { continue };
        if name::check_job(&job).is_ok() && entry.path().join(name::STORE).is_file() {
            jobs.push(job);
        }
    }
    Ok(jobs)
}

fn jobs_of_objects(config: &Config) -> Result<Vec<String>> {
    let root = standfast_store::open(&config.store, &location::options(config))?;
    let suffix = format!("/{}", name::STORE);
    let jobs = root.list("")?.into_iter().filter_map(|object| {
        let job = object.name.strip_suffix(&suffix)?;
        name::check_job(job).is_ok().then(|| job.to_owned())
    });
    Ok(jobs.collect())
}

fn only_job(config: &Config) -> Result<String> {
    let mut jobs = jobs(config)?;
    if jobs.len() == 1 {
        return Ok(jobs.remove(0));
    }
    if jobs.is_empty() {
        return Err(no_jobs(config));
    }
    Err(Failure::new(
        Kind::Invalid,
        format!("{} holds several jobs: {}", config.store, jobs.join(", ")),
    )
    .advise("name one with --job (or STANDFAST_JOB, or standfast.toml)"))
}

/// There is a place, but no job in it.
pub(crate) fn no_jobs(config: &Config) -> Failure {
    let failure = Failure::new(Kind::Missing, format!("{} holds no job", config.store));
    match within_a_store(&config.store) {
        Some((parent, job)) => failure.advise(format!(
            "this is the store of one job: use --store {} --job {job}",
            parent.display()
        )),
        None => failure.advise(
            "name the place with --store (or STANDFAST_STORE, or standfast.toml); jobs appear there with their first checkpoint",
        ),
    }
}

fn no_such_job(config: &Config) -> Failure {
    let failure =
        Failure::new(Kind::Missing, format!("{} holds no job {:?}", config.store, config.job));
    match jobs(config) {
        Ok(jobs) if !jobs.is_empty() => {
            failure.advise(format!("the jobs there: {}", jobs.join(", ")))
        }
        _ => match within_a_store(&config.store) {
            Some(_) => no_jobs(config),
            None => failure
                .advise("name the place with --store (or STANDFAST_STORE, or standfast.toml)"),
        },
    }
}

/// Parent and name, if the location itself is one job's store.
fn within_a_store(location: &str) -> Option<(PathBuf, String)> {
    let dir = directory(location).ok()??;
    let dir = dir.canonicalize().ok()?;
    let job = dir.file_name()?.to_str()?.to_owned();
    dir.join(name::STORE).is_file().then(|| (dir.parent().unwrap_or(&dir).into(), job))
}

/// Whether the kernel releases a store's locks when their holder dies: object stores keep them.
pub(crate) fn forgets_the_dead(location: &str) -> bool {
    !location.starts_with("object-file:") && matches!(directory(location), Ok(Some(_)))
}

/// The directory behind a location; `None` for one of another machine.
fn directory(location: &str) -> Result<Option<PathBuf>> {
    if location.starts_with("memory:") {
        return Err(Failure::new(
            Kind::Invalid,
            "a memory: store lives and dies inside its program; there is nothing to look at",
        ));
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
mod tests {
    use super::*;

    #[test]
    fn directories_and_urls_are_told_apart() {
        assert_eq!(directory("/a/b:c").unwrap(), Some("/a/b:c".into()));
        assert_eq!(directory("file:///a").unwrap(), Some("/a".into()));
        assert_eq!(directory("object-file:///a").unwrap(), Some("/a".into()));
        assert_eq!(directory("s3://bucket/x").unwrap(), None);
        assert!(directory("memory:").is_err());
    }
}
