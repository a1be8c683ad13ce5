//! How far every checkpoint has come, seen from outside: by the nodes' stores and global storage.
//!
//! A checkpoint is on disk, or on the ring, when every node says so.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::Value;
use standfast::config::Config;
use standfast::{Kind, Level, Manifest, location, ring};
use standfast_format::name;
use standfast_restart::{Inventory, read_header};
use standfast_store::Store;

use crate::nodes::{JOB, NODES, Nodes};
use crate::output::os;

/// How often global storage is asked: each time is a process of its own.
const ASK: Duration = Duration::from_millis(400);

/// What is known of one checkpoint.
pub(crate) struct Checkpoint {
    pub(crate) manifest: Manifest,
    pub(crate) level: Level,
    /// Of all its shards together.
    pub(crate) shard_bytes: u64,
}

/// All that has been seen, of nodes that are gone as well.
pub(crate) struct Watch {
    config: Config,
    pub(crate) checkpoints: BTreeMap<u64, Checkpoint>,
    asked: Instant,
    /// The newest in global storage.
    pub(crate) global: u64,
}

/// A checkpoint has reached a level.
pub(crate) struct Reached {
    pub(crate) version: u64,
    pub(crate) level: Level,
}

impl Watch {
    pub(crate) fn new() -> Result<Self> {
        let loaded = standfast::config::Loaded::load(&[("job".into(), JOB.into())])?;
        let checkpoints = BTreeMap::new();
        Ok(Self { config: loaded.config, checkpoints, asked: Instant::now(), global: 0 })
    }

    /// The newest checkpoint of a level or a higher one.
    pub(crate) fn newest(&self, level: Level) -> Option<u64> {
        let mut versions = self.checkpoints.iter().rev();
        versions.find(|(_, checkpoint)| checkpoint.level >= level).map(|(version, _)| *version)
    }

    /// A job that goes on from a checkpoint takes the later ones again.
    pub(crate) fn goes_on_from(&mut self, version: u64) {
        self.checkpoints.retain(|known, _| *known <= version);
    }

    /// Looks at every node, and at global storage now and then; tells what is new.
    pub(crate) fn look(&mut self, nodes: &Nodes<'_>) -> Result<Vec<Reached>> {
        let mut reached = self.look_at_nodes(nodes)?;
        if !self.checkpoints.is_empty() && self.asked.elapsed() > ASK {
            reached.extend(self.ask_global(nodes)?);
            self.asked = Instant::now();
        }
        Ok(reached)
    }

    fn look_at_nodes(&mut self, nodes: &Nodes<'_>) -> Result<Vec<Reached>> {
        let mut stores = Vec::new();
        for node in 0..NODES.len() {
            match self.open(&nodes.disk(node))? {
                Some(store) => stores.push(store),
                None => return Ok(Vec::new()),
            }
        }
        let mut reached = Vec::new();
        for manifest in Inventory::read(&*stores[0])?.checkpoints {
            let Some(level) = common_level(&stores, &manifest) else { continue };
            let version = manifest.version.0;
            let known = self.checkpoints.get(&version).map(|known| known.level);
            if known >= Some(level) {
                continue;
            }
            // Both at once, where nobody has looked in between.
            let skipped = known.is_none() && level == Level::Ring;
            let levels = skipped.then_some(Level::Local).into_iter().chain([level]);
            reached.extend(levels.map(|level| Reached { version, level }));
            let shard_bytes = if level == Level::Ring { shard_bytes(&stores, version) } else { 0 };
            self.checkpoints.insert(version, Checkpoint { manifest, level, shard_bytes });
        }
        reached.sort_by_key(|reached| reached.version);
        Ok(reached)
    }

    /// A node's store; `None` while it has none that can be read.
    fn open(&self, disk: &Path) -> Result<Option<Arc<dyn Store>>> {
        let store = disk.to_string_lossy().into_owned();
        if !disk.join(JOB).is_dir() {
            return Ok(None);
        }
        let store = location::open_job(&self.config.at(store))?;
        match read_header(&*store) {
            Ok(_) => Ok(Some(store)),
            Err(error) if error.kind() == Kind::Missing => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn ask_global(&mut self, nodes: &Nodes<'_>) -> Result<Option<Reached>> {
        let failed = |error| os("look into", "global storage", error);
        let mut command = Command::new(&nodes.command);
        nodes.surroundings(&mut command);
        command.args(["--store", &nodes.global(), "--job", JOB, "--json", "ls"]);
        // Before the first arrival there is no such job.
        let output = command.stdin(Stdio::null()).output().map_err(failed)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let records = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let versions = records.filter(|record| record["type"] == "checkpoint");
        let newest = versions.filter_map(|record| record["version"].as_u64()).max().unwrap_or(0);
        if newest <= self.global {
            return Ok(None);
        }
        self.global = newest;
        Ok(Some(Reached { version: newest, level: Level::Global }))
    }
}

/// The level that a checkpoint has reached on all nodes.
fn common_level(stores: &[Arc<dyn Store>], manifest: &Manifest) -> Option<Level> {
    let own = name::manifest(manifest.version, Level::Local);
    let levels =
        stores.iter().map(|store| store.open(&own).ok().map(|_| ring::level(&**store, manifest)));
    levels.min().flatten()
}

fn shard_bytes(stores: &[Arc<dyn Store>], version: u64) -> u64 {
    let objects = stores.iter().filter_map(|store| store.list(name::SHARDS).ok()).flatten();
    let own = objects
        .filter(|object| name::parse_shard(&object.name).is_some_and(|(of, ..)| of.0 == version));
    own.map(|object| object.bytes).sum()
}
