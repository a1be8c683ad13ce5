//! Where a job's store is: the job's name below the configured place.

use std::path::PathBuf;
use std::sync::Arc;

use standfast_store::{Options, Store};

use crate::config::Config;
use crate::error::Result;

/// Stands for the node's name in a location: a store for each node.
const NODE: &str = "{node}";
/// The name that stands for the host's own.
const HOST: &str = "host";

/// The store's location as text.
pub fn of_job(config: &Config) -> String {
    if config.store == "memory:" {
        return config.store.clone();
    }
    let store = config.store.replace(NODE, &node(config));
    format!("{}/{}", store.trim_end_matches('/'), config.job)
}

/// The name of this node.
pub fn node(config: &Config) -> String {
    if config.node != HOST {
        return config.node.clone();
    }
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// How the store is to be written and read.
pub fn options(config: &Config) -> Options {
    Options { io: config.io, io_threads: config.io_threads, ..Options::default() }
}

/// The directory of the node's agent, where one is configured.
pub fn agent_dir(config: &Config) -> Option<PathBuf> {
    (!config.agent_dir.is_empty()).then(|| PathBuf::from(&config.agent_dir))
}

/// Opens the global store of the configured job; `None` if it has none.
pub fn open_global(config: &Config) -> Result<Option<Arc<dyn Store>>> {
    if config.global.is_empty() {
        return Ok(None);
    }
    let global = Config { store: config.global.clone(), ..config.clone() };
    open_job(&global).map(Some)
}

/// Opens the store of the configured job.
pub fn open_job(config: &Config) -> Result<Arc<dyn Store>> {
    Ok(standfast_store::open(&of_job(config), &options(config))?)
}
