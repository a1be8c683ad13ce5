//! Every setting, defined once: its name, what it means, how to read it and how to show it.
//!
//! The file, the environment, the API, `standfast config` and the reference in the docs all go
//! through one table, [`KEYS`], so a setting cannot exist in one of them and not in another. A
//! module for each topic defines its settings; the table says in which order they are shown.

mod agent;
mod capture;
mod device;
mod drain;
mod keep;
mod pages;
mod point;
mod reduce;
mod restart;
mod ring;
mod store;
mod text;
mod write;

pub use capture::{Capture, Track};
pub use keep::WhenFull;
pub use pages::{Mode, Strategy, Threshold};
pub use point::Interval;
pub use restart::Restart;
pub use ring::{Ring, RingArithmetic};
pub use write::Write;

use super::settings::Config;

/// One setting.
pub struct Key {
    /// Its name in file, environment (`STANDFAST_` and capitals) and API.
    pub name: &'static str,
    /// What it means, in a sentence.
    pub help: &'static str,
    /// Its default, as text.
    pub default: &'static str,
    pub(in crate::config) set: fn(&mut Config, &str) -> Result<(), String>,
    /// Its value in a configuration, as text.
    pub show: fn(&Config) -> String,
}

/// All settings, in the order in which they are shown.
pub const KEYS: &[Key] = &[
    store::STORE,
    store::NODE,
    store::JOB,
    pages::PAGE,
    pages::HASH,
    pages::MODE,
    pages::STRATEGY,
    pages::THRESHOLD,
    capture::TRACK,
    capture::CAPTURE,
    capture::COW_POOL,
    restart::RESTART,
    reduce::PIPELINE,
    reduce::CODEC,
    reduce::FILTER,
    reduce::BLOCK,
    write::POOL,
    write::WRITE,
    write::WAG_THRESHOLD,
    agent::AGENT_DIR,
    agent::AGENT_COMMAND,
    agent::AGENT_IDLE,
    write::SEGMENT,
    reduce::THREADS,
    write::IO,
    write::IO_THREADS,
    keep::KEEP,
    keep::KEEP_GLOBAL,
    keep::KEEP_EVERY,
    keep::LOCAL_BYTES,
    keep::WHEN_FULL,
    drain::GLOBAL,
    drain::DRAIN_CODEC,
    drain::DRAIN_RATE,
    drain::DRAIN_EVERY,
    drain::DRAIN_NICE,
    drain::DRAIN_IONICE,
    drain::DRAIN_CPUS,
    ring::RING,
    ring::RING_GROUP,
    ring::RING_SHARDS,
    ring::RING_ARITHMETIC,
    point::INTERVAL,
    point::MTTI,
    device::DEVICE_STAGING,
    device::DEVICE_CODEC,
    point::SIGNAL,
    point::ASK,
];

/// The setting of this name.
pub fn key(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// Why a name is refused that no setting has.
pub(in crate::config) fn unknown(name: &str) -> String {
    let known: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
    format!("there is no setting {name:?}; there are {}", known.join(", "))
}
