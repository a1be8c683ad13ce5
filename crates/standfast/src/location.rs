//! Where a job's store is: the job's name below the configured place.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use standfast_agent::Place;
use standfast_store::{EncryptedStore, Options, Store};

use crate::config::Config;
use crate::error::Result;

/// Stands for the node's name in a location: a store for each node.
const NODE: &str = "{node}";
/// The name that stands for the host's own.
const HOST: &str = "host";

/// The store's location as text.
pub fn of_job(config: &Config) -> String {
    let place = &config.place;
    if place.store == "memory:" {
        return place.store.clone();
    }
    let store = place.store.replace(NODE, &node(config));
    format!("{}/{}", store.trim_end_matches('/'), place.job)
}

/// The name of this node.
pub fn node(config: &Config) -> String {
    if config.node.name != HOST {
        return config.node.name.clone();
    }
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// How the store is to be written and read.
pub fn options(config: &Config) -> Options {
    let (io, io_threads, trust) = (config.node.io, config.node.io_threads, config.trust.clone());
    Options { io, io_threads, trust, ..Options::default() }
}

/// The directory of the node's agent, where it is not the usual one. A node that has a name of its
/// own has an agent of its own, also where several of them are played by one machine.
pub fn agent_dir(config: &Config) -> Option<PathBuf> {
    let configured = (!config.agent.dir.is_empty()).then(|| PathBuf::from(&config.agent.dir));
    if config.node.name == HOST {
        return configured;
    }
    let plain = |char: char| if char.is_ascii_alphanumeric() { char } else { '_' };
    let mut dir = configured.unwrap_or_else(Place::usual_dir).into_os_string();
    dir.push("-");
    dir.push(config.node.name.chars().map(plain).collect::<String>());
    Some(PathBuf::from(dir))
}

/// Opens the global store of the configured job to look at it; `None` if it has none.
pub fn open_global(config: &Config) -> Result<Option<Arc<dyn Store>>> {
    let Some(global) = &config.levels.global else { return Ok(None) };
    let global = config.at(global);
    // Opening a store for reading never creates it: a full or read-only global store stops no job.
    if is_absent_directory(&of_job(&global)) {
        return Ok(None);
    }
    Ok(Some(EncryptedStore::wrap(open_job(&global)?, config.levels.global_key.as_ref())?))
}

/// Whether a place is a directory that does not exist.
fn is_absent_directory(place: &str) -> bool {
    let path = place.strip_prefix("file://").unwrap_or(place);
    let is_none = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    !path.contains("://") && Path::new(path).metadata().is_err_and(|error| is_none(&error))
}

/// The place of the configured job in global storage as text, if it has one; a directory by its whole path, for the
/// agent's own directory is another.
pub(crate) fn of_global(config: &Config) -> Option<String> {
    let place = of_job(&config.at(config.levels.global.as_ref()?));
    Some(match place.contains("://") {
        true => place,
        false => std::path::absolute(&place).map_or(place, |path| path.display().to_string()),
    })
}

/// Opens the store of the configured job.
pub fn open_job(config: &Config) -> Result<Arc<dyn Store>> {
    Ok(standfast_store::open(&of_job(config), &options(config))?)
}
