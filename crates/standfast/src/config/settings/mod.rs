//! The public settings: 16 words, typed values, by topic.
//!
//! Data: text of a word -> [`KEYS`] -> [`Settings`] -> `resolve` -> the engine's own
//! [`Config`](super::Config).
//!
//! The defaults are those that need nothing but a directory. What `auto` stands for is said with
//! each type; it never fails.

mod choice;
mod codec;
mod keys;
mod levels;
mod point;
mod restart_from;
mod retention;
mod share;
mod writing;

pub use choice::Choice;
pub use codec::Codec;
pub use keys::{KEYS, key};
pub use levels::{NodeLosses, Rate};
pub use point::Pacing;
pub use restart_from::RestartFrom;
pub use retention::Retention;
pub use share::Share;
pub use writing::{AgentUse, Capture, GpuUse, Restart};

use standfast_store::KeySource;
use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use standfast_capture::Signal;

use super::size::ByteSize;

/// The key of a setting.
pub type SettingKey = super::key::Key<Settings>;

/// Everything a user sets.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// Where checkpoints are, and which stay.
    pub place: PlaceSettings,
    /// How they are taken and written.
    pub writing: WritingSettings,
    /// When they are taken and how a restart loads them.
    pub timing: TimingSettings,
    /// What they survive.
    pub levels: LevelSettings,
}

/// Where checkpoints are, and which stay.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PlaceSettings {
    /// Directory or URL below which every job has its store.
    pub store: String,
    /// Name of the job.
    pub job: String,
    /// Who else may read the store, and whose files are read.
    pub share: Share,
    /// Checkpoints that stay in the store.
    pub keep: Retention,
}

/// How checkpoints are taken and written.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct WritingSettings {
    /// How memory is captured.
    pub capture: Choice<Capture>,
    /// Memory that Standfast may use on each node.
    pub memory: Choice<ByteSize>,
    /// How pages are compressed.
    pub codec: Codec,
    /// What GPUs do.
    pub gpu: GpuUse,
    /// Whether one process per node writes for all ranks.
    pub agent: AgentUse,
}

/// When checkpoints are taken and how a restart loads them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TimingSettings {
    /// How often a point takes a checkpoint.
    pub interval: Pacing,
    /// Signal that requests one.
    pub signal: Option<Signal>,
    /// Whether a restart loads everything first.
    pub restart: Choice<Restart>,
    /// Where it starts.
    pub from: RestartFrom,
}

/// What checkpoints survive.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LevelSettings {
    /// Losses of nodes.
    pub ring: Choice<NodeLosses>,
    /// Global storage, if any.
    pub global: Option<String>,
    /// Checkpoints that stay there.
    pub global_keep: Retention,
    /// Upload limit of a node.
    pub global_rate: Option<Rate>,
    /// Where the key comes from that encrypts it.
    pub global_key: Option<KeySource>,
}

impl Default for PlaceSettings {
    fn default() -> Self {
        let keep = Retention { newest: Some(8), ..Retention::ALL };
        Self { store: "standfast-store".into(), job: "job".into(), share: Share::default(), keep }
    }
}

impl Default for WritingSettings {
    fn default() -> Self {
        Self {
            capture: Choice::Auto,
            memory: Choice::Auto,
            codec: Codec::fast(),
            gpu: GpuUse::Auto,
            agent: AgentUse::Auto,
        }
    }
}

impl Default for TimingSettings {
    fn default() -> Self {
        Self { interval: Pacing::Off, signal: None, restart: Choice::Auto, from: RestartFrom::Auto }
    }
}

impl Default for LevelSettings {
    fn default() -> Self {
        Self {
            ring: Choice::Set(NodeLosses::NONE),
            global: None,
            global_keep: Retention::ALL,
            global_rate: None,
            global_key: None,
        }
    }
}

impl Settings {
    /// Sets one value from text, as file, environment and API do.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), String> {
        let key = key(name).ok_or_else(|| super::names::unknown(name))?;
        (key.set)(self, text).map_err(|why| format!("{name}: {why}"))
    }
}

/// As the file has it: a flat table of words.
impl Serialize for Settings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(KEYS.iter().map(|key| (key.name, (key.show)(self))))
    }
}

/// From a flat table of words; those that are missing keep their defaults.
impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Words;
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Value {
            Text(String),
            Number(u64),
        }
        impl<'de> Visitor<'de> for Words {
            type Value = Settings;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of settings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Settings, A::Error> {
                let mut settings = Settings::default();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    let text = match value {
                        Value::Text(text) => text,
                        Value::Number(number) => number.to_string(),
                    };
                    settings.set(&name, &text).map_err(A::Error::custom)?;
                }
                Ok(settings)
            }
        }
        deserializer.deserialize_map(Words)
    }
}
