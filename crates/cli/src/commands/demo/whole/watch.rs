//! How far every checkpoint has come, seen from outside: by the nodes' stores and global storage.
//!
//! A checkpoint is on disk, or on the ring, when every node says so.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use standfast::config::Config;
use standfast::{Kind, Level, Manifest, ring};
use standfast_format::name;

use super::world::{JOB, NODES, World};
use crate::failure::{Failure, Result};
use crate::place::{self, OpenJob};

/// How often global storage is asked: each time is a process of its own.
const ASK: Duration = Duration::from_millis(400);

/// What is known of one checkpoint.
pub(super) struct Checkpoint {
    pub(super) manifest: Manifest,
    pub(super) level: Level,
    /// Of all its shards together.
    pub(super) shard_bytes: u64,
}

/// All that has been seen, of nodes that are gone as well.
pub(super) struct Watch {
    config: Config,
    pub(super) checkpoints: BTreeMap<u64, Checkpoint>,
    asked: Instant,
    /// The newest in global storage.
    pub(super) global: u64,
}

/// A checkpoint has reached a level.
pub(super) struct Reached {
    pub(super) version: u64,
    pub(super) level: Level,
}

impl Watch {
    pub(super) fn new() -> Result<Self> {
        let loaded = standfast::config::Loaded::load(&[("job".into(), JOB.into())])?;
        let checkpoints = BTreeMap::new();
        Ok(Self { config: loaded.config, checkpoints, asked: Instant::now(), global: 0 })
    }

    /// The newest checkpoint of a level or a higher one.
    pub(super) fn newest(&self, level: Level) -> Option<u64> {
        let mut versions = self.checkpoints.iter().rev();
        versions.find(|(_, checkpoint)| checkpoint.level >= level).map(|(version, _)| *version)
    }

    /// A job that goes on from a checkpoint takes the later ones again.
    pub(super) fn goes_on_from(&mut self, version: u64) {
        self.checkpoints.retain(|known, _| *known <= version);
    }

    /// Looks at every node, and at global storage now and then; tells what is new.
    pub(super) fn look(&mut self, world: &World<'_>) -> Result<Vec<Reached>> {
        let mut reached = self.look_at_nodes(world)?;
        if !self.checkpoints.is_empty() && self.asked.elapsed() > ASK {
            reached.extend(self.ask_global(world)?);
            self.asked = Instant::now();
        }
        Ok(reached)
    }

    fn look_at_nodes(&mut self, world: &World<'_>) -> Result<Vec<Reached>> {
        let mut stores = Vec::new();
        for node in 0..NODES.len() {
            match self.open(&world.disk(node))? {
                Some(job) => stores.push(job),
                None => return Ok(Vec::new()),
            }
        }
        let mut reached = Vec::new();
        for manifest in stores[0].inventory()?.checkpoints {
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
    fn open(&self, disk: &Path) -> Result<Option<OpenJob>> {
        let store = disk.to_string_lossy().into_owned();
        match place::open_job(Config { store, ..self.config.clone() }) {
            Ok(job) => Ok(Some(job)),
            Err(Failure::Error { kind: Kind::Missing, .. }) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    fn ask_global(&mut self, world: &World<'_>) -> Result<Option<Reached>> {
        let failed = |error| Failure::os("look into", "global storage", error);
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        world.surroundings(&mut command);
        command.args(["--store", &world.global(), "--job", JOB, "--json", "ls"]);
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
fn common_level(stores: &[OpenJob], manifest: &Manifest) -> Option<Level> {
    let own = name::manifest(manifest.version, Level::Local);
    let levels = stores
        .iter()
        .map(|job| job.store.open(&own).ok().map(|_| ring::level(&*job.store, manifest)));
    levels.min().flatten()
}

fn shard_bytes(stores: &[OpenJob], version: u64) -> u64 {
    let objects = stores.iter().filter_map(|job| job.store.list(name::SHARDS).ok()).flatten();
    let own = objects
        .filter(|object| name::parse_shard(&object.name).is_some_and(|(of, ..)| of.0 == version));
    own.map(|object| object.bytes).sum()
}
