//! Opening a job with typed settings.
//!
//! Data: values -> their words -> the same road as file, environment and call. What the builder
//! leaves out comes from there, and what it says wins.

use std::fmt::Display;

use standfast_comm::Comm;

use super::Job;
use crate::config::{
    AgentUse, ByteSize, Capture, Codec, GpuUse, Loaded, NodeLosses, Pacing, Rate, Restart,
    Retention, Signal,
};
use crate::error::Result;

/// What a job is opened with: [`Job::builder`].
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until it opens the job"]
pub struct JobBuilder {
    words: Vec<(String, String)>,
}

impl Job {
    /// Starts with what file and environment say.
    ///
    /// ```
    /// use standfast::Job;
    /// use standfast::config::{Codec, Pacing, TimeSpan};
    /// use std::time::Duration;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = dir.path().to_str().unwrap();
    /// let job = Job::builder()
    ///     .store(store)
    ///     .job("heat")
    ///     .codec(Codec::small())
    ///     .interval(Pacing::Every(TimeSpan(Duration::from_secs(600))))
    ///     .open()?;
    /// # Ok::<(), standfast::Error>(())
    /// ```
    pub fn builder() -> JobBuilder {
        JobBuilder::default()
    }
}

impl JobBuilder {
    /// Sets a word, as a file would; a later value of the same word replaces it.
    pub fn set(mut self, name: &str, value: impl Display) -> Self {
        self.words.retain(|(before, _)| before != name);
        self.words.push((name.into(), value.to_string()));
        self
    }

    /// Opens the job of this process alone.
    pub fn open(self) -> Result<Job> {
        Job::open_loaded(Loaded::load(&self.words)?)
    }

    /// Opens the job of several ranks: [`Job::open_comm`].
    pub fn open_comm(self, comm: &dyn Comm) -> Result<Job> {
        Job::open_comm(Loaded::load(&self.words)?, comm)
    }
}

/// A method for each word, with its type.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident: $type:ty;)+) => {
        impl JobBuilder {
            $(
                $(#[$doc])*
                pub fn $name(self, value: $type) -> Self {
                    self.set(stringify!($name), value)
                }
            )+
        }
    };
}

words! {
    /// Directory or URL below which every job has its store; `{node}` stands for the node's name.
    store: &str;
    /// Name of the job; a restart finds checkpoints by it.
    job: &str;
    /// Checkpoints that stay in the store.
    keep: Retention;
    /// How memory is captured.
    capture: Capture;
    /// Memory that Standfast may use on each node, for all ranks together.
    memory: ByteSize;
    /// How pages are compressed.
    codec: Codec;
    /// What GPUs do.
    gpu: GpuUse;
    /// Whether one process per node writes for all ranks.
    agent: AgentUse;
    /// How often [`Job::point`] takes a checkpoint.
    interval: Pacing;
    /// Signal that requests one.
    signal: Signal;
    /// Whether a restart loads everything first.
    restart: Restart;
    /// How many simultaneous losses of nodes checkpoints survive.
    ring: NodeLosses;
    /// Storage that survives the machine.
    global: &str;
    /// Checkpoints that stay there.
    global_keep: Retention;
    /// Upload limit of a node.
    global_rate: Rate;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::KEYS;

    #[test]
    fn every_word_has_a_method_and_the_last_value_counts() {
        let job = Job::builder().store("/nowhere").store("memory:").job("a").keep(Retention::ALL);
        let job = job.capture(Capture::Stop).memory(ByteSize(8 << 20)).codec(Codec::none());
        let job = job.gpu(GpuUse::Off).agent(AgentUse::Off).interval(Pacing::Auto(None));
        let job = job.signal(Signal::USR1).restart(Restart::Eager).ring(NodeLosses::NONE);
        let job = job.global("/g").global_keep(Retention::ALL).global_rate(Rate(ByteSize(9)));
        let mut named: Vec<&str> = job.words.iter().map(|(name, _)| name.as_str()).collect();
        let mut known: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
        named.sort_unstable();
        known.sort_unstable();
        assert_eq!(named, known);
        let job = job.global_keep(Retention { newest: Some(2), ..Retention::ALL }).open().unwrap();
        let settings = &job.config().settings;
        assert_eq!(settings.place.store, "memory:");
        assert_eq!(settings.levels.global_keep.newest, Some(2));
    }
}
