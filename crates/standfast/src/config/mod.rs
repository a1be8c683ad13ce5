//! Settings: defaults, then `standfast.toml`, then `STANDFAST_*`, then the program's call.
//!
//! Each type here is the value of a setting; [`JobBuilder`](crate::JobBuilder) has a method for each,
//! and `FromStr` and `Display` are the words of the file.
//!
//! Invariants:
//! - One word serves file, environment and call.
//! - A name that is no setting is an error wherever it is found: a misspelt setting must not be
//!   silently ignored.
//! - No source sets a word twice.

// Data: texts from each source -> `Settings` (public words) and `Lab` (experiments only) -> `resolve`
// -> `Loaded`: the effective `Config` and where every value came from. Sensible without any file.

mod key;
mod lab;
mod machine;
mod names;
mod resolve;
mod resolved;
mod settings;
mod size;
mod sources;
mod text;
mod time;

use std::collections::BTreeMap;

pub use settings::{
    AgentUse, Capture, Choice, Codec, GpuUse, NodeLosses, Pacing, Rate, Restart, RestartFrom,
    Retention, Share,
};
pub use size::ByteSize;
pub use standfast_capture::Signal;
pub use standfast_store::KeySource;
pub use time::TimeSpan;

// For the commands and libraries of this project; no promise covers it.
#[doc(hidden)]
pub use self::{
    key::Key,
    lab::{LAB_KEYS, Lab, LabKey, Mode, RingArithmetic, Strategy, Track, WhenFull, Write, lab_key},
    machine::Machine,
    resolve::resolve,
    resolved::Config,
    settings::{
        KEYS, LevelSettings, PlaceSettings, SettingKey, Settings, TimingSettings, WritingSettings,
        key,
    },
    sources::{FILE, Origin, PREFIX, parse_options},
};

use crate::error::{Error, Result};

/// Words that shape what ranks write together, and in which calls they talk.
const COMMON: [&str; 10] =
    ["store", "job", "share", "keep", "capture", "restart", "ring", "agent", "global", "gpu"];
/// The same, of those for experiments.
const COMMON_LAB: [&str; 9] = [
    "page",
    "hash",
    "mode",
    "strategy",
    "threshold",
    "ring_group",
    "ring_shards",
    "ring_arithmetic",
    "write",
];

/// The effective configuration and its origins.
#[derive(Clone, Debug)]
#[doc(hidden)]
pub struct Loaded {
    /// What the engine reads.
    pub config: Config,
    /// What users have set.
    pub settings: Settings,
    /// What experiments have set.
    pub lab: Lab,
    origins: BTreeMap<String, Origin>,
}

impl Loaded {
    /// Reads file and environment of this process, then applies the caller's settings.
    pub fn load(overrides: &[(String, String)]) -> Result<Self> {
        let mut loaded = Self::empty();
        loaded.read_sources(overrides)?;
        loaded.config =
            resolve(&loaded.settings, &loaded.lab, Machine::here(1)).map_err(Error::config)?;
        Ok(loaded)
    }

    fn empty() -> Self {
        Self {
            config: Config::default(),
            settings: Settings::default(),
            lab: Lab::default(),
            origins: BTreeMap::new(),
        }
    }

    /// Where a value came from; lab settings are named with their prefix.
    pub fn origin(&self, name: &str) -> &Origin {
        self.origins.get(name).unwrap_or(&Origin::Default)
    }

    fn set(&mut self, name: &str, text: &str, origin: Origin) -> Result<()> {
        let refused = |why: String| Error::config(format!("{origin}: {why}"));
        if self.origins.get(name).is_some_and(|before| before.is_same_source(&origin)) {
            return Err(refused(format!("{name:?} is set twice")));
        }
        let known = match name.strip_prefix(lab::PREFIX) {
            Some(bare) => lab_key(bare).map(|key| self.lab.set(key, text)),
            None => key(name).map(|key| (key.set)(&mut self.settings, text)),
        };
        known
            .ok_or_else(|| refused(names::unknown(name)))?
            .map_err(|why| refused(format!("{name}: {why}")))?;
        // Entering a directory must not be enough to run what its file says.
        let key = self.settings.levels.global_key.as_ref();
        if matches!(origin, Origin::File { .. }) && key.is_some_and(KeySource::is_command) {
            return Err(refused(
                "global_key: a command comes from environment or call only".into(),
            ));
        }
        self.origins.insert(name.into(), origin);
        Ok(())
    }

    /// What a job needs beside a configuration that makes sense: a store of its own and its key.
    pub(crate) fn check_job(&self) -> Result<()> {
        if self.config.is_global() {
            return Err(Error::config("store and global are the same location".into()));
        }
        self.config.check().map_err(Error::config)?;
        self.fingerprint().map(drop)
    }

    /// What tells the key of global storage from others.
    fn fingerprint(&self) -> Result<String> {
        let key = self.config.levels.global_key.as_ref().map(KeySource::key).transpose()?;
        Ok(key.map_or_else(|| "off".into(), |key| format!("(key {})", key.fingerprint())))
    }

    /// Words and values that all ranks of a job must have in common. Of the key it is what it is, not
    /// where it comes from.
    pub(crate) fn common(&self) -> Result<Vec<(String, String)>> {
        let own_key = ("global_key".to_owned(), self.fingerprint()?);
        let words = COMMON.iter().filter_map(|name| key(name));
        let words = words.map(|key| (key.name.to_owned(), (key.show)(&self.settings)));
        let lab = COMMON_LAB.iter().filter_map(|name| lab_key(name));
        let lab = lab.map(|key| (format!("{}{}", lab::PREFIX, key.name), (key.show)(&self.config)));
        Ok(words.chain(lab).chain([own_key]).collect())
    }

    /// Gives this rank its part of the memory of a node that has so many ranks.
    pub(crate) fn share_memory(&mut self, ranks: usize) -> Result<()> {
        let machine = Machine::here(ranks);
        self.config.share_memory(&self.settings, &self.lab, machine).map_err(Error::config)
    }

    /// Memory of an agent for the pages of so many ranks. What nobody has chosen counts for each
    /// rank, as it does where ranks write by themselves.
    pub(crate) fn agent_pool_bytes(&self, ranks: usize) -> u64 {
        let pool = self.config.memory.pool.0;
        if self.lab.has("pool") { pool } else { pool.saturating_mul(ranks as u64) }
    }
}

#[cfg(test)]
mod tests;
